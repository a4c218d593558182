//! A client of the simulated OpenStack.

use std::time::Duration;

use bytes::Bytes;
use capwasm_sim_openstack::{OpenStack, Options};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Nova's oldest microversion that is used.
pub const MICROVERSION: &str = "compute 2.60";

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
}

/// A client with a token of the project `demo`, or another.
pub struct Client {
    address: String,
    pub token: String,
}

pub async fn cloud() -> (OpenStack, Client) {
    let cloud = OpenStack::start(Options::default()).await.unwrap();
    let client = Client::of(&cloud, "demo").await;
    (cloud, client)
}

impl Client {
    pub async fn of(cloud: &OpenStack, name: &str) -> Client {
        let mut client = Client { address: cloud.address().to_string(), token: String::new() };
        let answer = client.send("POST", "/identity/v3/auth/tokens", &password(name, "secret")).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        client.token = answer.headers["x-subject-token"].to_str().unwrap().to_owned();
        client
    }

    /// Sends a request; an error is a connection that ended without an answer.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Answer, String> {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(connection);
        let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let mut request = Request::builder().method(method).uri(path).header("host", &self.address);
        if !self.token.is_empty() {
            request = request.header("x-auth-token", &self.token);
        }
        let request = request.header("openstack-api-version", MICROVERSION).body(Full::new(bytes)).unwrap();
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        driver.abort();
        let text = || json!(String::from_utf8_lossy(&body));
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| text());
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// Status and body of an answer.
    pub async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let answer = self.send(method, path, &body).await.unwrap();
        (answer.status, answer.body)
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Makes something: what is under `key` in the answer.
    pub async fn make(&self, path: &str, key: &str, given: Value) -> Value {
        let (status, body) = self.ask("POST", path, json!({ key: given })).await;
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        body[key].clone()
    }

    pub async fn delete(&self, path: &str) -> u16 {
        self.ask("DELETE", path, Value::Null).await.0
    }

    /// Waits until what is at a path holds.
    pub async fn until(&self, path: &str, holds: impl Fn(u16, &Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let (status, body) = self.ask("GET", path, Value::Null).await;
            if holds(status, &body) {
                return body;
            }
            assert!(Instant::now() < deadline, "{path}: {status} {body}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A network with a subnet, a router to outside, and the subnet in it: ids of network, subnet and router.
    pub async fn network(&self, name: &str, cidr: &str) -> (String, String, String) {
        let network = self.make("/networking/v2.0/networks", "network", json!({ "name": name })).await;
        let given = json!({ "name": name, "network_id": network["id"], "ip_version": 4, "cidr": cidr });
        let subnet = self.make("/networking/v2.0/subnets", "subnet", given).await;
        let public = self.public().await;
        let given = json!({ "name": name, "external_gateway_info": { "network_id": public } });
        let router = self.make("/networking/v2.0/routers", "router", given).await;
        let path = format!("/networking/v2.0/routers/{}/add_router_interface", id(&router));
        let (status, body) = self.ask("PUT", &path, json!({ "subnet_id": subnet["id"] })).await;
        assert_eq!(status, 200, "{body}");
        (id(&network), id(&subnet), id(&router))
    }

    /// Id of the external network.
    pub async fn public(&self) -> String {
        let found = self.get("/networking/v2.0/networks?router:external=true").await;
        id(&found["networks"][0])
    }

    /// Ids of a flavor and an image.
    pub async fn flavor_and_image(&self) -> (String, String) {
        let flavors = self.get("/compute/v2.1/flavors").await;
        let images = self.get("/image/v2/images?name=node-image").await;
        (id(&flavors["flavors"][0]), id(&images["images"][0]))
    }

    /// Makes a server with these ports and more attributes: its id.
    pub async fn server(&self, name: &str, ports: &[&str], more: Value) -> String {
        let (flavor, image) = self.flavor_and_image().await;
        let networks: Vec<Value> = ports.iter().map(|port| json!({ "port": port })).collect();
        let mut server = json!({ "name": name, "flavorRef": flavor, "imageRef": image, "networks": networks });
        for (key, value) in more.as_object().into_iter().flatten() {
            server[key] = value.clone();
        }
        id(&self.make("/compute/v2.1/servers", "server", server).await)
    }
}

pub fn id(resource: &Value) -> String {
    resource["id"].as_str().unwrap_or_else(|| panic!("no id: {resource}")).to_owned()
}

/// A request for a token by password.
pub fn password(name: &str, password: &str) -> Value {
    let domain = json!({ "name": "Default" });
    json!({ "auth": {
        "identity": { "methods": ["password"], "password": { "user": { "name": name, "domain": domain, "password": password } } },
        "scope": { "project": { "name": name, "domain": domain } },
    } })
}

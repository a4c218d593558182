//! A client with a token.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::Access;

/// What `Cloud` sends with each request to Nova.
const COMPUTE_MICROVERSION: &str = "2.60";

/// The services, for one user in one project.
#[derive(Clone)]
pub struct Cloud {
    http: Client<HttpConnector, Full<Bytes>>,
    token: String,
    /// Public URLs by type of service.
    pub catalog: BTreeMap<String, String>,
    /// Id of the token's project.
    pub project_id: String,
    /// Id of the token's user.
    pub user_id: String,
}

/// What a service answers to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// HTTP headers.
    pub headers: HeaderMap,
    /// JSON; text where it is none; null where there is nothing.
    pub body: Value,
}

impl Answer {
    /// The body of an answer that has to be a success.
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.body);
        self.body
    }
}

impl Cloud {
    /// With a new token; the answer itself when there is none.
    pub async fn try_log_in(access: &Access) -> Result<Cloud, Answer> {
        let http = Client::builder(TokioExecutor::new()).build_http();
        let url = format!("{}/auth/tokens", access.auth_url);
        let answer = send(&http, Method::POST, &url, &HeaderMap::new(), &access.request()).await;
        if answer.status != 201 {
            return Err(answer);
        }
        let token = answer.headers["x-subject-token"].to_str().expect("a token is text").to_owned();
        let mut catalog = BTreeMap::new();
        for service in answer.body["token"]["catalog"].as_array().expect("a token has a catalog") {
            let kind = service["type"].as_str().expect("a service has a type").to_owned();
            let endpoints = service["endpoints"].as_array().expect("a service has endpoints");
            if let Some(public) = endpoints.iter().find(|endpoint| endpoint["interface"] == "public") {
                catalog
                    .insert(kind, public["url"].as_str().expect("an endpoint has a URL").trim_end_matches('/').into());
            }
        }
        let id = |pointer: &str| answer.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (project_id, user_id) = (id("/token/project/id"), id("/token/user/id"));
        Ok(Cloud { http, token, catalog, project_id, user_id })
    }

    /// Gets a token; panics when there is none to be had.
    pub async fn log_in(access: &Access) -> Cloud {
        match Cloud::try_log_in(access).await {
            Ok(cloud) => cloud,
            Err(answer) => panic!("no token: {answer:?}"),
        }
    }

    /// The token of its requests.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The same with another token.
    pub fn with_token(&self, token: &str) -> Cloud {
        Cloud { token: token.to_owned(), ..self.clone() }
    }

    /// Sends a request. `path` begins below what the catalog says, with the API's version where that does not.
    pub async fn send(&self, method: Method, service: &str, path: &str, body: &Value) -> Answer {
        self.send_as(COMPUTE_MICROVERSION, method, service, path, body).await
    }

    /// GET of Nova with what another microversion tells, which has to succeed.
    pub async fn get_compute(&self, microversion: &str, path: &str) -> Value {
        self.send_as(microversion, Method::GET, "compute", path, &Value::Null).await.ok()
    }

    async fn send_as(&self, microversion: &str, method: Method, service: &str, path: &str, body: &Value) -> Answer {
        let root = self.catalog.get(service).unwrap_or_else(|| panic!("there is no service {service}"));
        let version = match service {
            "network" => "/v2.0",
            "image" | "load-balancer" => "/v2",
            _ => "",
        };
        let root = root.strip_suffix(version).unwrap_or(root);
        let mut headers = HeaderMap::new();
        if !self.token.is_empty() {
            headers.insert("x-auth-token", self.token.parse().expect("a token is a header value"));
        }
        if service == "compute" {
            let version = format!("compute {microversion}");
            headers.insert("openstack-api-version", version.parse().expect("a version is a header value"));
        }
        send(&self.http, method, &format!("{root}{path}"), &headers, body).await
    }

    /// GET, which has to succeed.
    pub async fn get(&self, service: &str, path: &str) -> Value {
        self.send(Method::GET, service, path, &Value::Null).await.ok()
    }

    /// A list, which has to succeed.
    pub async fn list(&self, service: &str, path: &str, key: &str) -> Vec<Value> {
        self.get(service, path).await[key].as_array().cloned().unwrap_or_default()
    }

    /// POST, which has to succeed.
    pub async fn post(&self, service: &str, path: &str, body: &Value) -> Value {
        self.send(Method::POST, service, path, body).await.ok()
    }

    /// PUT, which has to succeed.
    pub async fn put(&self, service: &str, path: &str, body: &Value) -> Value {
        self.send(Method::PUT, service, path, body).await.ok()
    }

    /// DELETE; that nothing is there will do.
    pub async fn delete(&self, service: &str, path: &str) {
        let answer = self.send(Method::DELETE, service, path, &Value::Null).await;
        assert!(answer.status < 300 || answer.status == 404, "{service} {path}: {} {}", answer.status, answer.body);
    }
}

async fn send(
    http: &Client<HttpConnector, Full<Bytes>>,
    method: Method,
    url: &str,
    headers: &HeaderMap,
    body: &Value,
) -> Answer {
    let mut request = Request::builder().method(&method).uri(url).header("accept", "application/json");
    request.headers_mut().expect("the request has headers").extend(headers.clone());
    let content = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    if !content.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let request = request.body(Full::new(content)).expect("a request");
    // Busy services refuse or drop a connection now and then. What was not done can be asked again.
    let mut attempts = 1..=50;
    let answer = loop {
        match http.request(request.clone()).await {
            Err(error) if (error.is_connect() || method == Method::GET) && attempts.next().is_some() => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            answer => break answer.unwrap_or_else(|error| panic!("{method} {url}: {error}")),
        }
    };
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap_or_else(|error| panic!("{method} {url}: {error}")).to_bytes();
    let body = match serde_json::from_slice(&bytes) {
        _ if bytes.is_empty() => Value::Null,
        Ok(value) => value,
        Err(_) => String::from_utf8_lossy(&bytes).into_owned().into(),
    };
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

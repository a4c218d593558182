//! Bundled providers that read what a hostile server answers: their own limits hold before those of a call do, so that the object says
//! whose answer it was.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use capwasm_contract::{Function, Refused};
use capwasm_runtime::{Grants, Limits, NamedEndpoint, Runtime, Secrets};
use capwasm_test_support::guests;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::http::origins;
use crate::support::{Bench, options};

/// Nearly as many as an answer may have.
const BYTES: usize = 7 << 20;

/// Lists that take much memory, or much time, to be read.
fn lists() -> [(&'static str, String); 6] {
    [
        ("numbers", format!("[0{}]", ",0".repeat(BYTES / 2))),
        ("maps", format!("[{{}}{}]", ",{\"\":0}".repeat(BYTES / 7))),
        ("texts", format!("[\"\"{}]", ",\"\"".repeat(BYTES / 3))),
        ("one text", format!("[\"{}\"]", "x".repeat(BYTES))),
        ("escapes", format!("[\"{}\"]", "\\u00e9".repeat(BYTES / 6))),
        ("depth", "[".repeat(BYTES)),
    ]
}

/// A server of these bodies by path, each with a token.
async fn server(body: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, body) = (listener.local_addr().unwrap(), Arc::new(body));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let body = body.clone();
            let answer = service_fn(move |request: Request<Incoming>| {
                let body = Full::new(Bytes::from(body(request.uri().path())));
                async { Ok::<_, Infallible>(Response::builder().header("x-subject-token", "t").body(body).unwrap()) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    address
}

async fn plugin(name: &str) -> Bench {
    let component = std::fs::read(guests::plugin(name)).unwrap();
    let provider = Runtime::new(options()).unwrap().load(&component, Limits::default()).await.unwrap();
    Bench { provider, limits: Limits::default() }
}

/// Secrets of one key.
struct Clouds(String);

#[async_trait]
impl Secrets for Clouds {
    async fn open(&self, _: Option<&str>, _: &str) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        Ok(BTreeMap::from([("clouds.yaml".to_owned(), self.0.clone().into_bytes())]))
    }

    async fn bootstrap_data(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        Ok(BTreeMap::new())
    }
}

/// The problem that a call over a cluster ends with.
async fn told(bench: &Bench, function: Function, kind: &str, spec: Value, grants: Grants, clouds: String) -> String {
    let mut call = bench.call(json!({}), grants);
    let labels = json!({"cluster.x-k8s.io/cluster-name": "c"});
    let metadata = json!({"name": "c", "namespace": "mine", "uid": "u", "labels": labels});
    (call.function, call.object) = (function, json!({"kind": kind, "metadata": metadata, "spec": spec}).to_string());
    call.capabilities.secrets = Arc::new(Clouds(clouds));
    bench.provider.call(call).await.unwrap().answer.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hostile_cloud_answers_fits_into_a_call() {
    let bench = plugin("openstack-infra").await;
    let identity = json!({"type": "Secret", "name": "clouds", "cloudName": "o"});
    let spec = json!({"identityRef": identity, "managedSubnets": [{"cidr": "10.6.0.0/24"}]});
    for (name, list) in lists() {
        let pages = AtomicUsize::new(0);
        let answer = move |path: &str| match path.rsplit('/').next() {
            Some("tokens") => json!({"token": {"project": {"id": "p"}}}).to_string(),
            key => {
                let (key, page) = (key.unwrap_or_default(), pages.fetch_add(1, Ordering::SeqCst));
                format!("{{\"{key}\":{list},\"next\":\"/x?marker={page}\"}}")
            }
        };
        let origin = format!("http://{}", server(answer).await);
        let auth = json!({"auth_url": origin, "application_credential_id": "a", "application_credential_secret": "b"});
        let cloud =
            json!({"auth": auth, "auth_type": "v3applicationcredential", "network_endpoint_override": origin.as_str()});
        let clouds = json!({"clouds": {"o": cloud}}).to_string();
        let grants = Grants { secrets: vec!["*".into()], ..origins(std::slice::from_ref(&origin)) };
        let told = told(&bench, Function::ClusterProvision, "OpenStackCluster", spec.clone(), grants, clouds).await;
        assert!(told.contains("more memory than there is") || told.contains("makes no sense"), "{name}: {told:.500}");
        assert!(told.contains(&origin) && told.contains("Neutron") && told.len() < 1_000, "{name}: {told:.500}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hostile_engine_answers_fits_into_a_call() {
    let bench = plugin("docker-infra").await;
    for (name, list) in lists() {
        let address = server(move |_| list.clone()).await;
        let docker = NamedEndpoint::url(format!("http://{address}"));
        let grants = Grants { endpoints: [("docker".to_owned(), docker)].into(), ..Grants::default() };
        for function in [Function::ClusterProvision, Function::ClusterDeprovision] {
            let told = told(&bench, function, "DockerCluster", json!({}), grants.clone(), String::new()).await;
            assert!(told.contains("the engine's answer") && told.len() < 1_000, "{name}: {told:.500}");
        }
    }
}

//! Where lists and watches go on: whatever a client brings as `continue` or `resourceVersion`, it sees what its path names, each object
//! once, and nothing is left out.
//!
//! Input: lines of text; a namespace (empty for all), the query, and a continue token: as JSON, which is encoded, or as it is.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capwasm_apiserver::{Body, Identity, Retention, Server, ServerConfig, Store};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

use crate::lines::lines;

/// The name of one begins with that of the other.
const NAMESPACES: [&str; 2] = ["a", "ab"];
/// More pages than any list here has.
const PAGES: usize = 64;

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

pub fn run(data: &[u8]) {
    let Some([namespace, query, token]) = lines::<3>(data) else { return };
    // Everything else is another path.
    if !namespace.bytes().all(|byte| byte.is_ascii_lowercase()) || query.contains(['#', ' ']) || !query.is_ascii() {
        return;
    }
    WORLD.with(|world| world.get_or_init(World::new).check(namespace, query, token));
}

/// A server with some ConfigMaps and their history.
struct World {
    runtime: Runtime,
    server: Server,
}

impl World {
    fn new() -> World {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let forever = Duration::from_secs(1 << 32);
            let store = Store::memory_with(Retention { age: forever, ..Retention::default() }).unwrap();
            let server = Server::start(store, ServerConfig::new("fuzz")).await.unwrap();
            for namespace in NAMESPACES {
                create(&server, "/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
                let path = format!("/api/v1/namespaces/{namespace}/configmaps");
                for name in ["a", "b", "c", "d"] {
                    create(&server, &path, json!({"metadata": {"name": name, "labels": {"n": name}}})).await;
                }
                let changed = json!({"metadata": {"name": "a", "labels": {"n": "b"}}});
                ask(&server, Method::PUT, &format!("{path}/a"), changed).await;
                ask(&server, Method::DELETE, &format!("{path}/c"), Value::Null).await;
            }
            // From here on there are only reads; those that wait for something wait no time.
            tokio::time::pause();
            server
        });
        World { runtime, server }
    }

    fn check(&self, namespace: &str, query: &str, token: &str) {
        let path = match namespace {
            "" => "/api/v1/configmaps".to_owned(),
            namespace => format!("/api/v1/namespaces/{namespace}/configmaps"),
        };
        let encoded = if token.starts_with('{') { URL_SAFE_NO_PAD.encode(token) } else { token.to_owned() };
        let mut at = format!("{path}?{query}&timeoutSeconds=2");
        if !encoded.is_empty() {
            at = format!("{at}&continue={}", utf8_percent_encode(&encoded, NON_ALPHANUMERIC));
        }
        let Ok(uri) = at.parse::<http::Uri>() else { return };
        self.runtime.block_on(async {
            let (status, answer) = ask(&self.server, Method::GET, &uri.to_string(), Value::Null).await;
            let known = status != StatusCode::INTERNAL_SERVER_ERROR;
            assert!(known, "{at} is answered with {status}: {}", String::from_utf8_lossy(&answer));
            if status != StatusCode::OK {
                return;
            }
            match serde_json::from_slice::<Value>(&answer) {
                Ok(list) if list["items"].is_array() => self.pages(namespace, &at, query, list).await,
                _ => self.events(namespace, &at, query, &answer).await,
            }
        });
    }

    /// The page, and those after it: every object once, in order, of this namespace alone.
    async fn pages(&self, namespace: &str, at: &str, query: &str, mut list: Value) {
        let mut last = None;
        for _ in 0..PAGES {
            for item in list["items"].as_array().unwrap() {
                belongs(item, namespace, at);
                let now = (text(item, "/metadata/namespace"), text(item, "/metadata/name"));
                assert!(last.as_ref() < Some(&now), "{now:?} comes after {last:?} in {at}");
                last = Some(now);
            }
            let next = text(&list, "/metadata/continue");
            if next.is_empty() {
                return;
            }
            // As clients go on: with the same limit and selectors.
            let rest: Vec<&str> = query.split('&').filter(|part| !part.starts_with("resourceVersion")).collect();
            let path = at.split('?').next().unwrap();
            let next = format!("{path}?{}&continue={next}", rest.join("&"));
            let (status, answer) = ask(&self.server, Method::GET, &next, Value::Null).await;
            assert_eq!(status, StatusCode::OK, "the page {next} after {at}: {}", String::from_utf8_lossy(&answer));
            list = serde_json::from_slice(&answer).unwrap();
        }
        panic!("{at} goes on without end");
    }

    /// What a watch tells is of this namespace and comes later than where it began. Without selectors nothing is left out.
    async fn events(&self, namespace: &str, at: &str, query: &str, answer: &[u8]) {
        let events: Vec<Value> =
            serde_json::Deserializer::from_slice(answer).into_iter().map(|event| event.unwrap()).collect();
        let mut told = BTreeSet::new();
        for event in &events {
            let kind = event["type"].as_str().unwrap_or_default();
            match kind {
                "ADDED" | "MODIFIED" | "DELETED" => {
                    belongs(&event["object"], namespace, at);
                    assert!(told.insert(revision(&event["object"])), "an event comes twice in {at}");
                }
                "BOOKMARK" | "ERROR" => {}
                _ => return,
            }
        }
        let Some(from) = query.strip_prefix("watch=1&resourceVersion=").and_then(|from| from.parse::<u64>().ok())
        else {
            return;
        };
        if from == 0 || events.iter().any(|event| event["type"] == "ERROR") {
            return;
        }
        assert!(told.iter().all(|revision| *revision > from), "{at} tells what was before: {told:?}");
        let everything = at.replacen(&format!("resourceVersion={from}"), "resourceVersion=1", 1);
        let (_, answer) = ask(&self.server, Method::GET, &everything, Value::Null).await;
        let all = serde_json::Deserializer::from_slice(&answer).into_iter::<Value>().map(|event| event.unwrap());
        let later: BTreeSet<u64> =
            all.map(|event| revision(&event["object"])).filter(|revision| *revision > from).collect();
        assert_eq!(told, later, "{at} leaves something out");
    }
}

fn belongs(item: &Value, namespace: &str, at: &str) {
    let of = text(item, "/metadata/namespace");
    assert!(namespace.is_empty() || of == namespace, "{at} shows an object of namespace {of:?}");
    let known = NAMESPACES.contains(&of.as_str());
    assert!(known && item["kind"].as_str().is_none_or(|kind| kind == "ConfigMap"), "{at} shows {item}");
}

fn revision(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap()
}

fn text(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

async fn create(server: &Server, path: &str, object: Value) {
    let (status, answer) = ask(server, Method::POST, path, object).await;
    assert_eq!(status, StatusCode::CREATED, "{}", String::from_utf8_lossy(&answer));
}

async fn ask(server: &Server, method: Method, path: &str, body: Value) -> (StatusCode, Vec<u8>) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Full::new(body.into())).unwrap();
    let answer: http::Response<Body> = server.service(Identity::admin("fuzz")).oneshot(request).await.unwrap();
    let status = answer.status();
    (status, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
}

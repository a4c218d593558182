//! Every place occupied: what is long waits, and everything else is answered.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tower::ServiceExt as _;

use super::*;
use crate::handler::Body;
use crate::{InProcess, Server, ServerConfig, Store};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async fn server() -> Server {
    Server::start(Store::memory().unwrap(), ServerConfig::new("test")).await.unwrap()
}

fn request(method: &str, path: &str, kind: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let header = if method == "GET" { "accept" } else { "content-type" };
    Request::builder().method(method).uri(path).header(header, kind).body(Full::new(body.into())).unwrap()
}

async fn send(service: &InProcess, request: Request<Full<Bytes>>) -> Response<Body> {
    service.clone().oneshot(request).await.unwrap()
}

async fn until(what: &str, check: impl Fn() -> bool) {
    let reached = async {
        while !check() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reached).await.unwrap_or_else(|_| panic!("timed out: {what}"));
}

fn map(name: &str, bytes: usize) -> String {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"a": "x".repeat(bytes)}})
        .to_string()
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[tokio::test]
async fn what_is_long_waits_for_a_place_and_everything_else_is_answered_meanwhile() {
    let server = server().await;
    let admin = server.service(Identity::admin("somebody"));
    for (name, bytes) in [("large", 1 << 20), ("small", 10)] {
        assert_eq!(send(&admin, request("POST", MAPS, JSON, map(name, bytes))).await.status(), StatusCode::CREATED);
    }
    let dense = format!(r#"{{"spec": [{}]}}"#, vec![r#"{"":0}"#; 10_000].join(","));
    let yaml = format!("kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: y\ndata:\n{}", "  k: v\n".repeat(10_000));
    let patch = format!("[{}]", vec![r#"{"op":"test","path":"/kind","value":"ConfigMap"}"#; 1000].join(","));
    let (large, small) = (format!("{MAPS}/large"), format!("{MAPS}/small"));
    let watch = format!("{MAPS}?watch=1");
    let longs: Vec<(&str, Request<Full<Bytes>>)> = vec![
        ("a review with a large body", request("POST", REVIEW, JSON, dense.clone())),
        ("a large body", request("POST", MAPS, JSON, map("new", 100_000))),
        ("a large body in YAML", request("POST", MAPS, "application/yaml", yaml)),
        ("a large body in protobuf", request("POST", MAPS, "application/vnd.kubernetes.protobuf", vec![8; 100_000])),
        ("a long JSON patch of a small object", request("PATCH", &small, "application/json-patch+json", patch)),
        ("a small patch of a large object", request("PATCH", &large, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#)),
        ("the deletion of a large object", request("DELETE", &large, JSON, "")),
        ("a large object as a table", request("GET", &large, TABLE, "")),
        ("a large list", request("GET", MAPS, JSON, "")),
        ("a watch from the beginning", request("GET", &watch, JSON, "")),
        ("a resource definition, which brings a new catalog", request("POST", CRDS, JSON, crd().to_string())),
        ("a document of the kinds", request("GET", "/openapi/v3/api/v1", JSON, "")),
    ];
    let occupied = server.registry().turns.others.places.all().acquire_many_owned(4).await.unwrap();
    let masters = server.registry().turns.masters.places.all().acquire_many_owned(4).await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for (index, (what, request)) in longs.into_iter().enumerate() {
        let user = format!("user-{index}");
        // Of those without any right only the review comes so far.
        let identity = if index == 0 { Identity::new(&user, &[]) } else { Identity::admin(&user) };
        let service = server.service(identity);
        let class = if index == 0 { &server.registry().turns.others } else { &server.registry().turns.masters };
        waiting.spawn(async move { (what, send(&service, request).await.status()) });
        until(what, || class.places.of(&user) > 0).await;
    }
    assert!(waiting.try_join_next().is_none(), "none of them is answered");

    let neighbour = server.service(Identity::new("neighbour", &[]));
    let small_review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}).to_string();
    for (service, request) in [
        (&neighbour, request("GET", "/readyz", JSON, "")),
        (&neighbour, request("GET", "/version", JSON, "")),
        (&neighbour, request("POST", REVIEW, JSON, small_review)),
        (&admin, request("GET", &small, JSON, "")),
        (&admin, request("GET", &large, JSON, "")),
        (&admin, request("PATCH", &small, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#)),
        (&admin, request("POST", MAPS, JSON, map("another", 1000))),
    ] {
        let what = request.uri().to_string();
        let status = send(service, request).await.status();
        assert!(status.is_success(), "{what}: {status}");
    }
    assert!(waiting.try_join_next().is_none());
    drop((occupied, masters));
    while let Some(answered) = waiting.join_next().await {
        let (what, status) = answered.unwrap();
        assert!(!status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS, "{what}: {status}");
    }
    server.shutdown().await;
}

fn crd() -> serde_json::Value {
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

#[tokio::test]
async fn a_server_ends_while_long_work_waits() {
    let server = server().await;
    let _occupied = server.registry().turns.masters.places.all().acquire_many_owned(4).await.unwrap();
    let service = server.service(Identity::admin("somebody"));
    let sent = tokio::spawn(async move { send(&service, request("POST", MAPS, JSON, map("new", 1 << 20))).await });
    until("it waits", || server.registry().turns.masters.places.of("somebody") > 0).await;
    tokio::time::timeout(Duration::from_secs(30), server.shutdown()).await.unwrap();
    assert!(!sent.is_finished());
}

/// A body that says how long it is and breaks the test when it is read.
struct Unread(u64);

impl http_body::Body for Unread {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_or_has_no_room_is_refused_before_its_body_is_there() {
    let server = server().await;
    let nobody = Identity::new("nobody", &[]);
    let turns = &server.registry().turns;
    let room = 48 << 10;
    let most = turns.begin(&nobody, (64 << 20) - room).unwrap();
    for (what, path, bytes, expected) in [
        ("no right", MAPS, 10, StatusCode::FORBIDDEN),
        ("no such method", "/version", 10, StatusCode::FORBIDDEN),
        ("larger than any body", REVIEW, 1 << 30, StatusCode::PAYLOAD_TOO_LARGE),
        ("more than there is room for", REVIEW, 2 << 20, StatusCode::TOO_MANY_REQUESTS),
        ("never sent", REVIEW, 10, StatusCode::REQUEST_TIMEOUT),
    ] {
        let request = Request::post(path).body(Unread(bytes)).unwrap();
        let response = server.service(nobody.clone()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), expected, "{what}");
        assert_eq!(response.headers().contains_key("retry-after"), expected == StatusCode::TOO_MANY_REQUESTS, "{what}");
        let said = response.into_body().collect().await.unwrap().to_bytes();
        assert!(said.starts_with(b"{"), "{what}: {said:?}");
    }
    let full = turns.begin(&nobody, room).unwrap();
    let probe = send(&server.service(nobody.clone()), request("GET", "/readyz", JSON, "")).await;
    assert_eq!(probe.status(), StatusCode::OK, "a probe is answered to who has no room");
    let asked = send(&server.service(nobody.clone()), request("GET", "/version", JSON, "")).await;
    assert_eq!(asked.status(), StatusCode::TOO_MANY_REQUESTS);
    drop((most, full));
    let asked = send(&server.service(nobody), request("GET", "/version", JSON, "")).await;
    assert_eq!(asked.status(), StatusCode::OK);
}

#[tokio::test]
async fn answers_and_watches_are_charged_until_they_are_sent() {
    let server = server().await;
    let admin = server.service(Identity::admin("admin"));
    for name in ["a", "b", "c"] {
        send(&admin, request("POST", MAPS, JSON, map(name, 1 << 20))).await;
    }
    let held = || server.registry().turns.masters.budget.held_by("admin");
    until("the writes are over", || held() == 0).await;
    for query in ["", "/a", "?watch=1", "?watch=1&resourceVersion=1"] {
        let mut answer = send(&admin, request("GET", &format!("{MAPS}{query}"), JSON, "")).await.into_body();
        let expected = if query == "/a" { 1 << 20 } else { 3 << 20 };
        assert!(held() > expected, "{query}: {}", held());
        let mut sent = 0;
        while sent < expected {
            sent += answer.frame().await.unwrap().unwrap().into_data().unwrap().len();
        }
        assert!(held() < expected || !query.contains("watch"), "what a watch has sent it does not hold: {query}");
        drop(answer);
        until("nothing is held", || held() == 0).await;
    }
    let other = server.registry().turns.begin(&Identity::admin("admin"), (256 << 20) - (1 << 20)).unwrap();
    for query in ["", "/a", "?watch=1", "?watch=1&resourceVersion=1"] {
        let answer = send(&admin, request("GET", &format!("{MAPS}{query}"), JSON, "")).await;
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS, "{query}");
    }
    drop(other);
}

#[tokio::test]
async fn work_that_panics_in_its_place_fails_alone_and_gives_it_back() {
    let turns = Turns::default();
    let turn = turns.begin(&Identity::new("a", &[]), 0).unwrap();
    let failed = turn.run(async {
        long(usize::MAX).await;
        panic!("on purpose");
    });
    assert_eq!(failed.await.map(|(): ()| ()).unwrap_err().code, 500);
    let threads = turn.run(async {
        let before = std::thread::current().id();
        long(SHORT).await;
        let short = std::thread::current().id();
        long(SHORT + 1).await;
        let after = std::thread::current().id();
        tokio::task::yield_now().await;
        (before == short, before == after, std::thread::current().id() == before)
    });
    assert_eq!(threads.await.unwrap(), (true, false, false), "from then on it is away");
    assert_eq!(turns.others.places.of("a"), 0);
}

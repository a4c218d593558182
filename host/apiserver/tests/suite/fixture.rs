//! A running server and clients for it.

use std::future::Future;
use std::time::Duration;

use capwasm_apiserver::{Authenticator, Identity, Server, ServerConfig, Store, pki};
use kube::api::{Api, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Copy, Debug)]
pub enum Way {
    InProcess,
    Tls,
}

pub struct Fixture {
    pub server: Server,
    pub client: Client,
    pub tls: Option<TlsEnd>,
}

pub struct TlsEnd {
    pub url: String,
    pub kubeconfig: String,
    pub pki: pki::ServerPki,
    pub dir: TempDir,
}

pub async fn fixture(way: Way) -> Fixture {
    fixture_with(way, ServerConfig::new("test")).await
}

pub async fn fixture_with(way: Way, config: ServerConfig) -> Fixture {
    let server = Server::start(Store::memory().unwrap(), config).await.unwrap();
    match way {
        Way::InProcess => Fixture { client: server.client(Identity::admin("tester")), server, tls: None },
        Way::Tls => {
            let tls = serve(&server).await;
            Fixture { client: client_of(&tls.kubeconfig).await, server, tls: Some(tls) }
        }
    }
}

pub async fn serve(server: &Server) -> TlsEnd {
    let dir = tempfile::tempdir().unwrap();
    let pki = pki::ensure(dir.path(), &["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let (server, tls) = (server.clone(), pki.tls());
    tokio::spawn(async move { server.serve(listener, tls, CancellationToken::new()).await });
    let kubeconfig = pki.admin_kubeconfig(&url).unwrap();
    TlsEnd { url, kubeconfig, pki, dir }
}

pub async fn client_of(kubeconfig: &str) -> Client {
    // The first caller installs it; the others find it installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()).unwrap()
}

pub fn with_cluster_info() -> ServerConfig {
    ServerConfig { auth: Authenticator::with_cluster_info(), ..ServerConfig::new("test") }
}

/// Runs a test in-process and over TLS.
pub async fn both<F: Future<Output = ()>>(test: impl Fn(Fixture) -> F) {
    for way in [Way::InProcess, Way::Tls] {
        let fixture = fixture(way).await;
        let server = fixture.server.clone();
        tokio::time::timeout(Duration::from_secs(60), test(fixture))
            .await
            .unwrap_or_else(|_| panic!("{way:?}: the test hung"));
        server.shutdown().await;
    }
}

/// Waits with a deadline until `check` returns `Some`.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, check: impl Fn() -> F) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

pub fn things() -> ApiResource {
    resource("example.org", "v1", "Thing", "things")
}

pub fn crds() -> ApiResource {
    resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

pub fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

/// A CRD with status and scale, defaults, limits and a CEL rule, served in two versions.
pub fn thing_crd() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 10},
            "colour": {"type": "string", "default": "red", "enum": ["red", "green"]},
            "replicas": {"type": "integer"},
            "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is fixed"}]},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}, "replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}});
    let columns = json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]);
    let subresources = json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": schema, "subresources": subresources,
        "additionalPrinterColumns": columns, "selectableFields": [{"jsonPath": ".spec.colour"}]})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"], "categories": ["all"]},
            "versions": [version("v1", true), version("v1beta1", false)]}})
}

/// Installs the CRD and returns an API for things in `default`.
pub async fn install_things(client: &Client) -> Api<DynamicObject> {
    let crds: Api<DynamicObject> = Api::all_with(client.clone(), &crds());
    crds.create(&PostParams::default(), &object(thing_crd())).await.unwrap();
    Api::namespaced_with(client.clone(), "default", &things())
}

pub fn thing(name: &str, spec: Value) -> DynamicObject {
    object(json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}))
}

pub fn status<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> kube::core::Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected an API error, got {other:?}"),
    }
}

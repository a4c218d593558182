//! Test fixture: an embedded API server with core kinds, and a fixture provider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
use capwasm_providers::{Conversions, Serving};
use capwasm_runtime::{Limits, Provider, Runtime, RuntimeOptions};
use capwasm_test_support::guests;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

use crate::conversion::InProcess;
use crate::diagnostics::Diagnostics;

pub const GROUP: &str = "infrastructure.fixture.example";

/// Embedded server with core's CRDs as the host installs them, and a provider that is not installed: its file is in
/// `plugins` of the folder.
pub struct World {
    pub client: kube::Client,
    pub conversions: Arc<Conversions>,
    pub runtime: Arc<Runtime>,
    pub provider: Arc<Provider>,
    pub folder: tempfile::TempDir,
    /// For a host on this world.
    pub diagnostics: Diagnostics,
}

pub async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(RuntimeOptions { max_in_flight: 32, ..RuntimeOptions::default() }).unwrap();
    let component = std::fs::read(guests::fixture("guest")).unwrap();
    let provider = runtime.load(&component, Limits::default()).await.unwrap();
    let conversions = Conversions::start().unwrap();
    let config = ServerConfig {
        converter: Some(Arc::new(InProcess::new(conversions.clone()))),
        admitter: Some(Arc::new(crate::admission::InProcess::new(conversions.clone()))),
        admission: crate::embedded::admission_hooks(),
        ..ServerConfig::new("test")
    };
    let store = Store::open(&folder.path().join("store"), 1 << 20).unwrap();
    let client = Server::start(store, config).await.unwrap().client(Identity::admin("tester"));
    let crds = api(&client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "");
    let core = capwasm_api::crds::core_crds();
    let core = core.iter().map(|crd| capwasm_providers::served(crd, Serving::All));
    for crd in core {
        crds.create(&PostParams::default(), &serde_json::from_value(crd).unwrap()).await.unwrap();
    }
    std::fs::create_dir(folder.path().join("plugins")).unwrap();
    std::fs::write(folder.path().join("plugins/fixture.wasm"), component).unwrap();
    World { client, conversions, runtime, provider, folder, diagnostics: Diagnostics::default() }
}

pub fn api(client: &kube::Client, group: &str, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

impl World {
    /// With the provider's CRDs, as its loader installs them.
    pub async fn with_crds(self) -> Self {
        let crds = api(&self.client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "");
        for crd in capwasm_providers::crds(self.provider.descriptor(), Serving::All) {
            crds.create(&PostParams::default(), &object(crd)).await.unwrap();
        }
        self
    }

    pub fn pools(&self, version: &str) -> Api<DynamicObject> {
        api(&self.client, GROUP, version, "FixturePool", "default")
    }

    pub fn core(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        api(&self.client, "cluster.x-k8s.io", version, kind, "default")
    }
}

pub fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

pub fn pool(version: &str, name: &str, spec: Value) -> DynamicObject {
    object(json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "FixturePool",
        "metadata": {"name": name}, "spec": spec}))
}

pub fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("expected a refusal: {other:?}"),
    }
}

/// Waits for what another task brings about.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let search = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), search).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

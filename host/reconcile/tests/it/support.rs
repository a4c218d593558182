//! An API server with one custom kind, a tap on the wire that counts and holds back, and reconcilers made of closures.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;
use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
use capwasm_reconcile::{
    Cache, ControllerHandle, Interests, Kind, Manager, ManagerOptions, Metrics, Pass, Plan, ReconcileError, Reconciler,
    Source, apply::NoWorkloads,
};
use futures::{StreamExt, TryStreamExt};
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Counts writes on the wire, and delays watches.
#[derive(Clone)]
pub struct Tap {
    writes: Arc<Mutex<Vec<String>>>,
    /// Plural of the kind whose watches deliver nothing.
    held: watch::Sender<Option<&'static str>>,
    /// Refuses streaming lists, as old servers do.
    old_server: Arc<AtomicBool>,
    /// Carries out the next create and drops its response.
    lossy: Arc<AtomicBool>,
}

impl Tap {
    /// Method and path of every write so far, except Events.
    pub fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }

    pub fn refuse_streaming_lists(&self) {
        self.old_server.store(true, Ordering::SeqCst);
    }

    pub fn lose_the_next_answer(&self) {
        self.lossy.store(true, Ordering::SeqCst);
    }

    pub fn hold(&self, plural: Option<&'static str>) {
        self.held.send_replace(plural);
    }
}

/// A management cluster with kind Widget, and a manager.
pub struct World {
    /// Bypasses the tap.
    pub client: kube::Client,
    pub tap: Tap,
    pub cache: Cache,
    pub interests: Arc<Interests>,
    pub manager: Manager,
    pub widget: Kind,
    stop: CancellationToken,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    pub async fn start() -> Self {
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new("management")).await.unwrap();
        let client = server.client(Identity::admin("test"));
        let tap = Tap {
            writes: Arc::default(),
            held: watch::Sender::new(None),
            old_server: Arc::default(),
            lossy: Arc::default(),
        };
        let interests = Interests::new();
        let cache = Cache::new(tapped(&server, &tap), Source::Management, interests.clone());
        let options = ManagerOptions { drain: Duration::from_secs(5), ..ManagerOptions::default() };
        let metrics = Arc::new(Metrics::unregistered());
        let manager = Manager::new(cache.clone(), interests.clone(), Arc::new(NoWorkloads), metrics, options);
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (manager, stop) = (manager.clone(), stop.clone());
            async move { manager.run(stop).await }
        });
        let world =
            Self { client, tap, cache, interests, manager, widget: widget(), stop, running: Mutex::new(Some(running)) };
        world.put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd("widgets", "Widget")).await;
        let list = "/apis/test.capwasm.dev/v1/widgets";
        until("the kind is served", || async { world.try_send("GET", list, None).await.is_ok() }).await;
        world
    }

    pub fn add(&self, reconciler: Closure, concurrency: usize) -> ControllerHandle {
        self.manager.add(self.widget.clone(), Arc::new(reconciler), concurrency)
    }

    /// Shuts the manager down; the answer waits until it is.
    pub fn shut_down(&self) -> impl Future<Output = ()> + use<> {
        self.stop.cancel();
        let running = self.running.lock().unwrap().take().unwrap();
        async move { running.await.unwrap() }
    }

    pub async fn try_send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, kube::Error> {
        let body = body.map(|body| serde_json::to_vec(&body).unwrap()).unwrap_or_default();
        let mime = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", mime);
        self.client.request(request.body(body).unwrap()).await
    }

    pub async fn put(&self, collection: &str, object: Value) -> Value {
        self.try_send("POST", collection, Some(object)).await.unwrap()
    }

    pub async fn add_widget(&self, name: &str, metadata: Value) -> Value {
        let mut object =
            json!({"apiVersion": "test.capwasm.dev/v1", "kind": "Widget", "metadata": metadata, "spec": {}});
        object["metadata"]["name"] = json!(name);
        self.put(&widgets(None), object).await
    }

    pub async fn get_widget(&self, name: &str) -> Option<Value> {
        self.try_send("GET", &widgets(Some(name)), None).await.ok()
    }

    pub async fn patch_widget(&self, name: &str, patch: Value) -> Value {
        self.try_send("PATCH", &widgets(Some(name)), Some(patch)).await.unwrap()
    }

    pub async fn add_config(&self, name: &str, metadata: Value) -> Value {
        let mut object = config(name);
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        self.put(configs(), object).await
    }

    pub async fn list(&self, path: &str) -> Vec<Value> {
        self.try_send("GET", path, None).await.unwrap()["items"].as_array().unwrap().clone()
    }
}

pub fn widget() -> Kind {
    Kind::new("test.capwasm.dev", "v1", "Widget", "widgets", true)
}

pub fn config_kind() -> Kind {
    Kind::new("", "v1", "ConfigMap", "configmaps", true)
}

pub fn widgets(name: Option<&str>) -> String {
    widget().path("default", name)
}

pub fn configs() -> &'static str {
    "/api/v1/namespaces/default/configmaps"
}

pub fn config(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}, "data": {"a": "b"}})
}

/// A CRD with a status and no schema to speak of.
pub fn crd(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.test.capwasm.dev")},
        "spec": {
            "group": "test.capwasm.dev", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

pub async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Plan, ReconcileError>> + Send + 'a>>;
type Function = dyn for<'a> Fn(&'a Pass<'_>) -> Answer<'a> + Send + Sync;
type Group = dyn Fn(&Value) -> Option<String> + Send + Sync;

/// Reconciler made of closures; counts its passes per object.
#[derive(Clone)]
pub struct Closure {
    reconcile: Arc<Function>,
    group: Arc<Group>,
    divided_by: Option<&'static str>,
    finalizers: Vec<String>,
    passes: Arc<Mutex<HashMap<String, usize>>>,
}

impl Closure {
    pub fn new(reconcile: impl for<'a> Fn(&'a Pass<'_>) -> Answer<'a> + Send + Sync + 'static) -> Self {
        Self {
            reconcile: Arc::new(reconcile),
            group: Arc::new(|_| None),
            divided_by: None,
            finalizers: Vec::new(),
            passes: Arc::default(),
        }
    }

    pub fn grouped(mut self, group: impl Fn(&Value) -> Option<String> + Send + Sync + 'static) -> Self {
        self.group = Arc::new(group);
        self
    }

    pub fn divided_by(mut self, label: &'static str) -> Self {
        self.divided_by = Some(label);
        self
    }

    pub fn with_finalizers(mut self, finalizers: &[&str]) -> Self {
        self.finalizers = finalizers.iter().map(|finalizer| (*finalizer).to_owned()).collect();
        self
    }

    pub fn passes(&self, name: &str) -> usize {
        self.passes.lock().unwrap().get(name).copied().unwrap_or(0)
    }
}

#[async_trait]
impl Reconciler for Closure {
    fn name(&self) -> &str {
        "widget"
    }

    fn exclusion(&self, object: &Value) -> Option<String> {
        (self.group)(object)
    }

    fn divided_by(&self) -> Option<&str> {
        self.divided_by
    }

    fn finalizers(&self) -> Vec<String> {
        self.finalizers.clone()
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        *self.passes.lock().unwrap().entry(pass.key.name.clone()).or_default() += 1;
        (self.reconcile)(pass).await
    }
}

fn tapped(server: &Server, tap: &Tap) -> kube::Client {
    let (service, tap) = (server.service(Identity::admin("manager")), tap.clone());
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (service, tap) = (service.clone(), tap.clone());
        async move {
            let (method, uri) = (request.method().clone(), request.uri().to_string());
            if method != http::Method::GET && !uri.contains("/events") {
                tap.writes.lock().unwrap().push(format!("{method} {}", request.uri().path()));
            }
            if uri.contains("sendInitialEvents") && tap.old_server.load(Ordering::SeqCst) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid",
                    "message": "sendInitialEvents is forbidden", "code": 422});
                let status = Ok(http_body::Frame::data(Bytes::from(status.to_string())));
                let body = StreamBody::new(futures::stream::iter([status]).boxed());
                return Ok(http::Response::builder().status(422).body(body)?);
            }
            let answer = service.oneshot(request).await?;
            if method == http::Method::POST && tap.lossy.swap(false, Ordering::SeqCst) {
                return Err("connection lost".into());
            }
            let is_watch = uri.contains("watch=true");
            let held = tap.held.subscribe();
            Ok::<_, tower::BoxError>(answer.map(|body| {
                let chunks = body.into_data_stream().map_err(tower::BoxError::from);
                let chunks = chunks.then(move |chunk: Result<Bytes, tower::BoxError>| {
                    let (mut held, uri) = (held.clone(), uri.clone());
                    async move {
                        let free =
                            |plural: &Option<&str>| !is_watch || plural.is_none_or(|plural| !uri.contains(plural));
                        let _ = held.wait_for(free).await;
                        chunk.map(http_body::Frame::data)
                    }
                });
                StreamBody::new(chunks.boxed())
            }))
        }
    });
    kube::Client::new(service, "default")
}

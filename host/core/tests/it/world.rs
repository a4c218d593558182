//! Two API servers, core between them, and a tap that records, or refuses, what core writes.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use capwasm_api::names::CORE_GROUP;
use capwasm_apiserver::{Admission, AdmissionError, GroupKind, Identity, Server, ServerConfig, Store};
use capwasm_object::json;
use capwasm_reconcile::{Cache, ClusterId, Interests, Manager, ManagerOptions, Metrics, Source};
use capwasm_remote::connector::{ConnectError, Connector};
use capwasm_remote::{Probing, Remote};
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Records writes to the management cluster.
#[derive(Clone, Default)]
pub struct Tap {
    writes: Arc<Mutex<Vec<String>>>,
    /// Writes that are still let through.
    left: Arc<AtomicUsize>,
}

impl Tap {
    /// Method and path of every write so far, except Events.
    pub fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }
}

/// A management and a workload cluster.
pub struct World {
    pub client: kube::Client,
    pub workload: kube::Client,
    /// Contract that the provider's CRDs declare.
    pub contract: &'static str,
    management: Server,
    other: Server,
}

/// A running core; stopped when dropped.
pub struct Core {
    pub tap: Tap,
    stop: CancellationToken,
}

impl Drop for Core {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct ToWorkload(kube::Client);

#[async_trait]
impl Connector for ToWorkload {
    async fn connect(&self, _: &ClusterId, _: &[u8]) -> Result<kube::Client, ConnectError> {
        Ok(self.0.clone())
    }
}

impl World {
    pub async fn start() -> World {
        World::with("v1beta2", Vec::new()).await
    }

    /// With upstream's admission webhooks, run by the server.
    pub async fn with_admission() -> World {
        let admission: Admission = Arc::new(|new, old| {
            let mut object = new.clone();
            capwasm_api::defaults::default(&mut object, old);
            match capwasm_api::validate::validate(&object, old).first() {
                None => Ok(object),
                Some(violation) => Err(AdmissionError { message: violation.to_string() }),
            }
        });
        let kinds = ["Cluster", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck"];
        World::with("v1beta2", kinds.map(|kind| (GroupKind::new(CORE_GROUP, kind), admission.clone())).to_vec()).await
    }

    pub async fn with(contract: &'static str, admission: Vec<(GroupKind, Admission)>) -> World {
        let mut config = ServerConfig::new("management");
        config.admission = admission;
        let management = Server::start(Store::memory().unwrap(), config).await.unwrap();
        let other = Server::start(Store::memory().unwrap(), ServerConfig::new("workload")).await.unwrap();
        let world = World {
            client: management.client(Identity::admin("test")),
            workload: other.client(Identity::admin("test")),
            contract,
            management,
            other,
        };
        let provider = ["InfraCluster", "Infra", "InfraTemplate", "Boot", "BootTemplate", "Plane"]
            .map(|kind| provider_crd(kind, contract));
        let crds: Vec<Value> = capwasm_api::crds::core_crds().into_iter().chain(provider).collect();
        for crd in &crds {
            send(&world.client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", Some(crd.clone()))
                .await
                .unwrap();
        }
        for crd in &crds {
            let text = |pointer| json::text(crd, pointer).unwrap();
            let (group, version, plural) =
                (text("/spec/group"), text("/spec/versions/0/name"), text("/spec/names/plural"));
            let path = format!("/apis/{group}/{version}/{plural}");
            until(&format!("{path} is served"), || async { send(&world.client, "GET", &path, None).await.is_ok() })
                .await;
        }
        world
    }

    /// Starts core without state, as after a restart. It can write `writes` times.
    pub fn core(&self, writes: usize) -> Core {
        let tap = Tap { writes: Arc::default(), left: Arc::new(AtomicUsize::new(writes)) };
        let interests = Interests::new();
        let cache = Cache::new(tapped(&self.management, &tap), Source::Management, interests.clone());
        let connector = ToWorkload(self.other.client(Identity::admin("core")));
        let remote = Remote::with(cache.clone(), interests.clone(), Arc::new(connector), Probing::default());
        let options = ManagerOptions { drain: Duration::from_secs(5), ..ManagerOptions::default() };
        let manager =
            Manager::new(cache, interests, Arc::new(remote.clone()), Arc::new(Metrics::unregistered()), options);
        for controller in capwasm_core::controllers(remote) {
            manager.add(controller.kind, controller.reconciler, controller.concurrency);
        }
        let stop = CancellationToken::new();
        tokio::spawn({
            let stop = stop.clone();
            async move { manager.run(stop).await }
        });
        Core { tap, stop }
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        send(&self.client, "GET", path, None).await.ok()
    }

    pub async fn list(&self, plural: &str) -> Vec<Value> {
        list(&self.client, &of(plural)).await
    }

    pub async fn put(&self, plural: &str, object: Value) {
        send(&self.client, "POST", &of(plural), Some(object)).await.unwrap();
    }

    pub async fn patch(&self, plural: &str, name: &str, merge: Value) {
        send(&self.client, "PATCH", &format!("{}/{name}", of(plural)), Some(merge)).await.unwrap();
    }

    pub async fn delete(&self, plural: &str, name: &str) {
        send(&self.client, "DELETE", &format!("{}/{name}", of(plural)), None).await.unwrap();
    }

    /// A cluster with 2 workers, as a user writes it.
    pub async fn apply_cluster(&self) {
        let reference = |kind: &str, name: &str| json!({"apiGroup": "test.capwasm.dev", "kind": kind, "name": name});
        let provider = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "test.capwasm.dev/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        let core = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        self.put("infraclusters", provider("InfraCluster", "c", json!({}))).await;
        self.put("clusters", core("Cluster", "c", json!({"infrastructureRef": reference("InfraCluster", "c"), "controlPlaneRef": reference("Plane", "c")}))).await;
        self.put("planes", provider("Plane", "c", json!({"version": "v1.36.0"}))).await;
        self.put("machinedeployments", core("MachineDeployment", "md", json!({"clusterName": "c", "replicas": 2, "selector": {}, "template": {"spec": {
            "clusterName": "c", "version": "v1.36.0", "bootstrap": {"configRef": reference("BootTemplate", "t")}, "infrastructureRef": reference("InfraTemplate", "t")}}}))).await;
        for kind in ["InfraTemplate", "BootTemplate"] {
            let plural = format!("{}s", kind.to_lowercase());
            self.put(&plural, provider(kind, "t", json!({"template": {"spec": {"size": 7}}}))).await;
        }
    }
}

/// Path of a kind's collection in namespace `default`.
pub fn of(plural: &str) -> String {
    let group = match plural {
        "secrets" => return "/api/v1/namespaces/default/secrets".to_owned(),
        "clusters" | "machines" | "machinesets" | "machinedeployments" | "machinepools" | "machinehealthchecks" => {
            "cluster.x-k8s.io/v1beta2"
        }
        _ => "test.capwasm.dev/v1",
    };
    format!("/apis/{group}/namespaces/default/{plural}")
}

pub async fn send(client: &kube::Client, method: &str, path: &str, body: Option<Value>) -> Result<Value, kube::Error> {
    let body = body.map(|body| serde_json::to_vec(&body).unwrap()).unwrap_or_default();
    let mime = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", mime);
    client.request(request.body(body).unwrap()).await
}

pub async fn list(client: &kube::Client, path: &str) -> Vec<Value> {
    send(client, "GET", path, None).await.map(|list| json::items(&list, "/items").to_vec()).unwrap_or_default()
}

pub async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until core stops writing.
pub async fn quiet(core: &Core) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let (mut last, mut same) = (core.tap.writes().len(), 0);
    // Longer than a status may wait.
    while same < 70 {
        assert!(Instant::now() < deadline, "core never stops writing: {:?}", core.tap.writes());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = core.tap.writes().len();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}

fn provider_crd(kind: &str, contract: &str) -> Value {
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.test.capwasm.dev"), "labels": {format!("cluster.x-k8s.io/{contract}"): "v1"}},
        "spec": {
            "group": "test.capwasm.dev", "scope": "Namespaced",
            "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn tapped(server: &Server, tap: &Tap) -> kube::Client {
    let (service, tap) = (server.service(Identity::admin("core")), tap.clone());
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (service, tap) = (service.clone(), tap.clone());
        async move {
            let path = request.uri().path().to_owned();
            if request.method() != http::Method::GET && !path.contains("/events") {
                let one_less = |left: usize| left.checked_sub(1);
                if tap.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err() {
                    return Err(tower::BoxError::from("core is dead"));
                }
                tap.writes.lock().unwrap().push(format!("{} {path}", request.method()));
            }
            service.oneshot(request).await.map_err(tower::BoxError::from)
        }
    });
    kube::Client::new(service, "default")
}

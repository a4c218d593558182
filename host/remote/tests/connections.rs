//! Connections between real servers: a management server without a socket, workload servers over TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::Engine;
use capwasm_apiserver::{Identity, Server, ServerConfig, Store, pki};
use capwasm_reconcile::{
    Action, Cache, ClusterId, Interests, Key, Kind, Manager, ManagerOptions, Metrics, Operation, Pass, Plan,
    ReconcileError, Reconciler, Selector, Source, View, Workloads,
    cache::node_kind,
    interests::{ControllerId, Wake},
};
use capwasm_remote::{NotConnected, Probing, Remote, Workload, connector::KubeconfigConnector};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A workload cluster over TLS on a random port.
struct WorkloadServer {
    client: kube::Client,
    kubeconfig: String,
    stop: CancellationToken,
    server: Server,
    /// How many connections were ever made to it.
    connections: Arc<AtomicUsize>,
    _keys: tempfile::TempDir,
}

impl WorkloadServer {
    async fn start(name: &str) -> Self {
        let keys = tempfile::tempdir().unwrap();
        let pki = pki::ensure(keys.path(), &["127.0.0.1".to_owned()]).unwrap();
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new(name)).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, connections) = counted(listener.local_addr().unwrap()).await;
        let stop = CancellationToken::new();
        let (serving, tls, token) = (server.clone(), pki.tls(), stop.clone());
        tokio::spawn(async move { serving.serve(listener, tls, token).await });
        let kubeconfig = pki.admin_kubeconfig(&format!("https://{address}")).unwrap();
        let client = server.client(Identity::admin("test"));
        Self { client, kubeconfig, stop, server, connections, _keys: keys }
    }

    async fn add_node(&self, name: &str) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        send(&self.client, "POST", "/api/v1/nodes", Some(node)).await.unwrap();
    }
}

/// Forwards to `server`, and counts the connections.
async fn counted(server: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                if let Ok(mut far) = tokio::net::TcpStream::connect(server).await {
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    (address, count)
}

/// A management cluster, and one reader of connections.
struct World {
    client: kube::Client,
    interests: Arc<Interests>,
    cache: Cache,
    remote: Remote,
    reader: ControllerId,
    woken: Arc<AtomicUsize>,
}

struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(&self, _: &Key) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl World {
    async fn start() -> Self {
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new("management")).await.unwrap();
        let client = server.client(Identity::admin("test"));
        let interests = Interests::new();
        let cache = Cache::new(server.client(Identity::admin("host")), Source::Management, interests.clone());
        let probing = Probing { interval: Duration::from_millis(50), timeout: Duration::from_secs(2), failures: 2 };
        let remote = Remote::with(cache.clone(), interests.clone(), Arc::new(KubeconfigConnector), probing);
        let woken = Arc::new(AtomicUsize::new(0));
        let reader = interests.register(Arc::new(Count(woken.clone())));
        let world = Self { client, interests, cache, remote, reader, woken };
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "clusters.cluster.x-k8s.io"},
            "spec": {
                "group": "cluster.x-k8s.io", "scope": "Namespaced",
                "names": {"plural": "clusters", "singular": "cluster", "kind": "Cluster", "listKind": "ClusterList"},
                "versions": [{"name": "v1beta2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        send(&world.client, "POST", crds, Some(crd)).await.unwrap();
        until("the kind is served", || async { send(&world.client, "GET", CLUSTERS, None).await.is_ok() }).await;
        world
    }

    async fn add_cluster(&self) {
        let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "default"}});
        send(&self.client, "POST", CLUSTERS, Some(object)).await.unwrap();
    }

    async fn set_kubeconfig(&self, kubeconfig: &str) {
        let value = base64::engine::general_purpose::STANDARD.encode(kubeconfig);
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "c-kubeconfig", "namespace": "default"}, "data": {"value": value}});
        if send(&self.client, "POST", SECRETS, Some(secret.clone())).await.is_err() {
            let path = format!("{SECRETS}/c-kubeconfig");
            send(&self.client, "PATCH", &path, Some(json!({"data": secret["data"]}))).await.unwrap();
        }
    }

    /// One pass that asks for the connection and, through it, for the nodes.
    async fn pass(&self) -> Result<(Workload, usize), NotConnected> {
        let key = Key::new(&Kind::new("g", "v1", "K", "ks", true), "default", "reader");
        let reading = self.interests.begin(self.reader, &key);
        let view = View::new(&self.cache, &self.interests, reading);
        let connected = self.remote.connect(&view, &id()).await;
        let result = match connected {
            Ok(workload) => {
                let nodes = workload.view(&view).list(&node_kind(), None, &Selector::everything()).await.unwrap();
                Ok((workload, nodes.len()))
            }
            Err(error) => Err(error),
        };
        self.interests.finish(reading);
        result
    }

    /// Passes as a controller would make them, only when woken, until one ends as wanted.
    async fn passes_until(&self, what: &str, wanted: impl Fn(&Result<(Workload, usize), NotConnected>) -> bool) {
        let last = Mutex::new(String::new());
        let seen = AtomicUsize::new(usize::MAX);
        until(what, || async {
            let woken = self.woken.load(Ordering::SeqCst);
            if seen.swap(woken, Ordering::SeqCst) == woken {
                return false;
            }
            let result = self.pass().await;
            *last.lock().unwrap() = format!("{:?}", result.as_ref().map(|(_, nodes)| *nodes));
            wanted(&result)
        })
        .await;
    }
}

const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn id() -> ClusterId {
    ClusterId::new("default", "c")
}

fn because(reason: &'static str) -> impl Fn(&Result<(Workload, usize), NotConnected>) -> bool {
    move |result| matches!(result, Err(error) if error.reason == reason)
}

fn with_nodes(count: usize) -> impl Fn(&Result<(Workload, usize), NotConnected>) -> bool {
    move |result| matches!(result, Ok((_, nodes)) if *nodes == count)
}

async fn send(client: &kube::Client, method: &str, path: &str, body: Option<Value>) -> Result<Value, kube::Error> {
    let body = body.map(|body| serde_json::to_vec(&body).unwrap()).unwrap_or_default();
    let mime = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    client
        .request(http::Request::builder().method(method).uri(path).header("content-type", mime).body(body).unwrap())
        .await
}

async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Every step is seen by a reader that looks only when it is woken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_are_woken_by_connection_nodes_rotation_and_loss() {
    let world = World::start().await;
    let (first, second) = (WorkloadServer::start("first").await, WorkloadServer::start("second").await);
    world.passes_until("no Cluster", because("ClusterGone")).await;
    world.add_cluster().await;
    world.passes_until("no kubeconfig", because("KubeconfigMissing")).await;
    assert!(world.remote.cache(&id()).await.is_err());
    world.set_kubeconfig("users: [{name: u, user: {exec: {command: id}}}]").await;
    world.passes_until("a kubeconfig that runs programs", because("KubeconfigInvalid")).await;
    world.set_kubeconfig(&first.kubeconfig).await;
    world.passes_until("connected", with_nodes(0)).await;
    assert_eq!(world.remote.count(), (1, 1));
    first.add_node("n1").await;
    world.passes_until("a node", with_nodes(1)).await;
    let (workload, _) = world.pass().await.unwrap();
    let kind = workload.cache().kind("", "ConfigMap").await.unwrap();
    assert!(workload.cache().get(&kind, "default", "absent").await.unwrap().is_none());
    assert_eq!(workload.cache().watch_count(), 1, "only nodes are watched");
    let probed = workload.last_probe();
    until("another probe", || async { workload.last_probe() > probed }).await;
    assert_eq!(first.connections.load(Ordering::SeqCst), 1, "watch, reads and probes share one connection");
    world.set_kubeconfig(&second.kubeconfig).await;
    world.passes_until("the other server has no nodes", with_nodes(0)).await;
    second.stop.cancel();
    second.server.shutdown().await;
    world
        .passes_until(
            "lost",
            |result| matches!(result, Err(error) if error.last_probe.is_some() && error.reason != "Connecting"),
        )
        .await;
    world.set_kubeconfig(&first.kubeconfig).await;
    world.passes_until("back on the first", with_nodes(1)).await;
    first.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_ends_with_its_cluster_or_its_last_reader() {
    let world = World::start().await;
    let server = WorkloadServer::start("w").await;
    world.add_cluster().await;
    world.set_kubeconfig(&server.kubeconfig).await;
    world.passes_until("connected", with_nodes(0)).await;
    send(&world.client, "DELETE", &format!("{CLUSTERS}/c"), None).await.unwrap();
    world.passes_until("gone", because("ClusterGone")).await;
    assert_eq!(world.remote.count(), (0, 1));
    world.add_cluster().await;
    world.passes_until("connected again", with_nodes(0)).await;
    world.interests.unregister(world.reader);
    until("freed", || async { world.remote.count() == (0, 0) }).await;
    until("nothing is read for it", || async { world.interests.is_empty() }).await;
    server.stop.cancel();
}

/// Puts one ConfigMap per Cluster into its workload cluster, when that can be reached.
struct Installer(Remote);

#[async_trait::async_trait]
impl Reconciler for Installer {
    fn name(&self) -> &str {
        "installer"
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let cluster = ClusterId::new(&pass.key.namespace, &pass.key.name);
        let mut desired = Value::clone(&pass.object);
        let mut plan = Plan::nothing();
        match self.0.connect(pass.view, &cluster).await {
            Ok(workload) => {
                let nodes = workload.view(pass.view).list(&node_kind(), None, &Selector::everything()).await?;
                desired["spec"]["nodes"] = json!(nodes.len());
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"namespace": "kube-system", "name": "installed"}});
                plan.operations.push(Operation::workload("install", &cluster, Action::Create(object)));
            }
            Err(error) => desired["spec"]["why"] = json!(error.reason),
        }
        Ok(Plan { desired: Some(desired), ..plan })
    }
}

/// Plans write to workload clusters through the same connection, and nodes wake the keys that listed them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_reach_the_workload_cluster() {
    let world = World::start().await;
    let server = WorkloadServer::start("w").await;
    let manager = Manager::new(
        world.cache.clone(),
        world.interests.clone(),
        Arc::new(world.remote.clone()),
        Arc::new(Metrics::unregistered()),
        ManagerOptions::default(),
    );
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (manager, stop) = (manager.clone(), stop.clone());
        async move { manager.run(stop).await }
    });
    let clusters = world.cache.kind("cluster.x-k8s.io", "Cluster").await.unwrap();
    manager.add(clusters, Arc::new(Installer(world.remote.clone())), 2);
    world.add_cluster().await;
    let spec = |field: &'static str| {
        let client = world.client.clone();
        async move { send(&client, "GET", &format!("{CLUSTERS}/c"), None).await.unwrap()["spec"][field].clone() }
    };
    until("no kubeconfig", || async { spec("why").await == "KubeconfigMissing" }).await;
    world.set_kubeconfig(&server.kubeconfig).await;
    until("connected", || async { spec("nodes").await == 0 }).await;
    let installed = "/api/v1/namespaces/kube-system/configmaps/installed";
    until("installed", || async { send(&server.client, "GET", installed, None).await.is_ok() }).await;
    server.add_node("n").await;
    until("the node is seen", || async { spec("nodes").await == 1 }).await;
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(10), running).await.expect("drained").unwrap();
    server.stop.cancel();
}

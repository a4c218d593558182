//! A management cluster, workload clusters over TLS, and a reader of connections.

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
    Cache, ClusterId, Interests, Key, Kind, Selector, Source, View,
    cache::node_kind,
    interests::{ControllerId, Wake},
    queue::Urgency,
};
use capwasm_remote::{
    NotConnected, Probing, Remote, Workload,
    connector::{Connector, KubeconfigConnector},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A workload cluster over TLS on a random port.
pub struct WorkloadServer {
    pub client: kube::Client,
    pub kubeconfig: String,
    pub stop: CancellationToken,
    pub server: Server,
    /// Number of connections so far.
    pub connections: Arc<AtomicUsize>,
    _keys: tempfile::TempDir,
}

impl WorkloadServer {
    pub async fn start(name: &str) -> Self {
        Self::with(ServerConfig::new(name)).await
    }

    pub async fn with(config: ServerConfig) -> Self {
        let keys = tempfile::tempdir().unwrap();
        let pki = pki::ensure(keys.path(), &["127.0.0.1".to_owned()]).unwrap();
        let server = Server::start(Store::memory().unwrap(), config).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, connections) = counted(listener.local_addr().unwrap()).await;
        let stop = CancellationToken::new();
        let (serving, tls, token) = (server.clone(), pki.tls(), stop.clone());
        tokio::spawn(async move { serving.serve(listener, tls, token).await });
        let kubeconfig = pki.admin_kubeconfig(&format!("https://{address}")).unwrap();
        let client = server.client(Identity::admin("test"));
        Self { client, kubeconfig, stop, server, connections, _keys: keys }
    }

    pub async fn add_node(&self, name: &str) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        send(&self.client, "POST", "/api/v1/nodes", Some(node)).await.unwrap();
    }
}

/// Forwards to `server` and counts connections.
async fn counted(server: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                if let Ok(mut far) = tokio::net::TcpStream::connect(server).await {
                    near.set_nodelay(true).unwrap();
                    far.set_nodelay(true).unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    (address, count)
}

/// A management cluster, and one reader of connections.
pub struct World {
    pub client: kube::Client,
    pub interests: Arc<Interests>,
    pub cache: Cache,
    pub remote: Remote,
    pub reader: ControllerId,
    woken: Arc<AtomicUsize>,
}

struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(&self, _: &Key, _: Urgency) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl World {
    pub async fn start() -> Self {
        Self::with(Arc::new(KubeconfigConnector)).await
    }

    pub async fn with(connector: Arc<dyn Connector>) -> Self {
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new("management")).await.unwrap();
        let client = server.client(Identity::admin("test"));
        let interests = Interests::new();
        let cache = Cache::new(server.client(Identity::admin("host")), Source::Management, interests.clone());
        let probing = Probing { interval: Duration::from_millis(50), timeout: Duration::from_secs(2), failures: 2 };
        let remote = Remote::with(cache.clone(), interests.clone(), connector, probing);
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

    pub async fn add_cluster(&self) {
        let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "default"}});
        send(&self.client, "POST", CLUSTERS, Some(object)).await.unwrap();
    }

    pub async fn set_kubeconfig(&self, kubeconfig: &str) {
        let value = base64::engine::general_purpose::STANDARD.encode(kubeconfig);
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "c-kubeconfig", "namespace": "default"}, "data": {"value": value}});
        if send(&self.client, "POST", SECRETS, Some(secret.clone())).await.is_err() {
            let path = format!("{SECRETS}/c-kubeconfig");
            send(&self.client, "PATCH", &path, Some(json!({"data": secret["data"]}))).await.unwrap();
        }
    }

    /// A pass that reads the nodes through the connection.
    pub async fn pass(&self) -> Result<(Workload, usize), NotConnected> {
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

    /// Runs passes when woken, until one returns the wanted result.
    pub async fn passes_until(&self, what: &str, wanted: impl Fn(&Result<(Workload, usize), NotConnected>) -> bool) {
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

pub const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters";
pub const SECRETS: &str = "/api/v1/namespaces/default/secrets";

pub fn id() -> ClusterId {
    ClusterId::new("default", "c")
}

pub async fn send(client: &kube::Client, method: &str, path: &str, body: Option<Value>) -> Result<Value, kube::Error> {
    let body = body.map(|body| serde_json::to_vec(&body).unwrap()).unwrap_or_default();
    let mime = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    client
        .request(http::Request::builder().method(method).uri(path).header("content-type", mime).body(body).unwrap())
        .await
}

pub async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

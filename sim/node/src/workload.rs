//! Where workload API servers run: one store for all clusters, one server per cluster, one listener per control-plane node.
//!
//! A listener speaks for its node: it reports its version, and without a quorum of etcd it answers as an API server does that
//! gets nothing from its storage.

mod chores;
mod static_pod;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capwasm_apiserver::pki::NodeSigner;
use capwasm_apiserver::{Authenticator, Filter, Identity, Server, ServerConfig, Store, version_info};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;

use crate::etcd::Etcd;
use crate::kubeadm::cluster_info;
use crate::port_forward::ToPodAddress;
use crate::rest::Rest;

pub use chores::{Chores, run as run_controllers};
pub use static_pod::{EtcdPod, StaticPod};

/// Bootstrap tokens are Secrets there.
const TOKENS: &str = "/api/v1/namespaces/kube-system/secrets";

/// The keyspace of the cluster whose CA has this `sha256:` hash.
fn keyspace(hash: &str) -> String {
    let hex = hash.strip_prefix("sha256:").unwrap_or(hash);
    format!("cluster/{}", &hex[..hex.len().min(32)])
}

/// The keyspace of the cluster that a kubeconfig's CA belongs to.
///
/// # Errors
/// When the CA is no certificate.
pub fn keyspace_of_authority(der: &[u8]) -> Result<String, String> {
    capwasm_pki::public_key_hash(der).map(|hash| keyspace(&hash)).map_err(|error| error.to_string())
}

struct Cluster {
    server: OnceCell<Server>,
    members: Mutex<HashSet<String>>,
    /// Whether etcd had a quorum when somebody looked last.
    quorum: AtomicBool,
    /// Rung when connections are to be cut.
    cut: watch::Sender<()>,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            server: OnceCell::new(),
            members: Mutex::default(),
            quorum: AtomicBool::new(true),
            cut: watch::Sender::new(()),
        }
    }
}

/// All workload clusters of a process.
pub struct Workloads {
    store: Arc<Store>,
    clusters: Mutex<HashMap<String, Arc<Cluster>>>,
    etcd: Arc<Etcd>,
    chores: Arc<Chores>,
}

/// A listener of one node; closes when cancelled.
pub struct Serving {
    /// Cancelling it closes the listener.
    pub stop: CancellationToken,
    /// Keyspace of the cluster that is served.
    pub keyspace: String,
}

impl Workloads {
    /// Opens the store of all clusters, with at most `cache_bytes` of page cache. A silent node counts as gone after `grace`.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn open(path: &Path, cache_bytes: usize, etcd: Arc<Etcd>, grace: Duration) -> Result<Arc<Workloads>, String> {
        let store = Store::open(path, cache_bytes).map_err(|error| error.to_string())?;
        let chores = Arc::new(Chores::new(grace));
        Ok(Arc::new(Workloads { store, clusters: Mutex::default(), etcd, chores }))
    }

    /// What a control plane's controllers do now and then.
    pub fn chores(&self) -> &Arc<Chores> {
        &self.chores
    }

    /// Members of the clusters' etcd.
    pub fn etcd(&self) -> &Arc<Etcd> {
        &self.etcd
    }

    /// Serves `pod` as member `member` of its cluster on `bind`.
    ///
    /// # Errors
    /// When the certificates are broken, the address is taken, or the server does not start.
    pub async fn serve(self: &Arc<Self>, member: &str, pod: &StaticPod, bind: IpAddr) -> Result<Serving, String> {
        let tls = tls(pod)?;
        let configuration = configuration(pod)?;
        let address = SocketAddr::new(bind, pod.port);
        let listener = listen(address).await.map_err(|error| format!("unable to listen on {address}: {error}"))?;
        let cluster = {
            let mut clusters = self.clusters.lock();
            let cluster = clusters.entry(pod.keyspace.clone()).or_default();
            cluster.members.lock().insert(member.to_owned());
            Arc::clone(cluster)
        };
        let started = cluster.server.get_or_try_init(|| Server::start(Arc::clone(&self.store), configuration)).await;
        let server = match started {
            Ok(server) => server.clone(),
            Err(error) => {
                self.leave(&pod.keyspace, member).await;
                return Err(format!("unable to start the API server: {error}"));
            }
        };
        self.chores.sign_soon(&pod.keyspace);
        self.chores.scan_later(&pod.keyspace);
        let stop = CancellationToken::new();
        let listening = Listening {
            server,
            address,
            tls,
            stop: stop.clone(),
            cut: cluster.cut.subscribe(),
            filter: self.filter(pod),
        };
        tokio::spawn(listening.run(listener));
        Ok(Serving { stop, keyspace: pod.keyspace.clone() })
    }

    /// What a node's listener answers by itself.
    fn filter(&self, pod: &StaticPod) -> Filter {
        let (etcd, chores) = (Arc::clone(&self.etcd), Arc::clone(&self.chores));
        let (keyspace, version) = (pod.keyspace.clone(), version_info(&pod.version));
        Arc::new(move |method: &Method, path: &str| {
            if path == "/version" && method == Method::GET {
                return Some((StatusCode::OK, version.clone()));
            }
            if !etcd.has_quorum(&keyspace) {
                return Some((StatusCode::INTERNAL_SERVER_ERROR, no_quorum(path)));
            }
            // In place of a watch: tokens come through here, and whoever asks for the signatures does.
            if path == cluster_info::PATH || method != Method::GET && path.starts_with(TOKENS) {
                chores.sign_soon(&keyspace);
            }
            None
        })
    }

    /// Cuts the connections of clusters that lost the quorum of their etcd, so that watches end; those that have it again
    /// look after their nodes.
    pub fn review(&self) {
        for (keyspace, cluster) in self.clusters.lock().iter() {
            let has = self.etcd.has_quorum(keyspace);
            match (cluster.quorum.swap(has, Ordering::Relaxed), has) {
                (true, false) => {
                    cluster.cut.send_replace(());
                }
                (false, true) => {
                    self.chores.sign_soon(keyspace);
                    self.chores.scan_later(keyspace);
                }
                _ => {}
            }
        }
    }

    /// Takes a member away; with the last one the cluster's server stops.
    pub async fn leave(&self, keyspace: &str, member: &str) {
        let last = {
            let mut clusters = self.clusters.lock();
            let Some(cluster) = clusters.get(keyspace) else { return };
            let empty = {
                let mut members = cluster.members.lock();
                members.remove(member);
                members.is_empty()
            };
            if empty { clusters.remove(keyspace) } else { None }
        };
        if let Some(server) = last.and_then(|cluster| cluster.server.get().cloned()) {
            server.shutdown().await;
        }
    }

    /// Drops the data of a cluster that nobody serves any more.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn forget(&self, keyspace: &str) -> Result<(), String> {
        self.etcd.forget(keyspace);
        self.chores.forget(keyspace);
        self.store.remove_keyspace(keyspace).await.map_err(|error| error.to_string())
    }

    /// The server of a cluster that is served now and has its storage.
    fn server(&self, keyspace: &str) -> Option<Server> {
        if !self.etcd.has_quorum(keyspace) {
            return None;
        }
        self.clusters.lock().get(keyspace)?.server.get().cloned()
    }

    /// An in-process client of a cluster that is served now, as one of its nodes.
    pub fn node_client(&self, keyspace: &str, node: &str) -> Option<Rest> {
        let server = self.server(keyspace)?;
        Some(Rest::of(server.client(Identity::new(format!("system:node:{node}"), &["system:nodes"]))))
    }

    /// An in-process client of a cluster that is served now, as its controllers.
    pub fn controller_client(&self, keyspace: &str) -> Option<Rest> {
        Some(Rest::of(self.server(keyspace)?.client(Identity::admin("system:kube-controller-manager"))))
    }
}

/// What an API server says that gets no answer from etcd.
fn no_quorum(path: &str) -> Value {
    let message =
        if path.ends_with("z") { "[-]etcd failed: etcdserver: no leader" } else { "etcdserver: request timed out" };
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": 500 })
}

/// TLS of a node's API server. It resumes no sessions: each would be kept with its client's certificates, for clients that
/// keep their connections anyhow.
fn tls(pod: &StaticPod) -> Result<Arc<rustls::ServerConfig>, String> {
    let made = capwasm_apiserver::pki::tls_from_pem(&pod.certificate, &pod.key, &pod.authority);
    let mut config = rustls::ServerConfig::clone(&*made.map_err(|error| error.to_string())?);
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn configuration(pod: &StaticPod) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::new(&pod.keyspace);
    config.advertised.clone_from(&pod.advertised);
    config.git_version.clone_from(&pod.version);
    config.auth = Authenticator::with_cluster_info();
    config.service_account_root_ca = Some(pod.authority.clone());
    config.port_forward = Some(Arc::new(ToPodAddress));
    // In place of kube-controller-manager.
    let signer = NodeSigner::from_pem(&pod.authority, &pod.authority_key);
    config.signer = Some(Arc::new(signer.map_err(|error| format!("unable to sign with the cluster's CA: {error}"))?));
    Ok(config)
}

struct Listening {
    server: Server,
    address: SocketAddr,
    tls: Arc<rustls::ServerConfig>,
    stop: CancellationToken,
    cut: watch::Receiver<()>,
    filter: Filter,
}

impl Listening {
    /// Listens until stopped; when connections are cut it begins anew.
    async fn run(mut self, first: TcpListener) {
        let mut listener = Ok(first);
        loop {
            let Ok(open) = listener.inspect_err(|error| {
                tracing::warn!(address = %self.address, %error, "a workload API server cannot listen again");
            }) else {
                return;
            };
            let round = self.stop.child_token();
            let serving =
                self.server.serve_filtered(open, Arc::clone(&self.tls), round.clone(), Arc::clone(&self.filter));
            tokio::pin!(serving);
            let ended = tokio::select! {
                ended = &mut serving => ended,
                Ok(()) = self.cut.changed() => {
                    round.cancel();
                    serving.await
                }
            };
            if let Err(error) = ended {
                tracing::warn!(address = %self.address, %error, "a workload API server stopped listening");
            }
            if self.stop.is_cancelled() || !round.is_cancelled() {
                return;
            }
            listener = listen(self.address).await;
        }
    }
}

/// Listens, waiting a moment for a predecessor's socket to close.
async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    for _ in 0..20 {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await
            }
            other => return other,
        }
    }
    TcpListener::bind(address).await
}

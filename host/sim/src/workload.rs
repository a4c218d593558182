//! Where workload API servers run: one store for all clusters, one server per cluster, one listener per control-plane node.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use capwasm_apiserver::pki::NodeSigner;
use capwasm_apiserver::{Authenticator, Identity, Server, ServerConfig, Store};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::files::{Files, reason};
use crate::kubeadm::{paths, pki};
use crate::rest::Rest;

/// The API server's static pod on a node, with all that it needs.
#[derive(Clone)]
pub struct StaticPod {
    /// Port that it listens on.
    pub port: u16,
    version: String,
    advertised: String,
    certificate: String,
    key: String,
    authority: String,
    authority_key: String,
    /// Keyspace of the cluster, from the hash of its CA's public key.
    pub keyspace: String,
}

impl StaticPod {
    /// Reads the static pod from a node's files; `None` when there is none.
    ///
    /// # Errors
    /// Why it could not run: a broken manifest or a missing certificate.
    pub fn read(files: &dyn Files) -> Result<Option<StaticPod>, String> {
        let path = paths::API_SERVER_MANIFEST;
        if !files.exists(path) {
            return Ok(None);
        }
        let read = |path: &str| files.read_text(path).map_err(|error| format!("open {path}: {}", reason(&error)));
        let manifest: Value = serde_saphyr::from_str(&read(path)?).map_err(|error| format!("{path}: {error}"))?;
        let flag = |name: &str| {
            crate::kubeadm::manifest_flag(&manifest, name)
                .map(str::to_owned)
                .ok_or_else(|| format!("{path}: the flag --{name} is missing"))
        };
        let port: u16 = flag("secure-port")?.parse().map_err(|_| format!("{path}: --secure-port is no port"))?;
        let authority = read(&flag("client-ca-file")?)?;
        let directory = crate::files::parent(&flag("client-ca-file")?).to_owned();
        let image = manifest["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        let hash = pki::public_key_hash(&pki::parse_certificate(&authority)?)?;
        Ok(Some(StaticPod {
            port,
            version: image.rsplit(':').next().unwrap_or_default().to_owned(),
            advertised: format!("{}:{port}", flag("advertise-address")?),
            certificate: read(&flag("tls-cert-file")?)?,
            key: read(&flag("tls-private-key-file")?)?,
            authority_key: read(&format!("{directory}/ca.key"))?,
            authority,
            keyspace: keyspace(&hash),
        }))
    }
}

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
    pki::public_key_hash(der).map(|hash| keyspace(&hash))
}

#[derive(Default)]
struct Cluster {
    server: OnceCell<Server>,
    members: Mutex<HashSet<String>>,
}

/// All workload clusters of a process.
pub struct Workloads {
    store: Arc<Store>,
    clusters: Mutex<HashMap<String, Arc<Cluster>>>,
}

/// A listener of one node; closes when cancelled.
pub struct Serving {
    /// Closes the listener.
    pub stop: CancellationToken,
    /// Cluster that is served.
    pub keyspace: String,
}

impl Workloads {
    /// Opens the store of all clusters, with at most `cache_bytes` of page cache.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Arc<Workloads>, String> {
        let store = Store::open(path, cache_bytes).map_err(|error| error.to_string())?;
        Ok(Arc::new(Workloads { store, clusters: Mutex::default() }))
    }

    /// Serves `pod` as member `member` of its cluster on `bind`.
    ///
    /// # Errors
    /// When the certificates are broken, the address is taken, or the server does not start.
    pub async fn serve(self: &Arc<Self>, member: &str, pod: &StaticPod, bind: IpAddr) -> Result<Serving, String> {
        let tls = capwasm_apiserver::pki::tls_from_pem(&pod.certificate, &pod.key, &pod.authority)
            .map_err(|error| error.to_string())?;
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
        let stop = CancellationToken::new();
        let token = stop.clone();
        tokio::spawn(async move {
            if let Err(error) = server.serve(listener, tls, token).await {
                tracing::warn!(%address, %error, "a workload API server stopped listening");
            }
        });
        Ok(Serving { stop, keyspace: pod.keyspace.clone() })
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
        self.store.remove_keyspace(keyspace).await.map_err(|error| error.to_string())
    }

    /// An in-process client of a cluster that is served now, as one of its nodes.
    pub fn node_client(&self, keyspace: &str, node: &str) -> Option<Rest> {
        let server = self.clusters.lock().get(keyspace)?.server.get()?.clone();
        Some(Rest::of(server.client(Identity::new(format!("system:node:{node}"), &["system:nodes"]))))
    }

    /// An in-process client of a cluster that is served now, as its controllers.
    pub fn controller_client(&self, keyspace: &str) -> Option<Rest> {
        let server = self.clusters.lock().get(keyspace)?.server.get()?.clone();
        Some(Rest::of(server.client(Identity::admin("system:kube-controller-manager"))))
    }
}

fn configuration(pod: &StaticPod) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::new(&pod.keyspace);
    config.advertised.clone_from(&pod.advertised);
    config.git_version.clone_from(&pod.version);
    config.auth = Authenticator::with_cluster_info();
    config.service_account_root_ca = Some(pod.authority.clone());
    // In place of kube-controller-manager.
    let signer = NodeSigner::from_pem(&pod.authority, &pod.authority_key);
    config.signer = Some(Arc::new(signer.map_err(|error| format!("unable to sign with the cluster's CA: {error}"))?));
    Ok(config)
}

/// Listens, waiting a moment for a predecessor's socket to close.
async fn listen(address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
    for _ in 0..20 {
        match tokio::net::TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await
            }
            other => return other,
        }
    }
    tokio::net::TcpListener::bind(address).await
}

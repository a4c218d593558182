//! Connections to workload clusters: one per cluster, shared by core and all providers.
//!
//! A connection exists while somebody reads through it. It is made and watched in the background: [`Remote::connect`] never
//! waits for the network, it answers with the connection or with why there is none, and the reader is woken when
//! that changes. An idle connected cluster costs one HTTP/2 connection, one watch (Nodes) and a probe every ten seconds.
//!
//! - [`kubeconfig`]: what a kubeconfig may say;
//! - [`connector`]: from a kubeconfig to a client; the seam for tests and simulations; `bounds`: what it reads at most;
//! - `link`: the life of one connection;
//! - `forward`: ports of pods, through the API server; `serving`: the certificates that they show;
//! - [`etcd`]: the members of the cluster's etcd.

mod bounds;
pub mod connector;
pub mod etcd;
mod forward;
pub mod kubeconfig;
mod link;
mod serving;

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use capwasm_reconcile::{
    Cache, ClusterId, Interests, Key, Token, Unavailable, View, Workloads,
    interests::{ControllerId, Wake},
    queue::Urgency,
};
use jiff::Timestamp;
use parking_lot::Mutex;

use self::{
    connector::{Connector, KubeconfigConnector},
    etcd::{Etcd, connections::Connections},
    forward::{Forwarder, PodPort},
    link::{Link, State},
};

pub use forward::ForwardError;
pub(crate) use link::explain;

/// A workload cluster is not connected. Readers are woken when that changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cluster} is not connected: {message}")]
pub struct NotConnected {
    /// The workload cluster.
    pub cluster: ClusterId,
    /// Reason for conditions: `Connecting`, `KubeconfigMissing`, `KubeconfigInvalid`, `Unreachable`, `Unauthorized`,
    /// `ProbeFailed`, `ClusterGone` or `Closed`.
    pub reason: &'static str,
    /// Message for conditions.
    pub message: String,
    /// Last successful probe, also of earlier connections.
    pub last_probe: Option<Timestamp>,
}

/// Connections to workload clusters. Cheap to clone; the connections end with the last clone.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

/// Probes of connections.
#[derive(Clone, Copy, Debug)]
pub struct Probing {
    /// Time between probes, give or take a tenth.
    pub interval: Duration,
    /// Timeout of a probe.
    pub timeout: Duration,
    /// Consecutive failures that end a connection.
    pub failures: u32,
}

impl Default for Probing {
    fn default() -> Self {
        Self { interval: Duration::from_secs(10), timeout: Duration::from_secs(5), failures: 5 }
    }
}

struct Inner {
    probing: Probing,
    management: Cache,
    interests: Arc<Interests>,
    connector: Arc<dyn Connector>,
    /// Reader of Clusters and Secrets for all links.
    reader: ControllerId,
    links: Mutex<HashMap<ClusterId, Arc<Link>>>,
}

impl Remote {
    /// Connects by the kubeconfig Secrets of the management cluster.
    pub fn new(management: Cache, interests: Arc<Interests>) -> Self {
        Self::with(management, interests, Arc::new(KubeconfigConnector), Probing::default())
    }

    /// As [`Remote::new`], with another connector and probing.
    pub fn with(management: Cache, interests: Arc<Interests>, connector: Arc<dyn Connector>, probing: Probing) -> Self {
        Self(Arc::new_cyclic(|inner| Inner {
            reader: interests.register(Arc::new(Waker(inner.clone()))),
            management,
            interests,
            connector,
            probing,
            links: Mutex::default(),
        }))
    }

    /// The connection of a cluster, if it is up. Wakes the key of `view` when it comes up or breaks; stays as long as
    /// passes ask for it. Never waits for the network.
    ///
    /// # Errors
    /// When there is no connection just now.
    pub async fn connect(&self, view: &View, cluster: &ClusterId) -> Result<Workload, NotConnected> {
        // Noted first, so that no change after the look goes unseen.
        view.note(token(cluster));
        let link = self.0.links.lock().entry(cluster.clone()).or_insert_with(|| self.start(cluster)).clone();
        link.state().connected()
    }

    /// Number of connected clusters, and of requested ones.
    pub fn count(&self) -> (usize, usize) {
        let links = self.0.links.lock();
        (links.values().filter(|link| matches!(link.state(), State::Up(_))).count(), links.len())
    }

    fn start(&self, cluster: &ClusterId) -> Arc<Link> {
        let link = Arc::new(Link::new(cluster.clone()));
        let surroundings = link::Surroundings {
            management: self.0.management.clone(),
            interests: self.0.interests.clone(),
            connector: self.0.connector.clone(),
            probing: self.0.probing,
            reader: self.0.reader,
            remote: Arc::downgrade(&self.0),
        };
        tokio::spawn(link::run(link.clone(), surroundings));
        link
    }
}

impl Inner {
    /// Removes a link whose task ends, unless it was replaced.
    fn forget(&self, link: &Arc<Link>) {
        let mut links = self.links.lock();
        if links.get(link.cluster()).is_some_and(|held| Arc::ptr_eq(held, link)) {
            links.remove(link.cluster());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.interests.unregister(self.reader);
        self.links.get_mut().values().for_each(|link| link.wake());
    }
}

/// Wakes the link of a changed Cluster or kubeconfig Secret.
struct Waker(Weak<Inner>);

impl Wake for Waker {
    fn wake(&self, key: &Key, _: Urgency) {
        if let Some(inner) = self.0.upgrade() {
            let cluster = ClusterId::new(&key.namespace, &key.name);
            if let Some(link) = inner.links.lock().get(&cluster) {
                link.wake();
            }
        }
    }
}

/// Token of readers of the connection.
fn token(cluster: &ClusterId) -> Token {
    Token::new(&format!("connection:{}/{}", cluster.namespace, cluster.name))
}

/// A connected workload cluster.
#[derive(Clone)]
pub struct Workload(Arc<Connected>);

struct Connected {
    cache: Cache,
    forwarder: Arc<Forwarder>,
    etcd: Arc<Connections>,
    last_probe: Mutex<Timestamp>,
}

impl Workload {
    /// Client whose requests have ten seconds for the head of their answer, and limits of time and size for the rest.
    pub fn client(&self) -> kube::Client {
        self.0.cache.client().clone()
    }

    /// Cache that watches Nodes, and control plane Pods of `kube-system` once they are listed by `tier=control-plane`.
    /// Other reads are live and trigger no reconcile, unless the kind is [followed](Cache::follow).
    pub fn cache(&self) -> &Cache {
        &self.0.cache
    }

    /// The pass of `view`, reading from this cluster.
    #[must_use]
    pub fn view(&self, view: &View) -> View {
        view.in_source(&self.0.cache)
    }

    /// Membership of the cluster's etcd. Its changes trigger no reconcile.
    pub fn etcd(&self) -> Etcd {
        Etcd::new(self.clone())
    }

    /// Serving certificate (PEM) of a pod's port, read through a port-forward. It is not verified.
    ///
    /// # Errors
    /// When the port cannot be reached within ten seconds or does not speak TLS.
    pub async fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, ForwardError> {
        serving::certificate(&self.0.forwarder, PodPort { namespace, pod, port }).await
    }

    /// Last successful probe.
    pub fn last_probe(&self) -> Timestamp {
        *self.0.last_probe.lock()
    }
}

#[async_trait]
impl Workloads for Remote {
    async fn cache(&self, cluster: &ClusterId) -> Result<Cache, Unavailable> {
        let link = self.0.links.lock().get(cluster).cloned();
        let unavailable = |message: String| Unavailable { cluster: cluster.clone(), message };
        let link = link.ok_or_else(|| unavailable("nobody has asked for a connection".to_owned()))?;
        let workload = link.state().connected().map_err(|error| unavailable(error.message))?;
        Ok(workload.cache().clone())
    }
}

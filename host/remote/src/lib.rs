//! Connections to workload clusters: one per cluster, shared by core and all providers.

use async_trait::async_trait;
use capwasm_reconcile::{Cache, ClusterId, Interests, Unavailable, View, Workloads};
use std::sync::Arc;

/// Why there is no connection just now. Readers are woken when that changes.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{cluster} is not connected: {reason}: {message}")]
pub struct NotConnected {
    /// The cluster.
    pub cluster: ClusterId,
    /// CamelCase, for conditions.
    pub reason: &'static str,
    /// For a human.
    pub message: String,
}

/// Connections to workload clusters. Cheap to clone.
#[derive(Clone)]
pub struct Remote;

impl Remote {
    /// Reads Clusters and kubeconfig Secrets from `management`.
    pub fn new(_management: Cache, _interests: Arc<Interests>) -> Self {
        Self
    }
    /// The connection of a cluster, if it is up; the reader is woken when it comes up or breaks. Never waits for the network.
    pub async fn connect(&self, _view: &View, _cluster: &ClusterId) -> Result<Workload, NotConnected> {
        todo!()
    }
}

/// A connected workload cluster.
#[derive(Clone)]
pub struct Workload;

impl Workload {
    /// A client with a 10 s timeout on each request other than watches.
    pub fn client(&self) -> kube::Client {
        todo!()
    }
    /// Nodes are watched and wake readers; other kinds are read live.
    pub fn cache(&self) -> &Cache {
        todo!()
    }
    /// `view`'s pass reading from this cluster: `workload.view(view).get(&node, "", "n1")`.
    #[must_use]
    pub fn view(&self, _view: &View) -> View {
        todo!()
    }
    /// When the cluster last answered a probe.
    pub fn last_probe(&self) -> std::time::SystemTime {
        todo!()
    }
}

#[async_trait]
impl Workloads for Remote {
    async fn cache(&self, _cluster: &ClusterId) -> Result<Cache, Unavailable> {
        todo!()
    }
}

//! From a plan to requests.
use std::sync::Arc;
use async_trait::async_trait;
use serde_json::Value;
use crate::{cache::{Cache, Written}, kind::ClusterId, kind::Key, metrics::Metrics, plan::{Plan, Results}};

/// On objects without owner references: the uid of the object that they were created for.
pub const CREATED_FOR: &str = "capwasm.dev/created-for";

/// Connections to workload clusters, for the operations that go there.
#[async_trait]
pub trait Workloads: Send + Sync {
    /// The cache (and through it the client) of a connected cluster.
    async fn cache(&self, cluster: &ClusterId) -> Result<Cache, Unavailable>;
}

/// A workload cluster cannot be reached just now.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{cluster} is not connected: {message}")]
pub struct Unavailable {
    /// The cluster.
    pub cluster: ClusterId,
    /// Why.
    pub message: String,
}

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// How the operations ended.
    pub results: Results,
    /// What the caches have to show before the key may run again.
    pub written: Vec<Written>,
    /// The reconciled object changed meanwhile: decide again.
    pub conflict: bool,
    /// The own object could not be written for another reason than a conflict.
    pub failure: Option<String>,
}

/// Writes plans.
pub struct Executor;

impl Executor {
    /// Writes to `management` and to the clusters of `workloads`.
    pub fn new(_management: Cache, _workloads: Arc<dyn Workloads>, _metrics: Arc<Metrics>) -> Self { Self }
    /// Writes what differs between `observed` and the plan.
    pub async fn apply(&self, _controller: &str, _key: &Key, _observed: &Value, _plan: &Plan) -> Applied { todo!() }
}

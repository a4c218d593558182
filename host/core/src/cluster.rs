//! Cluster: takes its infrastructure and control plane as its own, copies what they report, sums up the cluster's state, and
//! takes everything down in order.

mod conditions;
mod decide;
mod deletion;
mod observe;
mod replicas;

use async_trait::async_trait;
use capwasm_api::names::finalizers;
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};
use capwasm_remote::Remote;
use jiff::Timestamp;

/// Reconciles Clusters.
pub(crate) struct ClusterReconciler {
    remote: Remote,
    /// Since when this process could have reached workload clusters.
    started: Timestamp,
}

impl ClusterReconciler {
    pub(crate) fn new(remote: Remote) -> ClusterReconciler {
        ClusterReconciler { remote, started: Timestamp::now() }
    }
}

#[async_trait]
impl Reconciler for ClusterReconciler {
    fn name(&self) -> &str {
        "cluster"
    }

    fn finalizers(&self) -> Vec<String> {
        vec![finalizers::CLUSTER.to_owned()]
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(&self.remote, self.started, pass).await?;
        Ok(decide::decide(&observed))
    }
}

//! Cluster: takes its infrastructure and control plane as its own, copies what they report, sums up the cluster's state, and
//! takes everything down in order.

mod conditions;
mod decide;
mod deletion;
mod observe;
mod replicas;

use async_trait::async_trait;
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};
use capwasm_remote::Remote;

/// Reconciles Clusters.
pub(crate) struct ClusterReconciler {
    remote: Remote,
}

impl ClusterReconciler {
    pub(crate) fn new(remote: Remote) -> ClusterReconciler {
        ClusterReconciler { remote }
    }
}

#[async_trait]
impl Reconciler for ClusterReconciler {
    fn name(&self) -> &str {
        "cluster"
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(&self.remote, pass).await?;
        Ok(decide::decide(&observed))
    }
}

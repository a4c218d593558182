//! Cluster: owns its infrastructure and control plane, copies what they report, summarises the state, and deletes
//! everything in order.

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

pub(crate) struct ClusterReconciler {
    remote: Remote,
    /// Start of this process.
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

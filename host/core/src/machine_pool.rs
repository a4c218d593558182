//! MachinePool: machines that an infrastructure provider manages as a group. Owns the pool's bootstrap configuration
//! and infrastructure, finds its Nodes, creates a Machine for each member that the provider shows, and deletes
//! everything.

mod conditions;
mod decide;
mod deletion;
mod machines;
mod nodes;
mod observe;

use async_trait::async_trait;
use capwasm_api::names::{finalizers, labels};
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};
use capwasm_remote::Remote;

pub(crate) struct MachinePoolReconciler {
    remote: Remote,
}

impl MachinePoolReconciler {
    pub(crate) fn new(remote: Remote) -> MachinePoolReconciler {
        MachinePoolReconciler { remote }
    }
}

#[async_trait]
impl Reconciler for MachinePoolReconciler {
    fn name(&self) -> &str {
        "machinepool"
    }

    /// A workload cluster that answers slowly holds up its own machines.
    fn divided_by(&self) -> Option<&str> {
        Some(labels::CLUSTER_NAME)
    }

    fn finalizers(&self) -> Vec<String> {
        vec![finalizers::MACHINE_POOL.to_owned()]
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(&self.remote, pass).await?;
        Ok(decide::decide(&observed))
    }
}

//! Machine: owns its bootstrap configuration and infrastructure, copies what they report, finds its Node, and deletes
//! everything in order.

mod available;
mod conditions;
mod decide;
mod deletion;
mod drain;
mod drain_rules;
mod node;
mod node_conditions;
mod observe;

use async_trait::async_trait;
use capwasm_api::names::{finalizers, labels};
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};
use capwasm_remote::Remote;

pub(crate) struct MachineReconciler {
    remote: Remote,
}

impl MachineReconciler {
    pub(crate) fn new(remote: Remote) -> MachineReconciler {
        MachineReconciler { remote }
    }
}

#[async_trait]
impl Reconciler for MachineReconciler {
    fn name(&self) -> &str {
        "machine"
    }

    /// A workload cluster that answers slowly holds up its own machines.
    fn divided_by(&self) -> Option<&str> {
        Some(labels::CLUSTER_NAME)
    }

    fn finalizers(&self) -> Vec<String> {
        vec![finalizers::MACHINE.to_owned()]
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(&self.remote, pass).await?;
        Ok(decide::decide(&observed))
    }
}

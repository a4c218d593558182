//! MachineDeployment: a MachineSet per template, and rollouts between them.

mod conditions;
mod decide;
mod observe;
mod rollout;
mod sets;

use async_trait::async_trait;
use capwasm_api::names::finalizers;
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};

pub(crate) struct MachineDeploymentReconciler;

#[async_trait]
impl Reconciler for MachineDeploymentReconciler {
    fn name(&self) -> &str {
        "machinedeployment"
    }

    fn finalizers(&self) -> Vec<String> {
        vec![finalizers::MACHINE_DEPLOYMENT.to_owned()]
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(pass).await?;
        Ok(decide::decide(&observed))
    }
}

//! MachineSet: keeps a number of Machines, with bootstrap configurations and infrastructure machines cloned from
//! templates.

mod clone;
mod conditions;
mod decide;
mod delete_priority;
mod in_place;
mod naming;
mod observe;
mod preflight;

use async_trait::async_trait;
use capwasm_api::names::finalizers;
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};

pub(crate) struct MachineSetReconciler;

#[async_trait]
impl Reconciler for MachineSetReconciler {
    fn name(&self) -> &str {
        "machineset"
    }

    fn finalizers(&self) -> Vec<String> {
        vec![finalizers::MACHINE_SET.to_owned()]
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(pass).await?;
        Ok(decide::decide(&observed))
    }
}

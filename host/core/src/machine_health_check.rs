//! MachineHealthCheck: reports whether Machines are healthy, and asks their owners, or an external remediation, to
//! replace those that are not.
//!
//! Nothing is polled: Machines, Nodes and the Cluster wake it, and a timer is set for when the next Machine would
//! become unhealthy.

mod decide;
mod evaluate;
mod observe;
mod remediation;

use async_trait::async_trait;
use capwasm_reconcile::{Pass, Plan, ReconcileError, Reconciler};
use capwasm_remote::Remote;

pub(crate) struct HealthCheckReconciler {
    remote: Remote,
}

impl HealthCheckReconciler {
    pub(crate) fn new(remote: Remote) -> HealthCheckReconciler {
        HealthCheckReconciler { remote }
    }
}

#[async_trait]
impl Reconciler for HealthCheckReconciler {
    fn name(&self) -> &str {
        "machinehealthcheck"
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let observed = observe::observe(&self.remote, pass).await?;
        Ok(decide::decide(&observed))
    }
}

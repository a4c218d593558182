//! Cluster API's core: reconcilers for Cluster, Machine, MachineSet, MachineDeployment, MachinePool and MachineHealthCheck.
//!
//! Each kind is a folder: `observe` reads through the pass's view, `decide` is a pure function from what was observed to a
//! plan, and the rest (conditions, deletion, planners) are pure parts of that decision. Core knows providers only by their
//! contract ([`capwasm_api::contract`]), and writes only what a [`Plan`](capwasm_reconcile::Plan) can say. It never polls: what
//! a pass read wakes it; timers are for time limits alone.

mod cluster;
mod decision;
mod draft;
mod external;
mod int_or_percent;
mod kinds;
mod machine;
mod machine_conditions;
mod machine_deployment;
mod machine_health_check;
mod machine_pool;
mod machine_set;
mod ownership;
mod paused;
mod reasons;
mod remediation;
#[cfg(test)]
mod testing;
mod up_to_date;

use std::sync::Arc;

use capwasm_reconcile::{Kind, Reconciler};
use capwasm_remote::Remote;

/// A core controller, to be added to a manager.
pub struct Controller {
    /// Reconciled kind.
    pub kind: Kind,
    /// Reconciler of that kind.
    pub reconciler: Arc<dyn Reconciler>,
    /// Concurrent passes at most.
    pub concurrency: usize,
}

/// The core reconcilers. Their CRDs are in [`capwasm_api`], feature `crds`.
pub fn controllers(remote: Remote) -> Vec<Controller> {
    vec![
        Controller {
            kind: kinds::cluster(),
            reconciler: Arc::new(cluster::ClusterReconciler::new(remote.clone())),
            concurrency: 10,
        },
        Controller {
            kind: kinds::machine(),
            reconciler: Arc::new(machine::MachineReconciler::new(remote.clone())),
            concurrency: 10,
        },
        Controller {
            kind: kinds::machine_set(),
            reconciler: Arc::new(machine_set::MachineSetReconciler),
            concurrency: 10,
        },
        Controller {
            kind: kinds::machine_deployment(),
            reconciler: Arc::new(machine_deployment::MachineDeploymentReconciler),
            concurrency: 10,
        },
        Controller {
            kind: kinds::machine_health_check(),
            reconciler: Arc::new(machine_health_check::HealthCheckReconciler::new(remote.clone())),
            concurrency: 10,
        },
        Controller {
            kind: kinds::machine_pool(),
            reconciler: Arc::new(machine_pool::MachinePoolReconciler::new(remote)),
            concurrency: 10,
        },
    ]
}

//! The order in which a cluster goes: workers, control plane, infrastructure.

use capwasm_api::json;
use capwasm_api::names::reason;
use capwasm_reconcile::{Action, Operation, Target};
use serde_json::Value;

use super::decide::Decision;
use crate::external::External;
use crate::ownership;

/// How far the deletion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits for what the reason names.
    Waiting(&'static str),
    /// Nothing is left.
    Done,
}

/// Deletes what is due now. What is there decides what is next, so every pass may be the first.
pub(super) fn decide(decision: &mut Decision<'_>) -> Stage {
    let observed = decision.observed;
    // Machines of a control plane are deleted by its object; without one they are deleted like workers.
    let orphaned_control_plane = observed.control_plane.is_none();
    let machines =
        observed.worker_machines().chain(observed.control_plane_machines().filter(|_| orphaned_control_plane));
    let groups = observed.pools.iter().chain(&observed.deployments).chain(&observed.sets).map(AsRef::as_ref);
    let descendants: Vec<&Value> = groups.chain(machines).collect();
    if !descendants.is_empty() {
        for child in descendants.into_iter().filter(|child| ownership::is_owned_by(child, json::uid(&observed.object)))
        {
            delete(decision, child);
        }
        return Stage::Waiting(reason::WAITING_FOR_WORKERS_DELETION);
    }
    for (external, waiting) in [
        (&observed.control_plane, reason::WAITING_FOR_CONTROL_PLANE_DELETION),
        (&observed.infrastructure, reason::WAITING_FOR_INFRASTRUCTURE_DELETION),
    ] {
        match external {
            Some(External::Found { object, .. }) => {
                delete(decision, object);
                return Stage::Waiting(waiting);
            }
            // It may be there: what comes after it must not go before it.
            Some(External::Unserved(_)) => return Stage::Waiting(waiting),
            Some(External::Missing | External::NotInstalled(_)) | None => {}
        }
    }
    Stage::Done
}

fn delete(decision: &mut Decision<'_>, object: &Value) {
    if !json::is_deleting(object) {
        let uid = json::text(object, "/metadata/uid").map(str::to_owned);
        decision.plan.operations.push(Operation::management(
            format!("delete {} {}", json::kind(object), json::name(object)),
            Action::Delete { target: Target::of(object), uid, propagation: None },
        ));
    }
}

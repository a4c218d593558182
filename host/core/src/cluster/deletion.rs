//! Order of a cluster's deletion: workers, control plane, infrastructure.

use std::sync::Arc;

use capwasm_api::names::reason;
use capwasm_object::{meta, owners};
use serde_json::Value;

use super::decide::Decision;
use super::observe::Observed;
use crate::decision::Wait;
use crate::external::External;

/// The next step follows from what exists, so every pass may be the first.
pub(super) fn decide(decision: &mut Decision<'_>) -> Option<Wait> {
    let observed = decision.observed;
    // Machines of a control plane are deleted by its object; without one they are deleted like workers.
    let orphaned_control_plane = observed.control_plane.is_none();
    let machines =
        observed.worker_machines().chain(observed.control_plane_machines().filter(|_| orphaned_control_plane));
    let groups = observed.pools.iter().chain(&observed.deployments).chain(&observed.sets).map(AsRef::as_ref);
    let descendants: Vec<&Value> = groups.chain(machines).collect();
    if !descendants.is_empty() {
        let uid = meta::uid(&observed.object);
        // What nobody controls (any more), nobody else deletes.
        let is_own = |child: &&Value| owners::is_owned_by(child, uid) || owners::controller(child).is_none();
        for child in descendants.into_iter().filter(is_own) {
            decision.delete(child);
        }
        return Some(Wait::new(reason::WAITING_FOR_WORKERS_DELETION, workers(observed)));
    }
    if let Some(external) = &observed.control_plane
        && decision.delete_external(external).is_some()
    {
        return Some(Wait::new(reason::WAITING_FOR_CONTROL_PLANE_DELETION, described(external)));
    }
    if let Some(external) = &observed.infrastructure
        && decision.delete_external(external).is_some()
    {
        return Some(Wait::new(reason::WAITING_FOR_INFRASTRUCTURE_DELETION, described(external)));
    }
    None
}

/// The remaining workers, and control plane Machines without a control plane object, as text.
fn workers(observed: &Observed) -> String {
    let names = |what: &str, list: &[Arc<Value>]| {
        (!list.is_empty()).then(|| {
            let mut names: Vec<&str> = list.iter().map(|object| meta::name(object)).collect();
            let more = names.len().saturating_sub(3);
            names.truncate(3);
            let more = if more > 0 { format!(", ... ({more} more)") } else { String::new() };
            format!("* {what}: {}{more}", names.join(", "))
        })
    };
    let lines = [
        names("MachineDeployments", &observed.deployments),
        names("MachineSets", &observed.sets),
        names("MachinePools", &observed.pools),
        names("Machines", &observed.machines),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn described<T>(external: &External<T>) -> String {
    match external.found() {
        Some((object, _)) => format!("* {}: {}", meta::kind(object), meta::name(object)),
        None => format!("* {}", external.unusable_kind().unwrap_or_default()),
    }
}

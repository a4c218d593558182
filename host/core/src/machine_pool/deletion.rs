//! Order of a MachinePool's deletion: infrastructure and bootstrap configuration, remaining Machines, Nodes.

use std::time::Duration;

use capwasm_api::names::reason;
use capwasm_object::meta;

use super::decide::Decision;
use super::nodes;
use super::observe::Nodes;
use crate::decision::Wait;

/// The next step follows from what exists, so every pass may be the first.
pub(super) fn decide(decision: &mut Decision<'_>) -> Option<Wait> {
    let observed = decision.observed;
    let infrastructure = decision
        .delete_external(&observed.infrastructure)
        .map(|message| Wait::new(reason::WAITING_FOR_INFRASTRUCTURE_DELETION, message));
    let bootstrap = observed.bootstrap.as_ref().and_then(|external| decision.delete_external(external));
    let bootstrap = bootstrap.map(|message| Wait::new(reason::WAITING_FOR_BOOTSTRAP_DELETION, message));
    if let Some(wait) = infrastructure.or(bootstrap) {
        return Some(wait);
    }
    if !observed.machines.is_empty() {
        for machine in &observed.machines {
            decision.delete(machine);
        }
        let names: Vec<&str> = observed.machines.iter().map(|machine| meta::name(machine)).take(5).collect();
        return Some(Wait::new(reason::DELETING, format!("Machines {}", names.join(", "))));
    }
    delete_nodes(decision)
}

/// Deletes the Nodes last, before the finalizer is removed; waits for an unreachable cluster until the timeout.
fn delete_nodes(decision: &mut Decision<'_>) -> Option<Wait> {
    let observed = decision.observed;
    let names: Vec<&str> = observed.pool.status.node_refs.iter().map(|reference| reference.name.as_str()).collect();
    let failed = observed.results.iter().any(|(key, result)| key.starts_with("delete Node") && result.is_err());
    let left = remaining(decision);
    let passed = left.is_some_and(|left| left.is_zero());
    match &observed.nodes {
        Nodes::Seen(_) if failed && passed => None,
        Nodes::Seen(all) => {
            for node in all.iter().filter(|node| names.contains(&meta::name(node)) && !meta::is_deleting(node)) {
                nodes::delete(decision, node);
            }
            None
        }
        Nodes::Unreachable(why) if !names.is_empty() && !passed => {
            if let Some(left) = left {
                decision.wake_after(left.max(Duration::from_secs(1)));
            }
            Some(Wait::new(reason::DELETING_NODE, format!("The workload cluster cannot be reached: {why}")))
        }
        Nodes::Unreachable(_) | Nodes::NotAsked => None,
    }
}

/// Time left until the timeout of the deletion of Nodes; `None` without a timeout.
fn remaining(decision: &Decision<'_>) -> Option<Duration> {
    let pool = &decision.observed.pool;
    let limit = pool.spec.template.spec.deletion.node_deletion_timeout_seconds?;
    let limit = Duration::from_secs(u64::try_from(limit).ok().filter(|seconds| *seconds > 0)?);
    let since: jiff::Timestamp = pool.metadata.deletion_timestamp.as_deref()?.parse().ok()?;
    Some(limit.saturating_sub(Duration::try_from(decision.observed.now.duration_since(since)).unwrap_or_default()))
}

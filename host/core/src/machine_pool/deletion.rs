//! The order in which a pool goes: infrastructure and bootstrap configuration, Machines that are left, Nodes.

use std::time::Duration;

use capwasm_api::json;
use capwasm_api::names::reason;
use capwasm_reconcile::{Action, Operation, Target};
use serde_json::Value;

use super::decide::Decision;
use super::nodes;
use super::observe::Nodes;
use crate::external::External;
use crate::ownership;

/// How far the deletion is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits: a reason of the `Deleting` condition and its message.
    Waiting(&'static str, String),
    /// What is left is in the plan; nothing waits.
    Done,
}

/// Deletes what is due now. What is there decides what is next, so every pass may be the first.
pub(super) fn decide(decision: &mut Decision<'_>) -> Stage {
    let observed = decision.observed;
    let own = observed.pool.metadata.uid.as_str();
    let mut waiting = None;
    for (external, why) in [
        (Some(&observed.infrastructure), reason::WAITING_FOR_INFRASTRUCTURE_DELETION),
        (observed.bootstrap.as_ref(), reason::WAITING_FOR_BOOTSTRAP_DELETION),
    ] {
        match external {
            Some(External::Found { object, .. }) if ownership::is_of_another(object, "MachinePool", own) => {}
            Some(External::Found { object, .. }) => {
                delete(decision, object);
                let text = format!("{} {}", json::kind(object), json::name(object));
                waiting.get_or_insert(Stage::Waiting(why, text));
            }
            // It may be there: what comes after it must not go before it.
            Some(External::Unserved(message)) => {
                waiting.get_or_insert(Stage::Waiting(why, message.clone()));
            }
            Some(External::Missing | External::NotInstalled(_)) | None => {}
        }
    }
    if let Some(waiting) = waiting {
        return waiting;
    }
    if !observed.machines.is_empty() {
        for machine in &observed.machines {
            delete(decision, machine);
        }
        let names: Vec<&str> = observed.machines.iter().map(|machine| json::name(machine)).take(5).collect();
        return Stage::Waiting(reason::DELETING, format!("Machines {}", names.join(", ")));
    }
    delete_nodes(decision)
}

/// The Nodes go with the last write but the finalizer's; a cluster that cannot be reached is waited for until the limit is passed.
fn delete_nodes(decision: &mut Decision<'_>) -> Stage {
    let observed = decision.observed;
    let names: Vec<&str> = observed.pool.status.node_refs.iter().map(|reference| reference.name.as_str()).collect();
    let failed = observed.results.iter().any(|(key, result)| key.starts_with("delete Node") && result.is_err());
    let left = remaining(decision);
    let passed = left.is_some_and(|left| left.is_zero());
    match &observed.nodes {
        Nodes::Seen(_) if failed && passed => Stage::Done,
        Nodes::Seen(all) => {
            for node in all.iter().filter(|node| names.contains(&json::name(node)) && !json::is_deleting(node)) {
                nodes::delete(decision, node);
            }
            Stage::Done
        }
        Nodes::Unreachable(why) if !names.is_empty() && !passed => {
            if let Some(left) = left {
                decision.wake_after(left.max(Duration::from_secs(1)));
            }
            Stage::Waiting(reason::DELETING_NODE, format!("The workload cluster cannot be reached: {why}"))
        }
        Nodes::Unreachable(_) | Nodes::NotAsked => Stage::Done,
    }
}

/// What is left of the time in which Nodes may be deleted; no limit is none.
fn remaining(decision: &Decision<'_>) -> Option<Duration> {
    let pool = &decision.observed.pool;
    let limit = pool.spec.template.spec.deletion.node_deletion_timeout_seconds?;
    let limit = Duration::from_secs(u64::try_from(limit).ok().filter(|seconds| *seconds > 0)?);
    let since: jiff::Timestamp = pool.metadata.deletion_timestamp.as_deref()?.parse().ok()?;
    Some(limit.saturating_sub(Duration::try_from(decision.observed.now.duration_since(since)).unwrap_or_default()))
}

fn delete(decision: &mut Decision<'_>, object: &Value) {
    if !json::is_deleting(object) {
        let uid = json::text(object, "/metadata/uid").map(str::to_owned);
        let key = format!("delete {} {}", json::kind(object), json::name(object));
        let action = Action::Delete { target: Target::of(object), uid, propagation: None };
        decision.plan.operations.push(Operation::management(key, action));
    }
}

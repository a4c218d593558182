//! Counters and conditions of a MachineSet.

use std::collections::BTreeMap;

use capwasm_api::conditions::{Condition, Status};
use capwasm_api::names::{condition, reason};
use capwasm_api::{conditions, json};
use serde_json::{Value, json};

use super::decide::{Decision, selector_text};
use crate::{members, reasons};

/// Sets them all.
pub(super) fn set(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let count = |name: &str| machines.iter().filter(|machine| conditions::is_true(machine, name)).count();
    decision.draft.set(&["status", "replicas"], machines.len());
    decision.draft.set(&["status", "readyReplicas"], count(condition::READY));
    decision.draft.set(&["status", "availableReplicas"], count(condition::AVAILABLE));
    decision.draft.set(&["status", "upToDateReplicas"], count(condition::UP_TO_DATE));
    let selector = selector_text(&decision.draft.desired);
    decision.draft.set(&["status", "selector"], selector);
    decision.draft.set(&["status", "versions"], versions(&machines));

    let deleting = observed.is_deleting();
    let wanted =
        if deleting { Some(0) } else { observed.set.spec.replicas.and_then(|wanted| usize::try_from(wanted).ok()) };
    let all = [
        scaling_up(wanted, machines.len(), &decision.held),
        scaling_down(wanted, machines.len()),
        members::aggregated(&machines, condition::READY, condition::MACHINES_READY, reasons::READY),
        members::aggregated(&machines, condition::UP_TO_DATE, condition::MACHINES_UP_TO_DATE, reasons::UP_TO_DATE),
        members::remediating(&machines),
        if deleting {
            Condition::new(condition::DELETING, true, reason::DELETING)
                .message(format!("Deleting {} Machines", machines.len()))
        } else {
            Condition::new(condition::DELETING, false, reason::NOT_DELETING)
        },
    ];
    for condition in &all {
        decision.draft.condition(condition);
    }
}

/// Kubelet versions that run, with their number.
fn versions(machines: &[&Value]) -> Value {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for version in machines.iter().filter_map(|machine| json::text(machine, "/status/nodeInfo/kubeletVersion")) {
        *counts.entry(version).or_default() += 1;
    }
    let list: Vec<Value> =
        counts.into_iter().map(|(version, replicas)| json!({"version": version, "replicas": replicas})).collect();
    if list.is_empty() { Value::Null } else { list.into() }
}

fn scaling_up(wanted: Option<usize>, current: usize, held: &[String]) -> Condition {
    let name = condition::SCALING_UP;
    match wanted {
        None => Condition::new(name, Status::Unknown, reason::WAITING_FOR_REPLICAS_SET)
            .message("Waiting for spec.replicas set"),
        Some(wanted) if current < wanted => {
            let mut lines = vec![format!("Scaling up from {current} to {wanted} replicas")];
            lines.extend(held.iter().map(|why| format!("* {why}")));
            Condition::new(name, true, reason::SCALING_UP).message(lines.join("\n"))
        }
        Some(_) => Condition::new(name, false, reason::NOT_SCALING_UP),
    }
}

fn scaling_down(wanted: Option<usize>, current: usize) -> Condition {
    let name = condition::SCALING_DOWN;
    match wanted {
        None => Condition::new(name, Status::Unknown, reason::WAITING_FOR_REPLICAS_SET)
            .message("Waiting for spec.replicas set"),
        Some(wanted) if current > wanted => Condition::new(name, true, reason::SCALING_DOWN)
            .message(format!("Scaling down from {current} to {wanted} replicas")),
        Some(_) => Condition::new(name, false, reason::NOT_SCALING_DOWN),
    }
}

//! Counters, phase and conditions of a MachineDeployment.

use std::collections::BTreeMap;

use capwasm_api::conditions::{Condition, Status};
use capwasm_api::contract::control_plane;
use capwasm_api::names::{condition, reason};
use capwasm_api::{conditions, json, selector};
use serde_json::{Value, json};

use super::decide::{Decision, strategy};
use super::observe::Observed;
use super::rollout::Strategy;
use crate::{members, reasons};

/// Sets them all.
pub(super) fn set(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let total = |name: &str| -> i64 {
        observed.sets.iter().filter_map(|set| json::number(&set.object, &format!("/status/{name}"))).sum()
    };
    for counter in ["replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"] {
        decision.draft.set(&["status", counter], total(counter));
    }
    let selector = selector::to_text(decision.draft.desired.pointer("/spec/selector").unwrap_or(&Value::Null));
    decision.draft.set(&["status", "selector"], selector);
    decision.draft.set(&["status", "versions"], versions(observed));
    let replicas = total("replicas");
    let wanted = if observed.is_deleting() { 0 } else { observed.replicas() };
    decision.draft.set(
        &["status", "phase"],
        match replicas.cmp(&wanted) {
            std::cmp::Ordering::Less => "ScalingUp",
            std::cmp::Ordering::Greater => "ScalingDown",
            std::cmp::Ordering::Equal => "Running",
        },
    );
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let all = [
        available(observed, total("availableReplicas")),
        rolling_out(&machines),
        scaling(condition::SCALING_UP, replicas < wanted, replicas, wanted),
        scaling(condition::SCALING_DOWN, replicas > wanted, replicas, wanted),
        members::aggregated(&machines, condition::READY, condition::MACHINES_READY, reasons::READY),
        members::aggregated(&machines, condition::UP_TO_DATE, condition::MACHINES_UP_TO_DATE, reasons::UP_TO_DATE),
        members::remediating(&machines),
        if observed.is_deleting() {
            Condition::new(condition::DELETING, true, reason::DELETING)
                .message(format!("Deleting {} MachineSets", observed.sets.len()))
        } else {
            Condition::new(condition::DELETING, false, reason::NOT_DELETING)
        },
    ];
    for condition in &all {
        decision.draft.condition(condition);
    }
}

fn versions(observed: &Observed) -> Value {
    let mut counts: BTreeMap<String, i32> = BTreeMap::new();
    for entry in observed.sets.iter().flat_map(|set| control_plane::versions(&set.object)) {
        let count = counts.entry(entry.version).or_default();
        *count = count.saturating_add(entry.replicas);
    }
    let list: Vec<Value> =
        counts.into_iter().map(|(version, replicas)| json!({"version": version, "replicas": replicas})).collect();
    if list.is_empty() { Value::Null } else { list.into() }
}

fn available(observed: &Observed, available: i64) -> Condition {
    let name = condition::AVAILABLE;
    if observed.deployment.spec.replicas.is_none() {
        return Condition::new(name, Status::Unknown, reason::WAITING_FOR_REPLICAS_SET)
            .message("Waiting for spec.replicas set");
    }
    let reported = observed.sets.iter().any(|set| set.typed.status.available_replicas.is_some());
    if !reported {
        return Condition::new(name, Status::Unknown, reason::WAITING_FOR_AVAILABLE_REPLICAS_SET)
            .message("Waiting for status.availableReplicas set");
    }
    let missing = match strategy(observed) {
        Strategy::RollingUpdate { unavailable, .. } => unavailable,
        Strategy::OnDelete => 0,
    };
    let least = observed.replicas() - missing;
    if available >= least && !observed.is_deleting() {
        return Condition::new(name, true, reason::AVAILABLE);
    }
    let mut message = format!("{available} available replicas, at least {least} required");
    if observed.is_deleting() {
        message = "Deletion in progress".to_owned();
    }
    Condition::new(name, false, reason::NOT_AVAILABLE).message(message)
}

fn rolling_out(machines: &[&Value]) -> Condition {
    let outdated = machines.iter().filter(|machine| conditions::is_false(machine, condition::UP_TO_DATE));
    let mut causes: Vec<String> = Vec::new();
    let mut count = 0;
    for machine in outdated {
        count += 1;
        let message = conditions::get(machine, condition::UP_TO_DATE).map(|found| found.message).unwrap_or_default();
        causes.extend(message.lines().map(str::to_owned));
    }
    if count == 0 {
        return Condition::new(condition::ROLLING_OUT, false, reason::NOT_ROLLING_OUT);
    }
    causes.sort();
    causes.dedup();
    causes.insert(0, format!("Rolling out {count} not up-to-date replicas"));
    Condition::new(condition::ROLLING_OUT, true, reason::ROLLING_OUT).message(causes.join("\n"))
}

fn scaling(name: &str, holds: bool, current: i64, wanted: i64) -> Condition {
    let (yes, no, way) = if name == condition::SCALING_UP {
        (reason::SCALING_UP, reason::NOT_SCALING_UP, "up")
    } else {
        (reason::SCALING_DOWN, reason::NOT_SCALING_DOWN, "down")
    };
    if holds {
        Condition::new(name, true, yes).message(format!("Scaling {way} from {current} to {wanted} replicas"))
    } else {
        Condition::new(name, false, no)
    }
}

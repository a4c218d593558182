//! Counters, phase and conditions of a MachineDeployment.

use std::cmp::Ordering;

use capwasm_api::conditions;
use capwasm_api::conditions::{Condition, Status};
use capwasm_api::kinds::{MachineDeploymentStatus, MachineSetStatus, VersionCount};
use capwasm_api::names::{condition, reason};
use capwasm_object::selector::Selector;
use serde_json::Value;

use super::decide::{Decision, strategy};
use super::observe::Observed;
use super::rollout::Strategy;
use crate::decision::Course;
use crate::machine_conditions::{aggregated, remediating};
use crate::reasons;

pub(super) fn set(decision: &mut Decision<'_>, course: &Course<()>) {
    let observed = decision.observed;
    let total = |counter: fn(&MachineSetStatus) -> Option<i64>| -> i64 {
        observed.sets.iter().filter_map(|set| counter(&set.typed.status)).sum()
    };
    let replicas = total(|set| set.replicas);
    let available_replicas = total(|set| set.available_replicas);
    let wanted = if observed.is_deleting() { 0 } else { observed.replicas() };
    let phase = match replicas.cmp(&wanted) {
        Ordering::Less => "ScalingUp",
        Ordering::Greater => "ScalingDown",
        Ordering::Equal => "Running",
    };
    let running = observed.sets.iter().flat_map(|set| &set.typed.status.versions);
    decision.draft.status = MachineDeploymentStatus {
        replicas: Some(replicas),
        ready_replicas: Some(total(|set| set.ready_replicas)),
        available_replicas: Some(available_replicas),
        up_to_date_replicas: Some(total(|set| set.up_to_date_replicas)),
        phase: phase.to_owned(),
        selector: Selector::of(&observed.deployment.spec.selector).ok().map(|selector| selector.to_string()),
        versions: VersionCount::total(running.map(|entry| (entry.version.as_str(), entry.replicas))),
    };
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let all = [
        available(observed, available_replicas),
        rolling_out(&machines),
        scaling(condition::SCALING_UP, replicas < wanted, replicas, wanted),
        scaling(condition::SCALING_DOWN, replicas > wanted, replicas, wanted),
        aggregated(&machines, condition::READY, condition::MACHINES_READY, reasons::READY),
        aggregated(&machines, condition::UP_TO_DATE, condition::MACHINES_UP_TO_DATE, reasons::UP_TO_DATE),
        remediating(&machines),
        course.deleting(),
    ];
    for condition in &all {
        decision.draft.condition(condition);
    }
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

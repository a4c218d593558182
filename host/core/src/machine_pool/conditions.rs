//! Conditions of a MachinePool.

use capwasm_api::conditions::{Condition, Status, mirror};
use capwasm_api::names::{condition, reason};
use capwasm_api::{contract, json};
use serde_json::Value;

use super::decide::{Decision, provisioned};
use super::deletion::Stage;
use crate::external::External;
use crate::{members, reasons};

/// Sets them all. `stage` is how far a deletion is.
pub(super) fn set(decision: &mut Decision<'_>, stage: Option<Stage>) {
    let observed = decision.observed;
    let desired = &decision.draft.desired;
    let number = |pointer: &str| json::number(desired, pointer);
    let wanted = if observed.is_deleting() { Some(0) } else { number("/spec/replicas") };
    let current = number("/status/replicas").unwrap_or(0);
    let available = number("/status/availableReplicas").unwrap_or(0);
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let mut found = vec![
        bootstrap(decision),
        infrastructure(decision),
        scaling(condition::SCALING_UP, wanted.filter(|wanted| current < *wanted), current),
        scaling(condition::SCALING_DOWN, wanted.filter(|wanted| current > *wanted), current),
        enough(decision, wanted.unwrap_or(0), available),
        members::remediating(&machines),
        match stage {
            None => Condition::new(condition::DELETING, false, reason::NOT_DELETING),
            Some(Stage::Waiting(reason, message)) => Condition::new(condition::DELETING, true, reason).message(message),
            Some(Stage::Done) => Condition::new(condition::DELETING, true, reason::DELETION_COMPLETED),
        },
    ];
    if observed.members.is_some() {
        found.push(members::aggregated(&machines, condition::READY, condition::MACHINES_READY, reasons::READY));
        let up_to_date = condition::MACHINES_UP_TO_DATE;
        found.push(members::aggregated(&machines, condition::UP_TO_DATE, up_to_date, reasons::UP_TO_DATE));
    } else if provisioned(desired) {
        found.push(Condition::new(condition::MACHINES_UP_TO_DATE, true, reason::UP_TO_DATE));
    } else {
        let not_yet = Condition::new(condition::MACHINES_UP_TO_DATE, false, reason::NOT_UP_TO_DATE);
        found.push(not_yet.message("Infrastructure is not yet provisioned"));
    }
    for condition in &found {
        decision.draft.condition(condition);
    }
}

fn bootstrap(decision: &Decision<'_>) -> Condition {
    let (observed, name) = (decision.observed, condition::BOOTSTRAP_CONFIG_READY);
    let Some(external) = &observed.bootstrap else {
        return Condition::new(name, true, reason::DATA_SECRET_PROVIDED);
    };
    match external.found() {
        Some((object, contract)) => mirror(object, condition::READY, name, || {
            let created = contract::bootstrap::data_secret_created(object, contract);
            let path = contract::bootstrap::data_secret_created_path(contract);
            reported(name, created, json::kind(object), path)
        }),
        None => {
            let before = observed.pool.status.initialization.bootstrap_data_secret_created == Some(true);
            absent(decision, external, name, before)
        }
    }
}

fn infrastructure(decision: &Decision<'_>) -> Condition {
    let (observed, name) = (decision.observed, condition::INFRASTRUCTURE_READY);
    match observed.infrastructure.found() {
        Some((object, contract)) => mirror(object, condition::READY, name, || {
            let done = provisioned(&decision.draft.desired);
            reported(name, done, json::kind(object), contract::infrastructure::provisioned_path(contract))
        }),
        None => {
            let before = observed.pool.status.initialization.infrastructure_provisioned == Some(true);
            absent(decision, &observed.infrastructure, name, before)
        }
    }
}

/// What stands in for a `Ready` condition that a provider does not report.
fn reported(name: &str, ready: bool, kind: &str, path: &str) -> Condition {
    Condition::new(name, ready, if ready { reason::READY } else { reason::NOT_READY })
        .message(format!("{kind} {path} is {ready}"))
}

fn absent(decision: &Decision<'_>, external: &External, name: &str, before: bool) -> Condition {
    match external.unusable_kind() {
        Some(message) => Condition::new(name, Status::Unknown, reason::INTERNAL_ERROR).message(message),
        _ if decision.observed.is_deleting() || before => {
            Condition::new(name, false, reason::DELETED).message("The referenced object has been deleted")
        }
        _ => Condition::new(name, false, reason::DOES_NOT_EXIST).message("The referenced object does not exist"),
    }
}

/// `goal` is there when the pool is on its way to it.
fn scaling(name: &'static str, goal: Option<i64>, current: i64) -> Condition {
    let up = name == condition::SCALING_UP;
    match goal {
        Some(goal) => {
            let (word, why) = if up { ("up", reason::SCALING_UP) } else { ("down", reason::SCALING_DOWN) };
            Condition::new(name, true, why).message(format!("Scaling {word} from {current} to {goal} replicas"))
        }
        None => Condition::new(name, false, if up { reason::NOT_SCALING_UP } else { reason::NOT_SCALING_DOWN }),
    }
}

fn enough(decision: &Decision<'_>, wanted: i64, available: i64) -> Condition {
    let name = condition::AVAILABLE;
    if decision.observed.is_deleting() {
        return Condition::new(name, false, reason::NOT_AVAILABLE).message("Deletion in progress");
    }
    if available >= wanted {
        return Condition::new(name, true, reason::AVAILABLE);
    }
    Condition::new(name, false, reason::NOT_AVAILABLE)
        .message(format!("{available} available replicas, at least {wanted} required (spec.replicas is {wanted})"))
}

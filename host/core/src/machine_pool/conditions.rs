//! Conditions of a MachinePool.

use capwasm_api::conditions::Condition;
use capwasm_api::names::{condition, reason};
use serde_json::Value;

use super::decide::Decision;
use super::observe::Observed;
use crate::decision::Course;
use crate::machine_conditions::{aggregated, remediating};
use crate::reasons;

pub(super) fn set(decision: &mut Decision<'_>, course: &Course<()>) {
    let observed = decision.observed;
    let (spec, status) = (&decision.draft.spec, &decision.draft.status);
    let wanted = if decision.is_deleting() { Some(0) } else { spec.replicas.map(i64::from) };
    let current = status.replicas.unwrap_or(0);
    let available = status.available_replicas.unwrap_or(0);
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let mut found = vec![
        bootstrap(decision),
        infrastructure(decision),
        scaling(condition::SCALING_UP, wanted.filter(|wanted| current < *wanted), current),
        scaling(condition::SCALING_DOWN, wanted.filter(|wanted| current > *wanted), current),
        enough(decision, wanted.unwrap_or(0), available),
        remediating(&machines),
        course.deleting(),
    ];
    if observed.members.is_some() {
        found.push(aggregated(&machines, condition::READY, condition::MACHINES_READY, reasons::READY));
        let up_to_date = condition::MACHINES_UP_TO_DATE;
        found.push(aggregated(&machines, condition::UP_TO_DATE, up_to_date, reasons::UP_TO_DATE));
    } else if is_provisioned(decision) {
        found.push(Condition::new(condition::MACHINES_UP_TO_DATE, true, reason::UP_TO_DATE));
    } else {
        let not_yet = Condition::new(condition::MACHINES_UP_TO_DATE, false, reason::NOT_UP_TO_DATE);
        found.push(not_yet.message("Infrastructure is not yet provisioned"));
    }
    for condition in &found {
        decision.draft.condition(condition);
    }
}

fn is_provisioned(decision: &Decision<'_>) -> bool {
    decision.draft.status.initialization.infrastructure_provisioned == Some(true)
}

fn bootstrap(decision: &Decision<'_>) -> Condition {
    let (name, pool) = (condition::BOOTSTRAP_CONFIG_READY, &decision.observed.pool);
    let Some(external) = &decision.observed.bootstrap else {
        return Condition::new(name, true, reason::DATA_SECRET_PROVIDED);
    };
    let before = pool.status.initialization.bootstrap_data_secret_created == Some(true);
    external.ready(name, before || decision.is_deleting(), |report| report.created)
}

fn infrastructure(decision: &Decision<'_>) -> Condition {
    let Observed { infrastructure, pool, .. } = decision.observed;
    let before = pool.status.initialization.infrastructure_provisioned == Some(true);
    let was_there = before || decision.is_deleting();
    infrastructure.ready(condition::INFRASTRUCTURE_READY, was_there, |_| is_provisioned(decision))
}

/// A scaling condition; `goal` is set while the pool scales in this direction.
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
    if decision.is_deleting() {
        return Condition::new(name, false, reason::NOT_AVAILABLE).message("Deletion in progress");
    }
    if available >= wanted {
        return Condition::new(name, true, reason::AVAILABLE);
    }
    Condition::new(name, false, reason::NOT_AVAILABLE)
        .message(format!("{available} available replicas, at least {wanted} required (spec.replicas is {wanted})"))
}

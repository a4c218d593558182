//! Conditions of a Cluster.

use capwasm_api::conditions::{Aggregate, Condition, Part, Polarity, Reasons, aggregate, get, summary};
use capwasm_api::names::{condition, reason};
use capwasm_object::owners;
use serde_json::Value;

use super::decide::{Decision, initialized_condition};
use super::observe::{Connection, Observed};
use crate::decision::Course;
use crate::external::External;
use crate::machine_conditions::{aggregated, remediating};
use crate::reasons;

/// Sets all conditions.
pub(super) fn set(decision: &mut Decision<'_>, course: &Course<()>) {
    let observed = decision.observed;
    let mut found = vec![course.deleting(), initialized_condition(decision)];
    found.extend(connection(observed));
    if let Connection::Unsettled(left) = observed.connection {
        decision.plan.wake_after = Some(left);
    }
    found.extend(infrastructure(decision));
    found.extend(control_plane(decision));
    found.push(workers(observed));
    let control: Vec<&Value> = observed.control_plane_machines().collect();
    let workers: Vec<&Value> = observed.worker_machines().collect();
    found.push(aggregated(&control, condition::READY, condition::CONTROL_PLANE_MACHINES_READY, reasons::READY));
    found.push(aggregated(&workers, condition::READY, condition::WORKER_MACHINES_READY, reasons::READY));
    found.push(aggregated(
        &control,
        condition::UP_TO_DATE,
        condition::CONTROL_PLANE_MACHINES_UP_TO_DATE,
        reasons::UP_TO_DATE,
    ));
    found.push(aggregated(&workers, condition::UP_TO_DATE, condition::WORKER_MACHINES_UP_TO_DATE, reasons::UP_TO_DATE));
    found.push(progress(observed, condition::ROLLING_OUT, reasons::ROLLING_OUT, false));
    found.push(progress(observed, condition::SCALING_UP, reasons::SCALING_UP, true));
    found.push(progress(observed, condition::SCALING_DOWN, reasons::SCALING_DOWN, true));
    let every: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    found.push(remediating(&every));
    for condition in &found {
        decision.draft.condition(condition);
    }
    let available = available(observed, &decision.draft.object);
    decision.draft.condition(&available);
}

/// `RemoteConnectionProbe`; `None` keeps the last one.
fn connection(observed: &Observed) -> Option<Condition> {
    let down =
        |why: String| Condition::new(condition::REMOTE_CONNECTION_PROBE, false, reason::PROBE_FAILED).message(why);
    match observed.connection {
        Connection::Unsettled(_) => None,
        Connection::Up => Some(Condition::new(condition::REMOTE_CONNECTION_PROBE, true, reason::PROBE_SUCCEEDED)),
        Connection::NotAsked => Some(down("Remote connection not established yet".to_owned())),
        Connection::Down(why) => Some(down(format!("Remote connection is down: {why}"))),
    }
}

fn infrastructure(decision: &Decision<'_>) -> Option<Condition> {
    let external = decision.observed.infrastructure.as_ref()?;
    let before = decision.observed.cluster.status.initialization.infrastructure_provisioned == Some(true);
    let was_there = before || decision.is_deleting();
    Some(external.ready(condition::INFRASTRUCTURE_READY, was_there, |report| report.provisioned))
}

fn control_plane(decision: &Decision<'_>) -> Option<Condition> {
    let external = decision.observed.control_plane.as_ref()?;
    let before = decision.observed.cluster.status.initialization.control_plane_initialized == Some(true);
    Some(external.available(condition::CONTROL_PLANE_AVAILABLE, before || decision.is_deleting()))
}

fn workers(observed: &Observed) -> Condition {
    let name = condition::WORKERS_AVAILABLE;
    let reporting = |pool: &&Value| get(pool, condition::AVAILABLE).is_some();
    let pools = observed.pools.iter().map(AsRef::as_ref).filter(reporting);
    let groups: Vec<&Value> = observed.deployments.iter().map(AsRef::as_ref).chain(pools).collect();
    if groups.is_empty() {
        return Condition::new(name, true, reason::NO_WORKERS);
    }
    let of = Aggregate {
        source: condition::AVAILABLE,
        target: name,
        polarity: Polarity::Positive,
        reasons: reasons::AVAILABLE,
    };
    aggregate(groups, of)
}

/// `RollingOut` and the scaling conditions, merged from the control plane and all groups of workers. Providers and
/// pools need not report them.
fn progress(observed: &Observed, name: &str, reasons: Reasons, with_sets: bool) -> Condition {
    let control_plane = observed.control_plane.as_ref().and_then(External::found).map(|(object, _)| object);
    let reporting = control_plane
        .into_iter()
        .chain(observed.pools.iter().map(AsRef::as_ref))
        .filter(|object| get(object, name).is_some());
    let sets = observed.sets.iter().map(AsRef::as_ref).filter(|set| with_sets && owners::controller_uid(set).is_none());
    let all: Vec<&Value> = reporting.chain(observed.deployments.iter().map(AsRef::as_ref)).chain(sets).collect();
    if all.is_empty() {
        return Condition::new(name, false, reasons.info);
    }
    aggregate(all, Aggregate { source: name, target: name, polarity: Polarity::Negative, reasons })
}

fn available(observed: &Observed, desired: &Value) -> Condition {
    let mut parts = vec![
        Part::negative(condition::DELETING),
        Part::positive(condition::REMOTE_CONNECTION_PROBE),
        Part::positive(condition::INFRASTRUCTURE_READY).optional(),
        Part::positive(condition::CONTROL_PLANE_AVAILABLE).optional(),
        Part::positive(condition::WORKERS_AVAILABLE),
    ];
    if observed.cluster.spec.topology.is_some() {
        parts.push(Part::positive(condition::TOPOLOGY_RECONCILED));
    }
    for gate in &observed.cluster.spec.availability_gates {
        parts.push(match gate.polarity.as_deref() {
            Some("Negative") => Part::negative(&gate.condition_type),
            _ => Part::positive(&gate.condition_type),
        });
    }
    summary(desired, condition::AVAILABLE, &parts, reasons::AVAILABLE)
}

//! Conditions of a Cluster.

use capwasm_api::conditions::{Aggregate, Condition, Part, Polarity, Reasons, Status, aggregate, get, mirror, summary};
use capwasm_api::names::{condition, reason};
use capwasm_api::{contract, json};
use serde_json::Value;

use super::decide::{Decision, initialized_condition};
use super::observe::{Connection, Observed};
use crate::external::External;
use crate::{members, ownership, reasons};

/// Sets them all. `stage` is what a deletion waits for.
pub(super) fn set(decision: &mut Decision<'_>, stage: Option<&'static str>) {
    let observed = decision.observed;
    let mut found = vec![deleting(observed, stage), initialized_condition(&decision.draft.desired)];
    found.extend(connection(observed));
    if let Connection::Unsettled(left) = observed.connection {
        decision.plan.wake_after = Some(left);
    }
    found.extend(infrastructure(observed));
    found.extend(control_plane(observed));
    found.push(workers(observed));
    let control: Vec<&Value> = observed.control_plane_machines().collect();
    let workers: Vec<&Value> = observed.worker_machines().collect();
    found.push(members::aggregated(
        &control,
        condition::READY,
        condition::CONTROL_PLANE_MACHINES_READY,
        reasons::READY,
    ));
    found.push(members::aggregated(&workers, condition::READY, condition::WORKER_MACHINES_READY, reasons::READY));
    found.push(members::aggregated(
        &control,
        condition::UP_TO_DATE,
        condition::CONTROL_PLANE_MACHINES_UP_TO_DATE,
        reasons::UP_TO_DATE,
    ));
    found.push(members::aggregated(
        &workers,
        condition::UP_TO_DATE,
        condition::WORKER_MACHINES_UP_TO_DATE,
        reasons::UP_TO_DATE,
    ));
    found.push(progress(observed, condition::ROLLING_OUT, reasons::ROLLING_OUT, false));
    found.push(progress(observed, condition::SCALING_UP, reasons::SCALING_UP, true));
    found.push(progress(observed, condition::SCALING_DOWN, reasons::SCALING_DOWN, true));
    let every: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    found.push(members::remediating(&every));
    for condition in &found {
        decision.draft.condition(condition);
    }
    let available = available(observed, &decision.draft.desired);
    decision.draft.condition(&available);
}

fn deleting(observed: &Observed, stage: Option<&'static str>) -> Condition {
    let Some(stage) = stage else {
        return Condition::new(condition::DELETING, false, reason::NOT_DELETING);
    };
    let message = match stage {
        reason::WAITING_FOR_WORKERS_DELETION => {
            let names = |what: &str, list: &[std::sync::Arc<Value>]| {
                (!list.is_empty()).then(|| {
                    let mut names: Vec<&str> = list.iter().map(|object| json::name(object)).collect();
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
        reason::WAITING_FOR_CONTROL_PLANE_DELETION => format!("* {}", described(observed.control_plane.as_ref())),
        _ => format!("* {}", described(observed.infrastructure.as_ref())),
    };
    Condition::new(condition::DELETING, true, stage).message(message)
}

fn described(external: Option<&External>) -> String {
    match external {
        Some(External::Found { object, .. }) => format!("{}: {}", json::kind(object), json::name(object)),
        other => other.and_then(External::unusable_kind).unwrap_or_default().to_owned(),
    }
}

/// Nothing while what was said last should stand.
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

fn infrastructure(observed: &Observed) -> Option<Condition> {
    let external = observed.infrastructure.as_ref()?;
    let name = condition::INFRASTRUCTURE_READY;
    Some(match external.found() {
        Some((object, contract)) => mirror(object, condition::READY, name, || {
            let provisioned = contract::infrastructure::provisioned(object, contract);
            let path = contract::infrastructure::provisioned_path(contract);
            Condition::new(name, provisioned, if provisioned { reason::READY } else { reason::NOT_READY })
                .message(format!("{} {path} is {provisioned}", json::kind(object)))
        }),
        None => absent(
            observed,
            external,
            name,
            observed.cluster.status.initialization.infrastructure_provisioned == Some(true),
        ),
    })
}

fn control_plane(observed: &Observed) -> Option<Condition> {
    let external = observed.control_plane.as_ref()?;
    let name = condition::CONTROL_PLANE_AVAILABLE;
    Some(match external.found() {
        Some((object, contract)) => {
            let source = match contract {
                contract::Contract::V1Beta1 => condition::READY,
                contract::Contract::V1Beta2 => condition::AVAILABLE,
            };
            mirror(object, source, name, || {
                let initialized = contract::control_plane::initialized(object, contract);
                let path = contract::control_plane::initialized_path(contract);
                Condition::new(name, initialized, if initialized { reason::AVAILABLE } else { reason::NOT_AVAILABLE })
                    .message(format!("{} {path} is {initialized}", json::kind(object)))
            })
        }
        None => absent(
            observed,
            external,
            name,
            observed.cluster.status.initialization.control_plane_initialized == Some(true),
        ),
    })
}

fn absent(observed: &Observed, external: &External, name: &str, before: bool) -> Condition {
    match external.unusable_kind() {
        Some(message) => Condition::new(name, Status::Unknown, reason::INTERNAL_ERROR).message(message),
        _ if observed.is_deleting() || before => {
            Condition::new(name, false, reason::DELETED).message("The referenced object has been deleted")
        }
        _ => Condition::new(name, false, reason::DOES_NOT_EXIST).message("The referenced object does not exist"),
    }
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

/// Rolling out and scaling, over the control plane and all groups of workers. Providers and pools need not report them.
fn progress(observed: &Observed, name: &str, reasons: Reasons, with_sets: bool) -> Condition {
    let control_plane = observed.control_plane.as_ref().and_then(External::found).map(|(object, _)| object);
    let reporting = control_plane
        .into_iter()
        .chain(observed.pools.iter().map(AsRef::as_ref))
        .filter(|object| get(object, name).is_some());
    let sets =
        observed.sets.iter().map(AsRef::as_ref).filter(|set| with_sets && ownership::controller_uid(set).is_none());
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

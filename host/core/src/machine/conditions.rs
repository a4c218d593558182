//! Conditions of a Machine.

use capwasm_api::conditions::{Condition, Part, Status, mirror, summary};
use capwasm_api::kinds::{self as typed, MachineDeployment, MachineSet};
use capwasm_api::names::{condition, labels, reason};
use capwasm_api::{contract, json};
use serde_json::Value;

use super::decide::Decision;
use super::observe::Observed;
use super::{available, deletion, node_conditions};
use crate::external::External;
use crate::{reasons, template};

/// Sets them all. `stage` is how far a deletion is.
pub(super) fn set(decision: &mut Decision<'_>, stage: Option<deletion::Stage>) {
    let observed = decision.observed;
    let mut found = vec![
        deletion::condition(stage),
        Condition::new(condition::UPDATING, false, reason::NOT_UPDATING),
        bootstrap(observed),
        infrastructure(observed),
    ];
    found.extend(node_conditions::all(decision));
    found.extend(up_to_date(observed));
    for condition in &found {
        decision.draft.condition(condition);
    }
    let ready = ready(decision);
    decision.draft.condition(&ready);
    let available = available::decide(decision);
    decision.draft.condition(&available);
}

fn bootstrap(observed: &Observed) -> Condition {
    let name = condition::BOOTSTRAP_CONFIG_READY;
    let Some(external) = &observed.bootstrap else {
        return Condition::new(name, true, reason::DATA_SECRET_PROVIDED);
    };
    match external.found() {
        Some((object, contract)) => mirror(object, condition::READY, name, || {
            let created = contract::bootstrap::data_secret_created(object, contract);
            let path = contract::bootstrap::data_secret_created_path(contract);
            reported(name, created, json::kind(object), path)
        }),
        None => absent(
            observed,
            external,
            name,
            observed.machine.status.initialization.bootstrap_data_secret_created == Some(true),
        ),
    }
}

fn infrastructure(observed: &Observed) -> Condition {
    let name = condition::INFRASTRUCTURE_READY;
    match observed.infrastructure.found() {
        Some((object, contract)) => mirror(object, condition::READY, name, || {
            let provisioned = contract::infrastructure::provisioned(object, contract);
            reported(name, provisioned, json::kind(object), contract::infrastructure::provisioned_path(contract))
        }),
        None => {
            let before = observed.machine.status.initialization.infrastructure_provisioned == Some(true);
            absent(observed, &observed.infrastructure, name, before)
        }
    }
}

/// What stands in for a `Ready` condition that a provider does not report.
fn reported(name: &str, ready: bool, kind: &str, path: &str) -> Condition {
    Condition::new(name, ready, if ready { reason::READY } else { reason::NOT_READY })
        .message(format!("{kind} {path} is {ready}"))
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

/// Only for Machines of a MachineDeployment or a MachinePool: control planes say it of their own Machines, and nobody of others.
fn up_to_date(observed: &Observed) -> Option<Condition> {
    if observed.machine.metadata.labels.contains_key(labels::CONTROL_PLANE) {
        return None;
    }
    if let Some(pool) = &observed.pool {
        return Some(up_to_date_with(pool, observed));
    }
    let set: MachineSet = typed::view(observed.set.as_deref()?).ok()?;
    let deployment: MachineDeployment = typed::view(observed.deployment.as_deref()?).ok()?;
    let mut differences = template::differences(&set.spec.template.spec, &deployment.spec.template.spec);
    let after = deployment.spec.rollout.after.as_deref().and_then(|after| after.parse::<jiff::Timestamp>().ok());
    let created = observed
        .machine
        .metadata
        .creation_timestamp
        .as_deref()
        .and_then(|created| created.parse::<jiff::Timestamp>().ok());
    if after.zip(created).is_some_and(|(after, created)| after <= observed.now && created < after) {
        differences.push("MachineDeployment spec.rollout.after expired".to_owned());
    }
    let name = condition::UP_TO_DATE;
    Some(if differences.is_empty() {
        Condition::new(name, true, reason::UP_TO_DATE)
    } else {
        let lines: Vec<String> = differences.into_iter().map(|line| format!("* {line}")).collect();
        Condition::new(name, false, reason::NOT_UP_TO_DATE).message(lines.join("\n"))
    })
}

/// A pool's members are replaced by their provider: what can be seen is the version that they run.
fn up_to_date_with(pool: &Value, observed: &Observed) -> Condition {
    let name = condition::UP_TO_DATE;
    let wanted = json::text(pool, "/spec/template/spec/version");
    match (wanted, observed.machine.spec.version.as_deref()) {
        (Some(wanted), Some(runs)) if wanted != runs => {
            Condition::new(name, false, reason::NOT_UP_TO_DATE).message(format!("* Version {runs}, {wanted} required"))
        }
        (Some(_), None) => Condition::new(name, Status::Unknown, reason::UP_TO_DATE_UNKNOWN)
            .message("The version that it runs is not known yet"),
        _ => Condition::new(name, true, reason::UP_TO_DATE),
    }
}

fn ready(decision: &Decision<'_>) -> Condition {
    let mut parts = vec![
        Part::negative(condition::DELETING),
        Part::negative(condition::UPDATING),
        Part::positive(condition::BOOTSTRAP_CONFIG_READY),
        Part::positive(condition::INFRASTRUCTURE_READY),
        Part::positive(condition::NODE_HEALTHY),
        Part::positive(condition::HEALTH_CHECK_SUCCEEDED).optional(),
    ];
    for gate in &decision.observed.machine.spec.readiness_gates {
        parts.push(match gate.polarity.as_deref() {
            Some("Negative") => Part::negative(&gate.condition_type),
            _ => Part::positive(&gate.condition_type),
        });
    }
    summary(&decision.draft.desired, condition::READY, &parts, reasons::READY)
}

//! Conditions of a Machine.

use capwasm_api::conditions::{Condition, Part, Status, summary};
use capwasm_api::kinds::{self as typed, MachineDeployment, MachineSet};
use capwasm_api::names::{condition, labels, reason};
use capwasm_object::json;
use serde_json::Value;

use super::decide::Decision;
use super::observe::Observed;
use super::{available, node_conditions};
use crate::decision::Course;
use crate::{reasons, up_to_date};

/// Sets all conditions.
pub(super) fn set(decision: &mut Decision<'_>, course: &Course<()>) {
    let observed = decision.observed;
    let mut found = vec![
        course.deleting(),
        Condition::new(condition::UPDATING, false, reason::NOT_UPDATING),
        bootstrap(decision),
        infrastructure(decision),
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

fn bootstrap(decision: &Decision<'_>) -> Condition {
    let (name, machine) = (condition::BOOTSTRAP_CONFIG_READY, &decision.observed.machine);
    let Some(external) = &decision.observed.bootstrap else {
        return Condition::new(name, true, reason::DATA_SECRET_PROVIDED);
    };
    let before = machine.status.initialization.bootstrap_data_secret_created == Some(true);
    external.ready(name, before || decision.is_deleting(), |report| report.created)
}

fn infrastructure(decision: &Decision<'_>) -> Condition {
    let Observed { infrastructure, machine, .. } = decision.observed;
    let before = machine.status.initialization.infrastructure_provisioned == Some(true);
    let was_there = before || decision.is_deleting();
    infrastructure.ready(condition::INFRASTRUCTURE_READY, was_there, |report| report.provisioned)
}

/// `UpToDate` of Machines of a MachineDeployment or MachinePool. Control planes set it on their Machines themselves.
fn up_to_date(observed: &Observed) -> Option<Condition> {
    if observed.machine.metadata.labels.contains_key(labels::CONTROL_PLANE) {
        return None;
    }
    if let Some(pool) = &observed.pool {
        return Some(up_to_date_with(pool, observed));
    }
    let set: MachineSet = typed::view(observed.set.as_deref()?).ok()?;
    let deployment: MachineDeployment = typed::view(observed.deployment.as_deref()?).ok()?;
    let mut differences = up_to_date::differences(&set.spec.template.spec, &deployment.spec.template.spec);
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

/// Members of a pool are replaced by their provider: only their version can be compared.
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
    summary(&decision.draft.object, condition::READY, &parts, reasons::READY)
}

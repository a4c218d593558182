//! Conditions of the control plane, except those about health.

use std::borrow::Cow;

use capwasm_api::conditions::{Aggregate, Condition, Polarity, Reasons, Reported, Status, aggregate_reported};
use capwasm_api::names::{condition, reason};
use capwasm_sdk::Outcome;

use super::Report;
use crate::machine::{self, Machine};
use crate::names::{self, reason as own};
use crate::observe::Observed;
use crate::plane::TemplateRef;

/// Sets the conditions of the KubeadmControlPlane.
pub fn set(out: &mut Outcome, observed: &Observed, report: &Report) {
    let initialized = observed.initialized;
    out.condition(
        names::INITIALIZED,
        Some(initialized),
        if initialized { reason::INITIALIZED } else { reason::NOT_INITIALIZED },
        "",
    );
    let ready = Reasons { issue: reason::NOT_READY, unknown: reason::READY_UNKNOWN, info: reason::READY };
    machines(out, observed, condition::READY, condition::MACHINES_READY, ready);
    let current =
        Reasons { issue: reason::NOT_UP_TO_DATE, unknown: reason::UP_TO_DATE_UNKNOWN, info: reason::UP_TO_DATE };
    machines(out, observed, condition::UP_TO_DATE, condition::MACHINES_UP_TO_DATE, current);
    rolling_out(out, observed, report);
    scaling(out, observed, report);
    remediating(out, observed);
    out.condition(condition::DELETING, Some(false), reason::NOT_DELETING, "");
}

fn machines(out: &mut Outcome, observed: &Observed, source: &str, target: &str, reasons: Reasons) {
    if observed.machines.is_empty() {
        out.condition(target, Some(true), reason::NO_REPLICAS, "");
        return;
    }
    let of = Aggregate { source, target, polarity: Polarity::Positive, reasons };
    put(out, aggregate_reported(observed.machines.iter().map(|machine| reported(machine, source)), of));
}

fn reported<'a>(machine: &'a Machine, name: &str) -> Reported<'a> {
    let condition = machine.conditions.get(name).map(Cow::Borrowed);
    Reported { kind: "Machine", name: &machine.name, condition }
}

fn put(out: &mut Outcome, condition: Condition) {
    let status = match condition.status {
        Status::True => Some(true),
        Status::False => Some(false),
        Status::Unknown => None,
    };
    out.condition(&condition.name, status, &condition.reason, condition.message);
}

fn rolling_out(out: &mut Outcome, observed: &Observed, report: &Report) {
    let outdated: Vec<&Machine> = observed.machines.iter().filter(|machine| !machine.outdated.is_empty()).collect();
    if outdated.is_empty() {
        out.condition(condition::ROLLING_OUT, Some(false), reason::NOT_ROLLING_OUT, "");
        return;
    }
    let mut why: Vec<&String> = outdated.iter().flat_map(|machine| &machine.outdated).collect();
    why.sort_by_key(|line| (!line.starts_with("Version"), line.as_str()));
    why.dedup();
    let mut lines = vec![format!("Rolling out {} not up-to-date replicas", outdated.len())];
    lines.extend(why.into_iter().map(|line| format!("* {line}")));
    if let Some(problem) = &report.refused {
        lines.push(format!("The rollout is refused: {}", problem.message));
    }
    out.condition(condition::ROLLING_OUT, Some(true), reason::ROLLING_OUT, lines.join("\n"));
}

fn scaling(out: &mut Outcome, observed: &Observed, report: &Report) {
    let (wanted, there) = (observed.plane.replicas as usize, observed.machines.len());
    let missing =
        observed.template.is_none().then(|| format!("{} does not exist", TemplateRef::of(&observed.plane).kind));
    let blocked = |mut message: String, mut lines: Vec<String>| {
        lines.dedup();
        if !lines.is_empty() {
            message.push_str(&format!(" is blocked because:\n{}", lines.join("\n")));
        }
        message
    };
    if there < wanted {
        let mut lines = report.lines();
        lines.extend(missing.map(|missing| format!("* {missing}")));
        let message = blocked(format!("Scaling up from {there} to {wanted} replicas"), lines);
        out.condition(condition::SCALING_UP, Some(true), reason::SCALING_UP, message);
    } else {
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        out.condition(condition::SCALING_UP, Some(false), reason::NOT_SCALING_UP, message.unwrap_or_default());
    }
    if there > wanted {
        let message = blocked(format!("Scaling down from {there} to {wanted} replicas"), report.lines());
        out.condition(condition::SCALING_DOWN, Some(true), reason::SCALING_DOWN, message);
    } else {
        // A machine that somebody deleted is held here, too.
        let message = report.holds.iter().map(|hold| format!("* {hold}")).collect::<Vec<_>>().join("\n");
        out.condition(condition::SCALING_DOWN, Some(false), reason::NOT_SCALING_DOWN, message);
    }
}

fn remediating(out: &mut Outcome, observed: &Observed) {
    let asked: Vec<&Machine> = observed.machines.iter().filter(|machine| machine.needs_remediation()).collect();
    if asked.is_empty() {
        let unhealthy = machine::list(observed.machines.iter().filter(|machine| machine.is_unhealthy()));
        let message = match unhealthy.as_str() {
            "" => String::new(),
            names if names.contains(", ") => {
                format!("Machines {names} are not healthy (not to be remediated by KubeadmControlPlane)")
            }
            name => format!("Machine {name} is not healthy (not to be remediated by KubeadmControlPlane)"),
        };
        out.condition(condition::REMEDIATING, Some(false), reason::NOT_REMEDIATING, message);
        return;
    }
    let of = Aggregate {
        source: condition::OWNER_REMEDIATED,
        target: condition::REMEDIATING,
        polarity: Polarity::Positive,
        reasons: Reasons { issue: reason::REMEDIATING, unknown: reason::REMEDIATING, info: reason::REMEDIATING },
    };
    let told = aggregate_reported(asked.iter().map(|machine| reported(machine, of.source)), of);
    out.condition(condition::REMEDIATING, Some(true), reason::REMEDIATING, told.message);
}

/// The conditions of a control plane whose deletion waits for `others`, or for its own machines.
pub fn deleting(out: &mut Outcome, machines: &[Machine], others: &[String]) {
    let (why, message) = match () {
        () if !others.is_empty() => (reason::WAITING_FOR_WORKERS_DELETION, others.join("\n")),
        () if !machines.is_empty() => {
            let plural = if machines.len() == 1 { "" } else { "s" };
            (own::WAITING_FOR_MACHINE_DELETION, format!("* Machine{plural} {}", machine::list(machines)))
        }
        () => (reason::DELETION_COMPLETED, "Deletion completed".to_owned()),
    };
    out.condition(condition::DELETING, Some(true), why, message);
    out.condition(
        condition::AVAILABLE,
        Some(false),
        reason::NOT_AVAILABLE,
        "* Control plane metadata.deletionTimestamp is set",
    );
    out.condition(condition::SCALING_UP, Some(false), reason::NOT_SCALING_UP, "");
    match machines.len() {
        0 => out.condition(condition::SCALING_DOWN, Some(false), reason::NOT_SCALING_DOWN, ""),
        there => out.condition(
            condition::SCALING_DOWN,
            Some(true),
            reason::SCALING_DOWN,
            format!("Scaling down from {there} to 0 replicas"),
        ),
    };
}

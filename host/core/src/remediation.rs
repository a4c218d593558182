//! Remediation by owners: they delete Machines that failed a health check.

use std::sync::Arc;

use capwasm_api::conditions;
use capwasm_api::names::{annotations, condition, reason};
use capwasm_object::{json, meta};
use capwasm_reconcile::{Action, Operation, Target};
use serde_json::{Value, json};

/// Limits of an owner's remediation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Whether the Machines are replaced anyway, since their template is outdated.
    pub(crate) outdated: bool,
    /// Reasons against the creation of replacements.
    pub(crate) held: Vec<String>,
    /// Machines replaced at the same time at most, with the setting as text; `None`: no limit.
    pub(crate) in_flight: Option<(i64, String)>,
}

/// Deletions, or conditions that say why not. Machines that a user marked go first, then the newest.
pub(crate) fn operations(machines: &[Arc<Value>], limits: &Limits) -> Vec<Operation> {
    let failed = |machine: &&Arc<Value>| {
        conditions::is_false(machine, condition::HEALTH_CHECK_SUCCEEDED)
            && conditions::is_false(machine, condition::OWNER_REMEDIATED)
    };
    let (going, mut waiting): (Vec<_>, Vec<_>) =
        machines.iter().filter(failed).partition(|machine| meta::is_deleting(machine));
    let created = |machine: &Value| json::text(machine, "/metadata/creationTimestamp").unwrap_or_default().to_owned();
    let asked = |machine: &Value| meta::annotation(machine, annotations::REMEDIATE_MACHINE).is_some();
    waiting.sort_by(|a, b| {
        asked(b).cmp(&asked(a)).then_with(|| created(b).cmp(&created(a))).then_with(|| meta::name(a).cmp(meta::name(b)))
    });
    let mut room = limits.in_flight.as_ref().map(|(most, _)| {
        let going = i64::try_from(going.len()).unwrap_or(i64::MAX);
        most.saturating_sub(going)
    });
    let mut operations = Vec::new();
    for machine in waiting {
        let (reason, message) = if limits.outdated {
            let why = "Machine won't be remediated because it is pending removal due to rollout";
            (reason::CANNOT_BE_REMEDIATED, why.to_owned())
        } else if !limits.held.is_empty() {
            (
                reason::REMEDIATION_DEFERRED,
                limits.held.iter().map(|why| format!("* {why}")).collect::<Vec<_>>().join("\n"),
            )
        } else if let Some((_, said)) = limits.in_flight.as_ref().filter(|_| room.is_some_and(|room| room <= 0)) {
            let why = format!(
                "Waiting because there are already too many remediations in progress (spec.remediation.maxInFlight is {said})"
            );
            (reason::REMEDIATION_DEFERRED, why)
        } else {
            room = room.map(|room| room - 1);
            (reason::MACHINE_DELETING, String::new())
        };
        operations.extend(say(machine, reason, &message));
        if reason == reason::MACHINE_DELETING {
            let uid = json::text(machine, "/metadata/uid").map(str::to_owned);
            let action = Action::Delete { target: Target::of(machine), uid, propagation: None };
            operations.push(Operation::management(format!("remediate Machine {}", meta::name(machine)), action));
        }
    }
    operations
}

/// Sets `OwnerRemediated` to False with this reason, unless the Machine has it.
fn say(machine: &Value, reason: &str, message: &str) -> Option<Operation> {
    let said = conditions::get(machine, condition::OWNER_REMEDIATED)?;
    let name = condition::OWNER_REMEDIATED;
    (said.reason != reason || said.message != message).then(|| {
        let condition = json!({"type": name, "status": "False", "reason": reason, "message": message});
        let action = Action::SetCondition { target: Target::of(machine), condition };
        Operation::management(format!("say of Machine {}", meta::name(machine)), action)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, created: &str, health: &str, going: bool) -> Arc<Value> {
        let mut machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "uid": name, "annotations": {}, "creationTimestamp": format!("2026-01-0{created}T00:00:00Z")},
            "status": {"conditions": [
                {"type": "HealthCheckSucceeded", "status": health, "reason": "R"},
                {"type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation"}]}});
        if going {
            machine["metadata"]["deletionTimestamp"] = json!("2026-01-05T00:00:00Z");
        }
        Arc::new(machine)
    }

    #[test]
    fn failed_machines_go_newest_first_within_the_limits() {
        let mut asked = (*machine("asked", "1", "False", false)).clone();
        asked["metadata"]["annotations"] = json!({"cluster.x-k8s.io/remediate-machine": ""});
        let all = [
            machine("old", "1", "False", false),
            machine("new", "3", "False", false),
            machine("good", "3", "True", false),
            machine("going", "2", "False", true),
            Arc::new(asked),
        ];
        let most = |most: i64| Some((most, most.to_string()));
        for (what, limits, gone, deferred) in [
            ("no limit", Limits::default(), vec!["asked", "new", "old"], vec![]),
            ("one goes already", Limits { in_flight: most(2), ..Limits::default() }, vec!["asked"], vec!["new", "old"]),
            ("no room", Limits { in_flight: most(1), ..Limits::default() }, vec![], vec!["asked", "new", "old"]),
            (
                "no replacement",
                Limits { held: vec!["why".to_owned()], ..Limits::default() },
                vec![],
                vec!["asked", "new", "old"],
            ),
            ("outdated", Limits { outdated: true, ..Limits::default() }, vec![], vec!["asked", "new", "old"]),
        ] {
            let operations = operations(&all, &limits);
            let (mut deleted, mut said) = (Vec::new(), Vec::new());
            for operation in &operations {
                match &operation.action {
                    Action::Delete { target, uid, .. } if uid.as_deref() == Some(&*target.name) => {
                        deleted.push(&*target.name)
                    }
                    Action::SetCondition { target, condition } => {
                        said.push((&*target.name, condition["reason"].clone()))
                    }
                    _ => {}
                }
            }
            assert_eq!(deleted, gone, "{what}");
            assert_eq!(said.len(), 3, "{what}: each is told");
            let expected = if limits.outdated { "CannotBeRemediated" } else { "RemediationDeferred" };
            let put_off: Vec<&str> =
                said.iter().filter(|(_, reason)| *reason == expected).map(|(name, _)| *name).collect();
            assert_eq!(put_off, deferred, "{what}");
        }
    }

    #[test]
    fn nothing_is_said_twice() {
        let limits = Limits { outdated: true, ..Limits::default() };
        let mut told = (*machine("m", "1", "False", false)).clone();
        told["status"]["conditions"][1]["reason"] = json!("CannotBeRemediated");
        told["status"]["conditions"][1]["message"] =
            json!("Machine won't be remediated because it is pending removal due to rollout");
        assert!(operations(&[Arc::new(told)], &limits).is_empty());
    }
}

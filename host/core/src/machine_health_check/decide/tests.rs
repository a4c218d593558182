//! Table tests of decisions about MachineHealthChecks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use capwasm_reconcile::{Refusal, Refused, Verdict};
use jiff::Timestamp;
use serde_json::json;

use super::super::observe::{self, NodeSight};
use super::*;
use crate::testing::{condition as found_condition, core, keys, patch};

fn condition(name: &str, status: &str) -> Value {
    json!({"type": name, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// A Machine whose Node has long been in this state; `None`: its Node is gone.
fn target(name: &str, ready: Option<&str>) -> observe::Target {
    let machine = core("Machine", name, json!({}), json!({"nodeRef": {"name": name}}));
    let node = match ready {
        Some(ready) => NodeSight::Found(Arc::new(json!({"status": {"conditions": [condition("Ready", ready)]}}))),
        None => NodeSight::Gone(name.to_owned()),
    };
    observe::Target { machine: Arc::new(machine), node }
}

fn observed(remediation: Value, targets: Vec<observe::Target>) -> Observed {
    let cluster = core(
        "Cluster",
        "c",
        json!({}),
        json!({"conditions": [condition("ControlPlaneInitialized", "True"), condition("InfrastructureReady", "True")]}),
    );
    let checks = json!({"nodeStartupTimeoutSeconds": 600, "unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]});
    let object = core(
        "MachineHealthCheck",
        "mhc",
        json!({"clusterName": "c", "selector": {"matchLabels": {"a": "b"}}, "checks": checks, "remediation": remediation}),
        json!({}),
    );
    Observed {
        check: capwasm_api::kinds::view(&object).unwrap(),
        object: Arc::new(object),
        now: "2026-01-02T00:00:00Z".parse::<Timestamp>().unwrap(),
        results: vec![],
        cluster: Some(Arc::new(cluster)),
        targets,
        unreachable: None,
        external: None,
    }
}

fn status(plan: &Plan) -> Value {
    plan.desired.clone().unwrap()["status"].clone()
}

/// Status and reason of a condition that a plan sets on a Machine.
fn given(plan: &Plan, machine: &str, name: &str) -> Option<(String, String)> {
    found_condition(patch(plan, &format!("health of Machine {machine}"))?, name)
}

#[test]
fn limits_decide_whether_anything_is_done() {
    let good = |name: &str| target(name, Some("True"));
    let bad = |name: &str| target(name, Some("False"));
    let most = |value: Value| json!({"triggerIf": {"unhealthyLessThanOrEqualTo": value}});
    let range = |text: &str| json!({"triggerIf": {"unhealthyInRange": text}});
    for (what, remediation, bad_ones, allowed, left) in [
        ("all may be replaced", most(json!("100%")), 3, true, 1),
        ("as many as there may be", most(json!(2)), 2, true, 0),
        ("one too many", most(json!(1)), 2, false, 0),
        ("a percentage is rounded down", most(json!("40%")), 2, false, 0),
        ("a percentage that allows it", most(json!("40%")), 1, true, 0),
        ("within a range", range("[1-3]"), 2, true, 1),
        ("below a range", range("[3-4]"), 2, false, 0),
        ("above a range", range("[0-1]"), 2, false, 0),
        ("no range at all", range("[x]"), 1, false, 0),
    ] {
        let targets =
            (0..4).map(|index| if index < bad_ones { bad(&format!("m{index}")) } else { good(&format!("m{index}")) });
        let plan = decide(&observed(remediation, targets.collect()));
        let status = status(&plan);
        assert_eq!(
            (&status["expectedMachines"], &status["currentHealthy"]),
            (&json!(4), &json!(4 - bad_ones)),
            "{what}"
        );
        assert_eq!(status["remediationsAllowed"], left, "{what}");
        assert_eq!(status["targets"], json!(["m0", "m1", "m2", "m3"]));
        let object = plan.desired.clone().unwrap();
        assert_eq!(conditions::is_true(&object, "RemediationAllowed"), allowed, "{what}");
        assert_eq!(
            given(&plan, "m0", "HealthCheckSucceeded"),
            Some(("False".into(), "UnhealthyNode".into())),
            "{what}"
        );
        assert_eq!(given(&plan, "m0", "OwnerRemediated").is_some(), allowed, "{what}");
        assert_eq!(plan.events.iter().any(|event| event.reason == "RemediationRestricted"), !allowed, "{what}");
        assert_eq!(
            given(&plan, "m3", "HealthCheckSucceeded"),
            Some(("True".into(), "HealthCheckSucceeded".into())),
            "{what}"
        );
    }
}

#[test]
fn an_owner_is_asked_once_and_not_any_more_when_the_machine_recovers() {
    let with = |ready: &str, list: Vec<Value>| {
        let mut target = target("m", Some(ready));
        let mut machine = (*target.machine).clone();
        machine["status"]["conditions"] = json!(list);
        target.machine = Arc::new(machine);
        decide(&observed(json!({}), vec![target]))
    };
    let asked = with("False", vec![]);
    assert_eq!(given(&asked, "m", "OwnerRemediated"), Some(("False".into(), "WaitingForRemediation".into())));
    let mut failed = condition("HealthCheckSucceeded", "False");
    failed["reason"] = json!("UnhealthyNode");
    failed["message"] =
        json!("Health check failed:\n  * Condition Ready on Node is reporting status False for more than 300s");
    let going = with("False", vec![failed.clone(), condition("OwnerRemediated", "False")]);
    assert_eq!(keys(&going), Vec::<&str>::new(), "its owner is at it, and nothing is written twice");
    let again = with("False", vec![failed.clone(), condition("OwnerRemediated", "True")]);
    assert_eq!(given(&again, "m", "OwnerRemediated").unwrap().0, "False");
    let recovered = with("True", vec![failed, condition("OwnerRemediated", "False")]);
    let left = patch(&recovered, "health of Machine m").unwrap();
    assert_eq!(conditions::get(left, "OwnerRemediated"), None);
    assert!(conditions::is_true(left, "HealthCheckSucceeded"));
}

#[test]
fn a_machine_that_may_become_unhealthy_wakes_in_time_and_counts_as_neither() {
    let mut starting = target("m", None);
    let mut machine = core("Machine", "m", json!({}), json!({}));
    machine["metadata"]["creationTimestamp"] = json!("2026-01-01T23:55:00Z");
    starting.machine = Arc::new(machine);
    starting.node = NodeSight::None;
    let plan = decide(&observed(json!({}), vec![starting, target("n", Some("True"))]));
    assert_eq!(plan.wake_after, Some(Duration::from_secs(301)));
    assert_eq!(status(&plan)["currentHealthy"], 1);
    assert_eq!(keys(&plan), ["health of Machine n"]);
}

#[test]
fn nothing_is_said_of_machines_while_their_nodes_cannot_be_seen_or_all_is_paused() {
    let mut lost = observed(json!({}), vec![target("m", Some("False"))]);
    lost.unreachable = Some("Connecting");
    let plan = decide(&lost);
    assert_eq!((keys(&plan).len(), &plan.verdict), (0, &Verdict::Waiting));
    assert_eq!(plan.desired.unwrap()["metadata"]["ownerReferences"][0]["uid"], "c-uid");
    let mut paused = observed(json!({}), vec![target("m", Some("False"))]);
    paused.cluster = Some(Arc::new(core("Cluster", "c", json!({"paused": true}), json!({}))));
    assert!(decide(&paused).operations.is_empty());
}

#[test]
fn somebody_outside_is_asked_by_an_object_of_the_machines_name() {
    let reference = json!({"templateRef": {"apiVersion": "x.io/v1", "kind": "FixTemplate", "name": "t"}});
    let template = json!({"apiVersion": "x.io/v1", "kind": "FixTemplate", "metadata": {"name": "t"}, "spec": {"template": {"spec": {"how": "reboot"}}}});
    let with = |ready: &str, external: External| {
        let mut observed = observed(reference.clone(), vec![target("m", Some(ready))]);
        observed.external = Some(external);
        observed
    };
    let plan =
        decide(&with("False", External { template: Some(Arc::new(template.clone())), requests: BTreeMap::new() }));
    assert_eq!(keys(&plan), ["create Fix m", "health of Machine m"]);
    let Action::Create(request) = &plan.operations[0].action else { panic!("a request is made") };
    assert_eq!((&request["kind"], &request["spec"]), (&json!("Fix"), &json!({"how": "reboot"})));
    assert_eq!(request["metadata"]["ownerReferences"][0]["uid"], "m-uid");
    assert_eq!(given(&plan, "m", "ExternallyRemediated"), Some(("False".into(), "WaitingForRemediation".into())));
    assert_eq!(given(&plan, "m", "OwnerRemediated"), None);

    let missing = decide(&with("False", External::default()));
    assert_eq!(given(&missing, "m", "ExternallyRemediated").unwrap().1, "RemediationTemplateNotFound");
    let mut refused = with("False", External { template: Some(Arc::new(template)), requests: BTreeMap::new() });
    let error = Refused { refusal: Refusal::Denied, reason: "Forbidden".to_owned(), message: "no".to_owned() };
    refused.results = vec![("create Fix m".to_owned(), Err(error))];
    let plan = decide(&refused);
    assert_eq!(given(&plan, "m", "ExternallyRemediated").unwrap().1, "RemediationRequestCreationFailed");

    let request = json!({"apiVersion": "x.io/v1", "kind": "Fix", "metadata": {"name": "m", "uid": "fix-uid"}});
    let requests = BTreeMap::from([("m".to_owned(), Arc::new(request))]);
    let there = External { template: None, requests };
    assert!(keys(&decide(&with("False", there.clone()))).iter().all(|key| !key.starts_with("create")));
    assert_eq!(keys(&decide(&with("True", there))), ["delete Fix m", "health of Machine m"], "it recovered");
}

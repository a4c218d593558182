//! Table tests of decisions about Clusters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use capwasm_object::merge_patch;
use capwasm_reconcile::Verdict;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::observe::Connection;
use super::*;
use crate::external::External;
use crate::testing::{condition as found_condition, core, found, keys, patch};

fn observed(object: Value) -> Observed {
    Observed {
        cluster: capwasm_api::kinds::view(&object).unwrap(),
        object: Arc::new(object),
        now: Timestamp::UNIX_EPOCH,
        infrastructure: None,
        control_plane: None,
        machines: vec![],
        sets: vec![],
        deployments: vec![],
        pools: vec![],
        connection: Connection::NotAsked,
    }
}

fn cluster() -> Value {
    let reference = |kind: &str| json!({"apiGroup": "x.cluster.x-k8s.io", "kind": kind, "name": "c"});
    core(
        "Cluster",
        "c",
        json!({"infrastructureRef": reference("Infra"), "controlPlaneRef": reference("Plane")}),
        json!({}),
    )
}

fn provider(kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": "x.cluster.x-k8s.io/v1", "kind": kind, "metadata": {"name": "c", "namespace": "ns", "uid": format!("{kind}-uid"), "resourceVersion": "5"}, "spec": spec, "status": status})
}

fn provisioned() -> Value {
    provider(
        "Infra",
        json!({"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}),
        json!({"initialization": {"provisioned": true}, "failureDomains": [{"name": "a", "controlPlane": true}]}),
    )
}

fn deleting(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["metadata"]["finalizers"] = json!([finalizers::CLUSTER]);
    object
}

#[test]
fn c3_c6_an_unowned_infrastructure_is_owned_and_the_cluster_is_provisioning() {
    let mut observed = observed(cluster());
    observed.infrastructure =
        Some(found(provider("Infra", json!({"controlPlaneEndpoint": {"host": "early", "port": 1}}), json!({}))));
    observed.control_plane = Some(External::Missing);
    let plan = decide(&observed);
    let merge = patch(&plan, "own infrastructure").unwrap();
    assert_eq!(
        merge["metadata"]["ownerReferences"],
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "c-uid"}])
    );
    assert_eq!(merge["metadata"]["labels"], json!({"cluster.x-k8s.io/cluster-name": "c"}));
    assert_eq!(merge.as_object().unwrap().len(), 1, "metadata alone (C7)");
    let desired = plan.desired.unwrap();
    assert_eq!(desired["metadata"]["finalizers"], json!(["cluster.cluster.x-k8s.io"]));
    assert_eq!(desired["status"]["phase"], "Provisioning");
    assert_eq!(found_condition(&desired, "InfrastructureReady"), Some(("False".into(), "NotReady".into())));
    assert_eq!(found_condition(&desired, "ControlPlaneAvailable"), Some(("False".into(), "DoesNotExist".into())));
    assert_eq!(found_condition(&desired, "Available"), Some(("False".into(), "NotAvailable".into())));
    // C15: nothing is copied before the provider says that it is provisioned.
    assert_eq!(desired["spec"].get("controlPlaneEndpoint"), None);
    assert_eq!(desired["status"].get("initialization"), None);
    assert!(plan.events.is_empty());
}

#[test]
fn c17_c18_c19_what_a_provisioned_infrastructure_reports_is_copied_once() {
    let mut observed = observed(cluster());
    observed.infrastructure = Some(found(provisioned()));
    observed.control_plane = Some(External::Missing);
    let plan = decide(&observed);
    let desired = plan.desired.clone().unwrap();
    assert_eq!(desired["spec"]["controlPlaneEndpoint"], json!({"host": "10.0.0.1", "port": 6443}));
    assert_eq!(desired["status"]["initialization"], json!({"infrastructureProvisioned": true}));
    assert_eq!(desired["status"]["failureDomains"], json!([{"name": "a", "controlPlane": true}]));
    assert_eq!(desired["status"]["phase"], "Provisioned");
    assert_eq!(plan.events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["InfrastructureReady"]);

    // The event comes once, an endpoint that is there is never overwritten, and readiness is never taken back.
    let mut again = desired;
    again["spec"]["controlPlaneEndpoint"]["host"] = json!("mine");
    let mut second = self::observed(again);
    second.infrastructure =
        Some(found(provider("Infra", json!({"controlPlaneEndpoint": {"host": "other", "port": 1}}), json!({}))));
    second.control_plane = Some(External::Missing);
    let plan = decide(&second);
    let desired = plan.desired.unwrap();
    assert!(plan.events.is_empty());
    assert_eq!(desired["spec"]["controlPlaneEndpoint"], json!({"host": "mine", "port": 6443}));
    assert_eq!(desired["status"]["initialization"], json!({"infrastructureProvisioned": true}));
}

#[test]
fn c6_nothing_is_written_when_nothing_differs() {
    let mut observed = observed(cluster());
    observed.infrastructure = Some(found(provisioned()));
    observed.control_plane = Some(found(provider(
        "Plane",
        json!({"replicas": 1}),
        json!({"initialization": {"controlPlaneInitialized": true}}),
    )));
    observed.connection = Connection::Up;
    let first = decide(&observed);
    let mut object = first.desired.clone().unwrap();
    object["metadata"]["generation"] = json!(2);
    let adopted = |mut object: Value, key: &str| {
        json_patch(&mut object, patch(&first, key).unwrap());
        object
    };
    let (infrastructure, plane) = (
        observed.infrastructure.as_ref().unwrap().found().unwrap().0.clone(),
        observed.control_plane.as_ref().unwrap().found().unwrap().0.clone(),
    );
    let mut second = self::observed(object.clone());
    second.infrastructure = Some(found(adopted(infrastructure, "own infrastructure")));
    second.control_plane = Some(found(adopted(plane, "own control plane")));
    second.connection = Connection::Up;
    second.now = "2027-01-01T00:00:00Z".parse().unwrap();
    let plan = decide(&second);
    assert!(plan.operations.is_empty(), "{:?}", plan.operations);
    assert_eq!(merge_patch::diff(&object, &plan.desired.unwrap()), None);
    assert_eq!((plan.wake_after, plan.verdict), (None, Verdict::Done));
}

fn json_patch(object: &mut Value, merge: &Value) {
    for (key, value) in merge["metadata"].as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
}

#[test]
fn r7_an_initialized_control_plane_gives_its_flag_and_an_endpoint_where_there_is_none() {
    let mut observed = observed(cluster());
    observed.infrastructure =
        Some(found(provider("Infra", json!({}), json!({"initialization": {"provisioned": true}}))));
    observed.control_plane = Some(found(provider(
        "Plane",
        json!({"controlPlaneEndpoint": {"host": "p", "port": 1}, "replicas": 3}),
        json!({"initialization": {"controlPlaneInitialized": true}, "replicas": 1, "versions": [{"version": "v1.36.0", "replicas": 1}]}),
    )));
    observed.connection = Connection::Down("Refused");
    let desired = decide(&observed).desired.unwrap();
    assert_eq!(desired["spec"]["controlPlaneEndpoint"], json!({"host": "p", "port": 1}));
    assert_eq!(desired["status"]["initialization"]["controlPlaneInitialized"], true);
    assert_eq!(
        desired["status"]["controlPlane"],
        json!({"desiredReplicas": 3, "replicas": 1, "versions": [{"version": "v1.36.0", "replicas": 1}]})
    );
    assert_eq!(found_condition(&desired, "ControlPlaneInitialized"), Some(("True".into(), "Initialized".into())));
    assert_eq!(found_condition(&desired, "RemoteConnectionProbe"), Some(("False".into(), "ProbeFailed".into())));
}

#[test]
fn without_a_control_plane_object_a_node_of_a_control_plane_machine_initializes() {
    let mut machine = core("Machine", "m", json!({}), json!({"nodeRef": {"name": "n"}}));
    machine["metadata"]["labels"] = json!({"cluster.x-k8s.io/control-plane": ""});
    let mut observed = observed(core("Cluster", "c", json!({}), json!({})));
    observed.machines = vec![Arc::new(machine)];
    let desired = decide(&observed).desired.unwrap();
    assert_eq!(
        desired["status"]["initialization"],
        json!({"infrastructureProvisioned": true, "controlPlaneInitialized": true})
    );
    assert_eq!(desired["status"]["controlPlane"]["replicas"], 1);
}

#[test]
fn an_infrastructure_that_was_provisioned_and_is_gone_is_an_error_and_before_it_is_waited_for() {
    for (what, status, expected) in [
        ("before", json!({}), (true, "DoesNotExist")),
        ("after", json!({"initialization": {"infrastructureProvisioned": true}}), (false, "Deleted")),
    ] {
        let mut object = cluster();
        object["status"] = status;
        let mut observed = observed(object);
        observed.infrastructure = Some(External::Missing);
        observed.control_plane = Some(External::Missing);
        let plan = decide(&observed);
        assert_eq!(plan.verdict == Verdict::Done, expected.0, "{what}");
        assert_eq!(
            found_condition(&plan.desired.unwrap(), "InfrastructureReady"),
            Some(("False".into(), expected.1.into())),
            "{what}"
        );
        assert_eq!(plan.wake_after, None, "{what}: the read wakes it");
    }
}

#[test]
fn c9_a_paused_cluster_is_only_marked() {
    let mut object = cluster();
    object["spec"]["paused"] = json!(true);
    let mut observed = observed(object);
    observed.infrastructure = Some(found(provisioned()));
    let plan = decide(&observed);
    assert!(plan.operations.is_empty() && plan.events.is_empty());
    let desired = plan.desired.unwrap();
    assert_eq!(desired["status"].as_object().unwrap().keys().collect::<Vec<_>>(), ["conditions"]);
    assert_eq!(found_condition(&desired, "Paused"), Some(("True".into(), "Paused".into())));
    assert_eq!(desired["metadata"].get("finalizers"), None);
}

#[test]
fn g15_deletion_goes_from_workers_over_the_control_plane_to_the_infrastructure() {
    let owned = |mut object: Value| {
        object["metadata"]["ownerReferences"] = json!([{"uid": "c-uid"}]);
        Arc::new(object)
    };
    let member = |kind: &str, name: &str| core(kind, name, json!({}), json!({}));
    let controlled = |kind: &str, name: &str| {
        let mut object = member(kind, name);
        object["metadata"]["ownerReferences"] = json!([{"uid": "other-uid", "controller": true}]);
        Arc::new(object)
    };
    let mut control = member("Machine", "cp");
    control["metadata"]["labels"] = json!({"cluster.x-k8s.io/control-plane": ""});

    let mut at = observed(deleting(cluster()));
    at.infrastructure = Some(found(provisioned()));
    at.control_plane = Some(found(provider("Plane", json!({}), json!({}))));
    at.deployments = vec![owned(member("MachineDeployment", "md"))];
    at.sets = vec![controlled("MachineSet", "of-md")];
    at.machines = vec![
        Arc::new(control),
        controlled("Machine", "of-set"),
        owned(member("Machine", "alone")),
        Arc::new(member("Machine", "stripped")),
    ];
    let step = |at: &Observed| {
        let plan = decide(at);
        let deletes =
            keys(&plan).into_iter().filter(|key| key.starts_with("delete")).map(str::to_owned).collect::<Vec<_>>();
        let stage = plan.desired.as_ref().and_then(|desired| found_condition(desired, "Deleting")).map(|found| found.1);
        (deletes, stage, plan.release)
    };
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        step(&at),
        (
            texts(&["delete MachineDeployment md", "delete Machine alone", "delete Machine stripped"]),
            Some("WaitingForWorkersDeletion".into()),
            vec![]
        )
    );
    at.deployments = vec![];
    at.sets = vec![];
    at.machines.truncate(1);
    assert_eq!(step(&at), (texts(&["delete Plane c"]), Some("WaitingForControlPlaneDeletion".into()), vec![]));
    at.control_plane = Some(found(deleting(provider("Plane", json!({}), json!({})))));
    assert_eq!(step(&at), (vec![], Some("WaitingForControlPlaneDeletion".into()), vec![]), "asked once");
    at.control_plane = Some(External::Missing);
    at.machines = vec![];
    assert_eq!(step(&at), (texts(&["delete Infra c"]), Some("WaitingForInfrastructureDeletion".into()), vec![]));
    at.infrastructure = Some(External::Missing);
    assert_eq!(step(&at), (vec![], None, texts(&["cluster.cluster.x-k8s.io"])));
}

/// A Cluster's reference may name an object of another Cluster.
#[test]
fn what_another_cluster_controls_stays() {
    let mut object = provisioned();
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "o", "uid": "o-uid", "controller": true}]);
    let mut at = observed(deleting(cluster()));
    (at.control_plane, at.infrastructure) = (Some(External::Missing), Some(found(object)));
    let plan = decide(&at);
    assert!(!keys(&plan).contains(&"delete Infra c"));
    assert_eq!(plan.release.len(), 1);
}

#[test]
fn what_cannot_be_seen_of_a_deleted_cluster_holds_what_comes_after_it() {
    fn unserved<T>() -> Option<External<T>> {
        Some(External::Unserved("Plane v1 is not served yet".into()))
    }
    fn uninstalled<T>() -> Option<External<T>> {
        Some(External::NotInstalled("Plane is not installed".into()))
    }
    let infra = || Some(found(provisioned()));
    for (what, control_plane, infrastructure, deletes, stage) in [
        ("its control plane", unserved(), infra(), vec![], Some("WaitingForControlPlaneDeletion")),
        ("its infrastructure", None, unserved(), vec![], Some("WaitingForInfrastructureDeletion")),
        (
            "a kind without a CRD has no objects",
            uninstalled(),
            infra(),
            vec!["delete Infra c"],
            Some("WaitingForInfrastructureDeletion"),
        ),
        ("neither is installed", uninstalled(), uninstalled(), vec![], None),
    ] {
        let mut at = observed(deleting(cluster()));
        (at.control_plane, at.infrastructure) = (control_plane, infrastructure);
        let plan = decide(&at);
        let found: Vec<_> = keys(&plan).into_iter().filter(|key| key.starts_with("delete")).collect();
        let reason = plan.desired.as_ref().and_then(|desired| found_condition(desired, "Deleting")).map(|it| it.1);
        assert_eq!((found, reason.as_deref()), (deletes, stage), "{what}");
        assert_eq!(plan.release.is_empty(), stage.is_some(), "{what}");
    }
}

#[test]
fn a_cluster_is_available_when_all_its_parts_are() {
    let mut observed = observed(cluster());
    let ready = |kind: &str, name: &str| {
        provider(
            kind,
            json!({"controlPlaneEndpoint": {"host": "h", "port": 1}}),
            json!({"initialization": {"provisioned": true, "controlPlaneInitialized": true}, "conditions": [{"type": name, "status": "True", "reason": name}]}),
        )
    };
    observed.infrastructure = Some(found(ready("Infra", "Ready")));
    observed.control_plane = Some(found(ready("Plane", "Available")));
    observed.deployments = vec![Arc::new(core(
        "MachineDeployment",
        "md",
        json!({"replicas": 2}),
        json!({"replicas": 2, "readyReplicas": 2, "conditions": [{"type": "Available", "status": "True", "reason": "Available"}]}),
    ))];
    observed.connection = Connection::Up;
    let desired = decide(&observed).desired.unwrap();
    assert_eq!(found_condition(&desired, "Available"), Some(("True".into(), "Available".into())));
    assert_eq!(found_condition(&desired, "WorkersAvailable"), Some(("True".into(), "Available".into())));
    assert_eq!(
        desired["status"]["workers"],
        json!({"desiredReplicas": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 0, "upToDateReplicas": 0})
    );
}

#[test]
fn a_restart_of_the_host_does_not_make_a_cluster_unavailable() {
    let mut object = cluster();
    let probe = json!({"type": "RemoteConnectionProbe", "status": "True", "reason": "ProbeSucceeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    object["status"] = json!({"conditions": [probe]});
    let mut observed = observed(object);
    for (connection, expected, wake) in [
        (Connection::Unsettled(Duration::from_secs(7)), "True", Some(Duration::from_secs(7))),
        (Connection::Down("Connecting"), "False", None),
    ] {
        observed.connection = connection;
        let plan = decide(&observed);
        assert_eq!(plan.wake_after, wake);
        assert_eq!(found_condition(&plan.desired.unwrap(), "RemoteConnectionProbe").unwrap().0, expected);
    }
}

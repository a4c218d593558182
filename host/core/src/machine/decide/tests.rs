//! Table tests of decisions about Machines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use capwasm_object::merge_patch;
use capwasm_reconcile::Verdict;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::observe::Departure;
use super::*;
use crate::testing::{condition as found_condition, core, found, keys, patch};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(in crate::machine) fn observed(object: Value) -> Observed {
    let cluster = core(
        "Cluster",
        "c",
        json!({}),
        json!({"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}}),
    );
    let deleting = meta::is_deleting(&object);
    Observed {
        machine: capwasm_api::kinds::view(&object).unwrap(),
        object: Arc::new(object),
        now: at("2026-01-01T00:10:00Z"),
        results: vec![],
        cluster: Some(Arc::new(cluster)),
        bootstrap: Some(External::Missing),
        infrastructure: External::Missing,
        node: NodeSight::Unidentified,
        set: None,
        deployment: None,
        pool: None,
        departure: deleting.then(|| Departure {
            control_plane_machines: 1,
            pods: Some(vec![]),
            ..Departure::default()
        }),
    }
}

/// As a MachineSet creates it.
pub(in crate::machine) fn machine(status: Value) -> Value {
    let mut object = core(
        "Machine",
        "m",
        json!({"clusterName": "c", "version": "v1.36.0", "deletion": {"nodeDeletionTimeoutSeconds": 10},
            "bootstrap": {"configRef": {"apiGroup": "b.io", "kind": "Boot", "name": "m"}}, "infrastructureRef": {"apiGroup": "i.io", "kind": "Infra", "name": "m"}}),
        status,
    );
    object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/set-name": "ms"});
    object["metadata"]["finalizers"] = json!(["machine.cluster.x-k8s.io"]);
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms", "uid": "ms-uid", "controller": true}]);
    object
}

/// A clone for the Machine, still owned by the set.
pub(in crate::machine) fn clone(kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": kind, "metadata": {"name": "m", "namespace": "ns", "uid": format!("{kind}-uid"), "resourceVersion": "4",
        "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms", "uid": "ms-uid"}]}, "spec": spec, "status": status})
}

fn owned(mut object: Value) -> Value {
    object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "c"});
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "m-uid", "controller": true, "blockOwnerDeletion": true}]);
    object
}

pub(in crate::machine) fn node() -> Value {
    let conditions: Vec<Value> =
        [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")]
            .map(|(name, status)| json!({"type": name, "status": status, "reason": "R", "message": "text"}))
            .to_vec();
    json!({"metadata": {"name": "node-m", "uid": "node-uid", "resourceVersion": "1"}, "spec": {"providerID": "p://m"}, "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.36.0"}}})
}

#[test]
fn a_new_machine_takes_its_clones_from_the_set_and_copies_nothing() {
    let mut observed = observed(machine(json!({})));
    observed.bootstrap = Some(found(clone("Boot", json!({}), json!({"dataSecretName": "early"}))));
    // R5: the infrastructure says who it is, but not that it is provisioned.
    observed.infrastructure = found(clone(
        "Infra",
        json!({"providerID": "p://m"}),
        json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}),
    ));
    let plan = decide(&observed);
    assert_eq!(keys(&plan), ["own bootstrap config", "own infrastructure"]);
    for key in keys(&plan) {
        let owners = &patch(&plan, key).unwrap()["metadata"]["ownerReferences"];
        assert_eq!(owners.as_array().unwrap().len(), 1, "the set is no longer an owner");
        assert_eq!((&owners[0]["uid"], &owners[0]["controller"]), (&json!("m-uid"), &json!(true)));
    }
    let desired = plan.desired.unwrap();
    assert_eq!(merge_patch::diff(&observed.object["spec"], &desired["spec"]), None);
    assert_eq!(
        merge_patch::diff(&observed.object["metadata"], &desired["metadata"]),
        None,
        "a machine that a set made needs no write of its own"
    );
    assert_eq!(desired["status"]["phase"], "Pending");
    assert_eq!(desired["status"].get("addresses"), None);
    assert_eq!(found_condition(&desired, "InfrastructureReady"), Some(("False".into(), "NotReady".into())));
    assert_eq!(found_condition(&desired, "Ready"), Some(("False".into(), "NotReady".into())));
}

#[test]
fn bootstrap_data_is_copied_once_it_is_there() {
    for (what, status, secret, created, fails) in [
        ("not yet", json!({"dataSecretName": "s"}), None, None, false),
        (
            "there",
            json!({"dataSecretName": "s", "initialization": {"dataSecretCreated": true}}),
            Some("s"),
            Some(true),
            false,
        ),
        ("nameless", json!({"initialization": {"dataSecretCreated": true}}), None, None, true),
    ] {
        let mut observed = observed(machine(json!({})));
        observed.bootstrap = Some(found(owned(clone("Boot", json!({}), status))));
        let plan = decide(&observed);
        assert_eq!(matches!(plan.verdict, Verdict::Failed { .. }), fails, "{what}");
        let desired = plan.desired.unwrap();
        assert_eq!(json::text(&desired, "/spec/bootstrap/dataSecretName"), secret, "{what}");
        assert_eq!(json::flag(&desired, "/status/initialization/bootstrapDataSecretCreated"), created, "{what}");
        assert_eq!(desired["status"]["phase"], if secret.is_some() { "Provisioning" } else { "Pending" }, "{what}");
    }
}

#[test]
fn a_user_may_supply_the_bootstrap_data() {
    let mut object = machine(json!({}));
    object["spec"]["bootstrap"] = json!({"dataSecretName": "mine"});
    let mut observed = observed(object);
    observed.bootstrap = None;
    let desired = decide(&observed).desired.unwrap();
    assert_eq!(json::flag(&desired, "/status/initialization/bootstrapDataSecretCreated"), Some(true));
    assert_eq!(found_condition(&desired, "BootstrapConfigReady"), Some(("True".into(), "DataSecretProvided".into())));
}

#[test]
fn r5_g15_what_a_provisioned_infrastructure_reports_is_copied() {
    let mut observed = observed(machine(json!({"initialization": {"bootstrapDataSecretCreated": true}})));
    let addresses = json!([{"type": "InternalIP", "address": "10.0.0.9"}]);
    observed.infrastructure = found(owned(clone(
        "Infra",
        json!({"providerID": "p://m"}),
        json!({"initialization": {"provisioned": true}, "addresses": addresses, "failureDomain": "a"}),
    )));
    observed.node = NodeSight::Absent("p://m".into());
    let plan = decide(&observed);
    assert!(plan.operations.is_empty() && plan.wake_after.is_none(), "the node's arrival wakes it");
    let desired = plan.desired.unwrap();
    assert_eq!(desired["spec"]["providerID"], "p://m");
    assert_eq!(desired["status"]["addresses"], addresses);
    assert_eq!(desired["status"]["failureDomain"], "a");
    assert_eq!(desired["status"]["initialization"]["infrastructureProvisioned"], true);
    assert_eq!(desired["status"]["phase"], "Provisioned");
    assert_eq!(desired["status"]["lastUpdated"], "2026-01-01T00:10:00Z");
    assert_eq!(found_condition(&desired, "NodeHealthy"), Some(("Unknown".into(), "NodeDoesNotExist".into())));
    assert_eq!(desired["status"]["observedGeneration"], 2, "its own change of the spec is observed at once");
}

/// A Machine with a healthy Node after its first pass.
fn running(min_ready: i32, now: &str) -> (Observed, Plan) {
    let mut object = machine(json!({"initialization": {"bootstrapDataSecretCreated": true}}));
    object["spec"]["minReadySeconds"] = json!(min_ready);
    let mut observed = observed(object);
    observed.now = at(now);
    observed.bootstrap = Some(found(owned(clone(
        "Boot",
        json!({}),
        json!({"dataSecretName": "s", "initialization": {"dataSecretCreated": true}}),
    ))));
    observed.infrastructure =
        found(owned(clone("Infra", json!({"providerID": "p://m"}), json!({"initialization": {"provisioned": true}}))));
    observed.node = NodeSight::Found(Arc::new(node()));
    let plan = decide(&observed);
    (observed, plan)
}

#[test]
fn a_machine_with_a_healthy_node_runs_and_is_available() {
    let (_, plan) = running(0, "2026-01-01T00:00:00Z");
    assert_eq!(keys(&plan), ["synchronise node"]);
    let desired = plan.desired.unwrap();
    assert_eq!(desired["status"]["nodeRef"], json!({"name": "node-m"}));
    assert_eq!(desired["status"]["nodeInfo"]["kubeletVersion"], "v1.36.0");
    assert_eq!(desired["status"]["phase"], "Running");
    for name in ["NodeReady", "NodeHealthy", "Ready", "Available"] {
        assert_eq!(found_condition(&desired, name).map(|found| found.0).as_deref(), Some("True"), "{name}");
    }
}

#[test]
fn min_ready_seconds_set_a_timer_and_nothing_else_does() {
    let (observed, plan) = running(30, "2026-01-01T00:00:00Z");
    assert_eq!(plan.wake_after, Some(Duration::from_secs(30)));
    let object = plan.desired.unwrap();
    assert_eq!(found_condition(&object, "Available"), Some(("False".into(), "WaitingForMinReadySeconds".into())));
    for (now, left, status) in [("2026-01-01T00:00:20Z", Some(10), "False"), ("2026-01-01T00:00:30Z", None, "True")] {
        let mut later = self::observed(object.clone());
        (later.bootstrap, later.infrastructure, later.node) =
            (observed.bootstrap.clone(), observed.infrastructure.clone(), observed.node.clone());
        later.now = at(now);
        let plan = decide(&later);
        assert_eq!(plan.wake_after, left.map(Duration::from_secs), "{now}");
        assert_eq!(found_condition(&plan.desired.unwrap(), "Available").unwrap().0, status, "{now}");
    }
}

#[test]
fn nothing_is_written_in_the_steady_state() {
    let (observed, plan) = running(0, "2026-01-01T00:00:00Z");
    let mut object = plan.desired.clone().unwrap();
    object["metadata"]["generation"] = json!(2);
    let mut node = node();
    let merge = patch(&plan, "synchronise node").unwrap();
    node["metadata"]["annotations"] = merge["metadata"]["annotations"].clone();
    let mut later = self::observed(object.clone());
    later.now = at("2026-02-01T00:00:00Z");
    (later.bootstrap, later.infrastructure, later.node) =
        (observed.bootstrap, observed.infrastructure, NodeSight::Found(Arc::new(node)));
    let plan = decide(&later);
    assert!(plan.operations.is_empty() && plan.events.is_empty() && plan.wake_after.is_none());
    assert_eq!(merge_patch::diff(&object, &plan.desired.unwrap()), None);
}

#[test]
fn a_lost_connection_leaves_the_node_conditions_alone_for_five_minutes() {
    let (observed, plan) = running(0, "2026-01-01T00:00:00Z");
    let object = plan.desired.unwrap();
    for (what, probe, expected, wake) in [
        (
            "not noticed yet",
            json!({"type": "RemoteConnectionProbe", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}),
            "NodeHealthy",
            None,
        ),
        (
            "for a minute",
            json!({"type": "RemoteConnectionProbe", "status": "False", "lastTransitionTime": "2026-01-01T00:09:00Z"}),
            "NodeHealthy",
            Some(240),
        ),
        (
            "too long",
            json!({"type": "RemoteConnectionProbe", "status": "False", "lastTransitionTime": "2026-01-01T00:01:00Z"}),
            "ConnectionDown",
            None,
        ),
    ] {
        let mut later = self::observed(object.clone());
        let mut cluster = (**later.cluster.as_ref().unwrap()).clone();
        cluster["status"]["conditions"] = json!([probe]);
        later.cluster = Some(Arc::new(cluster));
        (later.bootstrap, later.infrastructure) = (observed.bootstrap.clone(), observed.infrastructure.clone());
        later.node = NodeSight::Disconnected("Refused");
        let plan = decide(&later);
        assert_eq!(plan.wake_after, wake.map(Duration::from_secs), "{what}");
        let desired = plan.desired.unwrap();
        assert_eq!(found_condition(&desired, "NodeHealthy").unwrap().1, expected, "{what}");
        assert_eq!(desired["status"]["phase"], "Running", "{what}");
    }
}

#[test]
fn what_the_node_says_is_what_the_machine_says() {
    for (what, change, ready, healthy) in [
        ("not ready", ("Ready", "False"), "NodeNotReady", ("False", "NodeNotHealthy")),
        ("silent", ("Ready", "Unknown"), "NodeReadyUnknown", ("Unknown", "NodeHealthUnknown")),
        ("under pressure", ("DiskPressure", "True"), "NodeReady", ("False", "NodeNotHealthy")),
    ] {
        let (mut observed, _) = running(0, "2026-01-01T00:00:00Z");
        let mut node = node();
        let entry = node["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .find(|entry| entry["type"] == change.0)
            .unwrap();
        entry["status"] = json!(change.1);
        observed.node = NodeSight::Found(Arc::new(node));
        let desired = decide(&observed).desired.unwrap();
        assert_eq!(found_condition(&desired, "NodeReady").unwrap().1, ready, "{what}");
        assert_eq!(found_condition(&desired, "NodeHealthy"), Some((healthy.0.into(), healthy.1.into())), "{what}");
    }
}

#[test]
fn a_machine_of_an_old_template_is_not_up_to_date() {
    let (mut observed, _) = running(0, "2026-01-01T00:00:00Z");
    let template = |version: &str| json!({"template": {"spec": {"version": version}}});
    observed.set = Some(Arc::new(core("MachineSet", "ms", template("v1.36.0"), json!({}))));
    for (version, expected) in [("v1.36.0", ("True", "UpToDate")), ("v1.37.0", ("False", "NotUpToDate"))] {
        observed.deployment = Some(Arc::new(core("MachineDeployment", "md", template(version), json!({}))));
        let desired = decide(&observed).desired.unwrap();
        assert_eq!(found_condition(&desired, "UpToDate"), Some((expected.0.into(), expected.1.into())));
    }
}

#[test]
fn a_machine_that_nothing_made_belongs_to_its_cluster() {
    let mut object = machine(json!({}));
    object["metadata"]["ownerReferences"] = json!([]);
    object["metadata"]["labels"] = json!({});
    object["metadata"]["finalizers"] = json!([]);
    let desired = decide(&observed(object)).desired.unwrap();
    assert_eq!(desired["metadata"]["ownerReferences"][0]["uid"], "c-uid");
    assert_eq!(desired["metadata"]["labels"], json!({"cluster.x-k8s.io/cluster-name": "c"}));
    assert_eq!(desired["metadata"]["finalizers"], json!(["machine.cluster.x-k8s.io"]));
}

#[test]
fn an_infrastructure_that_is_gone_is_an_error_only_after_it_was_provisioned() {
    for (status, fails, reason) in [
        (json!({}), false, "DoesNotExist"),
        (json!({"initialization": {"infrastructureProvisioned": true}}), true, "Deleted"),
    ] {
        let plan = decide(&observed(machine(status)));
        assert_eq!(matches!(plan.verdict, Verdict::Failed { .. }), fails);
        assert_eq!(found_condition(&plan.desired.unwrap(), "InfrastructureReady").unwrap().1, reason);
    }
}

#[test]
fn a_machine_without_its_cluster_or_paused_does_nothing() {
    let mut alone = observed(machine(json!({})));
    alone.cluster = None;
    let plan = decide(&alone);
    assert!(plan.desired.is_none() && plan.operations.is_empty());

    let mut object = machine(json!({}));
    object["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    let mut held = observed(object);
    held.infrastructure = found(clone("Infra", json!({}), json!({})));
    let plan = decide(&held);
    assert!(plan.operations.is_empty());
    let desired = plan.desired.unwrap();
    assert_eq!(desired["status"].as_object().unwrap().len(), 1);
    assert_eq!(found_condition(&desired, "Paused").unwrap().0, "True");
}

/// What follows from a spec that is written at once may wait; a Node, and what the health of a Machine is, may not.
#[test]
fn a_status_waits_until_there_is_news() {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready"}]);
    let data = json!({"dataSecretName": "s", "initialization": {"dataSecretCreated": true}, "conditions": ready});
    let there = json!({"initialization": {"provisioned": true}, "conditions": ready, "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]});
    let with = |boot: &Value, infra: &Value, node: NodeSight| {
        let mut observed = observed(machine(json!({})));
        observed.bootstrap = Some(found(owned(clone("Boot", json!({}), boot.clone()))));
        observed.infrastructure = found(owned(clone("Infra", json!({"providerID": "p://m"}), infra.clone())));
        observed.node = node;
        decide(&observed)
    };
    let nothing = json!({});
    for (what, plan, waits) in [
        ("new", with(&nothing, &nothing, NodeSight::NoControlPlane), true),
        ("there are data", with(&data, &nothing, NodeSight::NoControlPlane), true),
        ("there is infrastructure", with(&data, &there, NodeSight::NoControlPlane), true),
        ("there is a Node", with(&data, &there, NodeSight::Found(Arc::new(node()))), false),
    ] {
        assert_eq!(plan.status_may_wait, waits, "{what}");
    }
    let gated = |status: Value| {
        let mut object = machine(status);
        object["spec"]["readinessGates"] = json!([{"conditionType": "Mine"}, {"conditionType": "Yours"}]);
        let mut observed = observed(object);
        observed.node = NodeSight::Found(Arc::new(node()));
        decide(&observed).status_may_wait
    };
    let told = |names: &[&str]| {
        let list = names.iter().map(|name| json!({"type": name, "status": "Unknown", "reason": "R"}));
        Value::Array(list.collect())
    };
    for (what, status, waits) in [
        ("no gate was reported", json!({}), true),
        ("one gate was not reported", json!({"conditions": told(&["Mine"])}), true),
        ("all gates were reported, whatever they say", json!({"conditions": told(&["Mine", "Yours"])}), false),
        ("the Node was told before", json!({"nodeRef": {"name": "n"}}), false),
    ] {
        assert_eq!(gated(status), waits, "{what}");
    }
    let mut unhealthy = machine(
        json!({"nodeRef": {"name": "n"}, "conditions": [{"type": "NodeHealthy", "status": "True", "reason": "R"}]}),
    );
    unhealthy["spec"]["providerID"] = json!("p://m");
    let mut observed = observed(unhealthy);
    observed.node = NodeSight::Absent("p://m".to_owned());
    assert!(!decide(&observed).status_may_wait, "its Node is gone");
}

#[test]
fn a_machine_that_the_control_plane_controls_says_so() {
    let plane = |name: &str| json!([{"apiVersion": "cp.io/v1", "kind": "Plane", "name": name, "uid": "p-uid", "controller": true}]);
    let of_set = machine(json!({}))["metadata"]["ownerReferences"].clone();
    let said = |label: &str| json!({"cluster.x-k8s.io/control-plane": label});
    let rows = [
        ("its label was lost", plane("p"), json!({}), Some("")),
        ("it has it", plane("p"), said("true"), Some("true")),
        ("another control plane's", plane("q"), json!({}), None),
        ("a worker", of_set, json!({}), None),
        ("nobody's", json!([]), json!({}), None),
    ];
    for (what, owners, labels, expected) in rows {
        let mut object = machine(json!({}));
        object["metadata"]["ownerReferences"] = owners;
        object["metadata"]["labels"] = labels;
        let mut observed = observed(object);
        let spec = json!({"controlPlaneRef": {"apiGroup": "cp.io", "kind": "Plane", "name": "p"}});
        observed.cluster = Some(Arc::new(core("Cluster", "c", spec, json!({}))));
        let desired = decide(&observed).desired.unwrap();
        assert_eq!(meta::label(&desired, "cluster.x-k8s.io/control-plane"), expected, "{what}");
    }
}

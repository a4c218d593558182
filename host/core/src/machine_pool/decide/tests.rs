//! Table tests of decisions about MachinePools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use capwasm_object::merge_patch;
use capwasm_reconcile::{Action, Refusal, Refused};
use jiff::Timestamp;
use serde_json::json;

use super::super::observe::Nodes;
use super::*;
use crate::external::External;
use crate::testing::{condition as found_condition, core, found, keys, patch};

const NOW: &str = "2026-01-01T00:10:00Z";

fn boot(status: Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Boot", "metadata": {"name": "b", "namespace": "ns", "uid": "b-uid", "resourceVersion": "1"}, "status": status})
}

fn infra(spec: Value, status: Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "InfraPool", "metadata": {"name": "i", "namespace": "ns", "uid": "i-uid", "resourceVersion": "1"}, "spec": spec, "status": status})
}

fn node(name: &str, ready: &str) -> Arc<Value> {
    Arc::new(json!({"metadata": {"name": name, "uid": format!("{name}-uid"), "resourceVersion": "1"},
        "spec": {"providerID": format!("x://{name}"), "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]},
        "status": {"nodeInfo": {"kubeletVersion": "v1.36.0"},
            "conditions": [{"type": "Ready", "status": ready, "reason": "R", "lastTransitionTime": "2026-01-01T00:09:00Z"}]}}))
}

fn pool(more: Value) -> Value {
    let mut object = core(
        "MachinePool",
        "mp",
        json!({"clusterName": "c", "replicas": 2, "template": {"metadata": {"labels": {"l": "1"}}, "spec": {"clusterName": "c", "version": "v1.36.0",
            "bootstrap": {"configRef": {"apiGroup": "x.io", "kind": "Boot", "name": "b"}},
            "infrastructureRef": {"apiGroup": "x.io", "kind": "InfraPool", "name": "i"}}}}),
        json!({}),
    );
    object["metadata"]["annotations"] = json!({});
    for (pointer, value) in more.as_object().unwrap() {
        let path: Vec<&str> = pointer.split('/').collect();
        json::set(&mut object, &path, value.clone());
    }
    object
}

fn observed(object: Value, bootstrap: Value, infrastructure: Value, nodes: Nodes) -> Observed {
    Observed {
        pool: capwasm_api::kinds::view(&object).unwrap(),
        object: Arc::new(object),
        now: NOW.parse::<Timestamp>().unwrap(),
        results: vec![],
        cluster: Some(Arc::new(core("Cluster", "c", json!({}), json!({})))),
        bootstrap: Some(found(bootstrap)),
        infrastructure: found(infrastructure),
        machines: vec![],
        members: None,
        nodes,
    }
}

/// A provisioned pool: two machines, one ready Node.
fn running(object: Value) -> Observed {
    observed(
        object,
        boot(json!({"initialization": {"dataSecretCreated": true}, "dataSecretName": "data-2"})),
        infra(json!({"providerIDList": ["x://n1", "x://n2"]}), json!({"ready": true, "replicas": 2})),
        Nodes::Seen(vec![node("n1", "True"), node("n2", "False"), node("other", "True")]),
    )
}

#[test]
fn what_a_pool_refers_to_becomes_its_own() {
    let plan = decide(&observed(pool(json!({})), boot(json!({})), infra(json!({}), json!({})), Nodes::NotAsked));
    assert_eq!(keys(&plan), ["own bootstrap config", "own infrastructure"]);
    let owner = &patch(&plan, "own infrastructure").unwrap()["metadata"];
    assert_eq!(
        (&owner["ownerReferences"][0]["uid"], &owner["ownerReferences"][0]["controller"]),
        (&json!("mp-uid"), &json!(true))
    );
    assert_eq!(owner["labels"]["cluster.x-k8s.io/cluster-name"], "c");
    let object = plan.desired.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["machinepool.cluster.x-k8s.io"]));
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "c-uid");
    assert_eq!(object["status"]["phase"], "Pending");
}

#[test]
fn data_identities_and_replicas_are_copied_and_nodes_follow() {
    let plan = decide(&running(pool(json!({"spec/template/spec/bootstrap/dataSecretName": "data-1"}))));
    let object = plan.desired.clone().unwrap();
    assert_eq!(
        object["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"], "data-2",
        "renewed data are followed"
    );
    assert_eq!(object["spec"]["providerIDList"], json!(["x://n1", "x://n2"]));
    let status = &object["status"];
    assert_eq!(
        status["initialization"],
        json!({"bootstrapDataSecretCreated": true, "infrastructureProvisioned": true})
    );
    let names: Vec<&str> =
        json::items(&object, "/status/nodeRefs").iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["n1", "n2"]);
    assert_eq!(
        (&status["replicas"], &status["readyReplicas"], &status["availableReplicas"], &status["upToDateReplicas"]),
        (&json!(2), &json!(1), &json!(1), &json!(2))
    );
    assert_eq!(status["versions"], json!([{"version": "v1.36.0", "replicas": 2}]));
    assert_eq!(status["phase"], "ScalingUp");
    assert_eq!(found_condition(&object, "Available").unwrap().0, "False");
    let marked = patch(&plan, "mark Node n1").unwrap();
    assert_eq!(marked["spec"]["taints"], json!([]));
    assert_eq!(marked["metadata"]["annotations"]["cluster.x-k8s.io/owner-kind"], "MachinePool");
    assert!(keys(&plan).contains(&"mark Node n2") && !keys(&plan).contains(&"mark Node other"));
}

#[test]
fn phases_follow_the_number_of_ready_nodes() {
    let with = |more: Value| decide(&running(pool(more))).desired.unwrap()["status"]["phase"].clone();
    assert_eq!(with(json!({"spec/replicas": 1})), "Running");
    assert_eq!(with(json!({"spec/replicas": 0})), "ScalingDown");
    assert_eq!(with(json!({"spec/replicas": 3})), "ScalingUp");
    let outside =
        json!({"metadata/annotations": {"cluster.x-k8s.io/replicas-managed-by": "autoscaler"}, "spec/replicas": 5});
    let object = decide(&running(pool(outside))).desired.unwrap();
    assert_eq!((&object["status"]["phase"], &object["spec"]["replicas"]), (&json!("Scaling"), &json!(2)));
    let data = boot(json!({"initialization": {"dataSecretCreated": true}, "dataSecretName": "d"}));
    let early = decide(&observed(pool(json!({})), data, infra(json!({}), json!({})), Nodes::NotAsked));
    assert_eq!(early.desired.unwrap()["status"]["phase"], "Provisioning");
}

#[test]
fn a_node_whose_machine_is_gone_goes() {
    let mut observed = running(pool(json!({"status/nodeRefs": [{"name": "n1"}, {"name": "gone"}]})));
    observed.nodes = Nodes::Seen(vec![node("n1", "True"), node("gone", "False"), node("other", "True")]);
    assert!(keys(&decide(&observed)).contains(&"delete Node gone"));
    assert!(!keys(&decide(&observed)).contains(&"delete Node other"), "it never was the pool's");
}

#[test]
fn a_provider_that_names_nothing_yet_is_waited_for_and_min_ready_seconds_wake() {
    let mut unnamed = running(pool(json!({"spec/providerIDList": ["x://n1"]})));
    unnamed.infrastructure = found(infra(json!({}), json!({"ready": true, "replicas": 2})));
    let object = decide(&unnamed).desired.unwrap();
    assert_eq!((&object["spec"]["providerIDList"], &object["status"]["replicas"]), (&json!(["x://n1"]), &json!(2)));
    let plan = decide(&running(pool(json!({"spec/template/spec/minReadySeconds": 90}))));
    assert_eq!(plan.wake_after, Some(Duration::from_secs(30)));
    assert_eq!(plan.desired.unwrap()["status"]["availableReplicas"], 0);
}

#[test]
fn each_member_that_the_provider_shows_has_a_machine_of_its_name() {
    let member = |name: &str| {
        Arc::new(
            json!({"apiVersion": "x.io/v1", "kind": "Infra", "metadata": {"name": name, "uid": name}, "spec": {"providerID": format!("x://{name}")}}),
        )
    };
    let mut observed = running(pool(json!({"spec/template/spec/deletion": {"nodeDrainTimeoutSeconds": 5}})));
    observed.members = Some(vec![member("n1"), member("n2")]);
    let plan = decide(&observed);
    let creates: Vec<&Value> = plan
        .operations
        .iter()
        .filter_map(|one| match &one.action {
            Action::Create(object) => Some(object),
            _ => None,
        })
        .collect();
    assert_eq!(creates.len(), 2);
    let machine = creates[0];
    assert_eq!(machine["metadata"]["name"], "n1");
    assert_eq!(
        machine["metadata"]["labels"],
        json!({"l": "1", "cluster.x-k8s.io/pool-name": "mp", "cluster.x-k8s.io/cluster-name": "c"})
    );
    assert_eq!(machine["metadata"]["ownerReferences"][0]["kind"], "MachinePool");
    assert_eq!(machine["spec"]["bootstrap"], json!({"dataSecretName": ""}));
    assert_eq!(machine["spec"]["infrastructureRef"], json!({"apiGroup": "x.io", "kind": "Infra", "name": "n1"}));
    assert_eq!(
        (&machine["spec"]["version"], &machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"]),
        (&json!("v1.36.0"), &json!(5))
    );
    assert_eq!(capwasm_api::validate::validate(machine, None), vec![], "it would be let in");
    assert!(!keys(&plan).iter().any(|key| key.starts_with("mark Node")), "the Machines see to their Nodes");

    let mut born: Vec<Value> = creates.into_iter().cloned().collect();
    born[0]["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Available", "status": "True"}, {"type": "UpToDate", "status": "True"},
        {"type": "HealthCheckSucceeded", "status": "True"}]});
    born[1]["status"] = json!({"conditions": [{"type": "HealthCheckSucceeded", "status": "False", "reason": "R"}, {"type": "OwnerRemediated", "status": "False", "reason": "W"}]});
    observed.machines = born.into_iter().map(Arc::new).collect();
    let plan = decide(&observed);
    let of_machines: Vec<&str> = keys(&plan).into_iter().filter(|key| key.contains("Machine")).collect();
    assert_eq!(of_machines, ["say of Machine n2", "remediate Machine n2"]);
    let object = plan.desired.unwrap();
    assert_eq!((&object["status"]["readyReplicas"], &object["status"]["availableReplicas"]), (&json!(1), &json!(1)));
}

#[test]
fn a_pool_goes_after_its_infrastructure_machines_and_nodes() {
    let object = || {
        pool(
            json!({"metadata/deletionTimestamp": "2026-01-01T00:09:30Z", "metadata/finalizers": ["machinepool.cluster.x-k8s.io"],
        "status/nodeRefs": [{"name": "n1"}], "spec/template/spec/deletion": {"nodeDeletionTimeoutSeconds": 60}}),
        )
    };
    let plan = decide(&running(object()));
    assert_eq!(keys(&plan), ["delete InfraPool i", "delete Boot b"]);
    assert_eq!(found_condition(&plan.desired.unwrap(), "Deleting").unwrap().1, "WaitingForInfrastructureDeletion");

    let mut of_another = running(object());
    let mut infrastructure = infra(json!({}), json!({}));
    infrastructure["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "o", "uid": "o-uid", "controller": true}]);
    of_another.infrastructure = found(infrastructure);
    assert_eq!(keys(&decide(&of_another)), ["delete Boot b"], "another pool's stays");

    let mut gone = running(object());
    (gone.bootstrap, gone.infrastructure) = (Some(External::Missing), External::Missing);
    gone.machines = vec![Arc::new(core("Machine", "m", json!({}), json!({})))];
    assert_eq!(keys(&decide(&gone)), ["delete Machine m"]);
    gone.machines.clear();
    let plan = decide(&gone);
    assert_eq!((keys(&plan), plan.release.len()), (vec!["delete Node n1"], 1));

    gone.nodes = Nodes::Unreachable("Connecting");
    let plan = decide(&gone);
    assert_eq!((keys(&plan).len(), plan.release.len(), plan.wake_after), (0, 0, Some(Duration::from_secs(30))));
    gone.now = "2026-01-01T00:10:31Z".parse().unwrap();
    assert_eq!(decide(&gone).release.len(), 1, "the limit is passed");
    gone.nodes = Nodes::Seen(vec![node("n1", "True")]);
    let refused = Refused { refusal: Refusal::Denied, reason: "No".to_owned(), message: String::new() };
    gone.results = vec![("delete Node n1".to_owned(), Err(refused))];
    assert!(decide(&gone).operations.is_empty(), "a Node that cannot be deleted is left after the limit");
}

#[test]
fn nothing_is_written_twice() {
    let mut first = decide(&running(pool(json!({})))).desired.unwrap();
    // As the server counts the change of the spec.
    first["metadata"]["generation"] = json!(2);
    let again = decide(&running(first.clone()));
    assert_eq!(merge_patch::diff(&first, &again.desired.unwrap()), None);
}

//! An Addon's life in its workload cluster.

use capwasm_sdk::test::delete_object;
use capwasm_sdk::{Fault, ObjectRef};

use super::*;

fn node(name: &str, ready: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    })
}

fn manifest(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-public"}, "data": {"a": "b"}})
}

fn host(minimum_nodes: usize, manifests: &Value) -> TestHost {
    TestHost::new()
        .related("cluster", cluster("one", "demo"))
        .object(Place::Management, catalog(minimum_nodes, manifests))
}

#[test]
fn catalog_cluster_and_nodes_are_waited_for() {
    let manifests = json!([manifest("a")]);
    let reason = |host: &TestHost| {
        let (result, outcome) = pass(host, &addon("x"));
        assert_eq!(outcome.operations, []);
        let problem = result.unwrap_err();
        assert_eq!(problem.fault, Fault::Waiting);
        problem.reason
    };
    assert_eq!(reason(&TestHost::new()), "CatalogNotFound");
    assert_eq!(reason(&TestHost::new().object(Place::Management, catalog(0, &manifests))), "ClusterNotFound");
    let host =
        host(2, &manifests).object(Place::Workload, node("a", "True")).object(Place::Workload, node("b", "False"));
    assert_eq!(reason(&host), "TooFewNodes");
    host.put(Place::Workload, node("b", "True"));
    assert_eq!(pass(&host, &addon("x")).0, Ok(()));
    assert_eq!(names(&host, Place::Workload, "ConfigMap"), ["a"]);
}

#[test]
fn what_the_catalog_no_longer_says_is_taken_back() {
    let host = host(0, &json!([manifest("a"), manifest("b")]));
    pass(&host, &addon("x")).0.unwrap();
    host.put(Place::Workload, manifest("not-ours"));
    host.put(Place::Management, catalog(0, &json!([manifest("b")])));
    let (_, outcome) = pass(&host, &addon("x"));
    assert_eq!(names(&host, Place::Workload, "ConfigMap"), ["b", "not-ours"]);
    assert_eq!(outcome.merged_status()["installed"], 1);
}

#[test]
fn a_kind_that_is_not_granted_is_refused_before_anything_is_done() {
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"}});
    let (result, outcome) = pass(&host(0, &json!([manifest("a"), role])), &addon("x"));
    assert_eq!(result.unwrap_err().reason, "KindNotInstalled");
    assert_eq!(outcome.operations, []);
}

#[test]
fn an_addon_goes_when_everything_is_taken_back_unless_that_should_stay_or_goes_anyway() {
    let host = host(0, &json!([manifest("a")]));
    pass(&host, &addon("x")).0.unwrap();
    let (gone, outcome) = delete_object::<Addons>(&host, &addon("x"));
    assert_eq!((gone, outcome.operations.len()), (Ok(false), 1));

    let mut kept = addon("x");
    kept["spec"]["deletionPolicy"] = json!("Orphan");
    let (gone, orphaned) = delete_object::<Addons>(&host, &kept);
    assert_eq!((gone, orphaned.operations.len()), (Ok(true), 0));

    host.carry_out(&outcome);
    assert_eq!(delete_object::<Addons>(&host, &addon("x")).0, Ok(true));
    assert_eq!(names(&host, Place::Workload, "ConfigMap"), Vec::<String>::new());

    let mut going = cluster("one", "demo");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut unreachable = TestHost::new().related("cluster", going);
    unreachable.set_workload_down(true);
    assert_eq!(delete_object::<Addons>(&unreachable, &addon("x")).0, Ok(true));
}

#[test]
fn while_the_workload_cluster_cannot_be_reached_a_deletion_waits() {
    let mut host = host(0, &json!([manifest("a")]));
    host.set_workload_down(true);
    assert_eq!(delete_object::<Addons>(&host, &addon("x")).0.unwrap_err().fault, Fault::Waiting);
}

#[test]
fn a_catalog_stays_while_it_is_used_and_counts_its_users() {
    let catalog = catalog(0, &json!([]));
    let host = TestHost::new().object(Place::Management, addon("x"));
    assert_eq!(pass(&host, &catalog).1.merged_status()["users"], 1);
    let problem = delete_object::<Addons>(&host, &catalog).0.unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "InUse"));
    host.remove(Place::Management, &ObjectRef::new(API_VERSION, "Addon", "x"));
    assert_eq!(delete_object::<Addons>(&host, &catalog).0, Ok(true));
}

//! Tables of how Machines go.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use capwasm_reconcile::{Plan, Refusal, Refused};

use super::super::decide::decide;
use super::super::decide::tests::{clone, machine, node, observed};
use super::*;
use crate::testing::{condition as found_condition, found, keys};

/// A running Machine that is being deleted since 00:00:00; now is 00:10:00.
fn departing() -> Observed {
    let mut object = machine(json!({"nodeRef": {"name": "node-m"}, "phase": "Running"}));
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut observed = observed(object);
    observed.bootstrap = Some(found(clone("Boot", json!({}), json!({}))));
    observed.infrastructure = found(clone("Infra", json!({}), json!({})));
    observed.node = NodeSight::Found(Arc::new(node()));
    observed
}

fn annotated(observed: &mut Observed, key: &str) {
    let mut object = (*observed.object).clone();
    object["metadata"]["annotations"] = json!({key: ""});
    observed.machine = capwasm_api::kinds::view(&object).unwrap();
    observed.object = Arc::new(object);
}

fn cordoned() -> NodeSight {
    let mut node = node();
    node["spec"]["unschedulable"] = json!(true);
    NodeSight::Found(Arc::new(node))
}

fn stage(plan: &Plan) -> Option<String> {
    plan.desired.as_ref().and_then(|desired| found_condition(desired, "Deleting")).map(|found| found.1)
}

/// Clones are created after the Machine that names them: an unrelated object may have that name.
#[test]
fn what_another_machine_controls_stays() {
    let mut observed = departing();
    observed.node = NodeSight::Unidentified;
    observed.machine.status.node_ref = None;
    let mut infrastructure = clone("Infra", json!({}), json!({}));
    infrastructure["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "o", "uid": "o-uid", "controller": true}]);
    observed.infrastructure = found(infrastructure);
    assert_eq!(keys(&decide(&observed)), ["delete Boot m"]);
}

#[test]
fn a_machine_goes_step_by_step() {
    let mut observed = departing();
    let pod = Arc::new(json!({"metadata": {"name": "p", "namespace": "d"}}));
    observed.departure.as_mut().unwrap().pods = Some(vec![pod]);

    let plan = decide(&observed);
    assert_eq!((keys(&plan), stage(&plan).as_deref()), (vec!["cordon"], Some("DrainingNode")));
    assert_eq!(plan.desired.as_ref().unwrap()["status"]["deletion"]["nodeDrainStartTime"], "2026-01-01T00:10:00Z");
    assert_eq!(plan.desired.as_ref().unwrap()["status"]["phase"], "Deleting");

    observed.node = cordoned();
    let plan = decide(&observed);
    assert_eq!(
        (keys(&plan), stage(&plan).as_deref(), plan.wake_after),
        (vec!["evict d/p"], Some("DrainingNode"), Some(DRAIN_INTERVAL))
    );

    observed.departure.as_mut().unwrap().pods = Some(vec![]);
    let mut attached = node();
    attached["spec"]["unschedulable"] = json!(true);
    attached["status"]["volumesAttached"] = json!([{"name": "v"}]);
    observed.node = NodeSight::Found(Arc::new(attached));
    let plan = decide(&observed);
    assert_eq!((keys(&plan), stage(&plan).as_deref(), plan.wake_after), (vec![], Some("WaitingForVolumeDetach"), None));

    observed.node = cordoned();
    let plan = decide(&observed);
    assert_eq!(
        (keys(&plan), stage(&plan).as_deref()),
        (vec!["delete Infra m"], Some("WaitingForInfrastructureDeletion"))
    );

    observed.infrastructure = External::Missing;
    let plan = decide(&observed);
    assert_eq!((keys(&plan), stage(&plan).as_deref()), (vec!["delete Boot m"], Some("WaitingForBootstrapDeletion")));

    observed.bootstrap = Some(External::Missing);
    let plan = decide(&observed);
    assert_eq!((keys(&plan), plan.release.clone()), (vec!["delete node"], vec!["machine.cluster.x-k8s.io".to_owned()]));
    assert!(plan.desired.is_none(), "no status that nobody could read");

    observed.results = vec![(
        "delete node".into(),
        Err(Refused { refusal: Refusal::Denied, reason: "Forbidden".into(), message: String::new() }),
    )];
    let plan = decide(&observed);
    assert_eq!((keys(&plan).len(), plan.release.len()), (0, 1), "the limit of 10 s is passed");
}

#[test]
fn what_cannot_be_seen_is_not_taken_for_gone() {
    fn unserved<T>() -> External<T> {
        External::Unserved("Infra v1 is not served yet".into())
    }
    let mut observed = departing();
    observed.infrastructure = unserved();
    assert_eq!(keys(&decide(&observed)), ["cordon"], "the Node is drained all the same");
    observed.departure.as_mut().unwrap().pods = Some(vec![]);
    observed.node = cordoned();
    let plan = decide(&observed);
    assert_eq!((keys(&plan), stage(&plan).as_deref()), (vec![], Some("WaitingForInfrastructureDeletion")));
    (observed.infrastructure, observed.bootstrap) = (External::Missing, Some(unserved()));
    let plan = decide(&observed);
    assert_eq!(
        (keys(&plan), stage(&plan).as_deref(), plan.release.len()),
        (vec![], Some("WaitingForBootstrapDeletion"), 0)
    );
    observed.bootstrap = Some(External::NotInstalled("Boot is not installed".into()));
    assert_eq!(decide(&observed).release.len(), 1, "a kind without a CRD has no objects");
}

#[test]
fn hooks_hold_a_deletion() {
    for (hook, expected) in [
        ("pre-drain.delete.hook.machine.cluster.x-k8s.io/x", "WaitingForPreDrainHook"),
        ("pre-terminate.delete.hook.machine.cluster.x-k8s.io/x", "WaitingForPreTerminateHook"),
    ] {
        let mut observed = departing();
        observed.node = cordoned();
        annotated(&mut observed, hook);
        let plan = decide(&observed);
        assert_eq!((keys(&plan), stage(&plan).as_deref()), (vec![], Some(expected)));
    }
}

#[test]
fn a_node_is_left_alone_when_nobody_could_be_asked_or_the_cluster_goes() {
    let infra = vec!["delete Infra m"];
    for (what, change) in [
        (
            "the cluster goes",
            (|observed: &mut Observed| {
                let mut cluster = (**observed.cluster.as_ref().unwrap()).clone();
                cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                observed.cluster = Some(Arc::new(cluster));
            }) as fn(&mut Observed),
        ),
        ("the control plane goes", |observed| observed.departure.as_mut().unwrap().control_plane_deleting = true),
        ("no control plane is left", |observed| observed.departure.as_mut().unwrap().control_plane_machines = 0),
        ("draining is excluded", |observed| annotated(observed, annotations::EXCLUDE_NODE_DRAINING)),
    ] {
        let mut observed = departing();
        change(&mut observed);
        assert_eq!(keys(&decide(&observed)), infra, "{what}");
    }
    let mut observed = departing();
    observed.departure = Some(Departure { externally_managed: true, ..Departure::default() });
    assert_eq!(keys(&decide(&observed)), ["cordon"], "an external control plane can be asked");
}

#[test]
fn a_drain_ends_with_its_limit() {
    let mut observed = departing();
    observed.node = cordoned();
    observed.departure.as_mut().unwrap().pods =
        Some(vec![Arc::new(json!({"metadata": {"name": "p", "namespace": "d"}}))]);
    observed.machine.spec.deletion.node_drain_timeout_seconds = Some(60);
    for (started, expected) in [("2026-01-01T00:09:30Z", "evict d/p"), ("2026-01-01T00:08:59Z", "delete Infra m")] {
        observed.machine.status.deletion.node_drain_start_time = Some(started.to_owned());
        assert_eq!(keys(&decide(&observed)), [expected]);
    }
}

#[test]
fn every_pod_has_its_turn_however_many_are_refused() {
    let mut observed = departing();
    observed.node = cordoned();
    let pod = |name: &str| Arc::new(json!({"metadata": {"name": name, "namespace": "d"}}));
    observed.departure.as_mut().unwrap().pods = Some(vec![pod("a"), pod("b"), pod("c")]);
    for (refused, expected) in [
        (None, ["evict d/a", "evict d/b", "evict d/c"]),
        (Some("evict d/a"), ["evict d/b", "evict d/c", "evict d/a"]),
        (Some("evict d/b"), ["evict d/c", "evict d/a", "evict d/b"]),
        (Some("evict d/gone"), ["evict d/a", "evict d/b", "evict d/c"]),
    ] {
        let error = Refused { refusal: Refusal::Limit, reason: "TooManyRequests".into(), message: String::new() };
        observed.results = refused.into_iter().map(|key: &str| (key.to_owned(), Err(error.clone()))).collect();
        assert_eq!(keys(&decide(&observed)), expected, "{refused:?}");
    }
}

#[test]
fn without_a_connection_the_node_is_waited_for_until_the_limit() {
    let mut observed = departing();
    (observed.infrastructure, observed.bootstrap) = (External::Missing, Some(External::Missing));
    observed.node = NodeSight::Disconnected("Refused");
    assert_eq!(decide(&observed).release.len(), 1, "10 s are long over");
    observed.machine.spec.deletion.node_deletion_timeout_seconds = Some(0);
    let plan = decide(&observed);
    assert_eq!(
        (stage(&plan).as_deref(), plan.release.len(), plan.wake_after),
        (Some("DeletingNode"), 0, None),
        "0 waits for ever"
    );
}

#[test]
fn pods_that_could_not_be_listed_are_tried_again() {
    let mut observed = departing();
    observed.node = cordoned();
    observed.departure.as_mut().unwrap().pods = None;
    let plan = decide(&observed);
    assert_eq!(
        (keys(&plan), stage(&plan).as_deref(), plan.wake_after),
        (vec![], Some("DrainingNode"), Some(DRAIN_INTERVAL))
    );
}

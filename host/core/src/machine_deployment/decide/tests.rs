//! Table tests of decisions about MachineDeployments.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::observe;
use super::*;
use crate::testing::{condition as found_condition, core, keys, patch};

/// With an empty selector, as in the fixture; defaults fill it.
fn deployment(replicas: i32, version: &str) -> Value {
    let mut object = core(
        "MachineDeployment",
        "md",
        json!({"clusterName": "c", "replicas": replicas, "selector": {}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"clusterName": "c", "version": version, "minReadySeconds": 3,
                "bootstrap": {"configRef": {"apiGroup": "x.io", "kind": "BootTemplate", "name": "t"}}, "infrastructureRef": {"apiGroup": "x.io", "kind": "InfraTemplate", "name": "t"}}}}),
        json!({}),
    );
    capwasm_api::defaults::default(&mut object, None);
    object
}

fn observed(object: Value, sets: Vec<Value>) -> Observed {
    Observed {
        deployment: capwasm_api::kinds::view(&object).unwrap(),
        object: Arc::new(object),
        now: "2026-06-01T00:00:00Z".parse::<Timestamp>().unwrap(),
        cluster: Some(Arc::new(core("Cluster", "c", json!({}), json!({})))),
        sets: sets.into_iter().map(|set| observe::set(Arc::new(set)).unwrap()).collect(),
        machines: vec![],
    }
}

/// The MachineSet that a plan creates, after server and controller have processed it.
fn born(plan: &Plan, created: &str) -> Value {
    let mut set = plan
        .operations
        .iter()
        .find_map(|operation| match &operation.action {
            Action::Create(object) => Some(object.clone()),
            _ => None,
        })
        .unwrap();
    set["metadata"]["uid"] = json!(format!("{}-uid", meta::name(&set)));
    set["metadata"]["creationTimestamp"] = json!(created);
    let replicas = set["spec"]["replicas"].clone();
    set["status"] = json!({"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "upToDateReplicas": replicas});
    set
}

#[test]
fn the_first_set_is_made_of_the_template_and_repeats_with_the_same_name() {
    let plan = decide(&observed(deployment(2, "v1.36.0"), vec![]));
    let set = born(&plan, "2026-01-01T00:00:00Z");
    assert_eq!(set["spec"]["replicas"], 2);
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], "md-uid");
    assert_eq!(set["metadata"]["ownerReferences"][0]["controller"], true);
    let hash = meta::label(&set, "machine-template-hash").unwrap();
    let selector = &set["spec"]["selector"]["matchLabels"];
    assert_eq!(
        selector,
        &json!({"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md", "machine-template-hash": hash})
    );
    assert_eq!(
        set["spec"]["template"]["metadata"]["labels"],
        json!({"a": "b", "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md", "machine-template-hash": hash})
    );
    assert_eq!(set["metadata"]["labels"], set["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(
        set["metadata"]["annotations"],
        json!({"machinedeployment.clusters.x-k8s.io/revision": "1", "machinedeployment.clusters.x-k8s.io/desired-replicas": "2", "machinedeployment.clusters.x-k8s.io/max-replicas": "3"})
    );
    assert!(capwasm_api::validate::validate(&set, None).is_empty());
    let desired = plan.desired.as_ref().unwrap();
    assert_eq!(desired["metadata"]["ownerReferences"][0]["uid"], "c-uid");
    assert_eq!(desired["metadata"]["finalizers"], json!(["cluster.x-k8s.io/machinedeployment"]));
    assert_eq!(desired["status"]["phase"], "ScalingUp");

    let again = decide(&observed(desired.clone(), vec![]));
    assert_eq!(meta::name(&born(&again, "")), meta::name(&set));
}

#[test]
fn nothing_is_written_when_nothing_differs() {
    let first = decide(&observed(deployment(2, "v1.36.0"), vec![]));
    let set = born(&first, "2026-01-01T00:00:00Z");
    let second = decide(&observed(first.desired.unwrap(), vec![set.clone()]));
    assert!(second.operations.is_empty(), "{:?}", second.operations);
    let object = second.desired.unwrap();
    assert_eq!(object["status"]["phase"], "Running");
    assert_eq!(found_condition(&object, "Available"), Some(("True".into(), "Available".into())));
    assert_eq!(meta::annotation(&object, "machinedeployment.clusters.x-k8s.io/revision"), Some("1"));
    let third = decide(&observed(object.clone(), vec![set]));
    assert!(third.operations.is_empty() && third.wake_after.is_none());
    assert_eq!(merge_patch::diff(&object, &third.desired.unwrap()), None);
}

#[test]
fn a_changed_version_rolls_to_a_new_set_and_the_old_one_goes() {
    let first = decide(&observed(deployment(2, "v1.36.0"), vec![]));
    let mut old = born(&first, "2026-01-01T00:00:00Z");
    let plan = decide(&observed(deployment(2, "v1.37.0"), vec![old.clone()]));
    let mut new = born(&plan, "2026-02-01T00:00:00Z");
    assert_eq!(new["spec"]["replicas"], 1, "one machine of surge");
    assert_eq!(meta::annotation(&new, "machinedeployment.clusters.x-k8s.io/revision"), Some("2"));
    assert_ne!(meta::label(&new, "machine-template-hash"), meta::label(&old, "machine-template-hash"));
    let step = |old: &Value, new: &Value| decide(&observed(deployment(2, "v1.37.0"), vec![old.clone(), new.clone()]));
    let update = |set: &Value| format!("update MachineSet {}", meta::name(set));

    let plan = step(&old, &new);
    assert_eq!(patch(&plan, &update(&old)), Some(&json!({"spec": {"replicas": 1}})));
    assert_eq!(keys(&plan).len(), 1);
    old["spec"]["replicas"] = json!(1);
    old["status"] = json!({"replicas": 1, "availableReplicas": 1});
    assert_eq!(patch(&step(&old, &new), &update(&new)), Some(&json!({"spec": {"replicas": 2}})));
    new["spec"]["replicas"] = json!(2);
    new["status"] = json!({"replicas": 2, "availableReplicas": 2});
    assert_eq!(patch(&step(&old, &new), &update(&old)), Some(&json!({"spec": {"replicas": 0}})));
    old["spec"]["replicas"] = json!(0);
    assert!(step(&old, &new).operations.is_empty(), "its machine still goes");
    old["status"] = json!({"replicas": 0});
    assert_eq!(keys(&step(&old, &new)), [format!("delete MachineSet {}", meta::name(&old))]);
}

#[test]
fn what_needs_no_roll_out_is_passed_on_in_place() {
    let set = born(&decide(&observed(deployment(2, "v1.36.0"), vec![])), "2026-01-01T00:00:00Z");
    let mut object = deployment(2, "v1.36.0");
    object["spec"]["template"]["metadata"]["labels"]["a"] = json!("c");
    object["spec"]["template"]["spec"]["minReadySeconds"] = json!(9);
    object["spec"]["deletion"] = json!({"order": "Oldest"});
    let plan = decide(&observed(object, vec![set.clone()]));
    assert_eq!(keys(&plan).len(), 1);
    assert_eq!(
        patch(&plan, keys(&plan)[0]),
        Some(
            &json!({"metadata": {"labels": {"a": "c"}}, "spec": {"deletion": {"order": "Oldest"}, "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"minReadySeconds": 9}}}})
        )
    );
}

#[test]
fn a_number_is_passed_on_also_while_roll_outs_are_held() {
    let set = born(&decide(&observed(deployment(2, "v1.36.0"), vec![])), "2026-01-01T00:00:00Z");
    let mut object = deployment(4, "v1.36.0");
    object["spec"]["paused"] = json!(true);
    let plan = decide(&observed(object, vec![set.clone()]));
    let merge = patch(&plan, keys(&plan)[0]).unwrap();
    assert_eq!(merge["spec"], json!({"replicas": 4}));

    let mut changed = deployment(4, "v1.37.0");
    changed["spec"]["paused"] = json!(true);
    assert!(decide(&observed(changed, vec![set])).operations.is_empty(), "no new set");
}

#[test]
fn rollout_after_replaces_machines_when_its_time_has_come() {
    let set = born(&decide(&observed(deployment(2, "v1.36.0"), vec![])), "2026-01-01T00:00:00Z");
    for (after, creates, wake) in [
        ("2026-05-01T00:00:00Z", true, None),
        ("2026-06-01T00:01:00Z", false, Some(60)),
        ("2025-01-01T00:00:00Z", false, None),
    ] {
        let mut object = deployment(2, "v1.36.0");
        object["spec"]["rollout"]["after"] = json!(after);
        let plan = decide(&observed(object, vec![set.clone()]));
        assert_eq!(keys(&plan).iter().any(|key| key.starts_with("create")), creates, "{after}");
        assert_eq!(plan.wake_after, wake.map(Duration::from_secs), "{after}");
    }
}

#[test]
fn on_delete_keeps_old_machines_from_being_made_again() {
    let set = born(&decide(&observed(deployment(2, "v1.36.0"), vec![])), "2026-01-01T00:00:00Z");
    let mut object = deployment(2, "v1.37.0");
    object["spec"]["rollout"] = json!({"strategy": {"type": "OnDelete"}});
    let plan = decide(&observed(object, vec![set.clone()]));
    assert_eq!(born(&plan, "")["spec"]["replicas"], 0);
    let merge = patch(&plan, &format!("update MachineSet {}", meta::name(&set))).unwrap();
    assert_eq!(merge, &json!({"metadata": {"annotations": {"cluster.x-k8s.io/disable-machine-create": "true"}}}));
}

#[test]
fn a_deployment_goes_when_its_sets_are_gone() {
    let set = born(&decide(&observed(deployment(1, "v1"), vec![])), "2026-01-01T00:00:00Z");
    let mut object = deployment(1, "v1");
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["metadata"]["finalizers"] = json!(["cluster.x-k8s.io/machinedeployment"]);
    let plan = decide(&observed(object.clone(), vec![set]));
    assert_eq!((keys(&plan).len(), plan.release.len()), (1, 0));
    assert_eq!(decide(&observed(object, vec![])).release, ["cluster.x-k8s.io/machinedeployment"]);
}

#[test]
fn machines_that_are_not_up_to_date_are_rolling_out() {
    let machine = |name: &str, status: &str, message: &str| {
        Arc::new(core(
            "Machine",
            name,
            json!({}),
            json!({"conditions": [{"type": "UpToDate", "status": status, "reason": "R", "message": message}]}),
        ))
    };
    let mut observed = observed(deployment(2, "v1"), vec![]);
    observed.machines = vec![
        machine("a", "False", "* Version v0, v1 required"),
        machine("b", "False", "* Version v0, v1 required"),
        machine("c", "True", ""),
    ];
    let desired = decide(&observed).desired.unwrap();
    let found = capwasm_api::conditions::get(&desired, "RollingOut").unwrap();
    assert_eq!(
        (found.reason.as_str(), found.message.as_str()),
        ("RollingOut", "Rolling out 2 not up-to-date replicas\n* Version v0, v1 required")
    );
    assert_eq!(found_condition(&desired, "MachinesUpToDate").unwrap().0, "False");
}

/// Upstream's end-to-end tests take owner references away and expect them back.
#[test]
fn a_set_that_lost_its_owner_or_its_labels_is_taken_back_and_counts_meanwhile() {
    let first = decide(&observed(deployment(2, "v1.36.0"), vec![]));
    let set = born(&first, "2026-01-01T00:00:00Z");
    let deployment = decide(&observed(first.desired.unwrap(), vec![set.clone()])).desired.unwrap();
    let name = meta::name(&set);
    let (adopt, update) = (format!("adopt MachineSet {name}"), format!("update MachineSet {name}"));
    let of_cluster =
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "c-uid"}]);
    let rows = [
        ("no owner", Some(json!([])), false, vec![&adopt]),
        ("its Cluster in place of it", Some(of_cluster), false, vec![&adopt]),
        ("no labels", None, true, vec![&update]),
        ("neither", Some(json!([])), true, vec![&adopt, &update]),
    ];
    for (what, owners, unlabelled, expected) in rows {
        let mut stripped = set.clone();
        if let Some(owners) = owners {
            stripped["metadata"]["ownerReferences"] = owners;
        }
        if unlabelled {
            stripped["metadata"]["labels"] = json!({});
        }
        let plan = decide(&observed(deployment.clone(), vec![stripped.clone()]));
        assert_eq!(keys(&plan), expected, "{what}");
        assert_eq!(plan.desired.as_ref().unwrap()["status"]["replicas"], 2, "{what}");
        let mut healed = stripped;
        for merge in [&adopt, &update].into_iter().filter_map(|key| patch(&plan, key)) {
            merge_patch::apply(&mut healed, merge);
        }
        assert_eq!(healed, set, "{what}");
    }
}

#[test]
fn a_set_of_a_deployment_that_goes_goes_though_nobody_controls_it() {
    let first = decide(&observed(deployment(2, "v1.36.0"), vec![]));
    let mut set = born(&first, "2026-01-01T00:00:00Z");
    set["metadata"]["ownerReferences"] = json!([]);
    let mut going = first.desired.unwrap();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    let plan = decide(&observed(going, vec![set.clone()]));
    assert_eq!(keys(&plan), [format!("delete MachineSet {}", meta::name(&set))]);
    assert!(plan.release.is_empty());
}

#[test]
fn sets_of_the_latest_revisions_are_looked_for_by_name() {
    let named = |recorded: Option<&str>, found: &[Arc<Value>]| {
        let mut object = deployment(1, "v1.36.0");
        if let Some(recorded) = recorded {
            object["metadata"]["annotations"] = json!({"machinedeployment.clusters.x-k8s.io/revision": recorded});
        }
        sets::unseen_names(&object, &capwasm_api::kinds::view(&object).unwrap(), found)
    };
    let first = born(&decide(&observed(deployment(1, "v1.36.0"), vec![])), "2026-01-01T00:00:00Z");
    assert_eq!(named(None, &[]), [meta::name(&first)], "which a lost pass may have made");
    let first = Arc::new(first);
    assert_eq!(named(None, std::slice::from_ref(&first)), [""; 0]);
    assert_eq!(named(Some("1"), std::slice::from_ref(&first)).len(), 1, "the next one's alone");
    assert!(named(Some("1"), &[]).contains(&meta::name(&first).to_owned()));
    assert_eq!(named(Some("500"), &[]).len(), 16, "not those of all times");
}

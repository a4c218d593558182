//! Table tests of decisions about MachineSets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use capwasm_object::merge_patch;
use jiff::Timestamp;
use serde_json::{Value, json};

use capwasm_reconcile::{Operation, Verdict};

use super::*;
use crate::ownership;
use crate::testing::{condition as found_condition, core, found, keys, patch};

fn template(kind: &str) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": kind, "metadata": {"name": "t", "namespace": "ns", "uid": format!("{kind}-uid"),
        "labels": {"cluster.x-k8s.io/cluster-name": "c"}, "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "c-uid"}]},
        "spec": {"template": {"metadata": {"labels": {"from": "template"}}, "spec": {"size": 7}}}})
}

fn set(replicas: i32) -> Value {
    let mut object = core(
        "MachineSet",
        "ms",
        json!({"clusterName": "c", "replicas": replicas, "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "md", "cluster.x-k8s.io/cluster-name": "c"}},
            "template": {"metadata": {"labels": {"cluster.x-k8s.io/deployment-name": "md", "cluster.x-k8s.io/cluster-name": "c"}, "annotations": {"note": "n"}},
                "spec": {"clusterName": "c", "version": "v1.36.0", "bootstrap": {"configRef": {"apiGroup": "x.io", "kind": "BootTemplate", "name": "t"}},
                    "infrastructureRef": {"apiGroup": "x.io", "kind": "InfraTemplate", "name": "t"}}}}),
        json!({}),
    );
    object["metadata"]["labels"] =
        json!({"cluster.x-k8s.io/deployment-name": "md", "cluster.x-k8s.io/cluster-name": "c"});
    object["metadata"]["finalizers"] = json!(["cluster.x-k8s.io/machineset"]);
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "name": "md", "uid": "md-uid", "controller": true}]);
    object
}

fn observed(object: Value, machines: Vec<Value>) -> Observed {
    Observed {
        set: capwasm_api::kinds::view(&object).unwrap(),
        object: Arc::new(object),
        now: Timestamp::UNIX_EPOCH,
        cluster: Some(Arc::new(core("Cluster", "c", json!({}), json!({})))),
        control_plane: None,
        deployment: None,
        bootstrap: Some(found(template("BootTemplate"))),
        infrastructure: found(template("InfraTemplate")),
        machines: machines.into_iter().map(Arc::new).collect(),
        strays: vec![],
        bare: vec![],
        clones: vec![],
    }
}

fn created(plan: &Plan) -> Vec<Value> {
    let create = |operation: &Operation| match &operation.action {
        Action::Create(object) => Some(object.clone()),
        _ => None,
    };
    plan.operations.iter().filter_map(create).collect()
}

/// The Machines that a plan creates, as the server returns them later.
fn born(plan: &Plan) -> Vec<Value> {
    let machines = created(plan).into_iter().filter(|object| meta::kind(object) == "Machine");
    machines
        .map(|mut machine| {
            machine["metadata"]["uid"] = json!(format!("{}-uid", meta::name(&machine)));
            machine
        })
        .collect()
}

/// The set while these Machines have no clones yet.
fn bare(replicas: i32, machines: &[Value]) -> Observed {
    let mut observed = observed(set(replicas), machines.to_vec());
    let parts = [Part::Bootstrap, Part::Infrastructure];
    observed.bare = observed.machines.iter().flat_map(|machine| parts.map(|part| (machine.clone(), part))).collect();
    observed
}

#[test]
fn r2a_each_replica_is_a_machine_and_then_its_config_and_infrastructure() {
    let plan = decide(&observed(set(2), vec![]));
    let machines = created(&plan);
    assert_eq!(machines.iter().map(meta::kind).collect::<Vec<_>>(), ["Machine", "Machine"]);
    assert_eq!(plan.operations.len(), 2, "templates are owned already");
    assert!(plan.wake_when_applied, "nothing else tells that they are there");
    let machine = &machines[0];
    let name = meta::name(machine);
    assert!(name.starts_with("ms-") && name.len() == 8);
    assert_ne!(name, meta::name(&machines[1]));
    assert_eq!(machine["spec"]["bootstrap"]["configRef"], json!({"apiGroup": "x.io", "kind": "Boot", "name": name}));
    assert_eq!(machine["spec"]["infrastructureRef"], json!({"apiGroup": "x.io", "kind": "Infra", "name": name}));
    assert_eq!(machine["spec"]["version"], "v1.36.0");
    assert_eq!(machine["metadata"]["ownerReferences"][0]["uid"], "ms-uid");
    assert_eq!(machine["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(machine["metadata"]["finalizers"], json!(["machine.cluster.x-k8s.io"]));
    assert_eq!(
        machine["metadata"]["labels"],
        json!({"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md", "cluster.x-k8s.io/set-name": "ms"})
    );
    assert_eq!(machine["metadata"]["annotations"], json!({"note": "n", "capwasm.dev/slot": "0"}));
    assert_eq!(found_condition(&plan.desired.clone().unwrap(), "ScalingUp"), Some(("True".into(), "ScalingUp".into())));

    let clones = created(&decide(&bare(2, &born(&plan))));
    assert_eq!(clones.iter().map(meta::kind).collect::<Vec<_>>(), ["Boot", "Infra", "Boot", "Infra"]);
    let infra = &clones[1];
    assert_eq!((meta::name(&clones[0]), meta::name(infra)), (name, name));
    assert_eq!(infra["spec"], json!({"size": 7}), "spec equal to the template's");
    assert_eq!(infra["metadata"]["labels"]["from"], "template");
    assert_eq!(infra["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "c");
    assert_eq!(
        infra["metadata"]["annotations"],
        json!({"note": "n", "cluster.x-k8s.io/cloned-from-name": "t", "cluster.x-k8s.io/cloned-from-groupkind": "InfraTemplate.x.io"})
    );
    assert_eq!(
        infra["metadata"]["ownerReferences"],
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": format!("{name}-uid"), "controller": true, "blockOwnerDeletion": true}])
    );
}

#[test]
fn what_a_machine_was_told_since_it_was_made_is_not_for_its_clones() {
    let mut machine = born(&decide(&observed(set(1), vec![]))).remove(0);
    let told = decide(&bare(1, std::slice::from_ref(&machine)));
    machine["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
    machine["metadata"]["annotations"]["capwasm.dev/v1beta1-data"] = json!("{}");
    assert_eq!(created(&decide(&bare(1, &[machine]))), created(&told));
}

#[test]
fn r2a_a_creation_that_is_repeated_meets_what_it_made() {
    let first = decide(&observed(set(2), vec![]));
    let again = decide(&observed(set(2), vec![]));
    assert_eq!(created(&first), created(&again));

    // Cut off before the second Machine: the first is equipped, the second made as it would have been.
    let plan = decide(&bare(2, &born(&first)[..1]));
    assert_eq!(created(&plan).iter().map(meta::kind).collect::<Vec<_>>(), ["Boot", "Infra", "Machine"]);
    assert_eq!(created(&plan)[2], created(&first)[1]);

    // What upstream made and cut off: its clones are there, and are not taken for orphans.
    let mut cut = observed(set(2), born(&first)[..1].to_vec());
    let clones = created(&decide(&bare(2, &born(&first))));
    cut.clones = clones[2..].iter().cloned().map(Arc::new).collect();
    assert!(keys(&decide(&cut)).iter().all(|key| key.starts_with("create")));
}

#[test]
fn no_machine_without_what_it_needs_is_left_when_a_template_is_gone() {
    let mut observed = bare(1, &born(&decide(&observed(set(1), vec![]))));
    observed.infrastructure = External::Missing;
    let plan = decide(&observed);
    assert_eq!(created(&plan).iter().map(meta::kind).collect::<Vec<_>>(), ["Boot"]);
    assert!(matches!(&plan.verdict, Verdict::Failed { reason, .. } if reason == "TemplateUnusable"));
}

#[test]
fn a_name_is_never_given_out_again() {
    let first = born(&decide(&observed(set(2), vec![])));
    let seen = decide(&observed(set(2), first.clone())).desired.unwrap();
    assert_eq!(meta::annotation(&seen, "capwasm.dev/next-slot"), Some("2"));
    let plan = decide(&observed(seen, vec![]));
    let names: Vec<String> = born(&plan).iter().map(|machine| meta::name(machine).to_owned()).collect();
    assert_eq!(names.len(), 2);
    assert!(first.iter().all(|old| !names.contains(&meta::name(old).to_owned())));
}

#[test]
fn r2c_an_edited_template_changes_later_clones_only() {
    let machines = born(&decide(&observed(set(2), vec![])));
    let mut observed = bare(2, &machines[1..]);
    observed.machines = machines.into_iter().map(Arc::new).collect();
    let mut changed = template("InfraTemplate");
    changed["spec"]["template"]["spec"]["size"] = json!(8);
    observed.infrastructure = found(changed);
    let plan = decide(&observed);
    assert_eq!(created(&plan)[1]["spec"]["size"], 8);
    assert_eq!(plan.operations.len(), 2, "what exists is left alone: {:?}", keys(&plan));
}

#[test]
fn clones_that_no_machine_refers_to_are_deleted() {
    let first = decide(&observed(set(1), vec![]));
    let clones = created(&decide(&bare(1, &born(&first))));
    let mut observed = observed(set(1), born(&first));
    let mut orphan = clones[1].clone();
    orphan["metadata"]["name"] = json!("ms-lost");
    observed.clones = vec![Arc::new(clones[0].clone()), Arc::new(orphan)];
    assert_eq!(keys(&decide(&observed)), ["delete Infra ms-lost"]);
}

#[test]
fn a_set_shrinks_by_priority_and_counts_what_goes_already() {
    let machine = |name: &str, going: bool| {
        let mut machine = core("Machine", name, json!({}), json!({"nodeRef": {"name": name}}));
        machine["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md", "cluster.x-k8s.io/set-name": "ms"});
        machine["metadata"]["annotations"] = json!({"note": "n"});
        if going {
            machine["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        machine
    };
    for (what, replicas, machines, expected) in [
        ("as wanted", 2, vec![machine("a", false), machine("b", false)], vec![]),
        ("one too many", 1, vec![machine("a", false), machine("b", false)], vec!["delete Machine a"]),
        ("one too many, and one goes already", 1, vec![machine("a", false), machine("b", true)], vec![]),
        ("all", 0, vec![machine("a", false), machine("b", true)], vec!["delete Machine a"]),
        ("a replacement waits until the old one is gone", 2, vec![machine("a", false), machine("b", true)], vec![]),
    ] {
        assert_eq!(keys(&decide(&observed(set(replicas), machines))), expected, "{what}");
    }
}

#[test]
fn creation_waits_for_templates_and_for_the_control_plane() {
    let mut missing = observed(set(1), vec![]);
    missing.infrastructure = External::Missing;
    let plan = decide(&missing);
    assert!(created(&plan).is_empty() && !plan.wake_when_applied, "the template wakes");
    assert!(matches!(&plan.verdict, Verdict::Failed { reason, backoff: false, .. } if reason == "TemplateUnusable"));

    let mut early = observed(set(1), vec![]);
    early.control_plane = Some(found(json!({"kind": "Plane", "spec": {"version": "v1.36.0"}})));
    let plan = decide(&early);
    assert!(created(&plan).is_empty() && plan.wake_after.is_none() && plan.verdict == Verdict::Done);
    let held = capwasm_api::conditions::get(&plan.desired.unwrap(), "ScalingUp").unwrap().message;
    assert_eq!(held, "Scaling up from 0 to 1 replicas\n* ControlPlaneIsStable: the control plane is provisioning");

    let mut disabled = set(1);
    disabled["metadata"]["annotations"] = json!({"cluster.x-k8s.io/disable-machine-create": ""});
    assert!(created(&decide(&observed(disabled, vec![]))).is_empty());
}

#[test]
fn counters_and_conditions_follow_the_machines_and_nothing_is_written_twice() {
    let mut machines = born(&decide(&observed(set(2), vec![])));
    let conditions =
        ["Ready", "Available", "UpToDate"].map(|name| json!({"type": name, "status": "True", "reason": name}));
    machines[0]["status"] =
        json!({"nodeRef": {"name": "n"}, "nodeInfo": {"kubeletVersion": "v1.36.0"}, "conditions": conditions});
    let plan = decide(&observed(set(2), machines.clone()));
    assert!(plan.operations.is_empty(), "{:?}", keys(&plan));
    let object = plan.desired.unwrap();
    let status = &object["status"];
    assert_eq!(
        (&status["replicas"], &status["readyReplicas"], &status["availableReplicas"], &status["upToDateReplicas"]),
        (&json!(2), &json!(1), &json!(1), &json!(1))
    );
    assert_eq!(status["selector"], "cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/deployment-name=md");
    assert_eq!(status["versions"], json!([{"version": "v1.36.0", "replicas": 1}]));
    assert_eq!(found_condition(&object, "MachinesReady"), Some(("Unknown".into(), "ReadyUnknown".into())));
    let again = decide(&observed(object.clone(), machines));
    assert_eq!(merge_patch::diff(&object, &again.desired.unwrap()), None);
}

#[test]
fn a_machine_that_failed_its_health_check_goes_unless_its_revision_does() {
    let mut machine = born(&decide(&observed(set(1), vec![])))[0].clone();
    machine["status"]["conditions"] = json!([{"type": "HealthCheckSucceeded", "status": "False", "reason": "R"},
        {"type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation"}]);
    let name = meta::name(&machine).to_owned();
    let (say, delete) = (format!("say of Machine {name}"), format!("remediate Machine {name}"));
    let revisions = |own: &str, newest: &str, most: Value| {
        let mut object = set(1);
        object["metadata"]["annotations"] = json!({"machinedeployment.clusters.x-k8s.io/revision": own});
        let mut observed = observed(object, vec![machine.clone()]);
        observed.deployment = Some(Arc::new(json!({"spec": {"replicas": 3, "remediation": {"maxInFlight": most}},
            "metadata": {"annotations": {"machinedeployment.clusters.x-k8s.io/revision": newest}}})));
        keys(&decide(&observed)).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(revisions("2", "2", json!("30%")), [say.clone(), delete]);
    let say = vec![say];
    assert_eq!(revisions("1", "2", json!(1)), say, "its rollout takes it away");
    assert_eq!(revisions("2", "2", json!(0)), say, "none may go now");
}

#[test]
fn a_standalone_set_belongs_to_its_cluster_and_owns_its_templates_through_it() {
    let mut object = set(0);
    object["metadata"]["ownerReferences"] = json!([]);
    let mut observed = observed(object, vec![]);
    let mut bare = template("InfraTemplate");
    bare["metadata"]["ownerReferences"] = json!([]);
    observed.infrastructure = found(bare);
    let plan = decide(&observed);
    assert_eq!(keys(&plan), ["own InfraTemplate t"]);
    assert_eq!(plan.desired.unwrap()["metadata"]["ownerReferences"][0]["uid"], "c-uid");
}

#[test]
fn a_set_goes_when_its_machines_are_gone() {
    let mut object = set(1);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let machines = born(&decide(&observed(set(1), vec![])));
    let plan = decide(&observed(object.clone(), machines));
    assert_eq!((plan.operations.len(), plan.release.len()), (1, 0));
    assert_eq!(found_condition(&plan.desired.unwrap(), "Deleting").unwrap().0, "True");
    let plan = decide(&observed(object, vec![]));
    assert_eq!((plan.operations.len(), plan.release), (0, vec!["cluster.x-k8s.io/machineset".to_owned()]));
}

/// Upstream's end-to-end tests take owner references away and expect them back.
#[test]
fn a_machine_that_lost_its_owner_or_its_labels_is_taken_back_and_none_is_made_for_it() {
    let machine = born(&decide(&observed(set(1), vec![]))).remove(0);
    let name = meta::name(&machine);
    let (adopt, update) = (format!("adopt Machine {name}"), format!("update Machine {name}"));
    let of_cluster =
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "c-uid"}]);
    let rows = [
        ("no owner", Some(json!([])), false, vec![&adopt]),
        ("its Cluster in place of it", Some(of_cluster), false, vec![&adopt]),
        ("no labels", None, true, vec![&update]),
        ("neither", Some(json!([])), true, vec![&adopt, &update]),
    ];
    for (what, owners, unlabelled, expected) in rows {
        let mut stripped = machine.clone();
        if let Some(owners) = owners {
            stripped["metadata"]["ownerReferences"] = owners;
        }
        if unlabelled {
            stripped["metadata"]["labels"] = json!({});
        }
        let mut observed = observed(set(1), vec![stripped.clone()]);
        observed.strays = observed.machines.iter().filter(|found| ownership::is_stray(found)).cloned().collect();
        let plan = decide(&observed);
        assert_eq!(keys(&plan), expected, "{what}");
        assert_eq!(plan.desired.as_ref().unwrap()["status"]["replicas"], 1, "{what}");
        let mut healed = stripped;
        for merge in expected.into_iter().filter_map(|key| patch(&plan, key)) {
            merge_patch::apply(&mut healed, merge);
        }
        assert_eq!(healed, machine, "{what}");
    }
}

#[test]
fn machines_of_the_latest_slots_are_looked_for_by_name() {
    let named = |replicas: i32, recorded: &str, found: &[Value]| {
        let mut object = set(replicas);
        object["metadata"]["annotations"] = json!({"capwasm.dev/next-slot": recorded});
        let found: Vec<_> = found.iter().cloned().map(Arc::new).collect();
        naming::unseen_names(&capwasm_api::kinds::view(&object).unwrap(), &found)
    };
    let machines = born(&decide(&observed(set(2), vec![])));
    let second = meta::name(&machines[1]).to_owned();
    assert_eq!(named(2, "2", &machines), [""; 0], "all are there");
    assert_eq!(named(1, "2", &machines[..1]), [second.as_str()], "one more was made than is wanted");
    assert!(named(2, "2", &machines[..1]).contains(&second), "one is missing");
    assert!(named(2, "0", &[]).contains(&second), "made by a pass that could not record it");
    assert_eq!(named(2, "500", &machines).len(), 16, "not those of all times, in every pass");
    assert!(named(3, "500", &machines).len() > 500, "but before another one is made");
}

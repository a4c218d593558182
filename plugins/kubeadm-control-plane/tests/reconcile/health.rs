//! Members that are lost, machines that are unhealthy, clusters that cannot be seen.

use capwasm_sdk::{Operation, object};
use serde_json::json;

use crate::world::{World, condition};

const IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
const FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";

#[test]
fn a_member_without_its_machine_leaves_and_a_new_machine_comes() {
    let mut world = World::running(json!({"replicas": 3}));
    let lost = world.by_age().remove(0);
    world.lose(&lost);
    assert!(world.members().contains(&lost));
    world.settle();
    assert!(!world.members().contains(&lost));
    assert_eq!(world.members(), world.names("Machine"));
    assert_eq!(world.names("Machine").len(), 3);
    assert_eq!(condition(&world.plane, "EtcdClusterHealthy"), ("True".into(), "Healthy".into()));
}

#[test]
fn the_node_of_a_lost_machine_goes_after_its_member() {
    let mut world = World::running(json!({"replicas": 3}));
    let lost = world.by_age().remove(0);
    let mut node = world.workload("v1", "Node", &lost);
    node["status"]["conditions"][0]["status"] = json!("Unknown");
    world.lose(&lost);
    world.host.put(capwasm_sdk::Place::Workload, node);
    world.settle();
    assert_eq!(world.members(), world.names("Machine"));
    let nodes = world.host.objects(capwasm_sdk::Place::Workload).into_iter().filter(|it| it["kind"] == "Node").count();
    assert_eq!(nodes, 3);
    assert_eq!(condition(&world.plane, "EtcdClusterHealthy"), ("True".into(), "Healthy".into()));
}

/// Nothing is done that could make it worse, and everything is said.
#[test]
fn a_lost_quorum_stops_everything_but_words() {
    let mut world = World::running(json!({"replicas": 3}));
    let names = world.by_age();
    world.kill_members(&[&names[0], &names[1]]);
    for change in [
        json!({}),
        json!({"spec": {"version": "v1.37.0"}}),
        json!({"spec": {"replicas": 5}}),
        json!({"spec": {"replicas": 1}}),
    ] {
        let plane = world.plane.clone();
        object::merge(&mut world.plane, &change);
        let calls = world.host.etcd_calls().len();
        for _ in 0..4 {
            world.round();
        }
        assert_eq!(world.by_age(), names, "{change}");
        assert_eq!(world.host.etcd_calls().len(), calls, "{change}");
        assert_eq!(condition(&world.plane, "EtcdClusterHealthy"), ("False".into(), "NotHealthy".into()));
        assert_eq!(condition(&world.plane, "Available"), ("False".into(), "NotAvailable".into()));
        world.plane = plane;
    }
    for name in [&names[0], &names[1]] {
        world.fail(name);
    }
    for _ in 0..4 {
        world.round();
    }
    assert_eq!(world.by_age(), names);
    let machine = world.machine(&names[0]);
    assert_eq!(condition(&machine, "OwnerRemediated"), ("False".into(), "CannotBeRemediated".into()));
    assert_eq!(condition(&world.plane, "Remediating").0, "True");

    // A person who deletes one anyway is held back where it would end etcd for good.
    world.delete_machine(&names[2]);
    for _ in 0..4 {
        world.round();
    }
    assert_eq!(world.by_age(), names);
    let said = object::condition(&world.plane, "ScalingDown").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("lose its quorum"), "{said}");
}

#[test]
fn an_unhealthy_machine_is_replaced_and_the_replacement_knows_for_whom_it_came() {
    let mut world = World::running(json!({"replicas": 3}));
    let broken = world.by_age().remove(1);
    world.kill_members(&[&broken]);
    world.fail(&broken);
    world.pass().unwrap();
    assert!(object::is_deleting(&world.machine(&broken)));
    assert_eq!(condition(&world.machine(&broken), "OwnerRemediated"), ("False".into(), "MachineDeleting".into()));
    let record = world.plane["metadata"]["annotations"][IN_PROGRESS].as_str().unwrap().to_owned();
    assert!(record.starts_with(&format!(r#"{{"machine":"{broken}","timestamp":"20"#)), "{record}");
    assert!(record.ends_with(r#""retryCount":0}"#), "{record}");
    world.settle();
    assert_eq!(world.plane["metadata"]["annotations"].get(IN_PROGRESS), None);
    let replacement = world.by_age().pop().unwrap();
    assert_eq!(object::annotation(&world.machine(&replacement), FOR), Some(record.as_str()));
    assert_eq!(world.plane["status"]["lastRemediation"]["machine"], broken.as_str());
    assert_eq!(world.plane["status"]["lastRemediation"]["retryCount"], 0);
    assert_eq!(world.members(), world.names("Machine"));

    // The replacement fails soon: a retry, which counts.
    world.fail(&replacement);
    world.pass().unwrap();
    let record = world.plane["metadata"]["annotations"][IN_PROGRESS].as_str().unwrap().to_owned();
    assert!(record.ends_with(r#""retryCount":1}"#), "{record}");
    world.settle();
    assert_eq!(world.names("Machine").len(), 3);
}

#[test]
fn retries_end_where_the_user_says() {
    let mut world = World::running(json!({"replicas": 3, "remediation": {"maxRetry": 1, "retryPeriodSeconds": 300}}));
    let next = |world: &World| world.by_age().pop().unwrap();
    let first = next(&world);
    world.fail(&first);
    world.settle();
    let second = next(&world);
    world.fail(&second);
    world.pass().unwrap();
    assert_eq!(condition(&world.machine(&second), "OwnerRemediated").1, "RemediationDeferred", "too soon");
    let (_, outcome) = world.call();
    assert!(outcome.wake_after.is_some_and(|after| after.as_secs() <= 300));
    world.clock += 300_000;
    world.settle();
    let third = next(&world);
    assert_ne!(third, second);
    world.clock += 300_000;
    world.fail(&third);
    world.pass().unwrap();
    assert_eq!(condition(&world.machine(&third), "OwnerRemediated").1, "CannotBeRemediated", "often enough");
    world.clock += 3_600_000;
    world.settle();
    assert!(!world.names("Machine").contains(&third), "an hour later it is a trouble of its own");
}

#[test]
fn a_first_machine_that_never_comes_up_is_replaced() {
    let mut world = World::new(json!({"replicas": 3}));
    world.nobody_joins = true;
    for _ in 0..4 {
        world.round();
    }
    let first = world.by_age().remove(0);
    world.patch_machine(&first, &json!({"status": {"conditions": []}}));
    world.fail(&first);
    for _ in 0..6 {
        world.round();
    }
    assert!(!world.names("Machine").contains(&first));
    let config = &world.objects("KubeadmConfig")[0];
    assert_eq!(config["spec"].get("joinConfiguration"), None, "the replacement makes the cluster");
    world.nobody_joins = false;
    world.settle();
    assert_eq!(world.names("Machine").len(), 3);
}

#[test]
fn an_unhealthy_machine_goes_first_during_a_rollout() {
    for step in 1..12 {
        let mut world = World::running(json!({"replicas": 3}));
        world.plane["spec"]["version"] = json!("v1.37.0");
        for _ in 0..step {
            world.round();
        }
        let machines = world.by_age();
        let Some(victim) = machines.iter().rev().find(|name| !object::is_deleting(&world.machine(name))).cloned()
        else {
            continue;
        };
        if world.machine(&victim).pointer("/status/conditions").is_none() {
            world.patch_machine(&victim, &json!({"status": {"conditions": []}}));
        }
        world.kill_members(&[&victim]);
        world.fail(&victim);
        world.settle();
        assert!(!world.names("Machine").contains(&victim), "step {step}");
        assert_eq!(world.names("Machine").len(), 3, "step {step}");
        assert_eq!(world.members(), world.names("Machine"), "step {step}");
        assert_eq!(world.plane["status"]["versions"], json!([{"version": "v1.37.0", "replicas": 3}]), "step {step}");
    }
}

#[test]
fn a_lost_pass_of_a_remediation_is_made_up_for() {
    for kept in 0..3 {
        let mut world = World::running(json!({"replicas": 3}));
        let broken = world.by_age().remove(0);
        world.fail(&broken);
        let before = world.plane["status"].clone();
        let _ = world.pass_cut(kept);
        world.plane["status"] = before;
        world.settle();
        assert!(!world.names("Machine").contains(&broken), "cut after {kept}");
        assert_eq!(world.names("Machine").len(), 3, "cut after {kept}");
        assert_eq!(world.plane["metadata"]["annotations"].get(IN_PROGRESS), None, "cut after {kept}");
    }
}

#[test]
fn what_was_seen_stands_for_a_while_when_the_workload_cluster_does_not_answer() {
    let mut world = World::running(json!({"replicas": 3}));
    world.host.set_workload_down(true);
    world.plane["spec"]["replicas"] = json!(5);
    for _ in 0..3 {
        world.round();
    }
    assert_eq!(condition(&world.plane, "Available").0, "True");
    assert_eq!(condition(&world.plane, "EtcdClusterHealthy").0, "True");
    assert_eq!(world.names("Machine").len(), 3);
    let said = object::condition(&world.plane, "ScalingUp").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("to be reachable"), "{said}");
    let mut cluster = crate::world::cluster();
    object::merge(
        &mut cluster,
        &json!({"status": {"conditions": [
        {"type": "RemoteConnectionProbe", "status": "False", "reason": "ProbeFailed", "lastTransitionTime": world.time()}]}}),
    );
    world.host.set_related("cluster", vec![cluster]);
    world.round();
    assert_eq!(condition(&world.plane, "EtcdClusterHealthy").0, "True", "within the grace period");
    world.clock += 300_000;
    world.round();
    assert_eq!(condition(&world.plane, "EtcdClusterHealthy"), ("Unknown".into(), "ConnectionDown".into()));
    assert_eq!(
        condition(&world.objects("Machine")[0], "APIServerPodHealthy"),
        ("Unknown".into(), "ConnectionDown".into())
    );
    let (_, outcome) = world.call();
    assert!(
        !outcome
            .operations
            .iter()
            .any(|operation| matches!(operation, Operation::Create { .. } | Operation::Delete { .. }))
    );
}

/// A member without a machine and the member of a deleted machine could each leave, with one broken, but not both at once.
#[test]
fn no_two_members_leave_in_one_pass() {
    let mut world = World::running(json!({"replicas": 3}));
    let names = world.by_age();
    let mut members = world.host.etcd().unwrap();
    members.push(capwasm_sdk::EtcdMember { id: 77, name: "zz".into(), healthy: true, ..Default::default() });
    world.host.set_etcd(Some(members));
    world.kill_members(&[&names[1]]);
    world.delete_machine(&names[2]);
    world.core();
    let before = world.host.etcd_calls().len();
    let _ = world.pass();
    assert_eq!(world.host.etcd_calls().len(), before + 1, "{:?}", world.host.etcd_calls());
    for _ in 0..3 {
        world.round();
    }
    assert_eq!(world.members(), names.iter().cloned().collect(), "the rest waits for the broken one");
}

/// Fewer machines are wanted before the replacement comes: there will be none, and the next unhealthy machine does not wait
/// for it.
#[test]
fn a_remediation_that_needs_no_replacement_is_over_when_its_machine_is_gone() {
    let mut world = World::running(json!({"replicas": 5}));
    let broken = world.by_age().remove(0);
    world.fail(&broken);
    let _ = world.pass();
    assert!(world.plane["metadata"]["annotations"].get(IN_PROGRESS).is_some());
    world.plane["spec"]["replicas"] = json!(3);
    world.settle();
    assert_eq!(world.names("Machine").len(), 3);
    assert_eq!(world.plane["metadata"]["annotations"].get(IN_PROGRESS), None);
    let next = world.by_age().remove(0);
    world.fail(&next);
    world.settle();
    assert!(!world.names("Machine").contains(&next));
    assert_eq!(world.names("Machine").len(), 3);
}

/// The connection may be there all the time, so that nothing tells when the API server can answer again.
#[test]
fn a_workload_cluster_that_does_not_answer_is_looked_at_again() {
    let mut world = World::running(json!({"replicas": 3}));
    world.host.set_workload_down(true);
    let (_, outcome) = world.call();
    assert!(outcome.wake_after.is_some_and(|after| after.as_secs() <= 15), "{:?}", outcome.wake_after);
}

/// Core's first news of the Node can tell all of the machine's health, and when its certificates end.
#[test]
fn a_machine_is_judged_as_soon_as_its_node_is_there() {
    let mut world = World::running(json!({"replicas": 1}));
    let name = world.by_age().remove(0);
    let unmatched = json!({"spec": {"providerID": null}, "status": {"nodeRef": null, "conditions": null}});
    world.patch_machine(&name, &unmatched);
    let clone = capwasm_sdk::ObjectRef::new("infrastructure.cluster.x-k8s.io/v1beta2", "DockerMachine", &name);
    let mut clone = capwasm_sdk::Host::lookup(&world.host, &clone).unwrap();
    object::merge(&mut clone, &json!({"spec": {"providerID": format!("docker:////{name}")}}));
    world.host.put(capwasm_sdk::Place::Management, clone);
    world.pass().unwrap();
    for kind in ["APIServerPodHealthy", "EtcdMemberHealthy", "NodeKubeadmLabelsAndTaintsSet"] {
        assert_eq!(condition(&world.machine(&name), kind).0, "True", "{kind}");
    }
}

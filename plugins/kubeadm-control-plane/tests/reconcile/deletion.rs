//! Machines that go one by one, and control planes that go as a whole.

use capwasm_sdk::test::{self, write_back};
use capwasm_sdk::{ObjectRef, Place, object};
use kubeadm_control_plane::KubeadmControlPlane;
use serde_json::json;

use crate::world::{HOOK, World, condition};

/// One pass of a deletion.
fn delete(world: &mut World) -> bool {
    let (result, outcome) = test::delete::<KubeadmControlPlane>(&world.host, &world.plane);
    write_back(&outcome, &mut world.plane);
    world.carry_out(&outcome, usize::MAX);
    world.core();
    result.unwrap()
}

#[test]
fn a_machine_that_a_person_deletes_leaves_etcd_after_its_drain_and_is_replaced() {
    let mut world = World::running(json!({"replicas": 3}));
    let leader = world.host.etcd().unwrap().into_iter().find(|member| member.leader).unwrap().name;
    world.drains_forever = true;
    world.delete_machine(&leader);
    for _ in 0..4 {
        world.round();
    }
    assert!(world.members().contains(&leader), "it is being drained");
    world.drains_forever = false;
    world.settle();
    assert!(!world.names("Machine").contains(&leader));
    assert_eq!(world.members(), world.names("Machine"));
    assert_eq!(world.names("Machine").len(), 3);
    let calls = world.host.etcd_calls();
    let at = |what: &str| calls.iter().position(|call| call.starts_with(what)).unwrap();
    assert!(at("move-leader") < at("remove"), "{calls:?}");
}

#[test]
fn a_machine_whose_member_left_is_let_go_whatever_becomes_of_the_rest_of_the_pass() {
    let mut world = World::running(json!({"replicas": 3}));
    let name = world.by_age().remove(0);
    world.delete_machine(&name);
    // Something to write to the other machines in the same pass.
    world.plane["spec"]["machineTemplate"]["metadata"] = json!({"labels": {"tier": "new"}});
    for _ in 0..8 {
        world.core();
        let (_, outcome) = world.call();
        assert!(outcome.operations.len() > 1, "there is more to do than one operation");
        world.carry_out(&outcome, 1);
        if !world.members().contains(&name) {
            assert_eq!(object::annotation(&world.machine(&name), HOOK), None);
            return;
        }
    }
    panic!("the member stays");
}

#[test]
fn our_hook_waits_for_those_of_others() {
    let mut world = World::running(json!({"replicas": 3}));
    let name = world.by_age().remove(0);
    let other = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup";
    world.patch_machine(&name, &json!({"metadata": {"annotations": {other: ""}}}));
    world.delete_machine(&name);
    for _ in 0..4 {
        world.round();
    }
    assert!(world.members().contains(&name) && object::annotation(&world.machine(&name), HOOK).is_some());
    world.patch_machine(&name, &json!({"metadata": {"annotations": {other: null}}}));
    world.settle();
    assert!(!world.members().contains(&name));
}

#[test]
fn deletion_waits_for_workers_and_pools_then_takes_all_machines() {
    let mut world = World::running(json!({"replicas": 3}));
    let version = "cluster.x-k8s.io/v1beta2";
    for (kind, name) in [("Machine", "worker"), ("MachinePool", "pool")] {
        let object = json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"cluster.x-k8s.io/cluster-name": "quick"}},
        });
        world.host.put(Place::Management, object);
    }
    assert!(!delete(&mut world));
    assert_eq!(condition(&world.plane, "Deleting"), ("True".into(), "WaitingForWorkersDeletion".into()));
    world.host.remove(Place::Management, &ObjectRef::new(version, "Machine", "worker"));
    assert!(!delete(&mut world));
    assert_eq!(world.names("Machine").len(), 3, "the pool is still there");
    world.host.remove(Place::Management, &ObjectRef::new(version, "MachinePool", "pool"));
    assert!(!delete(&mut world), "asked for, not gone");
    assert_eq!(condition(&world.plane, "Deleting"), ("True".into(), "WaitingForMachineDeletion".into()));
    assert!(delete(&mut world));
    assert_eq!(world.plane["status"]["replicas"], 0);
    assert_eq!(condition(&world.plane, "Deleting").1, "DeletionCompleted");
    assert_eq!(world.host.etcd_calls(), [""; 0], "etcd goes as a whole");
}

/// However far creation, scaling, a rollout or a remediation is: the end is the same.
#[test]
fn deletion_in_the_middle_of_anything_ends() {
    for what in ["creation", "scaling up", "scaling down", "rollout", "remediation", "quorum lost"] {
        for steps in 0..10 {
            let mut world = match what {
                "creation" => World::new(json!({"replicas": 3})),
                _ => World::running(json!({"replicas": 3})),
            };
            match what {
                "scaling up" => world.plane["spec"]["replicas"] = json!(5),
                "scaling down" => world.plane["spec"]["replicas"] = json!(1),
                "rollout" => world.plane["spec"]["version"] = json!("v1.37.0"),
                "remediation" => world.fail(&world.by_age()[0].clone()),
                "quorum lost" => {
                    let names = world.by_age();
                    world.kill_members(&[&names[0], &names[1]]);
                    world.delete_machine(&names[2]);
                }
                _ => {}
            }
            for _ in 0..steps {
                world.round();
            }
            let gone = (0..10).any(|_| delete(&mut world));
            assert!(gone, "{what} after {steps} rounds: {:?}", world.names("Machine"));
            assert!(world.names("Machine").is_empty(), "{what} after {steps} rounds");
        }
    }
}

/// Machines, and the control plane itself, may have lost what told whose they are.
#[test]
fn a_control_plane_that_goes_takes_stripped_machines_with_it() {
    for of_machine in [&[][..], &["ownerReferences"], &["labels"], &["ownerReferences", "labels"]] {
        for bare in [false, true] {
            let mut world = World::running(json!({"replicas": 3}));
            for mut machine in world.objects("Machine") {
                for field in of_machine {
                    machine["metadata"].as_object_mut().unwrap().remove(*field);
                }
                if of_machine.contains(&"labels") {
                    // Which the server, or core, puts back at once.
                    machine["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "quick"});
                }
                world.host.put(Place::Management, machine);
            }
            if bare {
                world.host.set_related("cluster", vec![]);
                world.plane["metadata"].as_object_mut().unwrap().remove("labels");
            }
            let mut passes = 0;
            while !delete(&mut world) {
                passes += 1;
                assert!(passes < 10, "{of_machine:?}, bare: {bare}: {}", world.plane["status"]);
            }
            assert!(world.names("Machine").is_empty(), "{of_machine:?}, bare: {bare}");
        }
    }
}

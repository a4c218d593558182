use super::*;
use capwasm_sdk::{Fault as Kind, ObjectRef, Place};

use crate::kinds::{ADDRESS_FINALIZER, GROUP, POOL_READY};
use crate::testing::Fault;

fn world_of(spec: Value) -> World {
    let cloud = cloud();
    let mut object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackFloatingIPPool",
        "metadata": {"name": "pool", "namespace": "default", "uid": "p1"},
        "spec": {"identityRef": OpenStack::identity(), "reclaimPolicy": "Delete"},
    });
    object::merge(&mut object["spec"], &spec);
    World { host: cloud.host(), cloud, object }
}

fn claim(world: &World, name: &str) {
    world.host.put(
        Place::Management,
        json!({
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim",
            "metadata": {"name": name, "namespace": "default", "uid": format!("u-{name}")},
            "spec": {"poolRef": {"apiGroup": GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool"}},
        }),
    );
}

fn of_kind(world: &World, kind: &str) -> Vec<Value> {
    world.host.objects(Place::Management).into_iter().filter(|object| object["kind"] == kind).collect()
}

fn address_of(world: &World, name: &str) -> String {
    let found = of_kind(world, "IPAddress").into_iter().find(|it| it["metadata"]["name"] == name).expect("an address");
    found["spec"]["address"].as_str().unwrap().to_owned()
}

/// What the API server does: the claim goes, and its address with it, once the finalizer is away.
fn release(world: &mut World, name: &str) {
    world.host.remove(Place::Management, &ObjectRef::new("ipam.cluster.x-k8s.io/", "IPAddressClaim", name));
    let mut address = of_kind(world, "IPAddress").into_iter().find(|it| it["metadata"]["name"] == name).unwrap();
    address["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    world.host.put(Place::Management, address);
    for _ in 0..4 {
        let _ = world.reconcile();
    }
    sweep(world);
    world.settle();
}

fn sweep(world: &World) {
    for address in of_kind(world, "IPAddress") {
        let is_held = address["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if object::is_deleting(&address) && !is_held {
            let target = ObjectRef::new("ipam.cluster.x-k8s.io/", "IPAddress", object::name(&address));
            world.host.remove(Place::Management, &target);
        }
    }
}

#[test]
fn each_claim_gets_an_address_and_then_nothing_is_asked_for() {
    let mut world = world_of(json!({}));
    claim(&world, "a");
    claim(&world, "b");
    world.settle();
    assert_eq!(world.cloud.all("floatingips").len(), 2);
    let (a, b) = (address_of(&world, "a"), address_of(&world, "b"));
    assert_ne!(a, b);
    for claim in of_kind(&world, "IPAddressClaim") {
        assert_eq!(claim["status"]["addressRef"]["name"], claim["metadata"]["name"]);
    }
    let floating = &world.cloud.all("floatingips")[0];
    assert_eq!(floating["tags"], json!(["cluster-api-provider-openstack-fip-pool-pool"]));
    assert_eq!(floating["description"], "Created by cluster-api-provider-openstack floating IP pool default/pool");
    assert_eq!(of_kind(&world, "IPAddress")[0]["metadata"]["finalizers"], json!([ADDRESS_FINALIZER]));
    world.settle();
    assert_eq!(world.object["status"]["claimedIPs"], json!([a, b]));
    assert_eq!(world.object["status"]["floatingIPNetwork"]["id"], "network-external");
    assert_eq!(world.condition(POOL_READY), ("True", "Ready"));
    world.cloud.clear_calls();
    world.settle();
    assert!(world.calls().is_empty());
}

#[test]
fn addresses_that_are_there_come_first_and_are_never_deleted() {
    let mut world = world_of(json!({"preAllocatedFloatingIPs": ["172.24.4.201", "172.24.4.202"]}));
    let known = json!({"id": "mine-1", "floating_ip_address": "172.24.4.202", "floating_network_id": "network-external", "port_id": null, "tags": [], "description": ""});
    world.cloud.add("floatingips", known);
    claim(&world, "a");
    world.settle();
    assert_eq!(address_of(&world, "a"), "172.24.4.202");
    assert_eq!(world.object["status"]["failedIPs"], json!(["172.24.4.201"]), "OpenStack does not know it");
    release(&mut world, "a");
    assert_eq!(world.object["status"]["availableIPs"], json!(["172.24.4.202"]));
    world.end();
    assert_eq!(world.cloud.all("floatingips").len(), 1);
}

#[test]
fn no_more_are_made_than_the_pool_may_have() {
    let mut world = world_of(json!({"maxIPs": 1}));
    claim(&world, "a");
    world.settle();
    claim(&world, "b");
    let problem = world.reconcile().unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Kind::Waiting, "MaxIPsReached"));
    assert_eq!(world.condition(POOL_READY), ("False", "MaxIPsReached"));
    release(&mut world, "a");
    assert!(!address_of(&world, "b").is_empty());
    assert_eq!(world.cloud.all("floatingips").len(), 1);
}

#[test]
fn what_is_given_back_is_deleted_or_kept_as_the_policy_says() {
    for (policy, kept) in [("Delete", 0), ("Retain", 1)] {
        let mut world = world_of(json!({"reclaimPolicy": policy}));
        claim(&world, "a");
        world.settle();
        let address = address_of(&world, "a");
        release(&mut world, "a");
        assert!(of_kind(&world, "IPAddress").is_empty(), "{policy}");
        assert_eq!(world.cloud.all("floatingips").len(), kept, "{policy}");
        if kept > 0 {
            assert_eq!(world.object["status"]["availableIPs"], json!([address]));
            world.object.as_object_mut().unwrap().remove("status");
            claim(&world, "b");
            world.settle();
            assert_eq!(address_of(&world, "b"), address, "it is used again, even if the status was lost");
            release(&mut world, "b");
        }
        world.end();
        assert!(left(&world.cloud).is_empty(), "{policy}");
    }
}

#[test]
fn an_address_whose_claim_is_gone_goes_too() {
    let mut world = world_of(json!({}));
    claim(&world, "a");
    world.settle();
    world.host.remove(Place::Management, &ObjectRef::new("ipam.cluster.x-k8s.io/", "IPAddressClaim", "a"));
    world.settle();
    assert!(of_kind(&world, "IPAddress").is_empty(), "it was asked to go");
}

#[test]
fn a_pool_with_addresses_in_use_stays() {
    let mut world = world_of(json!({}));
    claim(&world, "a");
    world.settle();
    let problem = world.delete().unwrap().unwrap_err();
    assert_eq!(problem.fault, Kind::Waiting);
    assert_eq!(world.cloud.all("floatingips").len(), 1);
}

#[test]
fn what_upstreams_pool_made_is_ours_and_what_another_namespaces_pool_made_is_not() {
    let mut world = world_of(json!({}));
    let floating = |id: &str, address: &str, description: &str| {
        json!({
            "id": id, "floating_ip_address": address, "floating_network_id": "network-external", "port_id": null,
            "tags": ["cluster-api-provider-openstack-fip-pool-pool"], "description": description,
        })
    };
    let theirs = "Created by cluster-api-provider-openstack floating IP pool other/pool";
    world.cloud.add("floatingips", floating("mine-theirs", "172.24.4.201", theirs));
    world.cloud.add("floatingips", floating("upstream", "172.24.4.202", "something else"));
    claim(&world, "a");
    world.settle();
    assert_eq!(address_of(&world, "a"), "172.24.4.202");
    release(&mut world, "a");
    world.end();
    assert!(left(&world.cloud).is_empty());
    assert_eq!(world.cloud.all("floatingips").len(), 1, "theirs stays");
}

#[test]
fn the_network_has_to_be_clear() {
    let mut world = world_of(json!({}));
    world
        .cloud
        .add("networks", json!({"id": "ext-2", "name": "other", "router:external": true, "tags": [], "subnets": []}));
    claim(&world, "a");
    let problem = world.reconcile().unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Kind::Invalid, "UnableToFindNetwork"));
    assert_eq!(world.condition(POOL_READY), ("False", "UnableToFindNetwork"));
    world.object["spec"]["floatingIPNetwork"] = json!({"filter": {"name": "public"}});
    world.settle();
    assert_eq!(world.cloud.all("floatingips")[0]["floating_network_id"], "network-external");
}

/// A crash at any call makes no address twice, and leaves none when the pool goes.
#[test]
fn a_crash_at_any_call_makes_no_address_twice_and_leaves_none() {
    for fault in [Fault::LostAfter, Fault::LostBefore, Fault::Answer(500, "{}")] {
        for passes in [1, 4] {
            for at in 0.. {
                let mut world = world_of(json!({}));
                claim(&world, "a");
                claim(&world, "b");
                world.cloud.fail(at, fault.clone());
                for _ in 0..passes {
                    world.reconcile();
                }
                if passes > 1 {
                    world.settle();
                    assert_eq!(world.cloud.all("floatingips").len(), 2, "{fault:?} at call {at}: {:?}", world.calls());
                }
                let had = !world.cloud.forget_faults();
                for name in ["a", "b"] {
                    world
                        .host
                        .remove(Place::Management, &ObjectRef::new("ipam.cluster.x-k8s.io/", "IPAddressClaim", name));
                }
                for mut address in of_kind(&world, "IPAddress") {
                    address["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                    world.host.put(Place::Management, address);
                }
                for _ in 0..4 {
                    world.delete();
                    sweep(&world);
                }
                world.end();
                assert!(left(&world.cloud).is_empty(), "{fault:?} at call {at}: {:?}", left(&world.cloud));
                if !had {
                    assert!(at >= 6, "{fault:?}: only {at} calls had their turn");
                    break;
                }
            }
        }
    }
}

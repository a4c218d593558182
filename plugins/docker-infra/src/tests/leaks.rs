//! Whatever goes wrong at whichever request, and however far an object had come: when its deletion says that nothing is left,
//! nothing is left.
use std::cell::RefCell;
use std::rc::Rc;

use super::fake_engine::FakeEngine;
use super::{Trouble, World, cluster, machine, pool, troubles};
use capwasm_sdk::test::{TestHost, deprovision_cluster, deprovision_machine, deprovision_pool, provision_machine};
use capwasm_sdk::{ObjectRef, Place, object};
use serde_json::json;

use crate::Docker;

/// Seconds between two passes of a deletion.
const STEP: u64 = 10;

fn all() -> Vec<Trouble> {
    let mut all = troubles();
    all.extend([Trouble::Crash, Trouble::Late, Trouble::Answer(504, "gateway timeout")]);
    all
}

/// Whether an answer says that something is as it is not: then a shared network may stay, never anything of the object's.
fn is_lie(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Answer(404 | 409, _))
}

/// Deletes the object; time passes, and what was late arrives after the first pass.
fn delete(world: &mut World, mut pass: impl FnMut(&mut World) -> Option<bool>) -> bool {
    let mut now = 1_700_000_000;
    object::merge(&mut world.object, &json!({"metadata": {"deletionTimestamp": capwasm_api::time::format(now)}}));
    for _ in 0..12 {
        world.host.set_now_ms(now * 1_000);
        if pass(world) == Some(true) {
            return true;
        }
        world.engine.borrow_mut().arrive();
        now += STEP;
    }
    false
}

fn assert_nothing_left(world: &World, trouble: &Trouble, what: &str) {
    let mut left = world.engine.borrow().resources();
    left.retain(|resource| !is_lie(trouble) || !resource.starts_with("network"));
    assert!(left.is_empty(), "{what}: {left:?}\n{:#?}", world.requests());
}

#[test]
fn a_cluster_leaves_nothing_whatever_goes_wrong_at_any_request_of_its_life() {
    for trouble in all() {
        for passes in [1, 2, 4] {
            for at in 1.. {
                let mut world = cluster::world();
                world.trouble(at, trouble.clone());
                for _ in 0..passes {
                    cluster::pass(&mut world);
                }
                let gone = delete(&mut world, |world| {
                    world.pass(|host, object| deprovision_cluster::<Docker>(host, object))?.0.ok()
                });
                let what = format!("{trouble:?} at request {at} after {passes} passes");
                assert!(gone, "{what}: it ends");
                assert_nothing_left(&world, &trouble, &what);
                if !world.is_over() {
                    assert!(at > 12, "{what}: every request had its turn");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_machine_leaves_nothing_whatever_goes_wrong_at_any_request_of_its_life() {
    for privileged in [false, true] {
        for trouble in all() {
            for passes in [1, 3, 8] {
                for at in 1.. {
                    let mut world = machine::world_of(privileged);
                    world.trouble(at, trouble.clone());
                    for _ in 0..passes {
                        machine::pass(&mut world);
                    }
                    let gone = delete(&mut world, |world| {
                        world.pass(|host, object| deprovision_machine::<Docker>(host, object))?.0.ok()
                    });
                    let what = format!("{trouble:?} at request {at} after {passes} passes");
                    assert!(gone, "{what}: it ends");
                    world.engine.borrow_mut().networks.clear();
                    assert_nothing_left(&world, &trouble, &what);
                    if !world.is_over() {
                        assert!(at > 10, "{what}: every request had its turn");
                        break;
                    }
                }
            }
        }
    }
}

/// The doubt whether something was made outlasts other trouble.
#[test]
fn what_comes_late_is_waited_for_even_if_the_engine_was_away_since() {
    for at in 1..6 {
        let mut world = machine::world_of(true);
        world.trouble(at, Trouble::Late);
        machine::pass(&mut world);
        world.trouble(1, Trouble::Unreachable);
        machine::pass(&mut world);
        let gone =
            delete(&mut world, |world| world.pass(|host, object| deprovision_machine::<Docker>(host, object))?.0.ok());
        world.engine.borrow_mut().networks.clear();
        assert!(gone, "late request {at}");
        assert_nothing_left(&world, &Trouble::Late, &format!("late request {at}"));
    }
}

/// A member of a pool in front of the engine that all members share.
fn member(object: serde_json::Value, engine: &Rc<RefCell<FakeEngine>>) -> World {
    let name = object::name(&object).to_owned();
    let machine = json!({"metadata": {"name": name}, "spec": {"clusterName": "quick"}});
    let host = TestHost::new().related("machine", machine).bootstrap_data("value", "runcmd: [kubeadm join]");
    World::behind(host, object, Rc::clone(engine))
}

#[test]
fn a_pool_leaves_nothing_whatever_goes_wrong_at_any_request_of_its_members() {
    for trouble in all() {
        for at in 1.. {
            let engine = Rc::new(RefCell::new(FakeEngine::default()));
            engine.borrow_mut().networks.insert("kind".to_owned(), json!({}));
            engine.borrow_mut().trouble = Some((at, trouble.clone()));
            let mut pool = pool::Pool::new(2);
            pool.pass().unwrap();
            let mut worlds: Vec<World> = pool.members().into_iter().map(|object| member(object, &engine)).collect();
            assert_eq!(worlds.len(), 2);
            for _ in 0..3 {
                for world in &mut worlds {
                    world.pass(|host, object| provision_machine::<Docker>(host, object));
                    engine.borrow_mut().tick();
                }
            }
            let (left, outcome) = deprovision_pool::<Docker>(&pool.host, &pool.object);
            assert!(!left.unwrap(), "members are left");
            assert_eq!(outcome.operations.len(), 2, "core has made no Machine: the members go themselves");
            for world in &mut worlds {
                let gone = delete(world, |world| {
                    world.pass(|host, object| deprovision_machine::<Docker>(host, object))?.0.ok()
                });
                assert!(gone, "{trouble:?} at request {at}");
                let target =
                    ObjectRef::new("infrastructure.cluster.x-k8s.io/", "DockerMachine", object::name(&world.object));
                pool.host.remove(Place::Management, &target);
            }
            assert!(deprovision_pool::<Docker>(&pool.host, &pool.object).0.unwrap());
            engine.borrow_mut().networks.clear();
            assert_nothing_left(&worlds[0], &trouble, &format!("{trouble:?} at request {at}"));
            if !worlds[0].is_over() {
                assert!(at > 25, "every request had its turn");
                break;
            }
        }
    }
}

#[test]
fn two_clusters_share_a_network_and_the_last_one_takes_it_along() {
    let mut first = cluster::world();
    cluster::settle(&mut first);
    let engine = Rc::clone(&first.engine);
    let mut second = World::behind(cluster::host("other"), cluster::docker_cluster("other", "u2"), engine);
    cluster::settle(&mut second);
    let deprovision =
        |world: &mut World| world.pass(|host, object| deprovision_cluster::<Docker>(host, object))?.0.ok();
    assert!(delete(&mut first, deprovision));
    assert_eq!(first.engine.borrow().resources(), ["container other-lb", "network kind"]);
    assert!(delete(&mut second, deprovision));
    assert!(first.engine.borrow().resources().is_empty());
}

#[test]
fn a_network_that_somebody_else_made_stays() {
    let mut world = cluster::world();
    world.engine.borrow_mut().networks.insert("kind".to_owned(), json!({"Name": "kind"}));
    cluster::settle(&mut world);
    assert!(delete(&mut world, |world| world.pass(|host, object| deprovision_cluster::<Docker>(host, object))?.0.ok()));
    assert_eq!(world.engine.borrow().resources(), ["network kind"]);
}

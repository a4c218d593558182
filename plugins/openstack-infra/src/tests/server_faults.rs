//! Whatever goes wrong at whichever call, a server ends as one server with its ports and volumes, and leaves nothing.
use super::server::{everything, world_of};
use super::*;
use crate::testing::Fault;

fn bad_answers() -> Vec<Fault> {
    vec![
        Fault::Answer(409, r#"{"NeutronError": {"type": "Busy", "message": "busy", "detail": ""}}"#),
        Fault::Answer(429, "{}"),
        Fault::Answer(500, "<html>"),
        Fault::Answer(503, "{}"),
        Fault::Answer(200, "]["),
    ]
}

fn specs() -> [(&'static str, Value); 2] {
    [("plain", json!({})), ("everything", everything())]
}

fn assert_made_once(world: &World, what: &str) {
    let count = |collection: &str| world.cloud.all(collection).len();
    let ports = world.object["spec"]["ports"].as_array().unwrap().len();
    assert_eq!(count("servers"), 1, "{what}: {:#?}", world.calls());
    assert_eq!(count("ports"), 1 + ports, "{what}: {:#?}", world.calls());
    let full = ports > 1;
    assert_eq!(count("volumes"), if full { 2 } else { 0 }, "{what}: {:#?}", world.calls());
    assert_eq!(count("trunks"), usize::from(full), "{what}: {:#?}", world.calls());
    if full {
        for port in world.cloud.all("ports").iter().filter(|port| port["name"] == "quick-1-0") {
            assert_eq!(port["tags"], json!(["all", "own"]), "{what}");
        }
        assert_eq!(world.cloud.named("trunks", "quick-1-0")["tags"], json!(["all", "own"]), "{what}");
    }
    let known = world.object["status"]["resources"]["ports"].as_array().unwrap();
    assert_eq!(known.len(), ports, "{what}");
}

/// Runs `act` with `fault` at each call in turn, until a life has no such call any more; `least` calls it has.
fn at_every_call(least: usize, fault: &Fault, mut act: impl FnMut(usize, &Fault) -> bool) {
    for at in 0.. {
        if act(at, fault) {
            assert!(at >= least, "{fault:?}: only {at} calls had their turn");
            return;
        }
    }
}

/// C10, for servers: a crash after each external call and a rerun yield one set of resources.
#[test]
fn a_crash_at_any_call_leads_to_one_server() {
    for (what, spec) in specs() {
        for fault in [Fault::LostAfter, Fault::LostBefore] {
            at_every_call(7, &fault, |at, fault| {
                let mut world = world_of(spec.clone());
                world.cloud.fail(at, fault.clone());
                world.settle();
                assert_made_once(&world, &format!("{what}: {fault:?} at call {at}"));
                world.cloud.forget_faults()
            });
        }
    }
}

/// The same when the provider sees that nobody answered, and writes down what it has.
#[test]
fn a_lost_answer_at_any_call_leads_to_one_server() {
    for (what, spec) in specs() {
        at_every_call(7, &Fault::LostAfter, |at, fault| {
            let mut world = world_of(spec.clone());
            world.cloud.fail(at, fault.clone());
            for _ in 0..MOST_PASSES {
                let (result, outcome) = reconcile_object::<Provider>(&world.host, &world.object);
                write_back(&outcome, &mut world.object);
                world.host.carry_out(&outcome);
                if result.is_ok() {
                    break;
                }
            }
            assert_made_once(&world, &format!("{what}: {fault:?} at call {at}"));
            world.cloud.forget_faults()
        });
    }
}

#[test]
fn no_answer_does_more_than_delay() {
    for (what, spec) in specs() {
        for fault in bad_answers() {
            at_every_call(7, &fault, |at, fault| {
                let mut world = world_of(spec.clone());
                world.cloud.fail(at, fault.clone());
                while world.cloud.is_faulty() && world.reconcile() != Some(Ok(())) {}
                // What makes no sense is kept for a while as well.
                world.host.forget_recent();
                world.settle();
                assert_made_once(&world, &format!("{what}: {fault:?} at call {at}"));
                world.cloud.forget_faults()
            });
        }
    }
}

#[test]
fn two_crashes_are_as_good_as_one() {
    for first in 0..24 {
        for second in [0, 1, 2, 3, 5, 8] {
            let mut world = world_of(everything());
            world.cloud.fail(first, Fault::LostAfter);
            while world.reconcile().is_some() {
                if world.object["status"]["ready"] == true {
                    break;
                }
            }
            world.cloud.forget_faults();
            world.cloud.fail(second, Fault::LostAfter);
            world.settle();
            assert_made_once(&world, &format!("crashes at calls {first} and {second}"));
        }
    }
}

#[test]
fn a_server_leaves_nothing_whatever_goes_wrong_at_any_call_of_its_life() {
    let faults = [Fault::LostAfter, Fault::LostBefore, Fault::Answer(409, "{}"), Fault::Answer(500, "<html>")];
    for (what, spec) in specs() {
        for fault in &faults {
            for passes in [0, 2, 3, 9] {
                at_every_call(usize::from(passes > 1) * 4, fault, |at, fault| {
                    let mut world = world_of(spec.clone());
                    world.cloud.fail(at, fault.clone());
                    for _ in 0..passes {
                        world.reconcile();
                    }
                    world.end();
                    let what = format!("{what}: {fault:?} at call {at} after {passes} passes");
                    assert!(left(&world.cloud).is_empty(), "{what}: {:?}\n{:#?}", left(&world.cloud), world.calls());
                    world.cloud.forget_faults()
                });
            }
        }
    }
}

#[test]
fn a_server_that_is_deleted_while_it_is_built_leaves_nothing() {
    for patience in [1, 3] {
        for passes in 0..8 {
            let mut world = world_of(everything());
            world.cloud.set_patience(patience);
            for _ in 0..passes {
                world.reconcile();
            }
            world.end();
            assert!(left(&world.cloud).is_empty(), "after {passes} passes: {:?}", left(&world.cloud));
        }
    }
}

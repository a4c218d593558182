//! Whatever goes wrong at whichever call: the cluster ends the same, nothing is made twice, and when its deletion says that
//! nothing is left, nothing is left.
use super::*;
use crate::testing::Fault;

fn troubles() -> Vec<Fault> {
    vec![
        Fault::LostBefore,
        Fault::LostAfter,
        Fault::Answer(409, r#"{"NeutronError": {"type": "Busy", "message": "busy", "detail": ""}}"#),
        Fault::Answer(503, "<html>"),
        Fault::Answer(429, "{}"),
        Fault::Answer(403, r#"{"NeutronError": {"type": "Forbidden", "message": "no", "detail": ""}}"#),
    ]
}

/// Where the kind of cluster does not matter, a crash and a conflict have to do.
fn troubles_of(what: &str) -> Vec<Fault> {
    let all = troubles();
    let usual = |trouble: &Fault| matches!(trouble, Fault::LostAfter | Fault::Answer(409, _));
    if what == EVERYTHING { all } else { all.into_iter().filter(usual).collect() }
}

const EVERYTHING: &str = "everything";

fn specs() -> Vec<(&'static str, Value)> {
    let mut external = full();
    object::merge(
        &mut external,
        &json!({"externalRouterIPs": [{"fixedIP": "172.24.4.200", "subnet": {"id": "subnet-external"}}]}),
    );
    vec![
        (EVERYTHING, full()),
        ("no load balancer", without(without(full(), "apiServerLoadBalancer"), "bastion")),
        ("addresses of the router", without(external, "bastion")),
    ]
}

fn world(spec: &Value) -> World {
    let mut world = World::new(spec.clone());
    world.add_machine("cp-0", "10.6.0.10");
    world
}

/// What is there when nothing went wrong.
fn expected(spec: &Value) -> (Vec<String>, usize) {
    let mut world = world(spec);
    world.settle();
    (world.resources(), world.cloud.calls().len())
}

#[test]
fn a_crash_after_any_call_leads_to_the_same_end() {
    for (what, spec) in specs() {
        let (expected, calls) = expected(&spec);
        for at in 0..calls {
            let mut world = world(&spec);
            world.cloud.fail(at, Fault::LostAfter);
            let mut is_settled = false;
            for _ in 0..MOST_PASSES {
                let before = world.cloud.calls().len();
                // The call is made and answered to nobody: the host is gone, and what it held with it.
                let crashed = |world: &World| world.cloud.calls().iter().skip(before).any(|call| call.status.is_none());
                is_settled = world.step(crashed);
                if is_settled {
                    break;
                }
                if crashed(&world) {
                    world.host.forget_recent();
                }
                world.later(1);
            }
            assert!(is_settled, "{what}: crash after call {at}");
            assert!(!world.cloud.forget_faults(), "{what}: call {at} had its turn");
            assert_eq!(world.resources(), expected, "{what}: crash after call {at}");
        }
    }
}

#[test]
fn whatever_goes_wrong_once_the_end_is_the_same() {
    for (what, spec) in specs() {
        let (expected, calls) = expected(&spec);
        for trouble in troubles_of(what) {
            for at in 0..calls {
                let mut world = world(&spec);
                world.cloud.fail(at, trouble.clone());
                world.settle();
                assert!(!world.cloud.forget_faults(), "{what}: {trouble:?} at call {at} had its turn");
                assert_eq!(world.resources(), expected, "{what}: {trouble:?} at call {at}");
            }
        }
    }
}

#[test]
fn a_deletion_leaves_nothing_whatever_goes_wrong_and_however_far_the_cluster_had_come() {
    for (what, spec) in specs() {
        for trouble in troubles_of(what) {
            for passes in [1, 12] {
                for at in 0.. {
                    let mut world = World::new(spec.clone());
                    for _ in 0..passes {
                        let _ = world.pass(|_| false);
                        world.play_servers();
                    }
                    let crashes = trouble == Fault::LostAfter;
                    world.cloud.clear_calls();
                    world.cloud.fail(at, trouble.clone());
                    let gone = world.delete_with(|world| {
                        crashes && world.cloud.calls().last().is_some_and(|call| call.status.is_none())
                    });
                    let over = world.cloud.forget_faults();
                    let what = format!("{what}: {trouble:?} at call {at} of the deletion after {passes} passes");
                    assert!(gone, "{what}: it ends");
                    assert_eq!(world.resources(), [""; 0], "{what}");
                    if over {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn a_quota_that_is_used_up_is_told_and_waited_for() {
    for (collection, condition, reason) in [
        ("networks", "NetworkReady", "OpenStackError"),
        ("routers", "RouterReady", "OpenStackError"),
        ("security_groups", "SecurityGroupsReady", "SecurityGroupReconcileFailed"),
        ("loadbalancers", "APIEndpointReady", "APIEndpointConfigFailed"),
        ("floatingips", "APIEndpointReady", "APIEndpointConfigFailed"),
    ] {
        let mut world = World::new(full());
        world.cloud.set_quota(collection, 0);
        let mut problem = None;
        for _ in 0..6 {
            problem = world.pass(|_| false).unwrap().result.err();
        }
        let problem = problem.unwrap();
        assert_eq!(problem.reason, "QuotaExceeded", "{collection}: {problem}");
        assert_eq!(problem.fault, capwasm_sdk::Fault::Transient, "{collection}");
        assert_eq!(world.condition(condition), ("False".to_owned(), reason.to_owned()), "{collection}");
        world.cloud.set_quota(collection, 10);
        world.settle();
    }
}

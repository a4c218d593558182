//! How many calls a cluster costs.
use super::*;

/// How many calls read, and how many write.
fn counted(cloud: &OpenStack) -> (usize, usize) {
    let calls = cloud.calls();
    let reads = calls.iter().filter(|call| call.method == "GET").count();
    (reads, calls.len() - reads)
}

#[test]
fn a_cluster_is_made_with_as_many_calls_as_it_has_resources_and_few_looks() {
    let mut world = World::new(without(full(), "bastion"));
    world.settle();
    // Network, subnet, router, interface, two groups and their rules, five tags, the balancer and three parts of it, an address
    // and its tags. Two default rules of each group stay as they came.
    let (reads, writes) = counted(&world.cloud);
    assert_eq!(writes, 19, "{:#?}", world.cloud.writes());
    let calls: Vec<String> = world.cloud.calls().iter().map(|call| format!("{} {}", call.method, call.path)).collect();
    // Seventeen of these see the balancer at work, and its port again after each step.
    assert_eq!(reads, 31, "{calls:#?}");
}

#[test]
fn an_unchanged_cluster_costs_one_read_in_ten_minutes_whatever_wakes_it() {
    let mut world = World::new(full());
    world.settle();
    world.add_machine("cp-0", "10.6.0.10");
    world.settle();
    world.later(600);
    world.cloud.clear_calls();
    for round in 1..=12 {
        for _ in 0..5 {
            let pass = world.pass(|_| false).unwrap();
            assert!(pass.result.is_ok() && pass.outcome.wake_after.is_none() && !pass.outcome.wake_when_applied);
            assert!(pass.outcome.operations.is_empty() && pass.outcome.events.is_empty());
            world.later(100);
        }
        // An answer to an old token is not one to a new one.
        let most = round + 1 + world.cloud.tokens();
        assert!(world.cloud.calls().len() <= most, "{round}: {:#?}", world.cloud.calls());
        world.later(100);
    }
    assert!(world.cloud.writes().is_empty());
    let looked: std::collections::BTreeSet<String> = world.cloud.calls().into_iter().map(|call| call.path).collect();
    assert_eq!(looked.len(), 6, "every resource has its turn: {looked:?}");
}

#[test]
fn a_pass_that_waits_for_the_load_balancer_asks_for_nothing_else() {
    let mut world = World::new(full());
    world.cloud.set_patience(50);
    let _ = world.pass(|_| false).unwrap();
    for _ in 0..10 {
        world.cloud.clear_calls();
        let pass = world.pass(|_| false).unwrap();
        assert_eq!(pass.result.unwrap_err().reason, "LoadBalancerNotReady");
        assert!(pass.outcome.wake_after.is_some(), "nobody else wakes it");
        assert_eq!(world.cloud.calls().len(), 1);
    }
}

#[test]
fn a_lost_status_costs_one_look_at_everything_and_changes_nothing() {
    let mut world = World::new(full());
    world.settle();
    let before = world.resources();
    let status = world.object["status"].clone();
    world.object["status"] = json!({"ready": true});
    world.cloud.clear_calls();
    world.settle();
    assert!(world.cloud.writes().is_empty(), "{:?}", world.cloud.writes());
    assert_eq!(world.resources(), before);
    for name in
        ["network", "router", "externalNetwork", "apiServerLoadBalancer", "bastion", "controlPlaneSecurityGroup"]
    {
        assert_eq!(world.object["status"][name], status[name], "{name}");
    }
}

#[test]
fn what_somebody_changed_is_seen_within_an_hour_and_repaired() {
    let mut world = World::new(full());
    world.settle();
    let before = world.resources();
    let rule = world.cloud.all("security_group_rules")[3]["id"].as_str().unwrap().to_owned();
    world.cloud.remove("security_group_rules", &rule);
    for group in world.cloud.all("security_groups") {
        let id = group["id"].as_str().unwrap();
        let rules: Vec<Value> = world
            .cloud
            .all("security_group_rules")
            .into_iter()
            .filter(|rule| rule["security_group_id"] == id)
            .collect();
        world.cloud.change("security_groups", id, &json!({"security_group_rules": rules}));
    }
    for _ in 0..6 {
        world.later(600);
        world.settle();
    }
    assert_eq!(world.resources(), before);
}

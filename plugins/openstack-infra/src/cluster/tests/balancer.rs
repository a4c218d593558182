//! The load balancer's options, and who is behind it.
use super::*;
use crate::kinds::API_SERVER_INGRESS_READY;

fn with(options: Value) -> World {
    let mut spec = without(full(), "bastion");
    object::merge(&mut spec, &json!({"apiServerLoadBalancer": options}));
    World::new(spec)
}

fn members(world: &World) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = world
        .cloud
        .all("members")
        .iter()
        .map(|member| (member["name"].as_str().unwrap().to_owned(), member["address"].as_str().unwrap().to_owned()))
        .collect();
    all.sort();
    all
}

fn ingress(world: &World, machine: &str) -> Option<(String, String)> {
    let machine = world.machine(machine);
    let condition = object::condition(&machine, API_SERVER_INGRESS_READY)?;
    Some((object::text(condition, "/status").to_owned(), object::text(condition, "/reason").to_owned()))
}

#[test]
fn every_port_has_a_listener_with_pool_and_monitor() {
    let mut world = with(json!({"additionalPorts": [22, 8443], "monitor": {"delay": 30, "timeout": 3}}));
    world.settle();
    for port in [6443, 22, 8443] {
        let name = format!("k8s-clusterapi-cluster-default-prod-kubeapi-{port}");
        assert_eq!(world.cloud.named("listeners", &name)["protocol_port"], port);
        world.cloud.named("pools", &name);
        let monitor = world.cloud.named("healthmonitors", &name);
        assert_eq!(
            (&monitor["delay"], &monitor["timeout"], &monitor["max_retries"]),
            (&json!(30), &json!(3), &json!(5))
        );
    }
}

#[test]
fn provider_flavor_zone_and_address_are_asked_for_where_they_are_known() {
    let mut world = with(json!({"provider": "ovn", "flavor": "big", "availabilityZone": "lb-az"}));
    object::merge(&mut world.object, &json!({"spec": {"apiServerFixedIP": "10.6.0.250"}}));
    world.cloud.add("lb_zones", json!({"name": "lb-az"}));
    let pass = world.pass(|_| false).unwrap();
    let body = world.cloud.bodies("POST", "/lbaas/loadbalancers")[0]["loadbalancer"].clone();
    assert_eq!(
        (&body["provider"], &body["availability_zone"], &body["vip_address"]),
        (&json!("ovn"), &json!("lb-az"), &json!("10.6.0.250"))
    );
    assert_eq!(body.get("flavor_id"), None);
    assert!(pass.outcome.events.iter().any(|event| event.warning && event.reason == "OctaviaFlavorNotFound"));
    world.settle();
    assert_eq!(world.cloud.all("pools")[0]["lb_algorithm"], "SOURCE_IP_PORT");
    let mut other = with(json!({"provider": "absent"}));
    let pass = other.pass(|_| false).unwrap();
    assert!(pass.outcome.events.iter().any(|event| event.warning && event.reason == "OctaviaProviderNotFound"));
    assert_eq!(other.cloud.bodies("POST", "/lbaas/loadbalancers")[0]["loadbalancer"].get("provider"), None);
}

#[test]
fn who_may_come_in_and_how_members_are_watched_can_be_changed_later() {
    let mut world = with(json!({"allowedCIDRs": ["192.0.2.0/24"]}));
    world.settle();
    let cidrs = |world: &World| world.cloud.all("listeners")[0]["allowed_cidrs"].clone();
    let router = world.object["status"]["router"]["ips"][0].as_str().unwrap().to_owned() + "/32";
    assert_eq!(cidrs(&world), json!(["10.6.0.0/24", router, "192.0.2.0/24"]));
    assert_eq!(world.object["status"]["apiServerLoadBalancer"]["allowedCIDRs"], cidrs(&world));
    let change =
        json!({"spec": {"apiServerLoadBalancer": {"allowedCIDRs": ["198.51.100.7"], "monitor": {"delay": 20}}}});
    object::merge(&mut world.object, &change);
    world.cloud.clear_calls();
    world.settle();
    assert_eq!(cidrs(&world), json!(["10.6.0.0/24", router, "198.51.100.7/32"]));
    assert_eq!(world.cloud.all("healthmonitors")[0]["delay"], 20);
    assert_eq!(world.cloud.writes().len(), 2, "{:?}", world.cloud.writes());
    object::merge(&mut world.object, &json!({"spec": {"apiServerLoadBalancer": {"allowedCIDRs": null}}}));
    world.settle();
    assert_eq!(cidrs(&world), json!([]), "everybody again");
}

#[test]
fn a_provider_that_cannot_watch_members_goes_without_a_monitor() {
    let mut world = with(json!({}));
    world.cloud.set_patience(0);
    let monitor = |call: &crate::testing::Call| call.method == "POST" && call.path == "/lbaas/healthmonitors";
    // How many calls there are before the monitor is made.
    let mut probe = with(json!({}));
    probe.cloud.set_patience(0);
    probe.settle();
    let at = probe.cloud.calls().iter().position(monitor).unwrap();
    world.cloud.fail(at, crate::testing::Fault::Answer(501, r#"{"faultstring": "Provider does not support it"}"#));
    let mut events = Vec::new();
    for _ in 0..MOST_PASSES {
        let pass = world.pass(|_| false).unwrap();
        events.extend(pass.outcome.events);
        if pass.result.is_ok() {
            break;
        }
    }
    assert!(events.iter().any(|event| event.reason == "SkippedCreateMonitor"));
    assert!(world.pass(|_| false).unwrap().result.is_ok());
    world.settle();
    assert!(world.cloud.all("healthmonitors").is_empty(), "it is not tried again while nothing changes");
}

#[test]
fn a_load_balancer_in_error_is_told_and_not_made_again() {
    let mut world = with(json!({}));
    world.cloud.set_breaks(true);
    let mut problem = None;
    for _ in 0..5 {
        problem = world.pass(|_| false).unwrap().result.err();
    }
    assert_eq!(problem.unwrap().reason, "LoadBalancerError");
    assert_eq!(world.condition("APIEndpointReady"), ("False".to_owned(), "APIEndpointConfigFailed".to_owned()));
    assert_eq!(world.cloud.all("loadbalancers").len(), 1);
    assert!(world.delete());
    assert_eq!(world.resources(), [""; 0]);
}

#[test]
fn machines_become_members_are_told_and_leave_before_they_go() {
    let mut world = with(json!({"additionalPorts": [22]}));
    world.settle();
    assert!(members(&world).is_empty());
    world.add_machine("cp-0", "10.6.0.10");
    world.add_machine("cp-1", "10.6.0.11");
    world.cloud.clear_calls();
    world.settle();
    let lb = "k8s-clusterapi-cluster-default-prod-kubeapi";
    let expected = [
        (format!("{lb}-22-cp-0"), "10.6.0.10".to_owned()),
        (format!("{lb}-22-cp-1"), "10.6.0.11".to_owned()),
        (format!("{lb}-6443-cp-0"), "10.6.0.10".to_owned()),
        (format!("{lb}-6443-cp-1"), "10.6.0.11".to_owned()),
    ];
    assert_eq!(members(&world), expected);
    assert_eq!(world.cloud.writes().len(), 2, "one batch for each port: {:?}", world.cloud.writes());
    let ready = Some(("True".to_owned(), "Ready".to_owned()));
    assert_eq!((ingress(&world, "cp-0"), ingress(&world, "cp-1")), (ready.clone(), ready.clone()));
    let mut going = world.machine("cp-1");
    object::merge(&mut going, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    world.host.put(Place::Management, going);
    world.play_machines();
    world.settle();
    assert_eq!(members(&world).len(), 2);
    assert_eq!(ingress(&world, "cp-1"), Some(("False".to_owned(), "Deleting".to_owned())));
    assert_eq!(ingress(&world, "cp-0"), ready);
    let mut last = world.machine("cp-0");
    object::merge(&mut last, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    world.host.put(Place::Management, last);
    world.play_machines();
    world.settle();
    assert!(members(&world).is_empty(), "also the last one leaves");
}

#[test]
fn a_machine_whose_address_changes_is_moved() {
    let mut world = with(json!({}));
    world.add_machine("cp-0", "10.6.0.10");
    world.settle();
    world.add_machine("cp-0", "10.6.0.20");
    world.settle();
    assert_eq!(members(&world)[0].1, "10.6.0.20");
    assert_eq!(members(&world).len(), 1);
}

#[test]
fn machines_are_told_when_they_cannot_be_members() {
    let mut world = with(json!({}));
    world.settle();
    world.add_machine("cp-0", "10.6.0.10");
    let pool = world.cloud.all("pools")[0]["id"].as_str().unwrap().to_owned();
    world.cloud.remove("pools", &pool);
    let pass = world.pass(|_| false).unwrap();
    assert_eq!(pass.result.unwrap_err().reason, "LoadBalancerPoolGone");
    assert_eq!(ingress(&world, "cp-0"), Some(("False".to_owned(), "LoadBalancerMemberError".to_owned())));
}

#[test]
fn ovn_can_neither_restrict_who_comes_in_nor_balance_by_turns() {
    let mut world = with(json!({"provider": "ovn", "allowedCIDRs": ["192.0.2.0/24"]}));
    world.settle();
    assert_eq!(world.cloud.all("pools")[0]["lb_algorithm"], "SOURCE_IP_PORT");
    assert_eq!(world.cloud.bodies("POST", "/lbaas/listeners")[0]["listener"].get("allowed_cidrs"), None);
    assert_eq!(world.object["status"]["apiServerLoadBalancer"].get("allowedCIDRs"), None);
}

#[test]
fn a_load_balancer_that_somebody_deleted_is_made_again_with_its_addresses_and_members() {
    let mut world = with(json!({}));
    world.add_machine("cp-0", "10.6.0.10");
    world.settle();
    let endpoint = world.object["spec"]["controlPlaneEndpoint"].clone();
    let before = (world.resources(), world.object["status"]["apiServerLoadBalancer"]["internalIP"].clone());
    let gone = world.cloud.all("loadbalancers")[0].clone();
    for collection in ["loadbalancers", "listeners", "pools", "healthmonitors", "members"] {
        for item in world.cloud.all(collection) {
            world.cloud.remove(collection, item["id"].as_str().unwrap());
        }
    }
    world.cloud.remove("ports", gone["vip_port_id"].as_str().unwrap());
    let floating = world.cloud.all("floatingips")[0]["id"].as_str().unwrap().to_owned();
    world.cloud.change("floatingips", &floating, &json!({"port_id": null}));
    // Machines that come are reason enough to look.
    world.add_machine("cp-1", "10.6.0.11");
    world.settle();
    let after = (world.resources(), world.object["status"]["apiServerLoadBalancer"]["internalIP"].clone());
    assert_eq!(after, before);
    assert_eq!(world.object["spec"]["controlPlaneEndpoint"], endpoint);
    assert_eq!(members(&world).len(), 2);
}

//! Networks, subnets and routers that somebody else made.
use super::*;

fn world(spec: Value) -> World {
    let cloud = OpenStack::new();
    let network = cloud.add("networks", json!({"id": "net", "name": "theirs", "router:external": false, "subnets": ["sub4", "sub6"], "tags": ["a", "b"]}));
    cloud.add("subnets", json!({"id": "sub4", "name": "four", "network_id": network, "cidr": "10.1.0.0/24", "gateway_ip": "10.1.0.1", "tags": []}));
    cloud.add("subnets", json!({"id": "sub6", "name": "six", "network_id": network, "cidr": "fd00::/64", "gateway_ip": "fd00::1", "tags": []}));
    let gateway = json!({"network_id": "network-external", "external_fixed_ips": [{"subnet_id": "subnet-external", "ip_address": "172.24.4.3"}]});
    cloud.add("routers", json!({"id": "router", "name": "theirs", "tags": [], "external_gateway_info": gateway}));
    let interface = json!({
        "id": "interface", "network_id": network, "device_id": "router", "device_owner": "network:router_interface",
        "fixed_ips": [{"subnet_id": "sub4", "ip_address": "10.1.0.1"}],
    });
    cloud.add("ports", interface);
    let mut whole = json!({"identityRef": OpenStack::identity(), "apiServerLoadBalancer": {"enabled": true}, "managedSecurityGroups": {}});
    object::merge(&mut whole, &spec);
    World::of("prod", whole, cloud)
}

#[test]
fn they_are_found_by_id_or_filter_and_stay_when_the_cluster_goes() {
    let table = [
        (json!({"network": {"id": "net"}}), vec!["sub4", "sub6"]),
        (json!({"network": {"filter": {"name": "theirs", "tags": ["b"]}}}), vec!["sub4", "sub6"]),
        (json!({"network": {"id": "net"}, "subnets": [{"id": "sub4"}]}), vec!["sub4"]),
        (
            // No floating IP leads to an IPv6 address.
            json!({
                "subnets": [{"filter": {"cidr": "fd00::/64"}}, {"filter": {"name": "four"}}], "disableAPIServerFloatingIP": true,
            }),
            vec!["sub6", "sub4"],
        ),
    ];
    for (spec, subnets) in table {
        let mut world = world(spec.clone());
        let before = world.resources();
        object::merge(&mut world.object, &json!({"spec": {"router": {"filter": {"name": "theirs"}}}}));
        world.settle();
        let status = world.object["status"].clone();
        assert_eq!((&status["network"]["id"], &status["network"]["tags"]), (&json!("net"), &json!(["a", "b"])));
        let ids: Vec<&str> = status["network"]["subnets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|subnet| subnet["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, subnets, "{spec}");
        assert_eq!((&status["router"]["id"], &status["router"]["ips"]), (&json!("router"), &json!(["172.24.4.3"])));
        let writes = world.cloud.writes();
        let touched = |call: &&String| ["/networks", "/subnets", "/routers"].iter().any(|path| call.contains(path));
        assert_eq!(writes.iter().find(touched), None, "{spec}");
        world.cloud.clear_calls();
        assert!(world.delete());
        assert_eq!(world.resources(), before, "{spec}");
    }
}

#[test]
fn what_is_not_there_or_not_alone_is_told() {
    let table = [
        (json!({"network": {"id": "absent"}}), "FilterMatchesNothing"),
        (json!({"network": {"filter": {"name": "absent"}}}), "FilterMatchesNothing"),
        (json!({"network": {"id": "net"}, "subnets": [{"filter": {"tagsAny": ["x"]}}]}), "FilterMatchesNothing"),
        (json!({"network": {"id": "network-external"}, "subnets": [{"id": "sub4"}]}), "InvalidSubnets"),
        (json!({"network": {"id": "net"}, "router": {"id": "absent"}}), "FilterMatchesNothing"),
        (json!({}), "NoNetwork"),
        (json!({"network": {"id": "net", "filter": {"name": "theirs"}}}), "InvalidReference"),
    ];
    for (spec, reason) in table {
        let mut world = world(spec.clone());
        let problem = world.pass(|_| false).unwrap().result.unwrap_err();
        assert_eq!(problem.reason, reason, "{spec}: {problem}");
        assert!(world.cloud.writes().is_empty());
    }
    let mut world = world(json!({"network": {"filter": {"name": "theirs"}}}));
    world.cloud.add("networks", json!({"name": "theirs", "router:external": false, "subnets": [], "tags": []}));
    assert_eq!(world.pass(|_| false).unwrap().result.unwrap_err().reason, "FilterMatchesSeveral");
}

#[test]
fn a_router_of_somebody_elses_serves_a_managed_network_and_stays() {
    let mut world = world(json!({"managedSubnets": [{"cidr": "10.6.0.0/24"}], "router": {"id": "router"}}));
    let before = world.resources();
    world.settle();
    let interfaces: Vec<Value> =
        world.cloud.all("ports").into_iter().filter(|port| port["device_id"] == "router").collect();
    assert_eq!(interfaces.len(), 2, "theirs, and one in the managed network");
    assert_eq!(world.cloud.all("routers").len(), 1);
    assert!(world.delete());
    assert_eq!(world.resources(), before);
}

#[test]
fn a_load_balancer_may_be_in_a_network_of_its_own() {
    let spec = json!({
        "managedSubnets": [{"cidr": "10.6.0.0/24"}],
        "apiServerLoadBalancer": {"network": {"id": "net"}, "subnets": [{"filter": {"name": "four"}}]},
    });
    let mut world = world(spec);
    world.settle();
    let balancer = &world.cloud.all("loadbalancers")[0];
    assert_eq!((&balancer["vip_network_id"], &balancer["vip_subnet_id"]), (&json!("net"), &json!("sub4")));
    let network = &world.object["status"]["apiServerLoadBalancer"]["loadBalancerNetwork"];
    assert_eq!((&network["id"], &network["subnets"][0]["id"]), (&json!("net"), &json!("sub4")));
    world.assert_declared();
    // Octavia has to be told how it gets from there to the machines.
    world.add_machine("cp-0", "10.6.0.10");
    world.settle();
    let subnet = world.object["status"]["network"]["subnets"][0]["id"].clone();
    assert_eq!(world.cloud.all("members")[0]["subnet_id"], subnet);
}

#[test]
fn the_load_balancer_is_in_the_primary_subnet() {
    let table = [
        json!({"network": {"id": "net"}, "primarySubnet": {"id": "sub6"}}),
        json!({"network": {"id": "net"}, "primarySubnet": {"filter": {"name": "six"}}}),
        json!({"subnets": [{"id": "sub4"}], "primarySubnet": {"filter": {"cidr": "fd00::/64"}}}),
    ];
    for mut spec in table {
        spec["disableAPIServerFloatingIP"] = json!(true);
        let mut world = world(spec.clone());
        world.settle();
        assert_eq!(world.cloud.all("loadbalancers")[0]["vip_subnet_id"], "sub6", "{spec}");
        assert_eq!(world.object["status"]["network"]["subnets"][0]["id"], "sub6", "{spec}");
        assert_eq!(world.object["status"]["network"]["subnets"][1]["id"], "sub4", "{spec}");
    }
    let mut world = world(json!({"network": {"id": "net"}, "primarySubnet": {"id": "subnet-external"}}));
    assert_eq!(world.pass(|_| false).unwrap().result.unwrap_err().reason, "InvalidSubnets");
}

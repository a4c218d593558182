//! The whole life of a cluster, and what its status says.
use super::*;

#[test]
fn a_cluster_gets_everything_and_leaves_nothing() {
    let mut world = World::new(full());
    let first = world.pass(|_| false).unwrap();
    assert_eq!(first.result.unwrap_err().reason, "LoadBalancerNotReady");
    assert_eq!(world.condition("NetworkReady"), ("True".to_owned(), "Ready".to_owned()));
    world.object["status"]["ready"] = false.into();
    world.assert_declared();
    assert_eq!(world.condition("APIEndpointReady"), ("False".to_owned(), "LoadBalancerNotReady".to_owned()));
    world.settle();
    let name = "k8s-clusterapi-cluster-default-prod";
    let network = world.cloud.named("networks", name);
    assert_eq!((&network["tags"], &network["admin_state_up"]), (&json!(["mine"]), &json!(true)));
    let subnet = world.cloud.named("subnets", name);
    assert_eq!((&subnet["cidr"], &subnet["dns_nameservers"]), (&json!("10.6.0.0/24"), &json!(["1.1.1.1"])));
    let router = world.cloud.named("routers", name);
    assert_eq!(router["external_gateway_info"]["network_id"], "network-external");
    let balancer = world.cloud.named("loadbalancers", &format!("{name}-kubeapi"));
    assert_eq!((&balancer["vip_subnet_id"], &balancer["tags"]), (&subnet["id"], &json!(["mine"])));
    let pool = world.cloud.named("pools", &format!("{name}-kubeapi-6443"));
    assert_eq!((&pool["lb_algorithm"], &pool["protocol"]), (&json!("ROUND_ROBIN"), &json!("TCP")));
    let monitor = world.cloud.named("healthmonitors", &format!("{name}-kubeapi-6443"));
    assert_eq!(
        [&monitor["delay"], &monitor["timeout"], &monitor["max_retries"], &monitor["max_retries_down"]],
        [&json!(10), &json!(5), &json!(5), &json!(3)]
    );
    for role in ["controlplane", "worker", "bastion"] {
        world.cloud.named("security_groups", &format!("k8s-cluster-default-prod-secgroup-{role}"));
    }
    let floating = world.cloud.all("floatingips");
    assert_eq!(floating.len(), 2, "the endpoint's and the bastion's");
    for condition in
        ["OpenStackAuthenticationSucceeded", "NetworkReady", "RouterReady", "SecurityGroupsReady", "APIEndpointReady"]
    {
        assert_eq!(world.condition(condition), ("True".to_owned(), "Ready".to_owned()), "{condition}");
    }
    let status = &world.object["status"];
    assert_eq!(status["initialization"]["provisioned"], true);
    assert_eq!(status["network"]["id"], network["id"]);
    assert_eq!(status["network"]["subnets"][0]["cidr"], "10.6.0.0/24");
    assert_eq!(status["externalNetwork"]["name"], "public");
    assert_eq!(status["router"]["ips"][0], router["external_gateway_info"]["external_fixed_ips"][0]["ip_address"]);
    assert_eq!(status["apiServerLoadBalancer"]["internalIP"], balancer["vip_address"]);
    assert_eq!(status["apiServerLoadBalancer"]["ip"], world.object["spec"]["controlPlaneEndpoint"]["host"]);
    assert_eq!(status["bastion"]["ip"], "10.6.0.77");
    assert_eq!(status["bastion"]["state"], "ACTIVE");
    assert!(status["bastion"]["floatingIP"].is_string());
    let zones = json!({"az1": {"controlPlane": true}, "az2": {"controlPlane": true}, "az3": {"controlPlane": true}});
    assert_eq!(status["failureDomains"], zones);
    world.assert_declared();
    assert!(world.delete());
    assert_eq!(world.resources(), [""; 0]);
}

#[test]
fn what_was_done_is_told_in_events_with_upstreams_reasons() {
    let mut world = World::new(full());
    let mut reasons = Vec::new();
    for _ in 0..20 {
        let pass = world.pass(|_| false).unwrap();
        reasons.extend(pass.outcome.events.into_iter().map(|event| event.reason));
        world.play_servers();
    }
    for what in
        ["Network", "Subnet", "Router", "SecurityGroup", "LoadBalancer", "FloatingIP", "Listener", "Pool", "Monitor"]
    {
        assert!(reasons.contains(&format!("SuccessfulCreate{what}")), "{what}: {reasons:?}");
    }
    assert_eq!(reasons.len(), 12, "each once: {reasons:?}");
    world.cloud.set_quota("networks", 0);
    let mut poor = World::of("poor", full(), world.cloud.clone());
    let pass = poor.pass(|_| false).unwrap();
    assert_eq!(pass.outcome.events[0].reason, "FailedCreateNetwork");
    assert_eq!(pass.result.unwrap_err().reason, "QuotaExceeded");
    assert_eq!(poor.condition("NetworkReady"), ("False".to_owned(), "OpenStackError".to_owned()));
}

#[test]
fn without_a_load_balancer_the_endpoint_is_a_floating_ip() {
    let mut world = World::new(without(without(full(), "apiServerLoadBalancer"), "bastion"));
    world.settle();
    let floating = world.cloud.all("floatingips");
    assert_eq!(floating.len(), 1);
    assert_eq!(floating[0]["port_id"], Value::Null, "machines put it on their port");
    assert_eq!(world.object["spec"]["controlPlaneEndpoint"]["host"], floating[0]["floating_ip_address"]);
    assert_eq!(world.object["spec"]["controlPlaneEndpoint"]["port"], 6443);
    assert!(world.delete());
    assert_eq!(world.resources(), [""; 0]);
}

#[test]
fn an_endpoint_may_be_fixed_or_given_and_needs_nothing_then() {
    let plain = without(without(full(), "apiServerLoadBalancer"), "bastion");
    let with = |fields: Value| {
        let mut spec = plain.clone();
        object::merge(&mut spec, &fields);
        let mut world = World::new(spec);
        world.settle();
        assert!(world.cloud.all("floatingips").is_empty());
        world.object["spec"]["controlPlaneEndpoint"].clone()
    };
    let fixed = json!({"disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.6.0.5", "apiServerPort": 443});
    assert_eq!(with(fixed), json!({"host": "10.6.0.5", "port": 443}));
    let given = json!({"controlPlaneEndpoint": {"host": "api.example.org", "port": 8443}});
    assert_eq!(with(given), json!({"host": "api.example.org", "port": 8443}));
    let mut none = plain;
    object::merge(&mut none, &json!({"disableAPIServerFloatingIP": true}));
    let pass = World::new(none).pass(|_| false).unwrap();
    assert_eq!(pass.result.unwrap_err().reason, "NoEndpoint");
}

#[test]
fn without_an_external_network_there_is_no_router_and_the_endpoint_is_inside() {
    let mut spec = without(full(), "bastion");
    object::merge(&mut spec, &json!({"disableExternalNetwork": true, "disableAPIServerFloatingIP": true}));
    let mut world = World::new(spec);
    world.settle();
    assert!(world.cloud.all("routers").is_empty() && world.cloud.all("floatingips").is_empty());
    let balancer = &world.cloud.all("loadbalancers")[0];
    assert_eq!(world.object["spec"]["controlPlaneEndpoint"]["host"], balancer["vip_address"]);
    assert!(object::condition(&world.object, "RouterReady").is_none());
}

#[test]
fn several_external_networks_are_a_question_to_the_user() {
    let mut world = World::new(full());
    let other = world.cloud.add(
        "networks",
        json!({"name": "other", "router:external": true, "project_id": "admin", "tags": [], "subnets": []}),
    );
    let pass = world.pass(|_| false).unwrap();
    assert_eq!(pass.result.unwrap_err().reason, "SeveralExternalNetworks");
    object::merge(&mut world.object, &json!({"spec": {"externalNetwork": {"filter": {"name": "other"}}}}));
    let _ = world.pass(|_| false).unwrap();
    assert_eq!(world.object["status"]["externalNetwork"]["id"], json!(other));
}

#[test]
fn name_servers_and_zones_can_be_changed_later() {
    let mut world = World::new(full());
    world.settle();
    let change = json!({"spec": {
        "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["8.8.8.8"]}],
        "controlPlaneAvailabilityZones": ["az2"],
    }});
    object::merge(&mut world.object, &change);
    world.cloud.clear_calls();
    world.settle();
    assert_eq!(world.cloud.all("subnets").last().unwrap()["dns_nameservers"], json!(["8.8.8.8"]));
    assert_eq!(world.cloud.writes().len(), 1, "{:?}", world.cloud.writes());
    let domains = &world.object["status"]["failureDomains"];
    assert_eq!([&domains["az1"]["controlPlane"], &domains["az2"]["controlPlane"]], [false, true]);
}

#[test]
fn a_cluster_without_an_owner_waits_and_leaves_nothing() {
    let mut world = World::new(full());
    world.host = world.cloud.host();
    world.object["metadata"]["labels"] = json!({});
    let pass = world.pass(|_| false).unwrap();
    assert_eq!(pass.result.unwrap_err().reason, "WaitingForCluster");
    let (gone, _) = run(&world.host, |cx| crate::cluster::deprovision(cx, &world.object));
    assert_eq!(gone, Ok(true));
    assert!(world.cloud.calls().is_empty());
}

#[test]
fn credentials_that_are_not_there_are_a_condition_and_no_call() {
    let mut world = World::new(full());
    object::merge(&mut world.object, &json!({"spec": {"identityRef": {"name": "absent"}}}));
    let pass = world.pass(|_| false).unwrap();
    assert!(pass.result.is_err());
    assert_eq!(world.condition("OpenStackAuthenticationSucceeded").0, "False");
    assert!(world.cloud.calls().is_empty());
}

#[test]
fn two_clusters_in_one_project_do_not_touch_each_other() {
    let cloud = OpenStack::new();
    let mut one = World::of("one", without(full(), "bastion"), cloud.clone());
    one.settle();
    let alone = one.resources();
    let mut spec = without(full(), "bastion");
    object::merge(&mut spec, &json!({"managedSubnets": [{"cidr": "10.7.0.0/24"}]}));
    let mut two = World::of("one-more", spec, cloud.clone());
    two.settle();
    assert!(two.delete());
    assert_eq!(one.resources(), alone);
}

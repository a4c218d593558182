//! What goes, in which order, and what stays.
use super::*;

#[test]
fn machines_go_first_and_nothing_is_asked_meanwhile() {
    let mut world = World::new(full());
    world.add_machine("cp-0", "10.6.0.10");
    world.settle();
    world.cloud.clear_calls();
    let (gone, outcome) = run(&world.host, |cx| crate::cluster::deprovision(cx, &world.object));
    assert_eq!((gone, outcome.wake_after), (Ok(false), None));
    assert!(world.cloud.calls().is_empty());
}

#[test]
fn things_go_in_the_order_in_which_openstack_lets_go_of_them() {
    let mut world = World::new(full());
    world.settle();
    world.cloud.clear_calls();
    assert!(world.delete());
    let order: Vec<String> = world
        .cloud
        .writes()
        .iter()
        .map(|call| {
            let words: Vec<&str> = call.split(['/', ' ', '?']).filter(|word| !word.is_empty()).collect();
            match words.as_slice() {
                ["PUT", "routers", _, "remove_router_interface"] => "interface".to_owned(),
                ["DELETE", "lbaas", kind, ..] | ["DELETE", kind, ..] => (*kind).to_owned(),
                _ => call.clone(),
            }
        })
        .collect();
    let expected = [
        "floatingips",
        "floatingips",
        "loadbalancers",
        "interface",
        "routers",
        "networks",
        "security-groups",
        "security-groups",
        "security-groups",
    ];
    assert_eq!(order, expected);
}

#[test]
fn a_floating_ip_that_the_user_brought_is_taken_off_and_stays() {
    let mut spec = full();
    let brought = json!({"apiServerFloatingIP": "172.24.4.9", "bastion": {"floatingIP": "172.24.4.8"}});
    object::merge(&mut spec, &brought);
    let mut world = World::new(spec);
    for address in ["172.24.4.9", "172.24.4.8"] {
        let ip = json!({"floating_ip_address": address, "floating_network_id": "network-external", "description": "mine", "port_id": null, "tags": []});
        world.cloud.add("floatingips", ip);
    }
    world.settle();
    assert_eq!(world.object["spec"]["controlPlaneEndpoint"]["host"], "172.24.4.9");
    assert_eq!(world.object["status"]["bastion"]["floatingIP"], "172.24.4.8");
    assert!(world.cloud.all("floatingips").iter().all(|ip| ip["port_id"].is_string()));
    assert!(world.delete());
    assert!(
        world.cloud.all("floatingips").iter().all(|ip| ip["tags"] == json!([])),
        "tags are for what is the cluster's"
    );
    assert_eq!(world.resources(), ["floatingips \"mine\" false"; 2]);
}

#[test]
fn a_port_that_was_left_in_the_network_goes_and_one_that_is_used_holds_it() {
    let mut world = World::new(without(full(), "bastion"));
    world.settle();
    let network = world.object["status"]["network"]["id"].clone();
    let port = |name: &str, owner: &str| json!({"name": name, "network_id": network, "device_owner": owner, "device_id": "", "fixed_ips": []});
    world.cloud.add("ports", port("prod-md-0-x-0", ""));
    let used = world.cloud.add("ports", port("somebody's", "compute:az1"));
    object::merge(&mut world.object, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let mut last = None;
    for _ in 0..10 {
        let (gone, outcome) = run(&world.host, |cx| crate::cluster::deprovision(cx, &world.object));
        world.keep(&outcome);
        last = Some(gone);
    }
    assert_eq!(last.unwrap().unwrap_err().fault, capwasm_sdk::Fault::Transient);
    assert_eq!(world.condition("NetworkReady"), ("False".to_owned(), "Deleting".to_owned()));
    assert_eq!(world.cloud.all("ports").len(), 1);
    world.cloud.remove("ports", &used);
    assert!(world.delete());
    assert_eq!(world.resources(), [""; 0]);
}

/// What a cluster's own cloud provider leaves behind.
fn leave_behind(cloud: &OpenStack, cluster: &str) {
    cloud.add(
        "loadbalancers",
        json!({"name": format!("kube_service_{cluster}_default_web"), "provisioning_status": "ACTIVE", "vip_port_id": null}),
    );
    let ip = format!("Floating IP for Kubernetes external service default/web from cluster {cluster}");
    cloud.add(
        "floatingips",
        json!({"floating_ip_address": format!("172.24.4.{}", 100 + cluster.len()), "description": ip, "port_id": null}),
    );
    let group = format!("Security Group for default/web Service LoadBalancer in cluster {cluster}");
    cloud.add("security_groups", json!({"name": "lb-sg-x", "description": group, "security_group_rules": []}));
    for keep in ["true", "false"] {
        let metadata =
            json!({"cinder.csi.openstack.org/cluster": cluster, "janitor.capi.azimuth-cloud.com/keep": keep});
        cloud.add("volumes", json!({"name": format!("pvc-{keep}"), "status": "available", "metadata": metadata}));
    }
}

#[test]
fn what_the_workload_left_goes_where_that_is_asked_for() {
    let left = |annotations: Value| {
        let mut world = World::new(without(full(), "bastion"));
        object::merge(&mut world.object, &json!({"metadata": {"annotations": annotations}}));
        world.settle();
        leave_behind(&world.cloud, "prod");
        leave_behind(&world.cloud, "other");
        assert!(world.delete());
        let volumes = world.cloud.all("volumes").len();
        (world.resources().len(), volumes)
    };
    assert_eq!(left(json!({})), (6, 4), "nobody asked");
    assert_eq!(
        left(json!({"capwasm.dev/openstack-janitor": "true"})),
        (3, 3),
        "the other cluster's, and what is to be kept"
    );
    let keep = json!({"capwasm.dev/openstack-janitor": "true", "janitor.capi.stackhpc.com/volumes-policy": "keep"});
    assert_eq!(left(keep), (3, 4));
}

/// A request that was given up and arrived later has made a second one of a name.
#[test]
fn what_was_made_twice_by_a_late_request_is_not_used_and_goes_with_the_cluster() {
    let mut world = World::new(without(full(), "bastion"));
    world.settle();
    let before = world.object["status"].clone();
    for collection in ["networks", "routers", "security_groups", "loadbalancers", "floatingips"] {
        let mut twin = world.cloud.all(collection).into_iter().rfind(|item| item["project_id"] != "admin").unwrap();
        // Before the first one in every order.
        object::merge(&mut twin, &json!({"id": format!("0-{collection}"), "floating_ip_address": "172.24.4.250"}));
        let nothing = json!({"port_id": null, "vip_port_id": null, "subnets": [], "security_group_rules": []});
        object::merge(&mut twin, &nothing);
        world.cloud.add(collection, twin);
    }
    world.object["status"]["applied"] = json!({});
    world.cloud.clear_calls();
    world.settle();
    for name in ["network", "router", "apiServerLoadBalancer", "controlPlaneSecurityGroup"] {
        assert_eq!(world.object["status"][name], before[name], "{name}");
    }
    assert!(world.delete());
    assert_eq!(world.resources(), [""; 0]);
}

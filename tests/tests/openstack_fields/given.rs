//! Networks, subnets, a router and floating IPs that the user made before.

use capwasm_tests::objects::text;
use capwasm_tests::openstack::{self, Bed, manifests};
use serde_json::{Value, json};

use crate::world::{
    as_it_is, floating_ip, machine_spec, make, neutron, octavia, public, remove, tagged, with, writes_to_networks,
};

/// What the user made, by id or by what finds it.
#[derive(Default)]
pub struct Given {
    project: String,
    endpoint: String,
    bastion: String,
    external: String,
    network: String,
    four: String,
    router: String,
}

/// By filters with all that a filter can have; behind a load balancer in another network.
pub fn by_filter(given: &Given) -> Value {
    let filter = |name: &str, more: Value| {
        let named = json!({"name": name, "description": "of a test", "projectID": given.project});
        let tags = json!({"tags": ["kept", "mine"], "notTags": ["yours", "hers"]});
        json!({"filter": with(with(named, tags), more)})
    };
    let four = |name: &str, cidr: &str, gateway: &str| {
        filter(name, json!({"ipVersion": 4, "gatewayIP": gateway, "cidr": cidr}))
    };
    let six = json!({"ipVersion": 6, "ipv6AddressMode": "dhcpv6-stateful", "ipv6RAMode": "dhcpv6-stateful"});
    json!({
        "identityRef": manifests::identity_ref(),
        "externalNetwork": {"filter": {"name": "public"}},
        "network": filter("theirs", json!({})),
        "subnets": [four("four", "10.40.0.0/24", "10.40.0.1"), filter("six", six)],
        "primarySubnet": four("four", "10.40.0.0/24", "10.40.0.1"),
        "router": filter("theirs", json!({})),
        "managedSecurityGroups": {},
        "apiServerFloatingIP": given.endpoint,
        "apiServerLoadBalancer": {
            "enabled": true,
            "network": filter("front", json!({})),
            "subnets": [four("front", "10.41.0.0/24", "10.41.0.1")],
        },
        "bastion": {
            "enabled": true, "availabilityZone": "az3", "floatingIP": given.bastion,
            "spec": machine_spec(json!({"sshKeyName": "of-a-test"})),
        },
        "tags": ["of-a-test"],
    })
}

/// By what of their tags is enough. Neutron (2026.1) answers 500 where a filter has `tags` and `tagsAny`.
pub fn by_tags() -> Value {
    let tags = json!({"filter": {"tagsAny": ["first", "other"], "notTagsAny": ["his", "hers"]}});
    json!({
        "identityRef": manifests::identity_ref(),
        "externalNetwork": {"filter": {"name": "public", "notTagsAny": ["his"]}},
        "network": tags,
        "subnets": [tags],
        "router": tags,
        "managedSecurityGroups": {},
        "disableAPIServerFloatingIP": true,
        "apiServerFixedIP": "10.40.0.201",
    })
}

pub fn by_id(given: &Given) -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "externalNetwork": {"id": given.external},
        "network": {"id": given.network},
        "subnets": [{"id": given.four}],
        "primarySubnet": {"id": given.four},
        "router": {"id": given.router},
        "disableAPIServerFloatingIP": true,
        "apiServerFixedIP": "10.40.0.200",
    })
}

/// A network of its own behind a router that was there before.
pub fn behind_router(given: &Given) -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "managedSubnets": [{"cidr": "10.42.0.0/24"}],
        "router": {"id": given.router},
        "disableAPIServerFloatingIP": true,
        "apiServerFixedIP": "10.42.0.200",
    })
}

#[tokio::test]
async fn what_the_user_made_is_found_used_and_left_as_it_was() {
    let test = "openstack_fields::what_the_user_made_is_found_used_and_left_as_it_was";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "given").await;
    let cloud = bed.project.cloud.clone();
    let tags = ["kept", "mine"];
    let described = |name: &str| json!({"name": name, "description": "of a test"});
    let first = ["first", "kept", "mine"];
    let network = tagged(&cloud, "network", described("theirs"), &first).await;
    let front = tagged(&cloud, "network", described("front"), &tags).await;
    let subnet = |name: &str, network: &Value, more: Value| {
        with(with(described(name), json!({"network_id": network["id"], "ip_version": 4})), more)
    };
    let four = subnet("four", &network, json!({"cidr": "10.40.0.0/24"}));
    let four = tagged(&cloud, "subnet", four, &first).await;
    // With SLAAC every port has an address of it.
    let mode = "dhcpv6-stateful";
    let six = json!({"ip_version": 6, "cidr": "fd00:40::/64", "ipv6_ra_mode": mode, "ipv6_address_mode": mode});
    let six = tagged(&cloud, "subnet", subnet("six", &network, six), &tags).await;
    let ahead = tagged(&cloud, "subnet", subnet("front", &front, json!({"cidr": "10.41.0.0/24"})), &tags).await;
    // Another of each name, which only the rest of a filter tells apart.
    let decoy = tagged(&cloud, "network", json!({"name": "theirs"}), &[]).await;
    let external = public(&cloud).await;
    let router = with(described("theirs"), json!({"external_gateway_info": {"network_id": external["id"]}}));
    let router = tagged(&cloud, "router", router, &first).await;
    let interfaces = format!("/v2.0/routers/{}", text(&router, "/id"));
    let connected = [&ahead, &four].map(|subnet| json!({"subnet_id": subnet["id"]}));
    for interface in &connected {
        cloud.put("network", &format!("{interfaces}/add_router_interface"), interface).await;
    }
    let (endpoint, bastion) = (floating_ip(&bed, "endpoint").await, floating_ip(&bed, "bastion").await);
    make(&cloud, "compute", "/os-keypairs", "keypair", json!({"name": "of-a-test"})).await;
    let own = [
        ("networks", "network", &network),
        ("networks", "network", &front),
        ("subnets", "subnet", &four),
        ("subnets", "subnet", &six),
        ("subnets", "subnet", &ahead),
        ("routers", "router", &router),
        ("floatingips", "floatingip", &endpoint),
        ("floatingips", "floatingip", &bastion),
    ];
    let (mut before, resources) = (Vec::new(), bed.project.resources().await);
    for (many, kind, resource) in own {
        before.push(as_it_is(&cloud, many, kind, resource).await);
    }

    let given = Given {
        project: cloud.project_id.clone(),
        endpoint: text(&endpoint, "/floating_ip_address").to_owned(),
        bastion: text(&bastion, "/floating_ip_address").to_owned(),
        external: text(&external, "/id").to_owned(),
        network: text(&network, "/id").to_owned(),
        four: text(&four, "/id").to_owned(),
        router: text(&router, "/id").to_owned(),
    };
    bed.create(manifests::cluster("given", "f", by_filter(&given))).await;
    bed.create(manifests::machine("given", "f", "f-cp", true, "", manifests::machine_spec())).await;
    let cluster = bed.cluster_ready("f").await;
    bed.machine_ready("f-cp").await;
    let status = &cluster["status"];
    assert_eq!((&status["network"]["id"], &status["network"]["tags"]), (&network["id"], &json!(first)));
    assert_eq!(status["network"]["subnets"][0]["id"], four["id"]);
    assert_eq!(status["network"]["subnets"][1]["id"], six["id"]);
    assert_eq!(status["router"]["id"], router["id"]);
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": given.endpoint, "port": 6443}));
    let balancer = octavia(&bed, "loadbalancers", "k8s-clusterapi-cluster-given-f-kubeapi").await;
    assert_eq!((&balancer["vip_network_id"], &balancer["vip_subnet_id"]), (&front["id"], &ahead["id"]));
    let attached = neutron(&bed, "floatingips", &format!("port_id={}", text(&balancer, "/vip_port_id"))).await;
    assert_eq!(attached["id"], endpoint["id"]);
    let ready = |object: &Value| text(object, "/status/bastion/floatingIP") == given.bastion;
    let cluster = bed.objects.until("OpenStackCluster", "f", "the bastion has its address", ready).await;
    bastion_is_as_wanted(&bed, &cluster, &bastion).await;
    let port = neutron(&bed, "ports", "name=f-cp-0").await;
    let subnets: Vec<&Value> = port["fixed_ips"].as_array().unwrap().iter().map(|ip| &ip["subnet_id"]).collect();
    assert_eq!(subnets, [&four["id"]], "the primary subnet alone");
    assert_eq!(writes_to_networks(&bed), Vec::<String>::new());
    bed.objects.delete("Cluster", "f").await;
    bed.objects.gone("Cluster", "f").await;

    bed.create(manifests::cluster("given", "t", by_tags())).await;
    let cluster = bed.cluster_ready("t").await;
    assert_eq!(cluster["status"]["network"]["id"], network["id"]);
    assert_eq!(cluster["status"]["network"]["subnets"][0]["id"], four["id"]);
    assert_eq!(cluster["status"]["router"]["id"], router["id"]);
    bed.objects.delete("Cluster", "t").await;
    bed.objects.gone("Cluster", "t").await;

    bed.create(manifests::cluster("given", "i", by_id(&given))).await;
    let cluster = bed.cluster_ready("i").await;
    assert_eq!(cluster["status"]["network"]["subnets"].as_array().unwrap().len(), 1);
    assert_eq!(cluster["status"]["externalNetwork"]["id"], external["id"]);
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "10.40.0.200", "port": 6443}));
    bed.objects.delete("Cluster", "i").await;
    bed.objects.gone("Cluster", "i").await;

    assert_eq!(writes_to_networks(&bed), Vec::<String>::new());

    bed.create(manifests::cluster("given", "r", behind_router(&given))).await;
    let cluster = bed.cluster_ready("r").await;
    assert_eq!(cluster["status"]["router"]["id"], router["id"]);
    let port = format!("device_id={}&network_id={}", given.router, text(&cluster, "/status/network/id"));
    assert_eq!(neutron(&bed, "ports", &port).await["device_owner"], "network:router_interface");
    bed.objects.delete("Cluster", "r").await;
    bed.objects.gone("Cluster", "r").await;

    assert_eq!(bed.project.resources().await, resources, "what was there before, and nothing else");
    for ((many, kind, resource), before) in own.into_iter().zip(before) {
        assert_eq!(as_it_is(&cloud, many, kind, resource).await, before);
    }
    for interface in &connected {
        cloud.put("network", &format!("{interfaces}/remove_router_interface"), interface).await;
    }
    remove(&cloud, "network", "/v2.0/floatingips", &[&endpoint, &bastion]).await;
    remove(&cloud, "network", "/v2.0/routers", &[&router]).await;
    remove(&cloud, "network", "/v2.0/networks", &[&network, &front, &decoy]).await;
    bed.nothing_is_left().await;
    bed.end().await;
}

async fn bastion_is_as_wanted(bed: &Bed, cluster: &Value, floating: &Value) {
    let told = &cluster["status"]["bastion"];
    let server = bed.project.cloud.get("compute", &format!("/servers/{}", text(told, "/id"))).await["server"].clone();
    assert_eq!((&server["name"], &server["key_name"]), (&json!("f-bastion"), &json!("of-a-test")));
    assert_eq!(server["OS-EXT-AZ:availability_zone"], "az3");
    let port = neutron(bed, "ports", &format!("device_id={}", text(told, "/id"))).await;
    assert_eq!(port["security_groups"], json!([cluster["status"]["bastionSecurityGroup"]["id"]]));
    let attached = neutron(bed, "floatingips", &format!("port_id={}", text(&port, "/id"))).await;
    assert_eq!(attached["id"], floating["id"]);
    let group = text(cluster, "/status/bastionSecurityGroup/id");
    let query = format!("security_group_id={group}&direction=ingress&port_range_min=22");
    neutron(bed, "security_group_rules", &query).await;
}

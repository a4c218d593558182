//! Load balancers with everything that can be said of them.

use std::collections::BTreeSet;

use capwasm_tests::objects::{is, text};
use capwasm_tests::openstack::{self, Bed, manifests};
use capwasm_tests::wait;
use serde_json::{Value, json};

use crate::world::{make, member, neutron, octavia, remove, tagged, with};

/// Resources of OpenStack that the test made before the cluster.
#[derive(Default)]
pub struct Given {
    flavor: String,
    zone: String,
    network: String,
    subnet: String,
}

/// Of the amphora provider by another name; the address is in a network that was there before.
pub fn amphora(given: &Given) -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "externalNetwork": {"filter": {"name": "public"}},
        "managedSubnets": [{"cidr": "10.52.0.0/24"}],
        "managedSecurityGroups": {"allowAllInClusterTraffic": true},
        "disableAPIServerFloatingIP": true,
        "apiServerFixedIP": "10.53.0.50",
        "apiServerLoadBalancer": {
            "enabled": true, "provider": "octavia", "flavor": given.flavor, "availabilityZone": given.zone,
            "network": {"id": given.network}, "subnets": [{"id": given.subnet}],
            "additionalPorts": [9345], "allowedCIDRs": ["192.0.2.0/24", "203.0.113.9"],
            "monitor": {"delay": 11, "timeout": 6, "maxRetries": 4, "maxRetriesDown": 2},
        },
        "tags": ["of-a-test"],
    })
}

const NAME: &str = "k8s-clusterapi-cluster-lb-c-kubeapi";

#[tokio::test]
async fn a_load_balancer_is_as_the_fields_say_and_follows_those_that_may_change() {
    let test = "openstack_fields::a_load_balancer_is_as_the_fields_say_and_follows_those_that_may_change";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "lb").await;
    let (cloud, authority) = (bed.project.cloud.clone(), &bed.project.admin);
    let name = bed.project.name.clone();
    let of = async |kind: &str, path: &str, fields: Value| {
        make(authority, "load-balancer", &format!("/v2/lbaas/{path}"), kind, with(json!({"name": name}), fields)).await
    };
    let profile = json!({"provider_name": "octavia", "flavor_data": r#"{"loadbalancer_topology": "SINGLE"}"#});
    let profile = of("flavorprofile", "flavorprofiles", profile).await;
    let flavor = of("flavor", "flavors", json!({"flavor_profile_id": profile["id"], "enabled": true})).await;
    let zones = json!({"provider_name": "octavia", "availability_zone_data": r#"{"compute_zone": "az1"}"#});
    let zones = of("availability_zone_profile", "availabilityzoneprofiles", zones).await;
    let zone = json!({"availability_zone_profile_id": zones["id"], "enabled": true});
    of("availability_zone", "availabilityzones", zone).await;
    let network = tagged(&cloud, "network", json!({"name": "front"}), &[]).await;
    let subnet = json!({"name": "front", "network_id": network["id"], "ip_version": 4, "cidr": "10.53.0.0/24"});
    let subnet = tagged(&cloud, "subnet", subnet, &[]).await;
    let given = Given {
        flavor: name.clone(),
        zone: name.clone(),
        network: text(&network, "/id").to_owned(),
        subnet: text(&subnet, "/id").to_owned(),
    };

    bed.create(manifests::cluster("lb", "c", amphora(&given))).await;
    bed.create(manifests::machine("lb", "c", "p", true, "", manifests::machine_spec())).await;
    let cluster = bed.cluster_ready("c").await;
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "10.53.0.50", "port": 6443}));
    let balancer = octavia(&bed, "loadbalancers", NAME).await;
    assert_eq!((&balancer["vip_address"], &balancer["vip_subnet_id"]), (&json!("10.53.0.50"), &subnet["id"]));
    assert_eq!((&balancer["provider"], &balancer["flavor_id"]), (&json!("octavia"), &flavor["id"]));
    assert_eq!((&balancer["availability_zone"], &balancer["tags"]), (&json!(name), &json!(["of-a-test"])));
    assert_eq!(cloud.list("network", "/v2.0/floatingips", "floatingips").await, Vec::<Value>::new());
    let router = neutron(&bed, "routers", "").await;
    let router = text(&router, "/external_gateway_info/external_fixed_ips/0/ip_address");
    let own = ["10.52.0.0/24".to_owned(), format!("{router}/32")];
    for port in [6443, 9345] {
        port_is_as_wanted(&bed, port, &own, ["192.0.2.0/24", "203.0.113.9/32"], [11, 6, 4, 2]).await;
    }
    bed.machine_ready("p").await;
    let port = neutron(&bed, "ports", "name=p-0").await;
    for number in [6443, 9345] {
        let pool = octavia(&bed, "pools", &format!("{NAME}-{number}")).await;
        assert_eq!(pool["lb_algorithm"], "ROUND_ROBIN");
        let member = member(&bed, &pool).await;
        let expected = (&port["fixed_ips"][0]["ip_address"], &json!(number));
        assert_eq!((&member["address"], &member["protocol_port"]), expected);
    }

    let changed = json!({"spec": {"apiServerLoadBalancer": {
        "allowedCIDRs": ["198.18.0.0/15"], "monitor": {"delay": 12, "timeout": 7, "maxRetries": 5, "maxRetriesDown": 3},
    }}});
    bed.objects.merge("OpenStackCluster", "c", changed).await;
    wait::until("the load balancer follows", async || {
        let listener = octavia(&bed, "listeners", &format!("{NAME}-9345")).await;
        let monitor = octavia(&bed, "healthmonitors", &format!("{NAME}-9345")).await;
        let is_new = listener["allowed_cidrs"].to_string().contains("198.18.");
        if is_new && monitor["delay"] == 12 { Ok(()) } else { Err(format!("{listener} {monitor}")) }
    })
    .await;
    bed.objects.until("OpenStackCluster", "c", "it is ready again", |object| is(object, "Ready")).await;
    for port in [6443, 9345] {
        port_is_as_wanted(&bed, port, &own, ["198.18.0.0/15"], [12, 7, 5, 3]).await;
    }

    bed.objects.delete("Cluster", "c").await;
    bed.objects.gone("Cluster", "c").await;
    remove(&cloud, "network", "/v2.0/networks", &[&network]).await;
    bed.nothing_is_left().await;
    // Octavia knows zones by name.
    authority.delete("load-balancer", &format!("/v2/lbaas/availabilityzones/{name}")).await;
    remove(authority, "load-balancer", "/v2/lbaas/availabilityzoneprofiles", &[&zones]).await;
    remove(authority, "load-balancer", "/v2/lbaas/flavors", &[&flavor]).await;
    remove(authority, "load-balancer", "/v2/lbaas/flavorprofiles", &[&profile]).await;
    bed.end().await;
}

async fn port_is_as_wanted<const N: usize>(bed: &Bed, port: u16, own: &[String], given: [&str; N], monitor: [u32; 4]) {
    let listener = octavia(bed, "listeners", &format!("{NAME}-{port}")).await;
    assert_eq!((&listener["protocol"], &listener["protocol_port"]), (&json!("TCP"), &json!(port)));
    let allowed: BTreeSet<&str> =
        listener["allowed_cidrs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let expected: BTreeSet<&str> = own.iter().map(String::as_str).chain(given).collect();
    assert_eq!(allowed, expected);
    let found = octavia(bed, "healthmonitors", &format!("{NAME}-{port}")).await;
    let told = ["delay", "timeout", "max_retries", "max_retries_down"].map(|field| found[field].clone());
    assert_eq!(told, monitor.map(Value::from));
    assert_eq!(found["type"], "TCP");
}

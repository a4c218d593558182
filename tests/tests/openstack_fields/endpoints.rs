//! Clusters without a load balancer: where the API server is, networks of their own, security groups, zones, a bastion.

use std::collections::BTreeSet;

use capwasm_tests::objects::text;
use capwasm_tests::openstack::{self, Bed, manifests};
use serde_json::{Value, json};

use crate::world::{
    administrator, administrator_ref, machine_spec, make, neutron, nothing_is_left, only, public, remove,
};

/// At a floating IP on the control plane's port; with all that is said of routers and rules.
pub fn floating(foreign_group: &str, external_subnet: &str, addresses: &[String; 2]) -> Value {
    let rule = |name: &str, more: Value| {
        let base = json!({"name": name, "direction": "ingress", "etherType": "IPv4", "protocol": "tcp",
            "portRangeMin": 9100, "portRangeMax": 9110, "description": format!("rule {name}")});
        crate::world::with(base, more)
    };
    let rules = |port: u16| {
        json!([
            rule("groups", json!({"remoteManagedGroups": ["controlplane", "worker", "bastion"], "portRangeMin": port})),
            rule("group", json!({"remoteGroupID": foreign_group, "portRangeMin": port})),
            rule("prefix", json!({"remoteIPPrefix": "192.0.2.0/24", "portRangeMin": port})),
            rule(
                "out",
                json!({"direction": "egress", "etherType": "IPv6", "protocol": "udp", "remoteIPPrefix": "2001:db8::/32", "portRangeMin": port})
            ),
        ])
    };
    json!({
        // Only an administrator chooses a router's address.
        "identityRef": administrator_ref(),
        "externalNetwork": {"filter": {"name": "public"}},
        "externalRouterIPs": [
            {"fixedIP": addresses[0], "subnet": {"filter": {"name": "public-subnet"}}},
            {"fixedIP": addresses[1], "subnet": {"id": external_subnet}},
        ],
        "managedSubnets": [{"cidr": "10.43.0.0/24", "dnsNameservers": ["192.0.2.53", "192.0.2.54"],
            "allocationPools": [{"start": "10.43.0.20", "end": "10.43.0.99"}]}],
        "apiServerPort": 8443,
        "disableAPIServerFloatingIP": false,
        "controlPlaneAvailabilityZones": ["az1", "az3"],
        "managedSecurityGroups": {
            "allowAllInClusterTraffic": false,
            "allNodesSecurityGroupRules": rules(9101),
            "controlPlaneNodesSecurityGroupRules": rules(9102),
            "workerNodesSecurityGroupRules": rules(9103),
        },
        "bastion": {"enabled": true, "spec": manifests::machine_spec()},
        "tags": ["of-a-test", "another"],
    })
}

/// At a fixed IP, in a network that leads nowhere.
pub fn fixed() -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "disableExternalNetwork": true,
        "disablePortSecurity": true,
        "networkMTU": 1400,
        "managedSubnets": [{"cidr": "10.44.0.0/24"}],
        "disableAPIServerFloatingIP": true,
        "apiServerFixedIP": "10.44.0.100",
        "controlPlaneOmitAvailabilityZone": true,
    })
}

/// At an address that somebody else leads to it.
pub fn said() -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "disableExternalNetwork": true,
        "managedSubnets": [{"cidr": "10.45.0.0/24"}],
        "disableAPIServerFloatingIP": true,
        "controlPlaneEndpoint": {"host": "api.example.org", "port": 7443},
    })
}

#[tokio::test]
async fn the_endpoint_is_where_the_fields_say_and_so_are_networks_groups_and_zones() {
    let test = "openstack_fields::the_endpoint_is_where_the_fields_say_and_so_are_networks_groups_and_zones";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "ends").await;
    administrator(&bed, &admin).await;
    let cloud = &bed.project.cloud;
    let foreign = make(cloud, "network", "/v2.0/security-groups", "security_group", json!({"name": "foreign"})).await;
    let external = only(&bed.project.admin, "network", "/v2.0/subnets?name=public-subnet", "subnets").await;
    let addresses = unused(&bed, &external).await;
    let spec = floating(text(&foreign, "/id"), text(&external, "/id"), &addresses);
    bed.create(manifests::cluster("ends", "floating", spec)).await;
    bed.create(manifests::cluster("ends", "fixed", fixed())).await;
    bed.create(manifests::cluster("ends", "said", said())).await;
    bed.create(manifests::machine("ends", "floating", "p", true, "az1", manifests::machine_spec())).await;
    let port = json!({"ports": [{"fixedIPs": [{"ipAddress": "10.44.0.100"}]}]});
    bed.create(manifests::machine("ends", "fixed", "q", true, "", machine_spec(port))).await;

    let cluster = bed.cluster_ready("fixed").await;
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "10.44.0.100", "port": 6443}));
    let network = neutron(&bed, "networks", "name=k8s-clusterapi-cluster-ends-fixed").await;
    assert_eq!((&network["mtu"], &network["port_security_enabled"]), (&json!(1400), &json!(false)));
    assert!(cluster["status"]["router"].is_null() && cluster["status"]["externalNetwork"].is_null(), "{cluster}");
    assert_eq!(zones_of_control_planes(&cluster), Vec::<&str>::new());
    bed.machine_ready("q").await;
    let port = neutron(&bed, "ports", "name=q-0").await;
    assert_eq!(port["fixed_ips"][0]["ip_address"], "10.44.0.100");

    let cluster = bed.cluster_ready("said").await;
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "api.example.org", "port": 7443}));

    let cluster = bed.cluster_ready("floating").await;
    assert_eq!(zones_of_control_planes(&cluster), ["az1", "az3"]);
    router_is_as_wanted(&bed, &cluster, &addresses).await;
    bed.machine_ready("p").await;
    let port = neutron(&bed, "ports", "name=p-0").await;
    let attached = neutron(&bed, "floatingips", &format!("port_id={}", text(&port, "/id"))).await;
    let host = &attached["floating_ip_address"];
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": host, "port": 8443}));
    assert_eq!(tags(&attached), BTreeSet::from(["another", "of-a-test"]));
    let has_address = |object: &Value| !text(object, "/status/bastion/floatingIP").is_empty();
    let cluster = bed.objects.until("OpenStackCluster", "floating", "the bastion has an address", has_address).await;
    let bastion = text(&cluster, "/status/bastion/floatingIP");
    let floating = neutron(&bed, "floatingips", &format!("floating_ip_address={bastion}")).await;
    assert_ne!(floating["id"], attached["id"]);
    groups_are_as_wanted(&bed, &cluster, text(&foreign, "/id")).await;

    // The bastion goes with its address, rules with the spec, and nothing else does.
    let none = json!({
        "allNodesSecurityGroupRules": [], "controlPlaneNodesSecurityGroupRules": [], "workerNodesSecurityGroupRules": [],
    });
    let fewer = json!({"spec": {"bastion": {"enabled": false}, "managedSecurityGroups": none}});
    bed.objects.merge("OpenStackCluster", "floating", fewer).await;
    let is_gone = |object: &Value| object["status"]["bastion"].is_null();
    bed.objects.until("OpenStackCluster", "floating", "there is no bastion", is_gone).await;
    bed.objects.gone("OpenStackServer", "floating-bastion").await;
    assert_eq!(neutron(&bed, "floatingips", "").await["id"], attached["id"]);
    let group = text(&cluster, "/status/workerSecurityGroup/id").to_owned();
    capwasm_tests::wait::until("rules of workers are gone", async || {
        let path = format!("/v2.0/security-group-rules?security_group_id={group}&port_range_min=9103");
        let left = cloud.list("network", &path, "security_group_rules").await;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;

    for name in ["floating", "fixed", "said"] {
        bed.objects.delete("Cluster", name).await;
    }
    for name in ["floating", "fixed", "said"] {
        bed.objects.gone("Cluster", name).await;
    }
    remove(cloud, "network", "/v2.0/security-groups", &[&foreign]).await;
    nothing_is_left(&bed).await;
    bed.end().await;
}

/// Addresses of the external subnet that nobody has, of those that nobody gets unasked.
async fn unused(bed: &Bed, subnet: &Value) -> [String; 2] {
    let path = format!("/v2.0/ports?fixed_ips=subnet_id%3D{}", text(subnet, "/id"));
    let ports = bed.project.admin.list("network", &path, "ports").await;
    let addresses = ports.iter().filter_map(|port| port["fixed_ips"].as_array()).flatten();
    let used: BTreeSet<&str> = addresses.map(|address| text(address, "/ip_address")).collect();
    let mut free = (2..10).map(|last| format!("198.51.100.{last}")).filter(|address| !used.contains(address.as_str()));
    [free.next().unwrap(), free.next().unwrap()]
}

async fn router_is_as_wanted(bed: &Bed, cluster: &Value, addresses: &[String; 2]) {
    let network = neutron(bed, "networks", "name=k8s-clusterapi-cluster-ends-floating").await;
    assert_eq!(tags(&network), BTreeSet::from(["another", "of-a-test"]));
    let subnet = neutron(bed, "subnets", &format!("network_id={}", text(&network, "/id"))).await;
    assert_eq!(subnet["allocation_pools"], json!([{"start": "10.43.0.20", "end": "10.43.0.99"}]));
    assert_eq!(subnet["dns_nameservers"], json!(["192.0.2.53", "192.0.2.54"]));
    let router = neutron(bed, "routers", "name=k8s-clusterapi-cluster-ends-floating").await;
    let gateway = &router["external_gateway_info"];
    assert_eq!(gateway["network_id"], public(&bed.project.cloud).await["id"]);
    let wanted: BTreeSet<&str> = addresses.iter().map(String::as_str).collect();
    let has = gateway["external_fixed_ips"].as_array().unwrap().iter().map(|address| text(address, "/ip_address"));
    assert_eq!(has.collect::<BTreeSet<_>>(), wanted);
    let told = cluster["status"]["router"]["ips"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert_eq!(told.collect::<BTreeSet<_>>(), wanted);
    assert_eq!(tags(&router), BTreeSet::from(["another", "of-a-test"]));
}

async fn groups_are_as_wanted(bed: &Bed, cluster: &Value, foreign: &str) {
    let id = |role: &str| text(cluster, &format!("/status/{role}SecurityGroup/id")).to_owned();
    let (plane, worker, bastion) = (id("controlPlane"), id("worker"), id("bastion"));
    for (group, ports) in [(&plane, [9101, 9102]), (&worker, [9101, 9103])] {
        for port in ports {
            let path = format!("/v2.0/security-group-rules?security_group_id={group}&port_range_min={port}");
            let rules = bed.project.cloud.list("network", &path, "security_group_rules").await;
            let told: BTreeSet<String> = rules.iter().map(described).collect();
            let ingress = |remote: &str, name: &str| format!("ingress IPv4 tcp {port}-9110 from {remote}: rule {name}");
            let expected = BTreeSet::from([
                ingress(&plane, "groups"),
                ingress(&worker, "groups"),
                ingress(&bastion, "groups"),
                ingress(foreign, "group"),
                ingress("192.0.2.0/24", "prefix"),
                format!("egress IPv6 udp {port}-9110 from 2001:db8::/32: rule out"),
            ]);
            assert_eq!(told, expected);
        }
    }
    // What the API server needs, at its own port; and no way in from every machine to every port.
    neutron(bed, "security_group_rules", &format!("security_group_id={plane}&port_range_min=8443")).await;
    let path = format!("/v2.0/security-group-rules?security_group_id={worker}&direction=ingress");
    let rules = bed.project.cloud.list("network", &path, "security_group_rules").await;
    assert!(rules.iter().all(|rule| !rule["port_range_min"].is_null()), "{rules:?}");
}

/// A rule on one line.
fn described(rule: &Value) -> String {
    let remote = ["/remote_group_id", "/remote_ip_prefix"].map(|at| text(rule, at)).concat();
    let ports = format!("{}-{}", rule["port_range_min"], rule["port_range_max"]);
    let [direction, ethertype, protocol, description] =
        ["/direction", "/ethertype", "/protocol", "/description"].map(|at| text(rule, at));
    format!("{direction} {ethertype} {protocol} {ports} from {remote}: {description}")
}

fn tags(resource: &Value) -> BTreeSet<&str> {
    resource["tags"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

fn zones_of_control_planes(cluster: &Value) -> Vec<&str> {
    let zones = cluster["status"]["failureDomains"].as_object().unwrap();
    zones.iter().filter(|(_, zone)| zone["controlPlane"] == true).map(|(name, _)| name.as_str()).collect()
}

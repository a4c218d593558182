//! The OpenStack provider in the whole host, on real services: servers are of Nova's fake driver and become no nodes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use base64::Engine as _;
use capwasm_tests::objects::{condition, is, text};
use capwasm_tests::openstack::{self, Bed, manifests};
use serde_json::{Value, json};

const BASE: &str = "k8s-clusterapi-cluster-real-real";

#[tokio::test]
async fn every_field_of_a_cluster_and_its_machines_is_as_wanted_and_nothing_is_left() {
    let test = "every_field_of_a_cluster_and_its_machines_is_as_wanted_and_nothing_is_left";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "real").await;
    bed.create(manifests::cluster("real", "real", manifests::cluster_spec())).await;
    let cluster = bed.cluster_ready("real").await;
    network_is_as_wanted(&bed, &cluster).await;
    groups_are_as_wanted(&bed, &cluster).await;
    balancer_is_as_wanted(&bed, &cluster).await;
    for name in
        ["NetworkReady", "RouterReady", "SecurityGroupsReady", "APIEndpointReady", "OpenStackAuthenticationSucceeded"]
    {
        assert!(is(&cluster, name), "{name}: {:?}", condition(&cluster, name));
    }
    let calls = bed.proxy.calls().len();
    eprintln!("a cluster with network and load balancer: {calls} calls\n{:#?}", bed.proxy.counts());

    bed.proxy.clear();
    let group = json!({"server_group": {"name": "real", "policies": ["soft-anti-affinity"]}});
    bed.project.cloud.post("compute", "/os-server-groups", &group).await;
    let mut spec = manifests::machine_spec();
    for (key, value) in json!({
        "rootVolume": {"sizeGiB": 20}, "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}}],
        "serverGroup": {"filter": {"name": "real"}}, "serverMetadata": [{"key": "made", "value": "by-a-test"}],
        "tags": ["of-a-machine"], "configDrive": true,
        "ports": [{"description": "the first", "allowedAddressPairs": [{"ipAddress": "10.6.0.200"}]}],
    })
    .as_object()
    .unwrap()
    {
        spec[key] = value.clone();
    }
    bed.create(manifests::machine("real", "real", "real-cp", true, "az2", spec)).await;
    let machine = bed.machine_ready("real-cp").await;
    eprintln!("a control-plane machine with volumes: {} calls\n{:#?}", bed.proxy.calls().len(), bed.proxy.counts());
    bed.proxy.clear();
    bed.create(manifests::machine("real", "real", "real-md", false, "", manifests::machine_spec())).await;
    bed.machine_ready("real-md").await;
    eprintln!("a worker: {} calls\n{:#?}", bed.proxy.calls().len(), bed.proxy.counts());
    server_is_as_wanted(&bed, &machine).await;

    bed.objects.delete("Cluster", "real").await;
    bed.objects.gone("Cluster", "real").await;
    // Given, so not the provider's to delete.
    let groups = bed.project.cloud.list("compute", "/os-server-groups", "server_groups").await;
    assert_eq!(groups.len(), 1);
    bed.project.cloud.delete("compute", &format!("/os-server-groups/{}", text(&groups[0], "/id"))).await;
    bed.nothing_is_left().await;
    bed.end().await;
}

async fn network_is_as_wanted(bed: &Bed, cluster: &Value) {
    let network = only(bed, "network", &format!("/v2.0/networks?name={BASE}"), "networks").await;
    assert_eq!(network["id"], cluster["status"]["network"]["id"]);
    assert_eq!(network["tags"], json!(["of-a-test"]));
    let subnet = only(bed, "network", &format!("/v2.0/subnets?name={BASE}"), "subnets").await;
    assert_eq!((&subnet["cidr"], &subnet["dns_nameservers"]), (&json!("10.6.0.0/24"), &json!(["192.0.2.53"])));
    assert_eq!(subnet["id"], cluster["status"]["network"]["subnets"][0]["id"]);
    let router = only(bed, "network", &format!("/v2.0/routers?name={BASE}"), "routers").await;
    assert_eq!(router["external_gateway_info"]["network_id"], cluster["status"]["externalNetwork"]["id"]);
    let path = format!("/v2.0/ports?device_id={}&device_owner=network%3Arouter_interface", text(&router, "/id"));
    let interface = only(bed, "network", &path, "ports").await;
    assert_eq!(interface["fixed_ips"][0]["subnet_id"], subnet["id"]);
}

async fn groups_are_as_wanted(bed: &Bed, cluster: &Value) {
    for (role, field) in [("controlplane", "controlPlaneSecurityGroup"), ("worker", "workerSecurityGroup")] {
        let path = format!("/v2.0/security-groups?name=k8s-cluster-real-real-secgroup-{role}");
        let group = only(bed, "network", &path, "security_groups").await;
        assert_eq!(group["id"], cluster["status"][field]["id"], "{role}");
        let rules = group["security_group_rules"].as_array().unwrap();
        let api = rules.iter().any(|rule| rule["port_range_min"] == 6443 && rule["direction"] == "ingress");
        assert_eq!(api, role == "controlplane", "{role}: {rules:?}");
        assert!(rules.iter().any(|rule| rule["direction"] == "egress"), "{role}: {rules:?}");
    }
}

async fn balancer_is_as_wanted(bed: &Bed, cluster: &Value) {
    let lb = only(bed, "load-balancer", &format!("/v2/lbaas/loadbalancers?name={BASE}-kubeapi"), "loadbalancers").await;
    assert_eq!(lb["id"], cluster["status"]["apiServerLoadBalancer"]["id"]);
    assert_eq!(lb["provisioning_status"], "ACTIVE");
    for kind in ["listeners", "pools", "healthmonitors"] {
        only(bed, "load-balancer", &format!("/v2/lbaas/{kind}?name={BASE}-kubeapi-6443"), kind).await;
    }
    let path = format!("/v2.0/floatingips?port_id={}", text(&lb, "/vip_port_id"));
    let floating = only(bed, "network", &path, "floatingips").await;
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": floating["floating_ip_address"], "port": 6443}));
}

async fn server_is_as_wanted(bed: &Bed, machine: &Value) {
    let id = text(machine, "/status/instanceID");
    assert_eq!(text(machine, "/spec/providerID"), format!("openstack://RegionOne/{id}"));
    let server = bed.project.cloud.get("compute", &format!("/servers/{id}")).await["server"].clone();
    assert_eq!(server["name"], "real-cp");
    assert_eq!(server["OS-EXT-AZ:availability_zone"], "az2");
    assert_eq!(server["metadata"]["made"], "by-a-test");
    assert_eq!(server["config_drive"], "True");
    let tags = server["tags"].as_array().unwrap();
    assert!(tags.contains(&"of-a-machine".into()) && tags.contains(&"of-a-test".into()), "{tags:?}");
    // Only an administrator sees it.
    let seen = bed.project.admin.get("compute", &format!("/servers/{id}")).await;
    let data =
        base64::engine::general_purpose::STANDARD.decode(text(&seen, "/server/OS-EXT-SRV-ATTR:user_data")).unwrap();
    assert_eq!(String::from_utf8(data).unwrap(), manifests::USER_DATA);

    let volumes = server["os-extended-volumes:volumes_attached"].as_array().unwrap();
    assert_eq!(volumes.len(), 2, "{volumes:?}");
    let port = only(bed, "network", "/v2.0/ports?name=real-cp-0", "ports").await;
    assert_eq!(port["device_id"], id);
    assert_eq!(port["allowed_address_pairs"][0]["ip_address"], "10.6.0.200");
    let address = text(&port, "/fixed_ips/0/ip_address");
    let told = machine["status"]["addresses"].as_array().unwrap();
    assert!(told.contains(&json!({"type": "InternalIP", "address": address})), "{told:?}");
    let groups = bed.project.cloud.list("compute", "/os-server-groups", "server_groups").await;
    assert_eq!(groups[0]["members"], json!([id]));
    let pool = only(bed, "load-balancer", &format!("/v2/lbaas/pools?name={BASE}-kubeapi-6443"), "pools").await;
    let path = format!("/v2/lbaas/pools/{}/members", text(&pool, "/id"));
    let member = only(bed, "load-balancer", &path, "members").await;
    assert_eq!((&member["address"], &member["protocol_port"]), (&json!(address), &json!(6443)));
}

/// The only one that is listed.
async fn only(bed: &Bed, service: &str, path: &str, key: &str) -> Value {
    let list = bed.project.cloud.list(service, path, key).await;
    assert_eq!(list.len(), 1, "{path}: {list:?}");
    list[0].clone()
}

//! The other provider of load balancers, which has no allowed ranges and another algorithm.

use capwasm_tests::objects::text;
use capwasm_tests::openstack::{self, Bed, manifests};
use serde_json::{Value, json};

use crate::world::{member, neutron, octavia};

/// With what OVN cannot do, too.
pub fn cluster() -> Value {
    json!({
        "identityRef": manifests::identity_ref(),
        "externalNetwork": {"filter": {"name": "public"}},
        "managedSubnets": [{"cidr": "10.54.0.0/24"}],
        "apiServerLoadBalancer": {"enabled": true, "provider": "ovn", "allowedCIDRs": ["192.0.2.0/24"]},
    })
}

#[tokio::test]
async fn a_load_balancer_of_ovn_is_as_ovn_can_be() {
    let test = "openstack_fields::a_load_balancer_of_ovn_is_as_ovn_can_be";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "ovn").await;
    bed.create(manifests::cluster("ovn", "c", cluster())).await;
    bed.create(manifests::machine("ovn", "c", "p", true, "", manifests::machine_spec())).await;
    let told = bed.cluster_ready("c").await;
    let name = "k8s-clusterapi-cluster-ovn-c-kubeapi";
    let balancer = octavia(&bed, "loadbalancers", name).await;
    assert_eq!(balancer["provider"], "ovn");
    let floating = neutron(&bed, "floatingips", &format!("port_id={}", text(&balancer, "/vip_port_id"))).await;
    assert_eq!(told["spec"]["controlPlaneEndpoint"]["host"], floating["floating_ip_address"]);
    let listener = octavia(&bed, "listeners", &format!("{name}-6443")).await;
    assert_eq!(listener["allowed_cidrs"], Value::Null);
    let pool = octavia(&bed, "pools", &format!("{name}-6443")).await;
    assert_eq!(pool["lb_algorithm"], "SOURCE_IP_PORT");
    bed.machine_ready("p").await;
    let member = member(&bed, &pool).await;
    let port = neutron(&bed, "ports", "name=p-0").await;
    assert_eq!(member["address"], port["fixed_ips"][0]["ip_address"]);
    bed.objects.delete("Cluster", "c").await;
    bed.objects.gone("Cluster", "c").await;
    bed.nothing_is_left().await;
    bed.end().await;
}

//! Floating IP pools and the machines that have addresses of them.

use std::collections::BTreeSet;

use capwasm_tests::objects::{condition, text};
use capwasm_tests::openstack::{self, Bed, manifests};
use capwasm_tests::wait;
use serde_json::{Value, json};

use crate::world::{as_it_is, floating_ip, machine_spec, neutron, public, remove};

/// Of one address that was there before and one more at most; both go where they came from.
pub fn limited(address: &str) -> Value {
    json!({
        "identityRef": {"type": "Secret", "name": "cloud-config", "cloudName": "openstack", "region": "RegionOne"},
        "preAllocatedFloatingIPs": [address], "maxIPs": 2, "reclaimPolicy": "Delete",
        "floatingIPNetwork": {"filter": {"name": "public"}},
    })
}

/// A pool with the reclaim policy `Retain`.
pub fn keeping(network: &str) -> Value {
    json!({"identityRef": manifests::identity_ref(), "reclaimPolicy": "Retain", "floatingIPNetwork": {"id": network}})
}

/// A machine with an address of a pool.
pub fn machine(pool: &str) -> Value {
    let reference =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": pool});
    machine_spec(json!({"floatingIPPoolRef": reference}))
}

#[tokio::test]
async fn machines_have_addresses_of_pools_as_many_as_there_are_and_give_them_back() {
    let test = "openstack_fields::machines_have_addresses_of_pools_as_many_as_there_are_and_give_them_back";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "pools").await;
    let cloud = bed.project.cloud.clone();
    let given = floating_ip(&bed, "of a test").await;
    let address = text(&given, "/floating_ip_address").to_owned();
    let before = as_it_is(&cloud, "floatingips", "floatingip", &given).await;
    let pool = |name: &str, spec: Value| {
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackFloatingIPPool",
            "metadata": {"name": name, "namespace": "pools"}, "spec": spec})
    };
    let external = public(&cloud).await;
    bed.create([pool("limited", limited(&address)), pool("keeping", keeping(text(&external, "/id")))]).await;
    let spec = json!({
        "identityRef": manifests::identity_ref(), "externalNetwork": {"filter": {"name": "public"}},
        "managedSubnets": [{"cidr": "10.49.0.0/24"}], "disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.49.0.100",
    });
    bed.create(manifests::cluster("pools", "c", spec)).await;
    bed.create(manifests::machine("pools", "c", "a", false, "", machine("limited"))).await;
    has_address(&bed, "a", Some(&address)).await;
    bed.create(manifests::machine("pools", "c", "b", false, "", machine("limited"))).await;
    let made = has_address(&bed, "b", None).await;
    let told = bed.objects.get("OpenStackFloatingIPPool", "limited").await;
    assert_eq!(told["status"]["claimedIPs"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["status"]["floatingIPNetwork"]["id"], external["id"]);

    // There is none for a third, until somebody gives one back.
    bed.create(manifests::machine("pools", "c", "d", false, "", machine("limited"))).await;
    let is_full = |object: &Value| condition(object, "OpenstackFloatingIPPoolReadyCondition").1 == "MaxIPsReached";
    bed.objects.until("OpenStackFloatingIPPool", "limited", "it says that it has no more", is_full).await;
    bed.objects.delete("Machine", "b").await;
    bed.objects.gone("Machine", "b").await;
    has_address(&bed, "d", None).await;
    wait::until("what the pool made for another is gone", async || {
        let list = cloud.list("network", &format!("/v2.0/floatingips?floating_ip_address={made}"), "floatingips").await;
        // It may be that the new one has the old one's address.
        if list.iter().all(|ip| !ip["port_id"].is_null()) { Ok(()) } else { Err(format!("{list:?}")) }
    })
    .await;

    bed.create(manifests::machine("pools", "c", "k", false, "", machine("keeping"))).await;
    let kept = has_address(&bed, "k", None).await;
    bed.objects.delete("Machine", "k").await;
    bed.objects.gone("Machine", "k").await;
    let returned = |object: &Value| object["status"]["availableIPs"] == json!([kept]);
    bed.objects.until("OpenStackFloatingIPPool", "keeping", "it has its address back", returned).await;
    assert_eq!(neutron(&bed, "floatingips", &format!("floating_ip_address={kept}")).await["port_id"], Value::Null);

    bed.objects.delete("Cluster", "c").await;
    bed.objects.gone("Cluster", "c").await;
    for pool in ["limited", "keeping"] {
        bed.objects.delete("OpenStackFloatingIPPool", pool).await;
        bed.objects.gone("OpenStackFloatingIPPool", pool).await;
    }
    assert_eq!(as_it_is(&cloud, "floatingips", "floatingip", &given).await, before);
    remove(&cloud, "network", "/v2.0/floatingips", &[&given]).await;
    bed.nothing_is_left().await;
    bed.end().await;
}

/// Waits until a machine is ready with an address of a pool on its port, and returns it.
async fn has_address(bed: &Bed, machine: &str, wanted: Option<&str>) -> String {
    let told = bed.machine_ready(machine).await;
    let port = neutron(bed, "ports", &format!("name={machine}-0")).await;
    let floating = neutron(bed, "floatingips", &format!("port_id={}", text(&port, "/id"))).await;
    let address = text(&floating, "/floating_ip_address").to_owned();
    assert!(wanted.is_none_or(|wanted| wanted == address), "{machine} has {address}");
    let addresses: BTreeSet<&str> =
        told["status"]["addresses"].as_array().unwrap().iter().map(|one| text(one, "/address")).collect();
    assert!(addresses.contains(address.as_str()), "{addresses:?}");
    address
}

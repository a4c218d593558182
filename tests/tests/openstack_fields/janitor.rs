//! What a cloud provider in the workload cluster left: gone with its cluster where that is asked for, and nothing of others.

use capwasm_tests::objects::text;
use capwasm_tests::openstack::{self, Bed, manifests};
use capwasm_tests::wait;
use serde_json::{Value, json};

use crate::world::{make, neutron, public, remove};

#[tokio::test]
async fn what_a_cloud_provider_left_goes_with_its_cluster_but_for_what_is_to_stay() {
    let test = "openstack_fields::what_a_cloud_provider_left_goes_with_its_cluster_but_for_what_is_to_stay";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "left").await;
    let spec = json!({
        "identityRef": manifests::identity_ref(), "externalNetwork": {"filter": {"name": "public"}},
        "managedSubnets": [{"cidr": "10.51.0.0/24"}], "disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.51.0.100",
    });
    for (name, annotations) in [
        ("gone", json!({"capwasm.dev/openstack-janitor": "true"})),
        ("kept", json!({"capwasm.dev/openstack-janitor": "true", "janitor.capi.stackhpc.com/volumes-policy": "keep"})),
        ("off", json!({})),
    ] {
        let mut cluster = manifests::cluster("left", name, spec.clone());
        cluster[0]["metadata"]["annotations"] = annotations;
        bed.create(cluster).await;
    }
    for name in ["gone", "kept", "off"] {
        bed.cluster_ready(name).await;
    }
    balancer(&bed, "gone").await;
    for name in ["gone", "kept", "off"] {
        group(&bed, name).await;
        volume(&bed, name, "claim", json!({})).await;
    }
    let marked = volume(&bed, "gone", "marked", json!({"janitor.capi.azimuth-cloud.com/keep": "true"})).await;
    let claim = only_volume(&bed, "gone-claim").await;
    let snapshots = format!("/{}/snapshots", bed.project.cloud.project_id);
    let snapshot = json!({"name": "gone-snapshot", "volume_id": claim["id"], "metadata": owner("gone")});
    make(&bed.project.cloud, "block-storage", &snapshots, "snapshot", snapshot).await;

    for name in ["gone", "kept", "off"] {
        bed.objects.delete("Cluster", name).await;
    }
    for name in ["gone", "kept", "off"] {
        bed.objects.gone("Cluster", name).await;
    }
    let left = bed.project.resources().await;
    let expected = ["security group default/svc of off", "volume gone-marked", "volume kept-claim", "volume off-claim"];
    assert_eq!(left, expected, "what belongs to others, or was to be kept");
    assert_eq!(bed.project.cloud.list("block-storage", &snapshots, "snapshots").await, Vec::<Value>::new());

    let group = neutron(&bed, "security_groups", "name=default%2Fsvc%20of%20off").await;
    remove(&bed.project.cloud, "network", "/v2.0/security-groups", &[&group]).await;
    let (kept, off) = (only_volume(&bed, "kept-claim").await, only_volume(&bed, "off-claim").await);
    let volumes = format!("/{}/volumes", bed.project.cloud.project_id);
    remove(&bed.project.cloud, "block-storage", &volumes, &[&marked, &kept, &off]).await;
    bed.nothing_is_left().await;
    bed.end().await;
}

/// A Service's load balancer, and its floating IP.
async fn balancer(bed: &Bed, cluster: &str) {
    let cloud = &bed.project.cloud;
    let subnet = neutron(bed, "subnets", &format!("name=k8s-clusterapi-cluster-left-{cluster}")).await;
    let fields = json!({"name": format!("kube_service_{cluster}_default_svc"), "vip_subnet_id": subnet["id"]});
    let made = make(cloud, "load-balancer", "/v2/lbaas/loadbalancers", "loadbalancer", fields).await;
    wait::until("the load balancer of a Service is there", async || {
        let path = format!("/v2/lbaas/loadbalancers/{}", text(&made, "/id"));
        let status = cloud.get("load-balancer", &path).await["loadbalancer"]["provisioning_status"].clone();
        if status == "ACTIVE" { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    let description = format!("Floating IP for Kubernetes external service default/svc from cluster {cluster}");
    let network = public(cloud).await;
    let fields =
        json!({"floating_network_id": network["id"], "port_id": made["vip_port_id"], "description": description});
    make(cloud, "network", "/v2.0/floatingips", "floatingip", fields).await;
}

/// A Service's security group.
async fn group(bed: &Bed, cluster: &str) {
    let description = format!("Security Group for default/svc Service LoadBalancer in cluster {cluster}");
    let fields = json!({"name": format!("default/svc of {cluster}"), "description": description});
    make(&bed.project.cloud, "network", "/v2.0/security-groups", "security_group", fields).await;
}

/// A volume of a persistent claim.
async fn volume(bed: &Bed, cluster: &str, name: &str, more: Value) -> Value {
    let metadata = crate::world::with(owner(cluster), more);
    let name = format!("{cluster}-{name}");
    let path = format!("/{}/volumes", bed.project.cloud.project_id);
    let fields = json!({"name": name, "size": 1, "metadata": metadata});
    let made = make(&bed.project.cloud, "block-storage", &path, "volume", fields).await;
    wait::until(&format!("volume {name} is available"), async || {
        let found = only_volume(bed, &name).await;
        if found["status"] == "available" { Ok(()) } else { Err(found["status"].to_string()) }
    })
    .await;
    made
}

fn owner(cluster: &str) -> Value {
    json!({"cinder.csi.openstack.org/cluster": cluster})
}

async fn only_volume(bed: &Bed, name: &str) -> Value {
    let path = format!("/{}/volumes/detail?name={name}", bed.project.cloud.project_id);
    crate::world::only(&bed.project.cloud, "block-storage", &path, "volumes").await
}

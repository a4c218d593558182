//! The OpenStack provider in the whole host, on services whose servers become simulated nodes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_tests::objects::{condition, name_of, text};
use capwasm_tests::openstack::{self, Access, Bed, Proxy, manifests};
use capwasm_tests::sample::VERSION;
use capwasm_tests::wait;
use serde_json::{Value, json};

/// Longer than the provider waits for anything but its ten-minute look, shorter than that.
const QUIET: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_cluster_of_kubeadm_machines_is_provisioned_scaled_and_deleted() {
    lives(Bed::fake("life").await).await;
}

/// Servers of Nova's fake driver stand in for machines: nodes are simulated from their user data, and labelled so.
#[tokio::test]
async fn a_cluster_of_kubeadm_machines_is_provisioned_scaled_and_deleted_on_real_services() {
    let test = "openstack::a_cluster_of_kubeadm_machines_is_provisioned_scaled_and_deleted_on_real_services";
    let Some(admin) = openstack::real(test) else { return };
    lives(Bed::real_with_nodes(&admin, "life").await).await;
}

async fn lives(bed: Bed) {
    bed.create(manifests::kubeadm("life", "life", VERSION, 1, 2, bed.cluster_spec())).await;
    bed.available("life", 3).await;
    let servers = servers(&bed).await;
    let machines = bed.objects.names("OpenStackMachine").await;
    assert_eq!(servers, machines, "one server for each machine");
    for machine in bed.objects.list("OpenStackMachine").await {
        let id = text(&machine, "/status/instanceID");
        assert_eq!(text(&machine, "/spec/providerID"), format!("openstack://RegionOne/{id}"));
    }

    bed.objects.merge("KubeadmControlPlane", "life-control-plane", json!({"spec": {"replicas": 3}})).await;
    bed.available("life", 5).await;
    has_members(&bed, 3).await;
    bed.objects.merge("MachineDeployment", "life-md-0", json!({"spec": {"replicas": 1}})).await;
    bed.available("life", 4).await;
    bed.objects.merge("KubeadmControlPlane", "life-control-plane", json!({"spec": {"replicas": 1}})).await;
    bed.available("life", 2).await;
    has_members(&bed, 1).await;
    bed.delete(&["life"]).await;
    bed.end().await;
}

#[tokio::test]
async fn nothing_is_asked_of_the_services_while_nothing_changes() {
    let bed = Bed::fake("quiet").await;
    bed.create(manifests::kubeadm("quiet", "quiet", VERSION, 1, 1, manifests::cluster_spec())).await;
    bed.available("quiet", 2).await;
    // The last passes may still be under way; one that asks again and again never gets here.
    wait::until("the passes come to an end", async || {
        let before = bed.proxy.calls().len();
        tokio::time::sleep(Duration::from_secs(2)).await;
        if bed.proxy.calls().len() == before { Ok(()) } else { Err("there are requests".to_owned()) }
    })
    .await;
    let calls = bed.proxy.counts();
    eprintln!("a cluster of one control-plane machine and one worker: {} calls\n{calls:#?}", bed.proxy.calls().len());
    wait::unchanged("the number of calls", QUIET, async || bed.proxy.calls().len()).await;
    bed.delete(&["quiet"]).await;
    bed.end().await;
}

#[tokio::test]
async fn keystone_is_reached_by_its_own_certificate_only() {
    let bed = Bed::fake("tls").await;
    let tls = Proxy::start_tls(&bed.project.access.auth_url);
    bed.grant(&[&tls.origin()], json!({})).await;
    let clouds = bed.project.access.at(tls.auth_url()).clouds_yaml();
    bed.objects.merge("Secret", "cloud-config", json!({"stringData": {"clouds.yaml": clouds}})).await;
    bed.create(manifests::cluster("tls", "tls", manifests::cluster_spec())).await;
    let told = |object: &Value| condition(object, "OpenStackAuthenticationSucceeded").0 == "False";
    bed.objects.until("OpenStackCluster", "tls", "it trusts nobody", told).await;
    let secret = json!({"stringData": {"cacert": tls.certificate()}});
    bed.objects.merge("Secret", "cloud-config", secret).await;
    bed.cluster_ready("tls").await;
    bed.delete(&["tls"]).await;
    bed.end().await;
}

#[tokio::test]
async fn an_application_credential_is_enough() {
    let bed = Bed::fake("appcred").await;
    let access: Access = bed.project.application_credential().await;
    let clouds = access.at(bed.proxy.auth_url()).clouds_yaml();
    bed.objects.merge("Secret", "cloud-config", json!({"stringData": {"clouds.yaml": clouds}})).await;
    bed.create(manifests::cluster("appcred", "appcred", manifests::cluster_spec())).await;
    bed.cluster_ready("appcred").await;
    bed.delete(&["appcred"]).await;
    bed.end().await;
}

/// Names of all servers, sorted.
async fn servers(bed: &Bed) -> Vec<String> {
    let mut names: Vec<String> = bed
        .project
        .cloud
        .list("compute", "/servers", "servers")
        .await
        .iter()
        .map(|server| text(server, "/name").to_owned())
        .collect();
    names.sort();
    names
}

/// Waits until the API's load balancer has a member for each control-plane machine.
async fn has_members(bed: &Bed, count: usize) {
    wait::until(&format!("there are {count} members"), async || {
        let members = self::members(bed, "k8s-clusterapi-cluster-life-life-kubeapi-6443").await;
        if members.len() == count { Ok(()) } else { Err(format!("{members:?}")) }
    })
    .await;
}

/// Names of a pool's members.
async fn members(bed: &Bed, pool: &str) -> Vec<String> {
    let pools = bed.project.cloud.list("load-balancer", &format!("/v2/lbaas/pools?name={pool}"), "pools").await;
    let id = text(pools.first().expect("there is a pool"), "/id").to_owned();
    let members = bed.project.cloud.list("load-balancer", &format!("/v2/lbaas/pools/{id}/members"), "members").await;
    members.iter().map(|member| name_of(&json!({"metadata": {"name": member["name"]}})).to_owned()).collect()
}

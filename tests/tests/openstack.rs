//! The OpenStack provider in the whole host, on a fake whose servers become simulated nodes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_tests::objects::{condition, is, name_of, text};
use capwasm_tests::openstack::proxy::Action;
use capwasm_tests::openstack::{Access, Bed, Proxy, manifests};
use capwasm_tests::sample::VERSION;
use capwasm_tests::wait;
use http::Method;
use serde_json::{Value, json};

/// Longer than the provider waits for anything but its ten-minute look, shorter than that.
const QUIET: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_cluster_of_kubeadm_machines_is_provisioned_scaled_and_deleted() {
    let bed = Bed::fake("life").await;
    bed.create(manifests::kubeadm("life", "life", VERSION, 1, 2, manifests::cluster_spec())).await;
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
    let members = members(&bed, "k8s-clusterapi-cluster-life-life-kubeapi-6443").await;
    assert_eq!(members.len(), 3, "one member for each control-plane machine: {members:?}");
    bed.objects.merge("MachineDeployment", "life-md-0", json!({"spec": {"replicas": 1}})).await;
    bed.available("life", 4).await;
    bed.objects.merge("KubeadmControlPlane", "life-control-plane", json!({"spec": {"replicas": 1}})).await;
    bed.available("life", 2).await;
    wait::until("one member is left", async || {
        let left = self::members(&bed, "k8s-clusterapi-cluster-life-life-kubeapi-6443").await;
        if left.len() == 1 { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
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
async fn the_host_is_killed_after_every_write_and_comes_to_the_same_end() {
    let bed = Bed::fake("killed").await;
    bed.proxy.cut_after(1);
    bed.create(manifests::kubeadm("killed", "killed", VERSION, 1, 1, manifests::cluster_spec())).await;
    let made = bed
        .killed_after_every_write(async || {
            let cluster = bed.objects.get("Cluster", "killed").await;
            let machines = bed.objects.list("Machine").await;
            machines.len() == 2
                && machines.iter().all(|machine| text(machine, "/status/phase") == "Running")
                && is(&cluster, "Available")
        })
        .await;
    bed.available("killed", 2).await;
    for (resource, times) in bed.project.counts().await {
        // The load balancer's own port and its floating IP are nameless or named once, too.
        assert_eq!(times, 1, "{resource} is there {times} times");
    }
    bed.proxy.cut_after(1);
    bed.objects.delete("Cluster", "killed").await;
    let deleted = bed.killed_after_every_write(async || bed.objects.find("Cluster", "killed").await.is_none()).await;
    eprintln!("killed {made} times while it was made and {deleted} times while it was deleted");
    bed.nothing_is_left().await;
    bed.end().await;
}

#[tokio::test]
async fn two_clusters_of_one_project_do_not_touch_each_other() {
    let bed = Bed::fake("two").await;
    for name in ["one", "other"] {
        bed.create(manifests::kubeadm("two", name, VERSION, 1, 1, manifests::cluster_spec())).await;
    }
    bed.available("one", 2).await;
    bed.available("other", 2).await;
    bed.objects.delete("Cluster", "one").await;
    wait::until("nothing of the first is left", async || {
        let left = bed.project.resources().await;
        let ours: Vec<&String> =
            left.iter().filter(|name| name.contains("-two-one") || name.contains(" one-")).collect();
        if ours.is_empty() { Ok(()) } else { Err(format!("{ours:?}")) }
    })
    .await;
    bed.available("other", 2).await;
    bed.delete(&["other"]).await;
    bed.end().await;
}

#[tokio::test]
async fn a_cluster_is_deleted_in_the_midst_of_its_creation() {
    let bed = Bed::fake("midst").await;
    // The moments: after so many writes.
    for writes in [1, 4, 8, 12, 16] {
        bed.proxy.clear();
        bed.create(manifests::kubeadm("midst", "midst", VERSION, 1, 1, manifests::cluster_spec())).await;
        wait::until(&format!("{writes} writes were made"), async || {
            let made = bed.proxy.calls().iter().filter(|call| call.is_write()).count();
            if made >= writes { Ok(()) } else { Err(made.to_string()) }
        })
        .await;
        bed.delete(&["midst"]).await;
    }
    bed.end().await;
}

#[tokio::test]
async fn services_that_fail_for_a_while_only_delay() {
    let bed = Bed::fake("failing").await;
    for (index, status) in [409, 429, 500, 503].into_iter().enumerate() {
        let name = format!("c{index}");
        let mut seen = std::collections::BTreeMap::new();
        // Each request fails once.
        bed.proxy.rule(move |call| {
            let times = seen.entry(call.pattern()).or_insert(0);
            *times += 1;
            match *times {
                1 if !call.is_token() => Action::Answer(
                    status,
                    vec![("retry-after", "1".to_owned())],
                    json!({"error": {"code": status, "message": "for a while"}}),
                ),
                _ => Action::Pass,
            }
        });
        bed.create(manifests::cluster("failing", &name, manifests::cluster_spec())).await;
        bed.cluster_ready(&name).await;
        bed.delete(&[&name]).await;
    }
    bed.proxy.pass();
    bed.end().await;
}

#[tokio::test]
async fn services_that_are_slow_or_gone_only_delay() {
    let bed = Bed::fake("slow").await;
    bed.proxy.rule(|_| Action::Late(Duration::from_millis(150)));
    bed.create(manifests::cluster("slow", "slow", manifests::cluster_spec())).await;
    bed.cluster_ready("slow").await;
    // Gone in the middle of a machine's creation, and back.
    bed.proxy.rule(|call| if call.service == "compute" { Action::Drop } else { Action::Pass });
    bed.create(manifests::machine("slow", "slow", "m", false, "", manifests::machine_spec())).await;
    let waits = |object: &Value| !is(object, "Ready") && !condition(object, "Ready").1.is_empty();
    bed.objects.until("OpenStackServer", "m", "it says that it waits", waits).await;
    bed.proxy.pass();
    bed.machine_ready("m").await;
    // A service whose answers are lost.
    let mut lost = 0;
    bed.proxy.rule(move |call| {
        lost += usize::from(call.is_write());
        if call.is_write() && lost % 2 == 1 { Action::Lose } else { Action::Pass }
    });
    bed.create(manifests::machine("slow", "slow", "n", false, "", manifests::machine_spec())).await;
    bed.machine_ready("n").await;
    assert_eq!(servers(&bed).await, ["m", "n"]);
    bed.delete(&["slow"]).await;
    bed.end().await;
}

#[tokio::test]
async fn credentials_that_are_refused_are_told_and_do_not_make_a_storm() {
    let bed = Bed::fake("refused").await;
    bed.proxy.rule(|call| if call.is_token() { Action::status(401, "refused by a test") } else { Action::Pass });
    bed.create(manifests::cluster("refused", "refused", manifests::cluster_spec())).await;
    let told = |object: &Value| condition(object, "OpenStackAuthenticationSucceeded").0 == "False";
    let cluster = bed.objects.until("OpenStackCluster", "refused", "it says so", told).await;
    assert!(condition(&cluster, "OpenStackAuthenticationSucceeded").2.contains("refused by a test"), "{cluster}");
    // Whatever was on its way has come by now; after it, nobody tries again and again.
    let settled = bed.proxy.calls().len();
    tokio::time::sleep(QUIET).await;
    let storm = bed.proxy.calls().len() - settled;
    assert!(storm <= 3, "{storm} more requests in {QUIET:?}");

    // A new Secret wakes it.
    bed.proxy.pass();
    let clouds = bed.project.access.at(bed.proxy.auth_url()).clouds_yaml_with(json!({"verify": true}));
    bed.objects.merge("Secret", "cloud-config", json!({"stringData": {"clouds.yaml": clouds}})).await;
    bed.cluster_ready("refused").await;

    // A token that was good and is not any more is replaced.
    let mut refused = false;
    bed.proxy.rule(move |call| {
        if call.service == "compute" && !std::mem::replace(&mut refused, true) {
            return Action::status(401, "expired");
        }
        Action::Pass
    });
    bed.create(manifests::machine("refused", "refused", "m", false, "", manifests::machine_spec())).await;
    bed.machine_ready("m").await;
    bed.proxy.rule(|call| {
        if call.method == Method::POST && call.path == "/servers" {
            Action::status(403, "not for you")
        } else {
            Action::Pass
        }
    });
    bed.create(manifests::machine("refused", "refused", "n", false, "", manifests::machine_spec())).await;
    let told = |object: &Value| condition(object, "Ready").2.contains("not for you");
    bed.objects.until("OpenStackServer", "n", "it says that it is forbidden", told).await;
    bed.proxy.pass();
    bed.delete(&["refused"]).await;
    bed.end().await;
}

#[tokio::test]
async fn an_exhausted_quota_is_told_and_a_larger_one_is_used() {
    let bed = Bed::fake("quota").await;
    let quota = |instances: i64| json!({"quota_set": {"instances": instances}});
    let path = format!("/os-quota-sets/{}", bed.project.cloud.project_id);
    bed.project.admin.put("compute", &path, &quota(0)).await;
    bed.create(manifests::cluster("quota", "quota", manifests::cluster_spec())).await;
    bed.create(manifests::machine("quota", "quota", "m", false, "", manifests::machine_spec())).await;
    let told = |object: &Value| condition(object, "Ready").2.to_lowercase().contains("quota");
    bed.objects.until("OpenStackServer", "m", "it says that its quota is used up", told).await;
    bed.project.admin.put("compute", &path, &quota(-1)).await;
    // Something that it watches: it need not wait until it would look again.
    bed.objects.merge("OpenStackServer", "m", json!({"metadata": {"annotations": {"of-a-test": "now"}}})).await;
    bed.machine_ready("m").await;
    bed.delete(&["quota"]).await;
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

/// Names of a pool's members.
async fn members(bed: &Bed, pool: &str) -> Vec<String> {
    let pools = bed.project.cloud.list("load-balancer", &format!("/v2/lbaas/pools?name={pool}"), "pools").await;
    let id = text(pools.first().expect("there is a pool"), "/id").to_owned();
    let members = bed.project.cloud.list("load-balancer", &format!("/v2/lbaas/pools/{id}/members"), "members").await;
    members.iter().map(|member| name_of(&json!({"metadata": {"name": member["name"]}})).to_owned()).collect()
}

//! Large pools of workers, as Machines and as a MachinePool.

use std::collections::BTreeSet;

use capwasm_tests::history::History;
use capwasm_tests::objects::{name_of, text};
use capwasm_tests::sample::VERSION;
use serde_json::{Value, json};

use crate::cluster::{BOOTSTRAP, CORE, Cluster, INFRASTRUCTURE, PATCHED, POOL, is_control_plane};

/// Worker pool of 10: made, changed to another version a few at a time, scaled both ways, deleted.
#[tokio::test]
async fn ten_workers_join_change_their_version_scale_and_go() {
    let cluster = Cluster::new("ten", 1, 10).await;
    cluster.provisioned().await;
    let before = cluster.pool_settled(10, VERSION).await;
    let history = History::record(&cluster.objects).await;
    let rollout = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 0}}});
    let spec = json!({"rollout": rollout, "template": {"spec": {"version": PATCHED}}});
    cluster.objects.merge(POOL, "ten-md-0", json!({"spec": spec})).await;
    let after = cluster.pool_settled(10, PATCHED).await;
    assert!(after.is_disjoint(&before));
    let mut alive = before;
    for version in history.so_far().iter().filter(|version| version.kind == "Machine") {
        if version.deleted || version.object["metadata"].get("deletionTimestamp").is_some() {
            alive.remove(name_of(&version.object));
        } else if !is_control_plane(&version.object) {
            alive.insert(name_of(&version.object).to_owned());
        }
        assert!((10..=13).contains(&alive.len()), "{alive:?}");
    }
    cluster.objects.merge(POOL, "ten-md-0", json!({"spec": {"replicas": 3}})).await;
    let three = cluster.pool_settled(3, PATCHED).await;
    assert!(three.is_subset(&after));
    cluster.objects.merge(POOL, "ten-md-0", json!({"spec": {"replicas": 10}})).await;
    assert!(cluster.pool_settled(10, PATCHED).await.is_superset(&three));
    cluster.delete().await;
}

/// A MachinePool: its instances join, are scaled, replaced for another version, and go with the cluster.
#[tokio::test]
async fn a_machine_pool_scales_and_replaces_its_instances() {
    let mut cluster = Cluster::new("pooled", 1, 0).await;
    let meta = json!({"name": "pooled-mp", "namespace": "pooled"});
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "pooled-mp"});
    cluster.sample.documents.extend([
        json!({"apiVersion": format!("{BOOTSTRAP}/v1beta2"), "kind": "KubeadmConfig", "metadata": meta}),
        json!({"apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DockerMachinePool", "metadata": meta,
            "spec": {"template": {}}}),
        json!({"apiVersion": CORE, "kind": "MachinePool", "metadata": meta, "spec": {
            "clusterName": "pooled", "replicas": 3,
            "template": {"spec": {
                "clusterName": "pooled", "version": VERSION,
                "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfig")},
                "infrastructureRef": reference(INFRASTRUCTURE, "DockerMachinePool"),
            }},
        }}),
    ]);
    cluster.sample.machines = 4;
    cluster.provisioned().await;
    let ready = |replicas: u64| {
        move |pool: &Value| {
            text(pool, "/status/phase") == "Running"
                && pool["status"]["readyReplicas"] == replicas
                && pool["status"]["nodeRefs"].as_array().map_or(0, Vec::len) as u64 == replicas
        }
    };
    let mut last = BTreeSet::new();
    for replicas in [3, 5, 2] {
        cluster.objects.merge("MachinePool", "pooled-mp", json!({"spec": {"replicas": replicas}})).await;
        last = cluster.pool_settled(replicas, VERSION).await;
        cluster.objects.until("MachinePool", "pooled-mp", "follows", ready(replicas as u64)).await;
    }
    let version = json!({"spec": {"template": {"spec": {"version": PATCHED}}}});
    cluster.objects.merge("MachinePool", "pooled-mp", version).await;
    let after = cluster.pool_settled(2, PATCHED).await;
    assert!(after.is_disjoint(&last), "{last:?} {after:?}");
    assert_eq!(cluster.management.engine().containers("pooled").await.len(), 4, "with a load balancer");
    cluster.delete().await;
}

//! MachinePools and MachineHealthChecks in a world of their own.

use capwasm_api::conditions;
use capwasm_object::{json, meta};
use serde_json::{Value, json};

use crate::world::{World, of, send, until};

fn core(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

async fn node(world: &World, name: &str, ready: &str, since: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": format!("test://{name}")}});
    let _ = send(&world.workload, "POST", "/api/v1/nodes", Some(node)).await;
    let conditions =
        [("Ready", ready), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")]
            .map(|(name, status)| json!({"type": name, "status": status, "reason": "R", "lastTransitionTime": since}));
    let status = json!({"status": {"conditions": conditions.to_vec(), "nodeInfo": {"kubeletVersion": "v1.36.0"}}});
    send(&world.workload, "PATCH", &format!("/api/v1/nodes/{name}/status"), Some(status)).await.unwrap();
}

/// A pool whose provider names two machines; then one goes, and then the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_follows_its_provider_to_nodes_and_goes_without_a_trace() {
    let world = World::start().await;
    let _provider = crate::provider::start(&world);
    let _core = world.core(usize::MAX);
    world.apply_cluster().await;
    let reference = json!({"apiGroup": "test.capwasm.dev", "kind": "InfraTemplate", "name": "pool"});
    let infra = json!({"apiVersion": "test.capwasm.dev/v1", "kind": "InfraTemplate", "metadata": {"name": "pool", "namespace": "default"},
        "spec": {"providerIDList": ["test://p1", "test://p2"]}});
    world.put("infratemplates", infra).await;
    let spec = json!({"clusterName": "c", "replicas": 2, "template": {"spec": {"clusterName": "c", "version": "v1.36.0",
        "bootstrap": {"dataSecretName": "mine"}, "infrastructureRef": reference}}});
    world.put("machinepools", core("MachinePool", "mp", spec)).await;
    for name in ["p1", "p2"] {
        node(&world, name, "True", "2026-01-01T00:00:00Z").await;
    }
    let pool = || async { world.get(&format!("{}/mp", of("machinepools"))).await.unwrap_or_default() };
    until("the pool owns its infrastructure", || async {
        let infra = world.get(&format!("{}/pool", of("infratemplates"))).await.unwrap();
        json::items(&infra, "/metadata/ownerReferences").iter().any(|owner| owner["kind"] == "MachinePool")
    })
    .await;
    let path = format!("{}/pool/status", of("infratemplates"));
    let status = json!({"status": {"initialization": {"provisioned": true}, "replicas": 2}});
    send(&world.client, "PATCH", &path, Some(status)).await.unwrap();
    until("the pool runs", || async {
        let pool = pool().await;
        pool["status"]["phase"] == "Running" && conditions::is_true(&pool, "Available")
    })
    .await;
    assert_eq!(json::items(&pool().await, "/status/nodeRefs").len(), 2);
    let marked = send(&world.workload, "GET", "/api/v1/nodes/p1", None).await.unwrap();
    assert_eq!(meta::annotation(&marked, "cluster.x-k8s.io/owner-name"), Some("mp"));

    world.patch("infratemplates", "pool", json!({"spec": {"providerIDList": ["test://p1"]}})).await;
    until("the Node of the other goes", || async {
        send(&world.workload, "GET", "/api/v1/nodes/p2", None).await.is_err()
    })
    .await;
    world.delete("machinepools", "mp").await;
    until("nothing of it is left", || async {
        world.get(&format!("{}/mp", of("machinepools"))).await.is_none()
            && world.get(&format!("{}/pool", of("infratemplates"))).await.is_none()
            && send(&world.workload, "GET", "/api/v1/nodes/p1", None).await.is_err()
    })
    .await;
}

/// The Node of a Machine is lost: the health check says so, the set deletes the Machine and makes another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_node_is_lost_is_replaced() {
    let world = World::with_admission().await;
    let _provider = crate::provider::start(&world);
    let _core = world.core(usize::MAX);
    world.apply_cluster().await;
    let spec = json!({"clusterName": "c", "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "md"}},
        "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 60}]}});
    world.put("machinehealthchecks", core("MachineHealthCheck", "mhc", spec)).await;
    let check = || async { world.get(&format!("{}/mhc", of("machinehealthchecks"))).await.unwrap_or_default() };
    until("both are healthy", || async {
        let all = world.list("machines").await;
        check().await["status"]["currentHealthy"] == 2
            && all.iter().all(|machine| conditions::is_true(machine, "HealthCheckSucceeded"))
    })
    .await;
    let machines = world.list("machines").await;
    let sick = meta::name(&machines[0]).to_owned();
    let uid = meta::uid(&machines[0]).to_owned();
    let lost = json::text(&machines[0], "/status/nodeRef/name").unwrap().to_owned();
    node(&world, &lost, "Unknown", "2026-01-01T00:00:00Z").await;
    until("the sick one is gone and another is there", || async {
        let now = world.list("machines").await;
        now.len() == 2
            && now
                .iter()
                .all(|machine| meta::uid(machine) != uid && conditions::is_true(machine, "HealthCheckSucceeded"))
    })
    .await;
    assert!(world.list("machines").await.iter().all(|machine| meta::name(machine) != sick));
    let check = check().await;
    assert_eq!(check["status"]["expectedMachines"], 2);
    assert!(conditions::is_true(&check, "RemediationAllowed"));
}

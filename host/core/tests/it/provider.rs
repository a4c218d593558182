//! The least that a provider can be: it looks at everything again and again, as no real one would.

use capwasm_api::json;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::world::{World, list, of, send};

/// Runs until dropped.
pub fn start(world: &World) -> DropGuard {
    let stop = CancellationToken::new();
    let (client, workload, stopped) = (world.client.clone(), world.workload.clone(), stop.clone());
    tokio::spawn(async move {
        while !stopped.is_cancelled() {
            pass(&client, &workload).await;
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    stop.drop_guard()
}

async fn pass(client: &kube::Client, workload: &kube::Client) {
    for object in list(client, &of("infraclusters")).await {
        if is_owned(&object, "Cluster") && json::flag(&object, "/status/initialization/provisioned").is_none() {
            patch(
                client,
                "infraclusters",
                &object,
                json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443}}}),
            )
            .await;
            status(
                client,
                "infraclusters",
                &object,
                json!({"initialization": {"provisioned": true}, "conditions": [ready("Ready")]}),
            )
            .await;
        }
    }
    for object in list(client, &of("planes")).await {
        if is_owned(&object, "Cluster")
            && json::flag(&object, "/status/initialization/controlPlaneInitialized").is_none()
        {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c-kubeconfig", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "c"},
                "ownerReferences": [{"apiVersion": "test.capwasm.dev/v1", "kind": "Plane", "name": "c", "uid": json::uid(&object)}]}, "type": "cluster.x-k8s.io/secret", "stringData": {"value": "kubeconfig"}});
            let _ = send(client, "POST", &of("secrets"), Some(secret)).await;
            status(
                client,
                "planes",
                &object,
                json!({"initialization": {"controlPlaneInitialized": true}, "externalManagedControlPlane": true,
                "versions": [{"version": "v1.36.0", "replicas": 1}], "conditions": [ready("Available")]}),
            )
            .await;
        }
    }
    for object in list(client, &of("boots")).await {
        if is_owned(&object, "Machine") && json::flag(&object, "/status/initialization/dataSecretCreated").is_none() {
            status(client, "boots", &object, json!({"dataSecretName": json::name(&object), "initialization": {"dataSecretCreated": true}, "conditions": [ready("Ready")]})).await;
        }
    }
    for object in list(client, &of("infras")).await {
        let machine = send(client, "GET", &format!("{}/{}", of("machines"), json::name(&object)), None).await;
        let has_data = machine.is_ok_and(|machine| json::text(&machine, "/spec/bootstrap/dataSecretName").is_some());
        if has_data
            && is_owned(&object, "Machine")
            && json::flag(&object, "/status/initialization/provisioned").is_none()
        {
            let id = format!("test://{}", json::name(&object));
            patch(client, "infras", &object, json!({"spec": {"providerID": id}})).await;
            status(client, "infras", &object, json!({"initialization": {"provisioned": true}, "conditions": [ready("Ready")], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]})).await;
            let conditions: Vec<Value> =
                [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")]
                    .map(|(name, status)| json!({"type": name, "status": status, "reason": "R"}))
                    .to_vec();
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": json::name(&object)},
                "spec": {"providerID": id, "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]}});
            let _ = send(workload, "POST", "/api/v1/nodes", Some(node)).await;
            let path = format!("/api/v1/nodes/{}/status", json::name(&object));
            let _ = send(
                workload,
                "PATCH",
                &path,
                Some(json!({"status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.36.0"}}})),
            )
            .await;
        }
    }
}

fn ready(name: &str) -> Value {
    json!({"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn is_owned(object: &Value, kind: &str) -> bool {
    !json::is_deleting(object)
        && json::items(object, "/metadata/ownerReferences").iter().any(|owner| json::text(owner, "/kind") == Some(kind))
}

async fn patch(client: &kube::Client, plural: &str, object: &Value, merge: Value) {
    let _ = send(client, "PATCH", &format!("{}/{}", of(plural), json::name(object)), Some(merge)).await;
}

async fn status(client: &kube::Client, plural: &str, object: &Value, status: Value) {
    let path = format!("{}/{}/status", of(plural), json::name(object));
    let _ = send(client, "PATCH", &path, Some(json!({"status": status}))).await;
}

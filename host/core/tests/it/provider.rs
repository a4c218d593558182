//! A minimal provider that polls, as no real one would. It follows the contract that its CRDs declare.

use std::time::Duration;

use capwasm_object::{json, meta};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::world::{World, list, of, send};

/// Runs until dropped.
pub fn start(world: &World) -> DropGuard {
    let stop = CancellationToken::new();
    let provider =
        Provider { client: world.client.clone(), workload: world.workload.clone(), contract: world.contract };
    let stopped = stop.clone();
    tokio::spawn(async move {
        while !stopped.is_cancelled() {
            provider.pass().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    stop.drop_guard()
}

struct Provider {
    client: kube::Client,
    workload: kube::Client,
    contract: &'static str,
}

impl Provider {
    async fn pass(&self) {
        for object in self.todo("infraclusters", "Cluster", "provisioned").await {
            let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443}}});
            self.patch("infraclusters", &object, "", endpoint).await;
            self.done("infraclusters", &object, "provisioned", json!({})).await;
        }
        for object in self.todo("planes", "Cluster", "controlPlaneInitialized").await {
            self.kubeconfig(&object).await;
            let versions = json!([{"version": "v1.36.0", "replicas": 1}]);
            let more = json!({"externalManagedControlPlane": true, "versions": versions});
            self.done("planes", &object, "controlPlaneInitialized", more).await;
        }
        for object in self.todo("boots", "Machine", "dataSecretCreated").await {
            self.done("boots", &object, "dataSecretCreated", json!({"dataSecretName": meta::name(&object)})).await;
        }
        for object in self.todo("infras", "Machine", "provisioned").await {
            let path = format!("{}/{}", of("machines"), meta::name(&object));
            let machine = send(&self.client, "GET", &path, None).await.unwrap_or_default();
            if json::text(&machine, "/spec/bootstrap/dataSecretName").is_some() {
                let id = format!("test://{}", meta::name(&object));
                self.patch("infras", &object, "", json!({"spec": {"providerID": id}})).await;
                let addresses = json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]});
                self.done("infras", &object, "provisioned", addresses).await;
                self.node(meta::name(&object), &id).await;
            }
        }
    }

    /// Objects with an owner that are not done.
    async fn todo(&self, plural: &str, owner: &str, flag: &str) -> Vec<Value> {
        let pointer = match self.contract {
            "v1beta1" => "/status/ready".to_owned(),
            _ => format!("/status/initialization/{flag}"),
        };
        let mut objects = list(&self.client, &of(plural)).await;
        objects.retain(|object| {
            let owners = json::items(object, "/metadata/ownerReferences");
            !meta::is_deleting(object)
                && owners.iter().any(|one| json::text(one, "/kind") == Some(owner))
                && json::flag(object, &pointer).is_none()
        });
        objects
    }

    async fn done(&self, plural: &str, object: &Value, flag: &str, mut status: Value) {
        let conditions = ["Ready", "Available"].map(|name| {
            json!({"type": name, "status": "True", "reason": name, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        });
        match self.contract {
            "v1beta1" => {
                json::set(&mut status, &["ready"], true);
                json::set(&mut status, &["initialized"], true);
            }
            _ => json::set(&mut status, &["initialization", flag], true),
        }
        json::set(&mut status, &["conditions"], conditions.to_vec());
        self.patch(plural, object, "/status", json!({"status": status})).await;
    }

    async fn patch(&self, plural: &str, object: &Value, subresource: &str, merge: Value) {
        let path = format!("{}/{}{subresource}", of(plural), meta::name(object));
        // What fails now is tried again in the next pass.
        let _ = send(&self.client, "PATCH", &path, Some(merge)).await;
    }

    async fn kubeconfig(&self, plane: &Value) {
        let owner = json!({"apiVersion": "test.capwasm.dev/v1", "kind": "Plane", "name": "c", "uid": meta::uid(plane)});
        let metadata = json!({"name": "c-kubeconfig", "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": "c"}, "ownerReferences": [owner]});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
            "type": "cluster.x-k8s.io/secret", "stringData": {"value": "kubeconfig"}});
        let _ = send(&self.client, "POST", &of("secrets"), Some(secret)).await;
    }

    async fn node(&self, name: &str, id: &str) {
        let taints = json!([{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]);
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"providerID": id, "taints": taints}});
        let _ = send(&self.workload, "POST", "/api/v1/nodes", Some(node)).await;
        let conditions =
            [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")]
                .map(|(name, status)| json!({"type": name, "status": status, "reason": "R"}));
        let status = json!({"status": {"conditions": conditions.to_vec(), "nodeInfo": {"kubeletVersion": "v1.36.0"}}});
        let _ = send(&self.workload, "PATCH", &format!("/api/v1/nodes/{name}/status"), Some(status)).await;
    }
}

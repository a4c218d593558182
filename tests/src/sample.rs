//! The manifests of a cluster on Docker, as `capwasm generate cluster` writes them, to be changed by tests.

use serde_json::Value;

use crate::binary;
use crate::objects::{Objects, flag, is, text};
use crate::wait;

/// The Kubernetes version of its machines.
pub const VERSION: &str = "v1.34.0";

/// A cluster's manifests. Name and namespace are the same: containers are named for the cluster alone.
#[derive(Clone)]
pub struct Sample {
    /// Name of Cluster and namespace.
    pub name: String,
    /// Machines that it is going to have.
    pub machines: usize,
    /// The documents, in the order of creation.
    pub documents: Vec<Value>,
}

impl Sample {
    /// With so many control-plane machines and workers.
    pub fn new(name: &str, control_planes: usize, workers: usize) -> Sample {
        Sample::of(VERSION, name, control_planes, workers)
    }

    /// The same of another Kubernetes version.
    pub fn of(version: &str, name: &str, control_planes: usize, workers: usize) -> Sample {
        let (planes, count) = (control_planes.to_string(), workers.to_string());
        let text = binary::output(&[
            "generate",
            "cluster",
            name,
            "--namespace",
            name,
            "--kubernetes-version",
            version,
            "--control-plane-machine-count",
            &planes,
            "--worker-machine-count",
            &count,
        ]);
        let documents = serde_saphyr::from_multiple(&text).expect("manifests are YAML");
        Sample { name: name.to_owned(), machines: control_planes + workers, documents }
    }

    /// The first document of a kind.
    pub fn document(&mut self, kind: &str) -> &mut Value {
        self.documents.iter_mut().find(|document| document["kind"] == kind).expect("the sample has every kind")
    }

    /// Takes the documents of a kind out.
    pub fn take(&mut self, kind: &str) -> Vec<Value> {
        let (taken, left) =
            std::mem::take(&mut self.documents).into_iter().partition(|document| document["kind"] == kind);
        self.documents = left;
        taken
    }

    /// Creates all documents.
    pub async fn create(&self, objects: &Objects) {
        for document in &self.documents {
            objects.create(document).await;
        }
    }

    /// Waits until the Cluster is Provisioned and Available and all Machines are Running.
    pub async fn provisioned(&self, objects: &Objects) -> Value {
        wait::until(&format!("cluster {} is provisioned", self.name), async || {
            let machines = objects.list("Machine").await;
            let phases: Vec<&str> = machines.iter().map(|machine| text(machine, "/status/phase")).collect();
            let cluster = objects.get("Cluster", &self.name).await;
            let running = phases.len() == self.machines && phases.iter().all(|phase| *phase == "Running");
            if running && is(&cluster, "Available") && text(&cluster, "/status/phase") == "Provisioned" {
                return Ok(cluster);
            }
            Err(format!("Machines {phases:?}, Cluster {}", cluster["status"]))
        })
        .await
    }

    /// Deletes the Cluster and waits until it is gone.
    pub async fn delete(&self, objects: &Objects) {
        objects.delete("Cluster", &self.name).await;
        wait::until(&format!("cluster {} is gone", self.name), async || {
            match objects.find("Cluster", &self.name).await {
                None => Ok(()),
                Some(cluster) => Err(cluster["status"].to_string()),
            }
        })
        .await;
    }
}

/// Whether a provider's object is provisioned.
pub fn is_provisioned(object: &Value) -> bool {
    flag(object, "/status/initialization/provisioned")
}

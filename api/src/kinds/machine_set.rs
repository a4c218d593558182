//! MachineSet.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine::MachineSpec;
use super::meta::{Metadata, TemplateMetadata};

/// `MachineSet`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MachineSet {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: MachineSetSpec,
    /// What was observed.
    pub status: MachineSetStatus,
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetSpec {
    /// The cluster.
    pub cluster_name: String,
    /// How many machines.
    pub replicas: Option<i32>,
    /// A metav1 label selector.
    pub selector: Value,
    /// What each machine is made from.
    pub template: MachineTemplate,
    /// How machines are named.
    pub machine_naming: MachineNaming,
    /// Which machines go first.
    pub deletion: SetDeletion,
}

/// `spec.template`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineTemplate {
    /// Labels and annotations.
    pub metadata: TemplateMetadata,
    /// Spec of each machine.
    pub spec: MachineSpec,
}

/// `spec.machineNaming`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MachineNaming {
    /// `{{ .machineSet.name }}-{{ .random }}`.
    pub template: Option<String>,
}

/// `spec.deletion`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SetDeletion {
    /// `Random` (default), `Newest`, `Oldest`.
    pub order: Option<String>,
}

/// `status`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetStatus {
    /// All.
    pub replicas: Option<i32>,
    /// Ready.
    pub ready_replicas: Option<i32>,
    /// Available.
    pub available_replicas: Option<i32>,
    /// Up to date.
    pub up_to_date_replicas: Option<i32>,
    /// Generation that the status is about.
    pub observed_generation: Option<i64>,
}

/// How many machines run a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionCount {
    /// Kubernetes version.
    pub version: String,
    /// Machines.
    pub replicas: i32,
}

//! MachineSet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine::MachineSpec;
use super::meta::{Object, TemplateMetadata};

/// Typed view of a MachineSet.
pub type MachineSet = Object<MachineSetSpec, MachineSetStatus>;

/// `spec` of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetSpec {
    /// Name of the Cluster in the same namespace.
    pub cluster_name: String,
    /// Wanted machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// metav1.LabelSelector of its Machines.
    pub selector: Value,
    /// Template of its Machines.
    pub template: MachineTemplate,
    /// Naming of its Machines.
    pub machine_naming: MachineNaming,
    /// Order in which Machines are deleted.
    pub deletion: SetDeletion,
}

/// `spec.template`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineTemplate {
    /// Labels and annotations of each Machine.
    pub metadata: TemplateMetadata,
    /// Spec of each Machine.
    pub spec: MachineSpec,
}

/// `spec.machineNaming`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineNaming {
    /// Such as `{{ .machineSet.name }}-{{ .random }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// `spec.deletion`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetDeletion {
    /// `Random` (default), `Newest` or `Oldest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// `status` of a MachineSet, without conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetStatus {
    /// Existing machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Machines that are Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i64>,
    /// Machines that are Available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i64>,
    /// Machines whose spec matches the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i64>,
    /// Label selector as text, for the `scale` subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Running Kubernetes versions, sorted, with the number of their machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
}

/// Number of machines of a Kubernetes version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionCount {
    /// Such as `v1.34.0`.
    pub version: String,
    /// Number of machines.
    pub replicas: i32,
}

impl VersionCount {
    /// Adds machines by version, sorted by text.
    pub fn total<V: Into<String> + Ord>(machines: impl IntoIterator<Item = (V, i32)>) -> Vec<VersionCount> {
        let mut counts: BTreeMap<V, i32> = BTreeMap::new();
        for (version, replicas) in machines {
            let count = counts.entry(version).or_default();
            *count = count.saturating_add(replicas);
        }
        counts.into_iter().map(|(version, replicas)| VersionCount { version: version.into(), replicas }).collect()
    }
}

//! MachineSet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine::MachineSpec;
use super::meta::{Object, TemplateMetadata};

/// A MachineSet.
pub type MachineSet = Object<MachineSetSpec, MachineSetStatus>;

/// What is wanted of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetSpec {
    /// Name of its Cluster, in its namespace.
    pub cluster_name: String,
    /// How many machines.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineNaming {
    /// `{{ .machineSet.name }}-{{ .random }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// `spec.deletion`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetDeletion {
    /// `Random` (default), `Newest`, `Oldest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// What was observed of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSetStatus {
    /// Machines that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Machines that are Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i64>,
    /// Machines that have been Ready for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i64>,
    /// Machines that are as their template wants them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i64>,
    /// The label selector as text, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Kubernetes versions that run, in their order, with the number of machines of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
}

/// How many machines run a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionCount {
    /// Kubernetes version.
    pub version: String,
    /// Machines.
    pub replicas: i32,
}

impl VersionCount {
    /// Machines by the version that they run, in the order of the versions' texts.
    pub fn total<V: Into<String> + Ord>(machines: impl IntoIterator<Item = (V, i32)>) -> Vec<VersionCount> {
        let mut counts: BTreeMap<V, i32> = BTreeMap::new();
        for (version, replicas) in machines {
            let count = counts.entry(version).or_default();
            *count = count.saturating_add(replicas);
        }
        counts.into_iter().map(|(version, replicas)| VersionCount { version: version.into(), replicas }).collect()
    }
}

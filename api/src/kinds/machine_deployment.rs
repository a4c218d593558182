//! MachineDeployment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine_set::{MachineNaming, MachineTemplate, SetDeletion, VersionCount};
use super::meta::Object;

/// A MachineDeployment.
pub type MachineDeployment = Object<MachineDeploymentSpec, MachineDeploymentStatus>;

/// What is wanted of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentSpec {
    /// Name of its Cluster, in its namespace.
    pub cluster_name: String,
    /// How many machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Holds roll-outs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// A metav1 label selector.
    pub selector: Value,
    /// What each machine is made from.
    pub template: MachineTemplate,
    /// How a changed template is rolled out.
    pub rollout: Rollout,
    /// How machines are named.
    pub machine_naming: MachineNaming,
    /// Which machines go first.
    pub deletion: SetDeletion,
}

/// `spec.rollout`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rollout {
    /// Machines that are older than this are replaced once it is past, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many machines go and come at a time.
    pub strategy: RolloutStrategy,
}

/// `spec.rollout.strategy`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStrategy {
    /// `RollingUpdate` (default) or `OnDelete`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Limits of a rolling update.
    pub rolling_update: RollingUpdate,
}

/// `spec.rollout.strategy.rollingUpdate`: numbers, or percentages as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// Machines above the wanted number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Value>,
    /// Machines below the wanted number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Value>,
}

/// What was observed of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentStatus {
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
    /// ScalingUp, ScalingDown, Running, Unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The label selector as text, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Kubernetes versions that run, in their order, with the number of machines of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
}

//! MachineDeployment.

use serde::Deserialize;
use serde_json::Value;

use super::machine_set::{MachineNaming, MachineTemplate, SetDeletion};
use super::meta::Metadata;

/// `MachineDeployment`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MachineDeployment {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: MachineDeploymentSpec,
    /// What was observed.
    pub status: MachineDeploymentStatus,
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentSpec {
    /// The cluster.
    pub cluster_name: String,
    /// How many machines.
    pub replicas: Option<i32>,
    /// Holds roll-outs.
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
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Rollout {
    /// Machines that are older than this are replaced once it is past, RFC 3339.
    pub after: Option<String>,
    /// How.
    pub strategy: RolloutStrategy,
}

/// `spec.rollout.strategy`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStrategy {
    /// `RollingUpdate` (default) or `OnDelete`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Limits of a rolling update.
    pub rolling_update: RollingUpdate,
}

/// `spec.rollout.strategy.rollingUpdate`: numbers, or percentages as text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// Machines above the wanted number.
    pub max_surge: Option<Value>,
    /// Machines below the wanted number.
    pub max_unavailable: Option<Value>,
}

/// `status`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentStatus {
    /// All.
    pub replicas: Option<i32>,
    /// Ready.
    pub ready_replicas: Option<i32>,
    /// Available.
    pub available_replicas: Option<i32>,
    /// Up to date.
    pub up_to_date_replicas: Option<i32>,
    /// ScalingUp, ScalingDown, Running, Unknown.
    pub phase: String,
    /// Generation that the status is about.
    pub observed_generation: Option<i64>,
}

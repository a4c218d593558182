//! MachineDeployment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine_set::{MachineNaming, MachineTemplate, SetDeletion, VersionCount};
use super::meta::Object;

/// Typed view of a MachineDeployment.
pub type MachineDeployment = Object<MachineDeploymentSpec, MachineDeploymentStatus>;

/// `spec` of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentSpec {
    /// Name of the Cluster in the same namespace.
    pub cluster_name: String,
    /// Wanted machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Pauses rollouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// metav1.LabelSelector of its Machines.
    pub selector: Value,
    /// Template of its Machines.
    pub template: MachineTemplate,
    /// Rollout of a changed template.
    pub rollout: Rollout,
    /// Naming of its Machines.
    pub machine_naming: MachineNaming,
    /// Order in which Machines are deleted.
    pub deletion: SetDeletion,
}

/// `spec.rollout`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rollout {
    /// Once this time (RFC 3339) is past, older Machines are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Rollout strategy.
    pub strategy: RolloutStrategy,
}

/// `spec.rollout.strategy`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStrategy {
    /// `RollingUpdate` (default) or `OnDelete`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Limits of `RollingUpdate`.
    pub rolling_update: RollingUpdate,
}

/// `spec.rollout.strategy.rollingUpdate`: integers, or percentages as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// Machines above the wanted number at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Value>,
    /// Machines below the wanted number at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Value>,
}

/// `status` of a MachineDeployment, without conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeploymentStatus {
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
    /// `ScalingUp`, `ScalingDown`, `Running` or `Unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Label selector as text, for the `scale` subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Running Kubernetes versions, sorted, with the number of their machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
}

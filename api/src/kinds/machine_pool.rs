//! MachinePool.

use serde::Deserialize;

use super::machine::{MachineInitialization, NodeRef};
use super::machine_set::MachineTemplate;
use super::meta::Metadata;

/// `MachinePool`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MachinePool {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: MachinePoolSpec,
    /// What was observed.
    pub status: MachinePoolStatus,
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolSpec {
    /// The cluster.
    pub cluster_name: String,
    /// How many machines.
    pub replicas: Option<i32>,
    /// What they are made from: references are to the pool's own objects, not to templates.
    pub template: MachineTemplate,
    /// Identities of the machines at the provider.
    #[serde(rename = "providerIDList")]
    pub provider_id_list: Vec<String>,
}

/// `status`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolStatus {
    /// Milestones.
    pub initialization: MachineInitialization,
    /// Nodes of its machines.
    pub node_refs: Vec<NodeRef>,
    /// All.
    pub replicas: Option<i32>,
    /// Pending, Provisioning, Provisioned, Running, ScalingUp, ScalingDown, Scaling, Deleting.
    pub phase: String,
}

//! MachinePool.

use serde::{Deserialize, Serialize};

use super::machine::MachineInitialization;
use super::machine_set::{MachineTemplate, VersionCount};
use super::meta::Object;

/// A MachinePool.
pub type MachinePool = Object<MachinePoolSpec, MachinePoolStatus>;

/// What is wanted of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolSpec {
    /// Name of its Cluster, in its namespace.
    pub cluster_name: String,
    /// How many machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What they are made from: references are to the pool's own objects, not to templates.
    pub template: MachineTemplate,
    /// Identities of the machines at the provider.
    #[serde(rename = "providerIDList", skip_serializing_if = "Vec::is_empty")]
    pub provider_id_list: Vec<String>,
}

/// What was observed of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolStatus {
    /// Milestones.
    pub initialization: MachineInitialization,
    /// Nodes of its machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_refs: Vec<NodeReference>,
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
    /// Kubernetes versions that run, in their order, with the number of machines of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
    /// Pending, Provisioning, Provisioned, Running, ScalingUp, ScalingDown, Scaling, Deleting.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

/// An entry of `status.nodeRefs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReference {
    /// `v1`.
    pub api_version: String,
    /// `Node`.
    pub kind: String,
    /// Name of the Node.
    pub name: String,
    /// Unique over time.
    pub uid: String,
}

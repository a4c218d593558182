//! MachinePool.

use serde::{Deserialize, Serialize};

use super::machine::MachineInitialization;
use super::machine_set::{MachineTemplate, VersionCount};
use super::meta::Object;

/// Typed view of a MachinePool.
pub type MachinePool = Object<MachinePoolSpec, MachinePoolStatus>;

/// `spec` of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolSpec {
    /// Name of the Cluster in the same namespace.
    pub cluster_name: String,
    /// Wanted machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Template of the machines; its references are to objects of the pool, not to templates.
    pub template: MachineTemplate,
    /// Provider IDs of the machines.
    #[serde(rename = "providerIDList", skip_serializing_if = "Vec::is_empty")]
    pub provider_id_list: Vec<String>,
}

/// `status` of a MachinePool, without conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolStatus {
    /// Milestones, which are final.
    pub initialization: MachineInitialization,
    /// Nodes of its machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_refs: Vec<NodeReference>,
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
    /// Running Kubernetes versions, sorted, with the number of their machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
    /// `Pending`, `Provisioning`, `Provisioned`, `Running`, `ScalingUp`, `ScalingDown`, `Scaling` or `Deleting`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

/// An entry of `status.nodeRefs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReference {
    /// Always `v1`.
    pub api_version: String,
    /// Always `Node`.
    pub kind: String,
    /// Name of the Node.
    pub name: String,
    /// Uid of the Node.
    pub uid: String,
}

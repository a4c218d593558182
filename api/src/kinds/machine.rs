//! Machine.

use serde::{Deserialize, Serialize};

use super::meta::{ContractReference, Metadata};

/// `Machine`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: MachineSpec,
    /// What was observed.
    pub status: MachineStatus,
}

/// `spec`; also `spec.template.spec` of sets and deployments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// The cluster.
    pub cluster_name: String,
    /// Where the bootstrap data comes from.
    pub bootstrap: Bootstrap,
    /// The infrastructure.
    pub infrastructure_ref: ContractReference,
    /// Kubernetes version, with `v`.
    pub version: Option<String>,
    /// Identity at the provider.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Where it should be, or is, placed.
    pub failure_domain: Option<String>,
    /// Seconds of being Ready that make it Available.
    pub min_ready_seconds: Option<i32>,
    /// More conditions of `Ready`.
    pub readiness_gates: Vec<ReadinessGate>,
    /// Time limits of its deletion.
    pub deletion: Deletion,
    /// Taints of the Node.
    pub taints: Vec<Taint>,
}

/// `spec.bootstrap`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// The configuration (in templates: its template).
    pub config_ref: Option<ContractReference>,
    /// The Secret with the data.
    pub data_secret_name: Option<String>,
}

/// `spec.deletion`, in seconds; 0 or absent means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Deletion {
    /// For draining the Node.
    pub node_drain_timeout_seconds: Option<i32>,
    /// For the detachment of volumes.
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// For the deletion of the Node object.
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// A condition that takes part in `Ready` (of Machines) or `Available` (of Clusters).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadinessGate {
    /// Its type.
    pub condition_type: String,
    /// `Positive` (default) or `Negative`.
    pub polarity: Option<String>,
}

/// A taint that the Node should carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
    /// `Always` or `OnInitialization`.
    pub propagation: String,
}

/// `status`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// Milestones, which are never taken back.
    pub initialization: MachineInitialization,
    /// The Node.
    pub node_ref: Option<NodeRef>,
    /// Addresses.
    pub addresses: Vec<MachineAddress>,
    /// Where it is placed.
    pub failure_domain: Option<String>,
    /// Pending, Provisioning, Provisioned, Running, Updating, Deleting.
    pub phase: String,
    /// When `phase` last changed, RFC 3339.
    pub last_updated: Option<String>,
    /// Generation that the status is about.
    pub observed_generation: Option<i64>,
    /// When steps of the deletion began.
    pub deletion: MachineDeletionStatus,
}

/// `status.initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineInitialization {
    /// The infrastructure is there.
    pub infrastructure_provisioned: Option<bool>,
    /// The bootstrap data is there.
    pub bootstrap_data_secret_created: Option<bool>,
}

/// `status.nodeRef`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRef {
    /// Name of the Node.
    pub name: String,
}

/// An address of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineAddress {
    /// Hostname, ExternalIP, InternalIP, ExternalDNS, InternalDNS.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address.
    pub address: String,
}

/// `status.deletion`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeletionStatus {
    /// When the drain began, RFC 3339.
    pub node_drain_start_time: Option<String>,
    /// When the wait for volumes began, RFC 3339.
    pub wait_for_node_volume_detach_start_time: Option<String>,
}

//! Machine.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::{ContractReference, Object};

/// A Machine.
pub type Machine = Object<MachineSpec, MachineStatus>;

/// What is wanted of a Machine; also `spec.template.spec` of sets, deployments and pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// Name of its Cluster, in its namespace.
    pub cluster_name: String,
    /// Where the bootstrap data comes from.
    pub bootstrap: Bootstrap,
    /// The infrastructure.
    pub infrastructure_ref: ContractReference,
    /// Kubernetes version, with `v`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Identity at the provider.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Where it should be, or is, placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Seconds of being Ready that make it Available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// More conditions of `Ready`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGate>,
    /// Time limits of its deletion.
    pub deletion: Deletion,
    /// Taints of the Node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// `spec.bootstrap`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// The configuration (in templates: its template).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractReference>,
    /// The Secret with the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
}

/// `spec.deletion`, in seconds; 0 or absent means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Deletion {
    /// For draining the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout_seconds: Option<i32>,
    /// For the detachment of volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// For the deletion of the Node object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// A condition that takes part in `Ready` (of Machines) or `Available` (of Clusters).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadinessGate {
    /// Its type, as in `status.conditions`.
    pub condition_type: String,
    /// `Positive` (default) or `Negative`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
}

/// A taint that the Node should carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Its key, with a prefix: `node.kubernetes.io/unreachable`.
    pub key: String,
    /// Its value; taints need none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
    /// `Always` or `OnInitialization`.
    pub propagation: String,
}

/// What was observed of a Machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// Milestones, which are never taken back.
    pub initialization: MachineInitialization,
    /// The Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeRef>,
    /// What the Node says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
    /// As the infrastructure reports them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Where it is placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Pending, Provisioning, Provisioned, Running, Updating, Deleting.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// When `phase` last changed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// When the certificates of a control-plane machine expire, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates_expiry_date: Option<String>,
    /// When steps of the deletion began.
    pub deletion: MachineDeletionStatus,
}

/// `status.initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineInitialization {
    /// The infrastructure is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// The bootstrap data is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_data_secret_created: Option<bool>,
}

/// `status.nodeRef`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRef {
    /// Name of the Node.
    pub name: String,
}

/// `status.nodeInfo`. The schema requires all texts; what a Node does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    /// `amd64`, `arm64`.
    pub architecture: String,
    /// Changes with each boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// `containerd://2.1.0`.
    pub container_runtime_version: String,
    /// As `uname -r` says.
    pub kernel_version: String,
    /// Deprecated upstream: what the kubelet takes it for.
    pub kube_proxy_version: String,
    /// Kubernetes version, with `v`.
    pub kubelet_version: String,
    /// From `/etc/machine-id`.
    #[serde(rename = "machineID")]
    pub machine_id: String,
    /// `linux`, `windows`.
    pub operating_system: String,
    /// From `/etc/os-release`.
    pub os_image: String,
    /// Of the firmware.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    /// `{capacity}`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<Value>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeletionStatus {
    /// When the wait for pre-drain hooks began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_pre_drain_hook_start_time: Option<String>,
    /// When the wait for pre-terminate hooks began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_pre_terminate_hook_start_time: Option<String>,
    /// When the drain began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_start_time: Option<String>,
    /// When the wait for volumes began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_node_volume_detach_start_time: Option<String>,
}

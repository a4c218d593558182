//! Machine.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::{ContractReference, Object};

/// Typed view of a Machine.
pub type Machine = Object<MachineSpec, MachineStatus>;

/// `spec` of a Machine; also `spec.template.spec` of sets, deployments and pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// Name of the Cluster in the same namespace.
    pub cluster_name: String,
    /// Source of the bootstrap data.
    pub bootstrap: Bootstrap,
    /// Reference to the infrastructure machine; in templates, to its template.
    pub infrastructure_ref: ContractReference,
    /// Kubernetes version, such as `v1.34.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Identity at the infrastructure provider, equal to `spec.providerID` of the Node.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Wanted or actual failure domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Seconds of being Ready after which it is Available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Additional conditions that `Ready` depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGate>,
    /// Timeouts of its deletion.
    pub deletion: Deletion,
    /// Taints for the Node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// `spec.bootstrap`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// Reference to the bootstrap configuration; in templates, to its template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractReference>,
    /// Name of the bootstrap data Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
}

/// `spec.deletion`: timeouts in seconds; 0 or absent means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Deletion {
    /// Timeout of the drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout_seconds: Option<i32>,
    /// Timeout of the wait for volumes to be detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// Timeout of the deletion of the Node object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// Additional condition of `Ready` (of Machines) or `Available` (of Clusters).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadinessGate {
    /// Type of the condition.
    pub condition_type: String,
    /// `Positive` (default) or `Negative`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
}

/// Taint for the Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Prefixed key, such as `node.kubernetes.io/unreachable`.
    pub key: String,
    /// Optional value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// `Always` or `OnInitialization`.
    pub propagation: String,
}

/// `status` of a Machine, without conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// Milestones, which are final.
    pub initialization: MachineInitialization,
    /// Reference to the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeRef>,
    /// `status.nodeInfo` of the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
    /// Addresses from the infrastructure machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Actual failure domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// `Pending`, `Provisioning`, `Provisioned`, `Running`, `Updating` or `Deleting`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// When `phase` last changed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// When the certificates of a control-plane machine expire, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates_expiry_date: Option<String>,
    /// Start times of steps of the deletion.
    pub deletion: MachineDeletionStatus,
}

/// `status.initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineInitialization {
    /// The infrastructure is provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// The bootstrap data Secret is created.
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

/// `status.nodeInfo`. The schema requires all texts; unreported ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    /// Such as `amd64`.
    pub architecture: String,
    /// Id of the boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// Such as `containerd://2.1.0`.
    pub container_runtime_version: String,
    /// Kernel version as by `uname -r`.
    pub kernel_version: String,
    /// Deprecated upstream.
    pub kube_proxy_version: String,
    /// Kubernetes version, such as `v1.34.0`.
    pub kubelet_version: String,
    /// Id from `/etc/machine-id`.
    #[serde(rename = "machineID")]
    pub machine_id: String,
    /// `linux` or `windows`.
    pub operating_system: String,
    /// Name from `/etc/os-release`.
    pub os_image: String,
    /// UUID of the firmware.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    /// `{capacity}` in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<Value>,
}

/// Address of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineAddress {
    /// `Hostname`, `ExternalIP`, `InternalIP`, `ExternalDNS` or `InternalDNS`.
    #[serde(rename = "type")]
    pub kind: String,
    /// DNS name or IP address.
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

//! Cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine_set::VersionCount;
use super::meta::{ContractReference, Object};

/// Typed view of a Cluster.
pub type Cluster = Object<ClusterSpec, ClusterStatus>;

/// `spec` of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Pauses reconciliation of everything in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Networks of nodes and workloads.
    pub cluster_network: ClusterNetwork,
    /// Endpoint of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<Endpoint>,
    /// Reference to the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractReference>,
    /// Reference to the infrastructure cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractReference>,
    /// Topology of a cluster of a ClusterClass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Value>,
    /// Additional conditions that `Available` depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub availability_gates: Vec<super::machine::ReadinessGate>,
}

impl ClusterSpec {
    /// The endpoint, if host and port are set.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.control_plane_endpoint.as_ref().filter(|endpoint| endpoint.is_valid())
    }
}

/// `spec.clusterNetwork`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterNetwork {
    /// Port of each API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server_port: Option<i32>,
    /// Address ranges of Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkRanges>,
    /// Address ranges of Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<NetworkRanges>,
    /// DNS domain of Services, such as `cluster.local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_domain: Option<String>,
}

/// `services` and `pods` of a cluster network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRanges {
    /// CIDR blocks, such as `192.168.0.0/16`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cidr_blocks: Vec<String>,
}

/// Endpoint of an API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// DNS name or IP address.
    pub host: String,
    /// TCP port.
    pub port: i32,
}

impl Endpoint {
    /// Whether host and port are set.
    pub fn is_valid(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }
}

/// `status` of a Cluster, without conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Milestones, which are final.
    pub initialization: ClusterInitialization,
    /// Failure domains of the infrastructure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<FailureDomain>,
    /// `Pending`, `Provisioning`, `Provisioned`, `Deleting` or `Unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Control plane machines; absent if nobody counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ReplicaCounts>,
    /// Worker machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<ReplicaCounts>,
}

/// `status.initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInitialization {
    /// The infrastructure is provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// The API server has been reachable once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// Replica counters of a part of a cluster; unreported ones are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaCounts {
    /// Wanted machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i64>,
    /// Existing machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Machines whose spec matches their template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i64>,
    /// Machines that are Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i64>,
    /// Machines that are Available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i64>,
    /// Running Kubernetes versions, sorted, with the number of their machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
}

/// Failure domain of the infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureDomain {
    /// Name, unique within the cluster.
    pub name: String,
    /// Whether control-plane machines may be placed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Provider-specific attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

//! Cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::{ContractReference, Metadata};

/// `Cluster`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Cluster {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: ClusterSpec,
    /// What was observed.
    pub status: ClusterStatus,
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Holds reconciliation of everything in the cluster.
    pub paused: Option<bool>,
    /// Networks.
    pub cluster_network: ClusterNetwork,
    /// Where the API server is reached.
    pub control_plane_endpoint: Option<Endpoint>,
    /// The control plane.
    pub control_plane_ref: Option<ContractReference>,
    /// The infrastructure.
    pub infrastructure_ref: Option<ContractReference>,
    /// Set for clusters of a class.
    pub topology: Option<Value>,
    /// More conditions of `Available`.
    pub availability_gates: Vec<super::machine::ReadinessGate>,
}

impl ClusterSpec {
    /// The endpoint, when it has host and port.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.control_plane_endpoint.as_ref().filter(|endpoint| endpoint.is_valid())
    }
}

/// `spec.clusterNetwork`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterNetwork {
    /// Port of each API server.
    pub api_server_port: Option<i32>,
    /// Services.
    pub services: Option<NetworkRanges>,
    /// Pods.
    pub pods: Option<NetworkRanges>,
    /// DNS domain of services.
    pub service_domain: Option<String>,
}

/// Address ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRanges {
    /// In CIDR notation.
    pub cidr_blocks: Vec<String>,
}

/// Host and port of an API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: i32,
}

impl Endpoint {
    /// Whether both parts are there.
    pub fn is_valid(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }
}

/// `status`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Milestones, which are never taken back.
    pub initialization: ClusterInitialization,
    /// Failure domains of the infrastructure.
    pub failure_domains: Vec<FailureDomain>,
    /// Pending, Provisioning, Provisioned, Deleting, Unknown.
    pub phase: String,
    /// Generation that the status is about.
    pub observed_generation: Option<i64>,
}

/// `status.initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInitialization {
    /// The infrastructure is there.
    pub infrastructure_provisioned: Option<bool>,
    /// The API server has been reachable.
    pub control_plane_initialized: Option<bool>,
}

/// A place where machines can fail together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureDomain {
    /// Unique within the cluster.
    pub name: String,
    /// Whether control-plane machines may be placed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// What the provider says about it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

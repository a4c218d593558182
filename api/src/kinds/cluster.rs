//! Cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine_set::VersionCount;
use super::meta::{ContractReference, Object};

/// A Cluster.
pub type Cluster = Object<ClusterSpec, ClusterStatus>;

/// What is wanted of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Holds reconciliation of everything in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Address ranges and names that its nodes and workloads use.
    pub cluster_network: ClusterNetwork,
    /// Where the API server is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<Endpoint>,
    /// The control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractReference>,
    /// The infrastructure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractReference>,
    /// Set for clusters of a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Value>,
    /// More conditions of `Available`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server_port: Option<i32>,
    /// Addresses of Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkRanges>,
    /// Addresses of Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<NetworkRanges>,
    /// DNS domain of services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_domain: Option<String>,
}

/// Address ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRanges {
    /// In CIDR notation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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

/// What was observed of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Milestones, which are never taken back.
    pub initialization: ClusterInitialization,
    /// Failure domains of the infrastructure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<FailureDomain>,
    /// Pending, Provisioning, Provisioned, Deleting, Unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The control plane's machines; absent while nobody counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ReplicaCounts>,
    /// Machines of all workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<ReplicaCounts>,
}

/// `status.initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInitialization {
    /// The infrastructure is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// The API server has been reachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// How many machines a part of a cluster has; a counter that nobody reports is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaCounts {
    /// As asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i64>,
    /// That there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// That are as their template wants them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i64>,
    /// That are Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i64>,
    /// That have been Ready for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i64>,
    /// Kubernetes versions that run, in their order, with the number of machines of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
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

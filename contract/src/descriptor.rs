//! What a provider says about itself: the document that `descriptor.describe()` returns.
//!
//! Published as `wit/descriptor.schema.json`. Unknown fields are ignored, so that newer providers load on older hosts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Description of a provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Name of the provider, a DNS label: `docker-infra`.
    pub name: String,
    /// Version of the provider, such as `0.1.0`.
    pub version: String,
    /// Version of the WIT package, such as `0.1`.
    pub contract: String,
    /// Kinds of the provider.
    pub kinds: Vec<KindDescriptor>,
    /// Wanted capabilities.
    #[serde(default)]
    pub wants: Wants,
}

/// Purpose of a kind, which decides the interface that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// `infrastructure-cluster`.
    InfrastructureCluster,
    /// `infrastructure-machine`.
    InfrastructureMachine,
    /// `infrastructure-machine-pool`.
    InfrastructureMachinePool,
    /// `bootstrap`.
    Bootstrap,
    /// `control-plane`.
    ControlPlane,
    /// `controller`: a kind outside of Cluster API's roles.
    Controller,
    /// `template`: a template or data, served and never reconciled.
    Template,
}

/// Scope of mutual exclusion of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusiveBy {
    /// One call at a time for an object.
    #[default]
    Object,
    /// One call at a time for the kind's objects of one cluster.
    Cluster,
}

/// A kind of the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindDescriptor {
    /// Role of the kind.
    pub role: Role,
    /// API group, such as `infrastructure.cluster.x-k8s.io`.
    pub group: String,
    /// Kind, such as `DockerMachine`.
    pub kind: String,
    /// API version in which the provider gets objects.
    pub version: String,
    /// Finalizers that the host adds before the first side effect and removes when nothing is left. The first is the
    /// provider's own, the others are taken over from earlier controllers.
    #[serde(default)]
    pub finalizers: Vec<String>,
    /// Paths outside of status that the provider may set with `outcome.set-own`, such as `spec.providerID`.
    #[serde(default)]
    pub own: Vec<String>,
    /// Fields of the status and types of conditions that are only for people until the object is provisioned. A status
    /// without other changes may be written a moment later, with the next one.
    #[serde(default)]
    pub may_wait: Vec<String>,
    /// Scope of mutual exclusion of calls.
    #[serde(default)]
    pub exclusive_by: ExclusiveBy,
    /// Path of the name of the Secret (type `cluster.x-k8s.io/secret`, in the object's namespace) that
    /// `secrets.bootstrap-data` reads, for the role `controller`: `spec.userDataRef.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_data: Option<String>,
    /// Whether the export `admission` defaults and validates its objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admission: bool,
    /// CustomResourceDefinition of the kind. The host adds the contract labels.
    pub crd: Value,
}

/// Capabilities that a provider wants. Those that it gets are in its WasmProvider, in the same shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wants {
    /// Names of HTTP endpoints (`http://NAME.endpoint/`), such as `docker`.
    pub endpoints: Vec<String>,
    /// HTTP origins, such as `https://*.example.org:5000`.
    pub origins: Vec<String>,
    /// Kinds of the management cluster to read, besides the object and its `related` ones.
    pub reads: Vec<KindPattern>,
    /// Kinds of the management cluster to create, patch or delete.
    pub writes: Vec<KindPattern>,
    /// Kinds of the workload cluster to read.
    pub workload_reads: Vec<KindPattern>,
    /// Kinds among `workload_reads` whose changes wake objects: the host watches them in each workload cluster where
    /// one is read. Nodes always wake.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workload_watches: Vec<KindPattern>,
    /// Kinds of the workload cluster to create, patch or delete.
    pub workload_writes: Vec<KindPattern>,
    /// Names of Secrets in the object's namespace; `*` matches any part: `*-ca`. Bootstrap data needs none.
    pub secrets: Vec<String>,
    /// Whether to make keys and certificates.
    pub pki: bool,
    /// Whether to read and change members of the workload cluster's etcd.
    pub etcd: bool,
}

/// `{group, kind}`; `kind` may be `*` for every kind of the group. The core group is `""`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindPattern {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind, or `*`.
    pub kind: String,
}

impl KindPattern {
    /// Whether the pattern covers a kind.
    pub fn matches(&self, group: &str, kind: &str) -> bool {
        self.group == group && (self.kind == "*" || self.kind == kind)
    }
}

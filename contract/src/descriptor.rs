//! What a provider says about itself: the document that `descriptor.describe()` returns.
//!
//! Published as `wit/descriptor.schema.json`. Unknown fields are ignored, so that newer providers load on older hosts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Name of the provider, a DNS label: `docker-infra`.
    pub name: String,
    /// The provider's own version: `0.1.0`.
    pub version: String,
    /// Version of the WIT package that it speaks: `0.1`.
    pub contract: String,
    /// The kinds that it serves.
    pub kinds: Vec<KindDescriptor>,
    /// What it wants to be granted.
    #[serde(default)]
    pub wants: Wants,
}

/// What a kind is for; decides which exported interface is called.
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
    /// `controller`: any other kind of the provider's own.
    Controller,
    /// A template of another kind, or data: served, never reconciled.
    Template,
}

/// Which calls exclude each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusiveBy {
    /// One call per object at a time.
    #[default]
    Object,
    /// One call at a time for all objects of this kind in one cluster.
    Cluster,
}

/// One served kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindDescriptor {
    /// What it is for.
    pub role: Role,
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// The API version in which objects are handed to the provider.
    pub version: String,
    /// Finalizers that the host sets before the first effect and removes when nothing is left. The first is the
    /// provider's own, the others are taken over from earlier owners.
    #[serde(default)]
    pub finalizers: Vec<String>,
    /// Paths outside of status that the provider may set with `outcome.set-own`: `spec.providerID`.
    #[serde(default)]
    pub own: Vec<String>,
    /// Fields and types of conditions of the status that nobody but people act on before the object is provisioned. A status
    /// that brings nothing else may be written a moment later, with what comes next.
    #[serde(default)]
    pub may_wait: Vec<String>,
    /// Which calls exclude each other.
    #[serde(default)]
    pub exclusive_by: ExclusiveBy,
    /// Of a controller: the path of the name of the Secret (type `cluster.x-k8s.io/secret`, in the object's namespace) that
    /// `secrets.bootstrap-data` opens: `spec.userDataRef.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_data: Option<String>,
    /// Whether the export `admission` is asked about its objects before they are stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admission: bool,
    /// The CustomResourceDefinition, whole. The host adds the contract labels.
    pub crd: Value,
}

/// The capabilities that a provider wants. What it gets is in its WasmProvider, in the same shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wants {
    /// Named HTTP endpoints (`http://NAME.endpoint/`): `docker`.
    pub endpoints: Vec<String>,
    /// HTTP origins: `https://*.example.org:5000`.
    pub origins: Vec<String>,
    /// Kinds of the management cluster that it reads, besides the object and its `related` ones.
    pub reads: Vec<KindPattern>,
    /// Kinds of the management cluster that it creates, patches or deletes.
    pub writes: Vec<KindPattern>,
    /// Kinds of the workload cluster that it reads.
    pub workload_reads: Vec<KindPattern>,
    /// Those of `workload_reads` whose changes wake: the host watches all objects of the kind in each workload cluster where one
    /// is read. Nodes wake anyway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workload_watches: Vec<KindPattern>,
    /// Kinds of the workload cluster that it creates, patches or deletes.
    pub workload_writes: Vec<KindPattern>,
    /// Secrets of the object's namespace, by name; `*` matches any part: `*-ca`. The bootstrap data needs none.
    pub secrets: Vec<String>,
    /// Keys and certificates.
    pub pki: bool,
    /// Membership of the workload cluster's etcd.
    pub etcd: bool,
}

/// `{group, kind}`; `kind` may be `*` for every kind of the group. The core group is `""`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindPattern {
    /// API group.
    pub group: String,
    /// Kind, or `*`.
    pub kind: String,
}

impl KindPattern {
    /// Whether it names this kind.
    pub fn matches(&self, group: &str, kind: &str) -> bool {
        self.group == group && (self.kind == "*" || self.kind == kind)
    }
}

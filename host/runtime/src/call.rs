//! One call of a provider: what goes in, and the traits through which a guest's reads reach the host.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_api::descriptor::Role;
use serde::{Deserialize, Serialize};

use crate::grants::Grants;
use crate::http::HttpClient;
use crate::outcome::ObjectRef;
use crate::record::Recorder;
use crate::refused::Refused;

/// The functions that the roles export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Function {
    /// `infrastructure-cluster.provision`
    #[serde(rename = "infrastructure-cluster.provision")]
    ClusterProvision,
    /// `infrastructure-cluster.deprovision`
    #[serde(rename = "infrastructure-cluster.deprovision")]
    ClusterDeprovision,
    /// `infrastructure-machine.provision`
    #[serde(rename = "infrastructure-machine.provision")]
    MachineProvision,
    /// `infrastructure-machine.deprovision`
    #[serde(rename = "infrastructure-machine.deprovision")]
    MachineDeprovision,
    /// `infrastructure-machine-pool.provision`
    #[serde(rename = "infrastructure-machine-pool.provision")]
    PoolProvision,
    /// `infrastructure-machine-pool.deprovision`
    #[serde(rename = "infrastructure-machine-pool.deprovision")]
    PoolDeprovision,
    /// `bootstrap.generate`
    #[serde(rename = "bootstrap.generate")]
    BootstrapGenerate,
    /// `bootstrap.release`
    #[serde(rename = "bootstrap.release")]
    BootstrapRelease,
    /// `control-plane.reconcile`
    #[serde(rename = "control-plane.reconcile")]
    ControlPlaneReconcile,
    /// `control-plane.delete`
    #[serde(rename = "control-plane.delete")]
    ControlPlaneDelete,
    /// `controller.reconcile`
    #[serde(rename = "controller.reconcile")]
    ControllerReconcile,
    /// `controller.delete`
    #[serde(rename = "controller.delete")]
    ControllerDelete,
}

impl Function {
    /// The role whose interface has this function.
    pub fn role(self) -> Role {
        match self {
            Function::ClusterProvision | Function::ClusterDeprovision => Role::InfrastructureCluster,
            Function::MachineProvision | Function::MachineDeprovision => Role::InfrastructureMachine,
            Function::PoolProvision | Function::PoolDeprovision => Role::InfrastructureMachinePool,
            Function::BootstrapGenerate | Function::BootstrapRelease => Role::Bootstrap,
            Function::ControlPlaneReconcile | Function::ControlPlaneDelete => Role::ControlPlane,
            Function::ControllerReconcile | Function::ControllerDelete => Role::Controller,
        }
    }

    /// `interface.function`, as in the WIT.
    pub fn name(self) -> &'static str {
        match self {
            Function::ClusterProvision => "infrastructure-cluster.provision",
            Function::ClusterDeprovision => "infrastructure-cluster.deprovision",
            Function::MachineProvision => "infrastructure-machine.provision",
            Function::MachineDeprovision => "infrastructure-machine.deprovision",
            Function::PoolProvision => "infrastructure-machine-pool.provision",
            Function::PoolDeprovision => "infrastructure-machine-pool.deprovision",
            Function::BootstrapGenerate => "bootstrap.generate",
            Function::BootstrapRelease => "bootstrap.release",
            Function::ControlPlaneReconcile => "control-plane.reconcile",
            Function::ControlPlaneDelete => "control-plane.delete",
            Function::ControllerReconcile => "controller.reconcile",
            Function::ControllerDelete => "controller.delete",
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One call.
#[derive(Clone)]
pub struct Call {
    /// Which exported function.
    pub function: Function,
    /// The object, JSON text in the provider's spoken version, without managedFields.
    pub object: String,
    /// What the guest can ask about this call.
    pub facts: Facts,
    /// Where the guest's reads and requests go once [`Call::grants`] let them through.
    pub capabilities: Capabilities,
    /// What the provider may do.
    pub grants: Arc<Grants>,
    /// Seed of WASI's random numbers. The same seed and facts give the same call.
    pub seed: u64,
    /// Who gets a recording of it.
    pub recorder: Option<Arc<dyn Recorder>>,
}

/// The facts behind the `call` interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// Milliseconds since 1970; WASI's wall clock stands at this instant.
    pub now_ms: u64,
    /// 1 for the first try since the object, or something that was read, changed.
    pub attempt: u32,
    /// Correlates logs, traces and recordings.
    pub id: String,
    /// The provider's configuration, JSON text. Empty is answered as `{}`.
    pub configuration: String,
    /// Objects that the host holds for this call, JSON text by role: `cluster`, `machine`, `machines` ...
    pub related: BTreeMap<String, Vec<String>>,
    /// How the operations of the previous pass ended, by key.
    pub results: Vec<(String, Result<(), Refused>)>,
}

/// Where a guest's reads and requests go. Grants are checked before any of these is asked.
#[derive(Clone)]
pub struct Capabilities {
    /// The management cluster's objects.
    pub lookup: Arc<dyn Lookup>,
    /// The workload cluster's objects.
    pub workload: Arc<dyn Lookup>,
    /// What pods of the workload cluster serve TLS with.
    pub certificates: Arc<dyn ServingCertificates>,
    /// The workload cluster's etcd.
    pub etcd: Arc<dyn Etcd>,
    /// Secrets of the object's namespace, and of others.
    pub secrets: Arc<dyn Secrets>,
    /// HTTP to the granted origins and endpoints. One per loaded provider: it holds the connection pools.
    pub http: Arc<HttpClient>,
}

impl Capabilities {
    /// Nothing behind any capability: whatever is asked is denied.
    pub fn none() -> Self {
        let nothing = Arc::new(Nothing);
        Capabilities {
            lookup: nothing.clone(),
            workload: nothing.clone(),
            certificates: nothing.clone(),
            etcd: nothing.clone(),
            secrets: nothing,
            http: Arc::new(HttpClient::denied()),
        }
    }
}

/// Reads of one API server. A missing namespace in a request is the object's own.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// One object, JSON text without managedFields.
    async fn get(&self, target: &ObjectRef) -> Result<String, Refused>;
    /// All objects of a kind that match a label selector as kubectl takes it; empty selects all.
    async fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<String>, Refused>;
}

/// Secrets, read live.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The decoded `data` of a Secret; without a namespace, of the object's own.
    async fn open(&self, namespace: Option<&str>, name: &str) -> Result<BTreeMap<String, Vec<u8>>, Refused>;
    /// The bootstrap data of the machine at hand, or what a controller's object names as such; `not-found` until it is made.
    async fn bootstrap_data(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused>;
}

/// What pods of the workload cluster serve TLS with.
#[async_trait]
pub trait ServingCertificates: Send + Sync {
    /// The certificate (PEM) that a port of a pod shows, as nobody vouches for it.
    async fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused>;
}

/// Membership of the workload cluster's etcd.
#[async_trait]
pub trait Etcd: Send + Sync {
    /// The members, each asked for itself.
    async fn members(&self) -> Result<Vec<EtcdMember>, Refused>;
    /// Takes a member out; one that is gone already is a success.
    async fn remove(&self, id: u64) -> Result<(), Refused>;
    /// Has `to` lead; a success as well when it leads already.
    async fn move_leader(&self, to: u64) -> Result<(), Refused>;
}

/// A member of the workload cluster's etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// Its id.
    pub id: u64,
    /// The Node's name.
    pub name: String,
    /// Where other members reach it.
    pub peer_urls: Vec<String>,
    /// Whether it has no vote yet.
    pub learner: bool,
    /// Whether it leads.
    pub leader: bool,
    /// Whether it answers, knows the same members as the others, and raises no alarm.
    pub healthy: bool,
    /// What is wrong when it is not healthy.
    pub message: String,
    /// Alarms that it raises, by etcd's names.
    pub alarms: Vec<String>,
}

/// Denies everything.
struct Nothing;

fn nothing<T>() -> Result<T, Refused> {
    Err(Refused::denied("this call has no capability"))
}

#[async_trait]
impl Lookup for Nothing {
    async fn get(&self, _: &ObjectRef) -> Result<String, Refused> {
        nothing()
    }

    async fn list(&self, _: &str, _: &str, _: Option<&str>, _: &str) -> Result<Vec<String>, Refused> {
        nothing()
    }
}

#[async_trait]
impl Secrets for Nothing {
    async fn open(&self, _: Option<&str>, _: &str) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        nothing()
    }

    async fn bootstrap_data(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        nothing()
    }
}

#[async_trait]
impl ServingCertificates for Nothing {
    async fn serving_certificate(&self, _: &str, _: &str, _: u16) -> Result<String, Refused> {
        nothing()
    }
}

#[async_trait]
impl Etcd for Nothing {
    async fn members(&self) -> Result<Vec<EtcdMember>, Refused> {
        nothing()
    }

    async fn remove(&self, _: u64) -> Result<(), Refused> {
        nothing()
    }

    async fn move_leader(&self, _: u64) -> Result<(), Refused> {
        nothing()
    }
}

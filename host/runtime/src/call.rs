//! A call of a provider: its input, and the traits that serve the guest's capabilities.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_contract::{EtcdMember, Facts, Function, ObjectRef, Refused, Selection};

use crate::grants::Grants;
use crate::http::HttpClient;
use crate::record::Recorder;

/// Input of a call.
#[derive(Clone)]
pub struct Call {
    /// Exported function to call.
    pub function: Function,
    /// The object, JSON text in the provider's spoken version, without managedFields.
    pub object: String,
    /// Answers of the capability `call`.
    pub facts: Facts,
    /// Where granted reads and requests of the guest go.
    pub capabilities: Capabilities,
    /// Grants of the provider.
    pub grants: Arc<Grants>,
    /// Seed of WASI's random numbers. Calls with the same seed and facts are the same.
    pub seed: u64,
    /// Receives a recording of the call.
    pub recorder: Option<Arc<dyn Recorder>>,
}

/// Implementations of the capabilities. Grants are checked before they are called.
#[derive(Clone)]
pub struct Capabilities {
    /// Reads of the management cluster.
    pub lookup: Arc<dyn Lookup>,
    /// Reads of the workload cluster.
    pub workload: Arc<dyn Lookup>,
    /// Serving certificates of pods in the workload cluster.
    pub certificates: Arc<dyn ServingCertificates>,
    /// Membership of the workload cluster's etcd.
    pub etcd: Arc<dyn Etcd>,
    /// Secrets of the management cluster.
    pub secrets: Arc<dyn Secrets>,
    /// HTTP to the granted origins and endpoints. One per loaded provider, because of its connection pools.
    pub http: Arc<HttpClient>,
}

impl Capabilities {
    /// Capabilities that deny everything.
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

/// Reads of one API server. The default namespace is the object's.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// An object as JSON text without managedFields.
    async fn get(&self, target: &ObjectRef) -> Result<String, Refused>;
    /// The selected objects, each as by [`Lookup::get`].
    async fn list(&self, of: &Selection) -> Result<Vec<String>, Refused>;
}

/// Secrets, always read live.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// Decoded `data` of a Secret; without a namespace, in the object's.
    async fn open(&self, namespace: Option<&str>, name: &str) -> Result<BTreeMap<String, Vec<u8>>, Refused>;
    /// Decoded bootstrap data of the Machine, or of the Secret that a controller's object names; `not-found` until it
    /// exists.
    async fn bootstrap_data(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused>;
}

/// Serving certificates of pods in the workload cluster.
#[async_trait]
pub trait ServingCertificates: Send + Sync {
    /// Certificate (PEM) that a port of a pod presents; it is not verified.
    async fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused>;
}

/// Membership of the workload cluster's etcd.
#[async_trait]
pub trait Etcd: Send + Sync {
    /// The members, with the status that each reports itself.
    async fn members(&self) -> Result<Vec<EtcdMember>, Refused>;
    /// Removes a member; a missing one is a success.
    async fn remove(&self, id: u64) -> Result<(), Refused>;
    /// Makes `to` the leader; also a success if it is already.
    async fn move_leader(&self, to: u64) -> Result<(), Refused>;
}

/// Denies every request.
struct Nothing;

fn nothing<T>() -> Result<T, Refused> {
    Err(Refused::denied("this call has no capability"))
}

#[async_trait]
impl Lookup for Nothing {
    async fn get(&self, _: &ObjectRef) -> Result<String, Refused> {
        nothing()
    }

    async fn list(&self, _: &Selection) -> Result<Vec<String>, Refused> {
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

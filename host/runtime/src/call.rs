//! One call of a provider: what goes in, and the traits through which a guest's reads reach the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_contract::{EtcdMember, Facts, Function, ObjectRef, Refused, Selection};

use crate::grants::Grants;
use crate::http::HttpClient;
use crate::record::Recorder;

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
    /// All that a selection names, in the same form.
    async fn list(&self, of: &Selection) -> Result<Vec<String>, Refused>;
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

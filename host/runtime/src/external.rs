//! What a call asks of others, with the CPU time that this takes counted apart from the provider's own.
//!
//! A TLS handshake with a member of etcd, or the decoding of an API server's answer, says nothing about a provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_contract::{EtcdMember, ObjectRef, Refused, Selection};

use crate::call::{Capabilities, Etcd, Lookup, Secrets, ServingCertificates};
use crate::meter::CpuMeter;

/// One of the traits behind a capability, under the meter.
struct External<T: ?Sized> {
    source: Arc<T>,
    meter: Arc<CpuMeter>,
}

/// The same capabilities; what workload clusters, etcd and the management cluster's Secrets cost goes to
/// [`CpuMeter::outside`]. Reads of the management cluster's caches stay the call's own, and [`crate::HttpClient`] is
/// metered where it is asked.
pub(crate) fn metered(capabilities: Capabilities, meter: &Arc<CpuMeter>) -> Capabilities {
    fn external<T: ?Sized>(source: Arc<T>, meter: &Arc<CpuMeter>) -> Arc<External<T>> {
        Arc::new(External { source, meter: meter.clone() })
    }
    Capabilities {
        lookup: capabilities.lookup,
        workload: external(capabilities.workload, meter),
        certificates: external(capabilities.certificates, meter),
        etcd: external(capabilities.etcd, meter),
        secrets: external(capabilities.secrets, meter),
        http: capabilities.http,
    }
}

#[async_trait]
impl Lookup for External<dyn Lookup> {
    async fn get(&self, target: &ObjectRef) -> Result<String, Refused> {
        self.meter.outside(self.source.get(target)).await
    }

    async fn list(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        self.meter.outside(self.source.list(of)).await
    }
}

#[async_trait]
impl Secrets for External<dyn Secrets> {
    async fn open(&self, namespace: Option<&str>, name: &str) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        self.meter.outside(self.source.open(namespace, name)).await
    }

    async fn bootstrap_data(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        self.meter.outside(self.source.bootstrap_data()).await
    }
}

#[async_trait]
impl ServingCertificates for External<dyn ServingCertificates> {
    async fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        self.meter.outside(self.source.serving_certificate(namespace, pod, port)).await
    }
}

#[async_trait]
impl Etcd for External<dyn Etcd> {
    async fn members(&self) -> Result<Vec<EtcdMember>, Refused> {
        self.meter.outside(self.source.members()).await
    }

    async fn remove(&self, id: u64) -> Result<(), Refused> {
        self.meter.outside(self.source.remove(id)).await
    }

    async fn move_leader(&self, to: u64) -> Result<(), Refused> {
        self.meter.outside(self.source.move_leader(to)).await
    }
}

//! Counts the CPU time of capabilities that others serve apart from the provider's own.
//!
//! TLS handshakes with etcd, or decoding an API server's response, say nothing about a provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_contract::{EtcdMember, ObjectRef, Refused, Selection};

use crate::call::{Capabilities, Etcd, Lookup, Secrets, ServingCertificates};
use crate::meter::CpuMeter;

/// A capability whose CPU time is metered.
struct External<T: ?Sized> {
    source: Arc<T>,
    meter: Arc<CpuMeter>,
}

/// Meters workload clusters, etcd and the management cluster's Secrets as [`CpuMeter::outside`]. Reads of caches count
/// as the call's own; [`crate::HttpClient`] is metered by its caller.
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

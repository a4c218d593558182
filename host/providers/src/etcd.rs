//! A guest's access to etcd and serving certificates of the workload cluster. These reads are not watched, so they
//! trigger no reconcile.

use async_trait::async_trait;
use capwasm_contract::{EtcdMember, Refusal, Refused};
use capwasm_remote::{ForwardError, etcd::EtcdError};
use capwasm_runtime::{Etcd, ServingCertificates};

use crate::reads::{Workload, chain};

#[async_trait]
impl Etcd for Workload {
    async fn members(&self) -> Result<Vec<EtcdMember>, Refused> {
        self.connection().await?.etcd().members().await.map_err(refused)
    }

    async fn remove(&self, id: u64) -> Result<(), Refused> {
        self.connection().await?.etcd().remove(id).await.map_err(refused)
    }

    async fn move_leader(&self, to: u64) -> Result<(), Refused> {
        self.connection().await?.etcd().move_leader(to).await.map_err(refused)
    }
}

#[async_trait]
impl ServingCertificates for Workload {
    async fn serving_certificate(&self, namespace: &str, pod: &str, port: u16) -> Result<String, Refused> {
        let certificate = self.connection().await?.serving_certificate(namespace, pod, port).await;
        certificate.map_err(|error| match &error {
            ForwardError::Refused { source, .. } if matches!(source.as_ref(), kube::Error::Api(s) if s.code == 404) => {
                Refused::not_found(format!("there is no Pod {namespace}/{pod}"))
            }
            _ => Refused::new(Refusal::Unavailable, "PortForwardFailed", chain(&error)),
        })
    }
}

fn refused(error: EtcdError) -> Refused {
    let (refusal, reason) = match &error {
        EtcdError::Unsupported(_) => (Refusal::Unsupported, "EtcdNotManaged"),
        EtcdError::NoAuthority(_) => (Refusal::NotFound, "EtcdAuthorityMissing"),
        EtcdError::BadAuthority(_) => (Refusal::Invalid, "EtcdAuthorityInvalid"),
        EtcdError::Unavailable(_) => (Refusal::Unavailable, "EtcdUnavailable"),
        EtcdError::NoMember(_) => (Refusal::NotFound, "NoSuchMember"),
        EtcdError::Refused(_) => (Refusal::Conflict, "EtcdRefused"),
    };
    Refused::new(refusal, reason, error.to_string())
}

//! Keys and certificates of the capability `pki`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Key algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Algorithm {
    EcdsaP256,
    EcdsaP384,
    Rsa2048,
    Rsa3072,
    Rsa4096,
    Ed25519,
}

/// Certificate with its private key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pair {
    /// Certificate as PEM.
    pub certificate_pem: String,
    /// Private key as PEM.
    pub key_pem: String,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key must not reach a log by way of a Debug print.
        f.debug_struct("Pair").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// Subject of a client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Common name: the user in Kubernetes.
    pub common_name: String,
    /// Organizations: the groups in Kubernetes.
    pub organizations: Vec<String>,
    /// Subject alternative names: DNS names.
    pub dns_names: Vec<String>,
    /// Subject alternative names: IP addresses.
    pub ip_addresses: Vec<String>,
}

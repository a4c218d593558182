//! Keys and certificates.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Algorithms of keys, by their names.
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

/// A certificate and its private key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pair {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// The private key, PEM.
    pub key_pem: String,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key must not reach a log by way of a Debug print.
        f.debug_struct("Pair").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// Whom a client certificate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The user, for Kubernetes.
    pub common_name: String,
    /// The user's groups, for Kubernetes.
    pub organizations: Vec<String>,
    /// Subject alternative names that are names of hosts.
    pub dns_names: Vec<String>,
    /// Subject alternative names that are addresses.
    pub ip_addresses: Vec<String>,
}

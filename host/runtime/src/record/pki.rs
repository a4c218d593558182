//! The vocabulary of `pki` on a tape.

use serde::{Deserialize, Serialize};

use crate::bindings::pki;

/// Algorithms of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl From<pki::Algorithm> for Algorithm {
    fn from(algorithm: pki::Algorithm) -> Self {
        match algorithm {
            pki::Algorithm::EcdsaP256 => Algorithm::EcdsaP256,
            pki::Algorithm::EcdsaP384 => Algorithm::EcdsaP384,
            pki::Algorithm::Rsa2048 => Algorithm::Rsa2048,
            pki::Algorithm::Rsa3072 => Algorithm::Rsa3072,
            pki::Algorithm::Rsa4096 => Algorithm::Rsa4096,
            pki::Algorithm::Ed25519 => Algorithm::Ed25519,
        }
    }
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

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A key must not reach a log by way of a Debug print.
        f.debug_struct("Pair").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

impl From<&pki::Pair> for Pair {
    fn from(pair: &pki::Pair) -> Self {
        Pair { certificate_pem: pair.certificate_pem.clone(), key_pem: pair.key_pem.clone() }
    }
}

impl From<Pair> for pki::Pair {
    fn from(pair: Pair) -> Self {
        pki::Pair { certificate_pem: pair.certificate_pem, key_pem: pair.key_pem }
    }
}

/// Whom a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are those of the contract")]
pub struct Subject {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub dns_names: Vec<String>,
    pub ip_addresses: Vec<String>,
}

impl From<&pki::Subject> for Subject {
    fn from(subject: &pki::Subject) -> Self {
        let pki::Subject { common_name, organizations, dns_names, ip_addresses } = subject.clone();
        Subject { common_name, organizations, dns_names, ip_addresses }
    }
}

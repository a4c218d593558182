//! Keys, certificates and the authorities that sign them, as Kubernetes and kubeadm want them. `rcgen` makes them; what is here is
//! which of its settings this project uses.
//!
//! No clock and no file: when a certificate is valid, and where it is kept, is the caller's.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use capwasm_pki::{Algorithm, Authority, Leaf, Validity};
//!
//! # fn main() -> Result<(), capwasm_pki::CertificateError> {
//! let year = Validity::of(SystemTime::now(), Duration::from_secs(365 * 24 * 3600));
//! let authority = Authority::new("example-ca", Algorithm::EcdsaP256, year, None)?;
//! let leaf = Leaf::server("kube-apiserver", vec!["127.0.0.1".to_owned(), "localhost".to_owned()]);
//! let pair = authority.issue(&leaf, Algorithm::EcdsaP256, year)?;
//! assert!(pair.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod authority;
mod leaf;
mod read;
mod unverified;

pub use authority::Authority;
pub use leaf::{Leaf, Usage, request};
pub use rcgen::{KeyPair, PublicKeyData};
pub use read::{certificate, certificate_pem, certificates, not_after, private_key, public_key_hash};
pub use unverified::Unverified;

use std::time::{Duration, SystemTime};

use rcgen::RsaKeySize;

/// Clocks of new machines may be a little behind.
const BACKDATED: Duration = Duration::from_secs(300);

/// Why there is no key or certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It could not be made.
    #[error("unable to make the key or certificate: {0}")]
    Make(rcgen::Error),
    /// A text is no certificate, or not the one that is needed.
    #[error("unable to use the certificate: {0}")]
    Certificate(String),
    /// A text is no private key that signs.
    #[error("unable to read the private key: {0}")]
    Key(String),
    /// A key and a certificate of two authorities.
    #[error("the authority's key does not belong to its certificate")]
    OtherKey,
    /// More organizations than a certificate can be given.
    #[error("{0} organizations: expected at most 2")]
    Organizations(usize),
    /// A text is no name of a host.
    #[error("DNS name {0:?}: {1}")]
    Name(String, rcgen::Error),
}

/// A certificate and its private key. A chain may follow the certificate.
#[derive(Clone)]
pub struct Pair {
    /// PEM.
    pub certificate: String,
    /// PEM, PKCS#8.
    pub key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A key must not reach a log by way of a Debug print.
        f.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Algorithms of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Algorithm {
    #[default]
    EcdsaP256,
    EcdsaP384,
    Ed25519,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

impl Algorithm {
    /// A new key. One of RSA takes up to seconds to find.
    ///
    /// # Errors
    /// When there is no entropy.
    pub fn generate(self) -> Result<KeyPair, CertificateError> {
        match self {
            Self::EcdsaP256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
            Self::EcdsaP384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
            Self::Ed25519 => KeyPair::generate_for(&rcgen::PKCS_ED25519),
            Self::Rsa2048 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
            Self::Rsa3072 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_3072),
            Self::Rsa4096 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
        }
        .map_err(CertificateError::Make)
    }
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub from: SystemTime,
    /// Until then.
    pub until: SystemTime,
}

impl Validity {
    /// From five minutes before `now` until `length` after it.
    #[must_use]
    pub fn of(now: SystemTime, length: Duration) -> Self {
        Self { from: now - BACKDATED, until: now + length }
    }
}

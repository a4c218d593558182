//! Client certificate, and the authority of members.

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why credentials are unusable.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A part is not valid PEM. The message has nothing of its content.
    #[error("the {part} cannot be read")]
    Pem {
        /// `certificate` or `key`.
        part: &'static str,
        /// Error of the PEM parser.
        #[source]
        source: PemError,
    },
    /// Certificate and key do not belong together.
    #[error("unable to use certificate and key for TLS")]
    Tls(#[source] rustls::Error),
    /// The authority has no usable certificate.
    #[error("the authority cannot be used to verify members")]
    Authority(#[source] rustls::server::VerifierBuilderError),
}

/// Client certificate with its key, and the authority of the members' certificates. Cheap to clone.
#[derive(Clone)]
pub struct Credentials(pub(crate) Arc<rustls::ClientConfig>);

impl Credentials {
    /// From PEM texts: authority of the members, client certificate (with its chain), and its key.
    ///
    /// # Errors
    /// When they cannot be read or do not fit together.
    pub fn new(authority: &str, certificate: &str, key: &str) -> Result<Self, CredentialsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(CredentialsError::Tls)?
            .with_root_certificates(roots(authority)?)
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(CredentialsError::Tls)?;
        // Newer members refuse gRPC without it.
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A member's few connections live long.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// Root store of an authority's certificates.
pub(crate) fn roots(pem: &str) -> Result<RootCertStore, CredentialsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(CredentialsError::Tls)?;
    }
    Ok(roots)
}

pub(crate) fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let unreadable = |source| CredentialsError::Pem { part: "certificate", source };
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(unreadable)?;
    if all.is_empty() { Err(unreadable(PemError::NoItemsFound)) } else { Ok(all) }
}

pub(crate) fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, CredentialsError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|source| CredentialsError::Pem { part: "key", source })
}

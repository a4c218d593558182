//! TLS of outgoing connections: the system's roots with the guest's additions, or an endpoint's own authority and
//! client certificate.

use std::sync::Arc;

use capwasm_contract::{Refusal, Refused};
use capwasm_pki::Unverified;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::grants::NamedEndpoint;

/// Certificates that a guest's client trusts besides the system's roots, or no verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trust {
    certificates: Vec<CertificateDer<'static>>,
    /// Of all certificates in order, for quick comparison.
    digest: [u8; 32],
    anybody: bool,
}

/// Trusted certificates of one client at most.
const CERTIFICATES: usize = 64;
/// Bytes of them at most: a guest may have a thousand clients, and their certificates do not count as its memory.
const CERTIFICATE_BYTES: usize = 128 << 10;

#[cfg(test)]
impl Trust {
    /// A trust for tests that differs by `digest` only.
    pub(super) fn of(digest: [u8; 32]) -> Self {
        Trust { digest, ..Trust::default() }
    }
}

impl Trust {
    /// Turns verification off.
    pub(crate) fn do_not_verify(&mut self) {
        self.anybody = true;
    }

    /// Equal for clients with equal trust.
    pub(super) fn identity(&self) -> [u8; 33] {
        let mut identity = [u8::from(self.anybody); 33];
        identity[1..].copy_from_slice(&self.digest);
        identity
    }

    /// Name in recordings; `None` for the system's roots alone.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Trust { anybody: true, .. } => Some("anybody".to_owned()),
            Trust { certificates, .. } if certificates.is_empty() => None,
            Trust { digest, .. } => Some(hex::encode(digest)),
        }
    }

    /// Adds the certificates of a PEM text.
    pub(crate) fn add(&mut self, pem: &str) -> Result<(), Refused> {
        let bad = |message: String| Refused::invalid("BadCertificate", message);
        let added: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| bad(format!("unable to read the certificates: {error}")))?;
        if added.is_empty() {
            return Err(bad("no certificate in it".to_owned()));
        }
        if self.certificates.len() + added.len() > CERTIFICATES {
            return Err(Refused::new(Refusal::Limit, "TooManyCertificates", "the client trusts too many certificates"));
        }
        let bytes: usize = self.certificates.iter().chain(&added).map(|certificate| certificate.len()).sum();
        if bytes > CERTIFICATE_BYTES {
            let message = format!("the client trusts certificates of more than {CERTIFICATE_BYTES} bytes");
            return Err(Refused::new(Refusal::Limit, "CertificatesTooLarge", message));
        }
        let mut store = RootCertStore::empty();
        for certificate in &added {
            store.add(certificate.clone()).map_err(|error| bad(format!("unable to trust the certificate: {error}")))?;
        }
        self.certificates.extend(added);
        let mut hash = Sha256::new();
        self.certificates.iter().for_each(|certificate| hash.update(Sha256::digest(certificate)));
        self.digest = hash.finalize().into();
        Ok(())
    }
}

/// TLS settings of a pool; created for its first connection, since reading the system's roots takes time.
pub(super) struct Wanted {
    roots: Roots,
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    made: OnceCell<TlsConnector>,
}

enum Roots {
    SystemAnd(Trust),
    Only(RootCertStore),
    /// No verification.
    Anybody,
}

impl Wanted {
    pub(super) fn guest(trust: Trust) -> Self {
        let roots = if trust.anybody { Roots::Anybody } else { Roots::SystemAnd(trust) };
        Wanted { roots, identity: None, made: OnceCell::new() }
    }

    /// For a named endpoint. The error says which certificate or key is unusable.
    pub(super) fn endpoint(granted: &NamedEndpoint) -> Result<Self, String> {
        let certificates = |pem: &str| -> Result<Vec<CertificateDer<'static>>, String> {
            let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(|error| format!("unable to read a certificate: {error}"))?;
            if certificates.is_empty() { Err("a certificate's PEM is empty".to_owned()) } else { Ok(certificates) }
        };
        let roots = match &granted.ca {
            None => Roots::SystemAnd(Trust::default()),
            Some(pem) => {
                let mut store = RootCertStore::empty();
                for certificate in certificates(pem)? {
                    store.add(certificate).map_err(|error| format!("unable to trust the ca: {error}"))?;
                }
                Roots::Only(store)
            }
        };
        let identity = match &granted.client_certificate {
            None => None,
            Some(client) => {
                let key = PrivateKeyDer::from_pem_slice(client.key_pem.as_bytes())
                    .map_err(|error| format!("unable to read the client certificate's key: {error}"))?;
                Some((certificates(&client.certificate_pem)?, key))
            }
        };
        Ok(Wanted { roots, identity, made: OnceCell::new() })
    }

    /// The TLS stream, and whether it negotiated HTTP/2.
    pub(super) async fn handshake<S>(&self, host: &str, stream: S) -> Result<(TlsStream<S>, bool), String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let connector = self.made.get_or_try_init(|| self.make()).await?;
        let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((stream, h2))
    }

    async fn make(&self) -> Result<TlsConnector, String> {
        let roots = match &self.roots {
            Roots::Only(store) => Some(store.clone()),
            Roots::Anybody => None,
            Roots::SystemAnd(trust) => {
                let mut store = tokio::task::spawn_blocking(system_roots).await.map_err(|error| error.to_string())?;
                store.add_parsable_certificates(trust.certificates.iter().cloned());
                Some(store)
            }
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match roots {
            Some(roots) => builder.with_root_certificates(roots),
            None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider))),
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(|error| format!("unable to use the client certificate: {error}"))?,
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// What of the system's roots can be read; without any, connections fail by their certificates.
fn system_roots() -> RootCertStore {
    let mut store = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "unable to read some of the system's certificates");
    }
    store.add_parsable_certificates(system.certs);
    store
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    /// A certificate with an extension of so many bytes.
    fn certificate(bytes: usize) -> String {
        let mut params = rcgen::CertificateParams::default();
        let extension = rcgen::CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 1], vec![0; bytes]);
        params.custom_extensions = vec![extension];
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn what_a_client_trusts_is_bounded_in_bytes() {
        let mut trust = Trust::default();
        // One certificate of 64 KiB is refused by webpki already.
        trust.add(&certificate(60 << 10)).unwrap();
        trust.add(&certificate(60 << 10)).unwrap();
        let before = trust.clone();
        let refused = trust.add(&certificate(60 << 10)).unwrap_err();
        assert_eq!((refused.refusal, refused.reason.as_str()), (Refusal::Limit, "CertificatesTooLarge"));
        assert_eq!(trust, before, "what was refused is not trusted");
        trust.add(&certificate(1)).unwrap();
    }
}

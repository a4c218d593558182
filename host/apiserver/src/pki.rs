//! Certificates of a server: its own CA, a serving certificate, client certificates, and signing for nodes.
//!
//! Keys are ECDSA P-256. Files are only readable by their owner. [`ensure`] may be called at every start: it keeps what is
//! there and still fits.

mod files;
mod signer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_pki::{Algorithm, Authority, CertificateError, Leaf, Pair, Validity};
use rustls::RootCertStore;
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

pub use signer::NodeSigner;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Days that a CA lasts.
const CA_DAYS: u32 = 3650;
/// Days that every other certificate lasts.
const LEAF_DAYS: u32 = 365;
/// A serving certificate is renewed at a start within this many days of its end.
const RENEW_DAYS: i64 = 90;

/// Why certificates could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file could not be read or written.
    #[error("unable to {act} {path}")]
    File {
        /// `read`, `create` and the like.
        act: &'static str,
        /// File or folder.
        path: PathBuf,
        /// What the file system reported.
        #[source]
        source: std::io::Error,
    },
    /// A certificate could not be made or read.
    #[error("unable to make or read a certificate")]
    Certificate(#[from] CertificateError),
    /// There is a CA's certificate without its key.
    #[error("the CA's key {0} is gone: put it back, or remove the folder to begin with a new CA")]
    KeyLost(PathBuf),
    /// A PEM text holds no usable certificate or key.
    #[error("unable to read PEM: {0}")]
    Pem(String),
    /// The TLS library refuses what it was given.
    #[error("unable to configure TLS")]
    Tls(#[from] rustls::Error),
    /// The verifier of client certificates refuses the CA.
    #[error("unable to verify clients with this CA")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The certificates of one server.
#[derive(Debug)]
pub struct ServerPki {
    ca: Pair,
    server: Pair,
    tls: Arc<rustls::ServerConfig>,
}

/// Makes or loads `ca.crt`, `ca.key`, `server.crt` and `server.key` in `dir`. The serving certificate is for `names` (DNS names
/// or addresses) and is renewed when they change or it is about to end.
///
/// # Errors
/// When files cannot be read or written, or hold something else.
pub fn ensure(dir: &Path, names: &[String]) -> Result<ServerPki, PkiError> {
    files::private_dir(dir)?;
    let ca = match files::read_pair(dir, "ca")? {
        Some(ca) => ca,
        // Keys are written first, so this is no start that was broken off; a new authority would lock everybody out.
        None if dir.join("ca.crt").exists() => return Err(PkiError::KeyLost(dir.join("ca.key"))),
        None => {
            let ca = new_ca("capwasm-ca")?;
            files::write_pair(dir, "ca", &ca)?;
            ca
        }
    };
    let server = match files::read_pair(dir, "server")? {
        Some(server) if fits(&server.certificate, &ca.certificate, names) => server,
        _ => {
            let server = issue(&ca, &Leaf::server("kube-apiserver", names.to_vec()))?;
            files::write_pair(dir, "server", &server)?;
            server
        }
    };
    let tls = tls_from_pem(&server.certificate, &server.key, &ca.certificate)?;
    Ok(ServerPki { ca, server, tls })
}

impl ServerPki {
    /// TLS configuration that asks for client certificates of this CA.
    #[must_use]
    pub fn tls(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.tls)
    }

    /// The CA's certificate.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca.certificate
    }

    /// The serving certificate.
    #[must_use]
    pub fn server_pem(&self) -> &str {
        &self.server.certificate
    }

    /// A client certificate for a user in at most two groups.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Pair, PkiError> {
        issue(&self.ca, &Leaf::client(user, groups))
    }

    /// A kubeconfig (YAML) for an administrator, with a fresh client certificate.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn admin_kubeconfig(&self, server_url: &str) -> Result<String, PkiError> {
        let admin = self.client("capwasm-admin", &[crate::identity::MASTERS])?;
        Ok(kubeconfig("capwasm", server_url, &self.ca.certificate, &admin))
    }

    /// Signs client certificates of nodes with this CA.
    ///
    /// # Errors
    /// When the CA cannot be read.
    pub fn signer(&self) -> Result<NodeSigner, PkiError> {
        NodeSigner::from_pem(&self.ca.certificate, &self.ca.key)
    }
}

/// A kubeconfig with one cluster, user and context, all named `name`.
#[must_use]
pub fn kubeconfig(name: &str, server_url: &str, ca_pem: &str, user: &Pair) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\nclusters:\n- name: {name}\n  cluster:\n    server: {server_url}\n    \
         certificate-authority-data: {}\ncontexts:\n- name: {name}\n  context:\n    cluster: {name}\n    user: {name}\nusers:\n- name: {name}\n  \
         user:\n    client-certificate-data: {}\n    client-key-data: {}\n",
        encode(ca_pem),
        encode(&user.certificate),
        encode(&user.key)
    )
}

/// Writes a file that only its owner may read, replacing it at once.
///
/// # Errors
/// When it cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<(), PkiError> {
    files::write(path, text)
}

/// TLS configuration from PEM texts: HTTP/2 and HTTP/1.1, client certificates of `client_ca` accepted but not required (other
/// clients bring tokens).
///
/// # Errors
/// When a text holds no certificate or key, or they do not belong together.
pub fn tls_from_pem(
    server_cert: &str,
    server_key: &str,
    client_ca: &str,
) -> Result<Arc<rustls::ServerConfig>, PkiError> {
    let certificates = |pem: &str| -> Result<Vec<CertificateDer<'static>>, PkiError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        chain.map_err(|error| PkiError::Pem(error.to_string())).and_then(|chain| {
            if chain.is_empty() { Err(PkiError::Pem("no certificate".to_owned())) } else { Ok(chain) }
        })
    };
    let key = PrivateKeyDer::from_pem_slice(server_key.as_bytes()).map_err(|error| PkiError::Pem(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(client_ca)? {
        roots.add(certificate)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(server_cert)?, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // The default has room for 256, which is 37 kB for every simulated cluster; few clients come back, and those soon.
    config.session_storage = ServerSessionMemoryCache::new(16);
    Ok(Arc::new(config))
}

/// From yesterday, since clocks differ, for so many days.
fn valid(days: u32) -> Validity {
    let now = SystemTime::now();
    Validity { from: now - DAY, until: now + DAY * days }
}

fn new_ca(name: &str) -> Result<Pair, PkiError> {
    Ok(Authority::new(name, Algorithm::EcdsaP256, valid(CA_DAYS), None)?.pair())
}

fn issue(ca: &Pair, leaf: &Leaf<'_>) -> Result<Pair, PkiError> {
    Ok(Authority::from_pem(&ca.certificate, &ca.key)?.issue(leaf, Algorithm::EcdsaP256, valid(LEAF_DAYS))?)
}

/// Whether a serving certificate is of this CA, for exactly these names, and not about to end.
fn fits(certificate: &str, ca: &str, names: &[String]) -> bool {
    let check = || {
        let (leaf, ca) = (
            CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?,
            CertificateDer::from_pem_slice(ca.as_bytes()).ok()?,
        );
        let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).ok()?;
        let (_, ca) = x509_parser::parse_x509_certificate(&ca).ok()?;
        leaf.verify_signature(Some(ca.public_key())).ok()?;
        let renew = jiff::Timestamp::now().as_second() + RENEW_DAYS * 86_400;
        let present: BTreeSet<String> =
            leaf.subject_alternative_name().ok()??.value.general_names.iter().filter_map(name).collect();
        let wanted: BTreeSet<String> = names.iter().cloned().collect();
        Some(leaf.validity().not_after.timestamp() > renew && present == wanted)
    };
    check().unwrap_or(false)
}

fn name(name: &x509_parser::extensions::GeneralName<'_>) -> Option<String> {
    use x509_parser::extensions::GeneralName;
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
            _ => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_second_start_keeps_the_certificates_and_new_names_renew_only_the_servers() {
        let dir = tempfile::tempdir().unwrap();
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let first = ensure(dir.path(), &names(&["localhost", "127.0.0.1", "::1"])).unwrap();
        let again = ensure(dir.path(), &names(&["::1", "localhost", "127.0.0.1"])).unwrap();
        assert_eq!(first.server_pem(), again.server_pem());
        let renamed = ensure(dir.path(), &names(&["localhost", "10.0.0.1"])).unwrap();
        assert_ne!(first.server_pem(), renamed.server_pem());
        assert_eq!(first.ca_pem(), renamed.ca_pem());
    }

    #[test]
    fn an_authority_whose_key_is_gone_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let first = ensure(dir.path(), &["localhost".to_owned()]).unwrap();
        std::fs::remove_file(dir.path().join("ca.key")).unwrap();
        assert!(matches!(ensure(dir.path(), &["localhost".to_owned()]), Err(PkiError::KeyLost(_))));
        assert_eq!(std::fs::read_to_string(dir.path().join("ca.crt")).unwrap(), first.ca_pem());
    }

    #[cfg(unix)]
    #[test]
    fn keys_are_readable_by_their_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        ensure(dir.path(), &["localhost".to_owned()]).unwrap();
        for name in ["ca.crt", "ca.key", "server.crt", "server.key"] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}

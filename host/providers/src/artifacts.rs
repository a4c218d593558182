//! Components from an OCI registry: the interface that the loader needs, implemented in `host/registry`.

use std::fmt;

use async_trait::async_trait;

/// An artifact to pull, with credentials and trust.
#[derive(Clone, PartialEq, Eq)]
pub struct ArtifactRequest {
    /// `registry/repository:tag` or `registry/repository@sha256:…`.
    pub reference: String,
    /// `.dockerconfigjson` of the pull Secret.
    pub docker_config: Option<Vec<u8>>,
    /// PEM of certificate authorities trusted besides the system's.
    pub ca: Option<String>,
    /// Allows HTTP without TLS to registries that are not on loopback.
    pub plain_http: bool,
    /// Public keys (PEM), one of which must have signed the artifact. Without keys signatures are not verified.
    pub public_keys: Vec<String>,
    /// Largest component in bytes.
    pub max_bytes: u64,
}

impl fmt::Debug for ArtifactRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Credentials stay out.
        f.debug_struct("ArtifactRequest").field("reference", &self.reference).finish_non_exhaustive()
    }
}

/// A pulled component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The WebAssembly component.
    pub bytes: Vec<u8>,
    /// `sha256:<hex>` of the bytes.
    pub digest: String,
    /// Fingerprints of those of the request's keys that signed it.
    pub signers: Vec<String>,
}

/// Why a component could not be pulled.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No such registry, repository or manifest, or insufficient credentials.
    #[error("{0}")]
    Refused(String),
    /// The registry is unreachable, or answers with a server error; retried later.
    #[error("{0}")]
    Unavailable(String),
    /// A digest, size or media type does not match.
    #[error("{0}")]
    Broken(String),
    /// No signature by one of the public keys.
    #[error("{0}")]
    Unsigned(String),
}

impl FetchError {
    /// CamelCase reason for conditions and events.
    pub fn reason(&self) -> &'static str {
        match self {
            FetchError::Refused(_) => "ArtifactRefused",
            FetchError::Unavailable(_) => "RegistryUnavailable",
            FetchError::Broken(_) => "ArtifactBroken",
            FetchError::Unsigned(_) => "SignatureInvalid",
        }
    }
}

/// Pulls components and verifies signatures, without parsing a component.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// Digest (`sha256:<hex>`) of the manifest behind the reference; asks the registry unless the reference has a
    /// digest.
    async fn resolve(&self, request: &ArtifactRequest) -> Result<String, FetchError>;

    /// The component of a manifest, with verified signature and digest.
    async fn fetch(&self, request: &ArtifactRequest, manifest: &str) -> Result<Fetched, FetchError>;

    /// Verifies a signature as `cosign sign-blob` makes it (base64 of ECDSA) against any of the keys. Returns the fingerprints of those
    /// that made it.
    fn verify_blob(&self, bytes: &[u8], signature: &[u8], public_keys: &[String]) -> Result<Vec<String>, FetchError>;

    /// Fingerprints of public keys (PEM), in order.
    fn fingerprints(&self, public_keys: &[String]) -> Result<Vec<String>, FetchError>;
}

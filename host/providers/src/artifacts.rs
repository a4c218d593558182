//! Components that come from a registry: what the loader asks of it. The protocol is elsewhere; this is the boundary.

use std::fmt;

use async_trait::async_trait;

/// An artifact, and with what it may be asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct ArtifactRequest {
    /// `registry/repository:tag` or `registry/repository@sha256:…`.
    pub reference: String,
    /// `.dockerconfigjson` of the pull Secret.
    pub docker_config: Option<Vec<u8>>,
    /// Authorities (PEM) that are trusted besides the system's.
    pub ca: Option<String>,
    /// HTTP without TLS also where the registry is not on loopback.
    pub plain_http: bool,
    /// Public keys (PEM), one of which has to have signed it. Without any, no signature is asked for.
    pub public_keys: Vec<String>,
    /// Largest component, bytes.
    pub max_bytes: u64,
}

impl fmt::Debug for ArtifactRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Credentials stay out.
        f.debug_struct("ArtifactRequest").field("reference", &self.reference).finish_non_exhaustive()
    }
}

/// A component as it was pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The component.
    pub bytes: Vec<u8>,
    /// `sha256:<hex>` of the bytes.
    pub digest: String,
}

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No registry, repository or manifest of that name, or the credentials are not good for it.
    #[error("{0}")]
    Refused(String),
    /// The registry cannot be reached, or answers with an error of its own; it may go well the next time.
    #[error("{0}")]
    Unavailable(String),
    /// It is not what it is said to be: a digest, a size, a media type.
    #[error("{0}")]
    Broken(String),
    /// It carries no signature of the public keys.
    #[error("{0}")]
    Unsigned(String),
}

impl FetchError {
    /// CamelCase, for conditions and events.
    pub fn reason(&self) -> &'static str {
        match self {
            FetchError::Refused(_) => "ArtifactRefused",
            FetchError::Unavailable(_) => "RegistryUnavailable",
            FetchError::Broken(_) => "ArtifactBroken",
            FetchError::Unsigned(_) => "SignatureInvalid",
        }
    }
}

/// Pulls components, and says whether they are signed. Nothing of a component is parsed here or before.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// The digest (`sha256:<hex>`) of the manifest that the reference names now; asks the registry unless the reference names
    /// the digest itself.
    async fn resolve(&self, request: &ArtifactRequest) -> Result<String, FetchError>;

    /// The component of a manifest, once its signature has been verified. What a digest names is checked against it.
    async fn fetch(&self, request: &ArtifactRequest, manifest: &str) -> Result<Fetched, FetchError>;

    /// Whether one of the keys signed these bytes, as `cosign sign-blob` does (base64 of an ECDSA signature).
    fn verify_blob(&self, bytes: &[u8], signature: &[u8], public_keys: &[String]) -> Result<(), FetchError>;
}

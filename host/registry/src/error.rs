//! Errors of operations on artifacts.

use crate::credentials::ConfigError;
use crate::digest::Digest;
use crate::reference::ReferenceError;
use crate::sign::key::KeyError;

/// Why an operation on an artifact failed. `what` names the artifact or part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reference is malformed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A reference with a tag only, which may change meanwhile, where a digest is needed.
    #[error("{0} names no digest, which is what a signature is of")]
    Unpinned(String),
    /// A key is unusable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Credentials are unusable.
    #[error(transparent)]
    Credentials(#[from] ConfigError),
    /// The configured certificate authority is unusable.
    #[error("unable to use the registry's certificate authority: {0}")]
    Authority(String),
    /// The connection failed.
    #[error("unable to reach {registry}")]
    Connect {
        /// Host and port.
        registry: String,
        /// Error of the connection.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The registry did not answer in time.
    #[error("{registry} did not answer within {seconds} seconds")]
    Timeout {
        /// Host and port.
        registry: String,
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The registry refuses the credentials, or demands some.
    #[error("{registry} denies access to {repository}{said}")]
    Denied {
        /// Host and port.
        registry: String,
        /// Name of the repository.
        repository: String,
        /// `: …` with the registry's message, or advice if no credentials were given.
        said: String,
    },
    /// No such manifest or blob.
    #[error("{0} is not there")]
    NotFound(String),
    /// An unexpected status.
    #[error("{registry} answers {status} to {what}{said}")]
    Status {
        /// Host and port.
        registry: String,
        /// HTTP status code.
        status: u16,
        /// The requested thing, such as `an upload`.
        what: String,
        /// `: …` with the registry's message, or empty.
        said: String,
    },
    /// The registry violates the protocol.
    #[error("{registry} does not speak as a registry does: {why}")]
    Protocol {
        /// Host and port.
        registry: String,
        /// The violation.
        why: String,
    },
    /// TLS is required, and the URL has none.
    #[error("{0} would be spoken to without TLS, which was not allowed")]
    PlainHttp(String),
    /// Content exceeds its limit.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// The content, such as `the blob sha256:…`.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Content does not match its digest.
    #[error("{what} has the digest {found}, not {expected}")]
    WrongDigest {
        /// The content, such as `the blob sha256:…`.
        what: String,
        /// The expected digest.
        expected: Digest,
        /// Digest of the received content.
        found: Digest,
    },
    /// Content does not have the size of its descriptor.
    #[error("{what} has {found} bytes, not {expected}")]
    WrongSize {
        /// The content, such as `the blob sha256:…`.
        what: String,
        /// The expected size in bytes.
        expected: u64,
        /// The received size in bytes.
        found: u64,
    },
    /// The artifact is not a component in the CNCF's layout.
    #[error("{what} is not a provider: {why}")]
    NotAProvider {
        /// The artifact, such as its reference by digest, or `the file`.
        what: String,
        /// The difference.
        why: String,
    },
    /// There is no signature.
    #[error(
        "{0} is not signed: there is no signature beside it (cosign 3 writes one only with --new-bundle-format=false \
         --use-signing-config=false --tlog-upload=false)"
    )]
    Unsigned(String),
    /// No signature is valid for a trusted key.
    #[error("{what} has no valid signature of a trusted key: {why}")]
    BadSignature {
        /// The artifact, such as its reference by digest, or `the file`.
        what: String,
        /// What is wrong with the signatures.
        why: String,
    },
    /// The folder cannot be read or written.
    #[error("unable to use {path}")]
    Folder {
        /// Path of the folder, or of a file in it.
        path: String,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The folder is no OCI image layout.
    #[error("the folder holds no artifacts: {0}")]
    BadLayout(String),
}

impl Error {
    /// Whether a retry may succeed without a change.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Connect { .. } | Error::Timeout { .. } | Error::Protocol { .. } => true,
            Error::WrongSize { .. } | Error::WrongDigest { .. } => true,
            Error::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}

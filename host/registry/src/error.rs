//! Why an artifact is not there, or not trusted.

use crate::credentials::ConfigError;
use crate::digest::Digest;
use crate::reference::ReferenceError;
use crate::sign::key::KeyError;

/// Why something with an artifact failed. `what` is what was asked for, in words.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is none.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A tag alone: what it names may change while it is looked at.
    #[error("{0} names no digest, which is what a signature is of")]
    Unpinned(String),
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] ConfigError),
    /// A certificate of an own authority cannot be used.
    #[error("unable to use the registry's certificate authority: {0}")]
    Authority(String),
    /// No connection, or it broke.
    #[error("unable to reach {registry}")]
    Connect {
        /// Host and port.
        registry: String,
        /// What the connection says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing came for a while.
    #[error("{registry} did not answer within {seconds} seconds")]
    Timeout {
        /// Host and port.
        registry: String,
        /// How long it had.
        seconds: u64,
    },
    /// The registry wants other credentials, or none are enough.
    #[error("{registry} denies access to {repository}{said}")]
    Denied {
        /// Host and port.
        registry: String,
        /// The repository.
        repository: String,
        /// `: …`, or what to do where no credentials were given.
        said: String,
    },
    /// Nothing of that name.
    #[error("{0} is not there")]
    NotFound(String),
    /// An answer that the protocol does not provide for.
    #[error("{registry} answers {status} to {what}{said}")]
    Status {
        /// Host and port.
        registry: String,
        /// The HTTP status.
        status: u16,
        /// What was asked.
        what: String,
        /// `: …` where the registry says more.
        said: String,
    },
    /// The protocol was broken by the other side.
    #[error("{registry} does not speak as a registry does: {why}")]
    Protocol {
        /// Host and port.
        registry: String,
        /// How.
        why: String,
    },
    /// Unencrypted where it was not allowed.
    #[error("{0} would be spoken to without TLS, which was not allowed")]
    PlainHttp(String),
    /// Larger than was allowed.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What is.
        what: String,
        /// The cap, in bytes.
        limit: u64,
    },
    /// Other bytes than were named.
    #[error("{what} has the digest {found}, not {expected}")]
    WrongDigest {
        /// What has.
        what: String,
        /// Asked for.
        expected: Digest,
        /// Received.
        found: Digest,
    },
    /// Fewer or more bytes than were named.
    #[error("{what} has {found} bytes, not {expected}")]
    WrongSize {
        /// What has.
        what: String,
        /// By its descriptor.
        expected: u64,
        /// Received.
        found: u64,
    },
    /// Not a manifest of a component.
    #[error("{what} is not a provider: {why}")]
    NotAProvider {
        /// What is not.
        what: String,
        /// Why not.
        why: String,
    },
    /// Nobody signed it.
    #[error(
        "{0} is not signed: there is no signature beside it (cosign 3 writes one only with --new-bundle-format=false \
         --use-signing-config=false --tlog-upload=false)"
    )]
    Unsigned(String),
    /// Somebody else signed it, or something else was signed.
    #[error("{what} has no valid signature of a trusted key: {why}")]
    BadSignature {
        /// What has none.
        what: String,
        /// What is wrong with those that are there.
        why: String,
    },
    /// The folder cannot be read or written.
    #[error("unable to use {path}")]
    Folder {
        /// The folder, or a file in it.
        path: String,
        /// What the file system says.
        #[source]
        source: std::io::Error,
    },
    /// Not a folder of artifacts.
    #[error("the folder holds no artifacts: {0}")]
    BadLayout(String),
}

impl Error {
    /// Whether another attempt may end otherwise with nothing changed by a person.
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

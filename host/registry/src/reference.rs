//! What an artifact is called: `registry/repository:tag`, `registry/repository@sha256:…`, or with both.
//!
//! The registry is always named: what a short name means is another program's convention. `oci://` may stand before it.
//!
//! ```
//! # use capwasm_registry::{Reference, Version};
//! let reference: Reference = "ghcr.io/capwasm/docker-infra:0.1.0".parse().unwrap();
//! assert_eq!(reference.registry(), "ghcr.io");
//! assert_eq!(reference.repository(), "capwasm/docker-infra");
//! assert_eq!(reference.version(), Version::Tag("0.1.0"));
//! assert!("docker-infra:0.1.0".parse::<Reference>().is_err());
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, NotADigest};

/// Reference of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Version of an artifact in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version<'a> {
    /// The manifest that the tag names at present.
    Tag(&'a str),
    /// The manifest with this digest.
    Digest(&'a Digest),
}

impl fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Tag(tag) => f.write_str(tag),
            Version::Digest(digest) => digest.fmt(f),
        }
    }
}

/// Why a text is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The text exceeds the length of any reference.
    #[error("a reference has at most {LONGEST} characters")]
    TooLong,
    /// The text does not begin with a registry.
    #[error("{0:?} does not begin with a registry: write it as in ghcr.io/organisation/provider:1.0")]
    NoRegistry(String),
    /// The registry is no valid host with port.
    #[error("{0:?} is not a registry: a host name or an address is expected, with or without a port")]
    BadRegistry(String),
    /// The repository has invalid characters.
    #[error("{0:?} is not a repository: lower case letters, digits, and single . _ - between them are expected")]
    BadRepository(String),
    /// The tag has invalid characters.
    #[error("{0:?} is not a tag: at most 128 letters, digits, or . _ - are expected")]
    BadTag(String),
    /// The digest is not SHA-256.
    #[error(transparent)]
    BadDigest(#[from] NotADigest),
    /// Neither tag nor digest: there is no default.
    #[error("{0:?} names neither a tag nor a digest: add :TAG or @sha256:…")]
    NoVersion(String),
}

/// Longest reference in characters: host, repository, tag and digest.
const LONGEST: usize = 255 + 255 + 128 + 80;
const LONGEST_REPOSITORY: usize = 255;
const LONGEST_TAG: usize = 128;

impl Reference {
    /// Host with optional port, such as `ghcr.io`.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Path below the registry, such as `capwasm/docker-infra`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The digest, else the tag.
    #[must_use]
    pub fn version(&self) -> Version<'_> {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => Version::Digest(digest),
            // Parsing demands one of the two, and nothing takes the tag away without adding a digest.
            (None, tag) => Version::Tag(tag.as_deref().unwrap_or("latest")),
        }
    }

    /// The tag, if there is one, also beside a digest.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if there is one.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Reference to a manifest of the same repository by digest, without tag.
    #[must_use]
    pub fn pinned(&self, digest: &Digest) -> Self {
        Self { tag: None, digest: Some(digest.clone()), ..self.clone() }
    }

    /// `registry/repository`, as in cosign's payloads.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The artifact in another registry; `prefix` is a registry with an optional path before the repository.
    ///
    /// # Errors
    /// When the prefix is not one.
    pub fn below(&self, prefix: &str) -> Result<Self, ReferenceError> {
        let version = match (&self.tag, &self.digest) {
            (Some(tag), None) => format!(":{tag}"),
            (None, Some(digest)) => format!("@{digest}"),
            (Some(tag), Some(digest)) => format!(":{tag}@{digest}"),
            (None, None) => String::new(),
        };
        format!("{}/{}{version}", prefix.trim_end_matches('/'), self.repository).parse()
    }

    /// Whether the registry is on a loopback address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let (host, _) = host_and_port(&self.registry);
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > LONGEST {
            return Err(ReferenceError::TooLong);
        }
        let text = text.strip_prefix("oci://").unwrap_or(text);
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse()?)),
            None => (text, None),
        };
        let (registry, path) = rest.split_once('/').ok_or_else(|| ReferenceError::NoRegistry(rest.to_owned()))?;
        if !(registry == "localhost" || registry.contains(['.', ':'])) {
            return Err(ReferenceError::NoRegistry(rest.to_owned()));
        }
        if !is_registry(registry) {
            return Err(ReferenceError::BadRegistry(registry.to_owned()));
        }
        // A port stands before the first slash, so a colon after it begins a tag.
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if repository.len() > LONGEST_REPOSITORY || !repository.split('/').all(is_component) {
            return Err(ReferenceError::BadRepository(repository.to_owned()));
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(ReferenceError::BadTag(tag.to_owned()));
        }
        if tag.is_none() && digest.is_none() {
            return Err(ReferenceError::NoVersion(text.to_owned()));
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Reference {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.to_string()
    }
}

/// Splits `host:port`, also of `[::1]:5000`.
fn host_and_port(registry: &str) -> (&str, Option<&str>) {
    match registry.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (registry, None),
    }
}

fn is_registry(registry: &str) -> bool {
    let (host, port) = host_and_port(registry);
    if port.is_some_and(|port| port.parse::<u16>().is_err() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return false;
    }
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    }
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(inner)
    };
    host.len() <= 253 && host.split('.').all(label)
}

/// Whether this is a valid component of a repository: letters and digits, with `.`, `_`, `__` or dashes between them.
fn is_component(component: &str) -> bool {
    let bytes = component.as_bytes();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    plain(first)
        && plain(last)
        && bytes.split(|byte| plain(*byte)).all(|separator| {
            matches!(separator, b"" | b"." | b"_" | b"__") || separator.iter().all(|byte| *byte == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=LONGEST_TAG).contains(&tag.len())
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests;

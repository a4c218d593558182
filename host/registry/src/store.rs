//! Operations on a repository, remote or in a folder.

use async_trait::async_trait;
use bytes::Bytes;

use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::Descriptor;
use crate::reference::Version;

/// A repository of a registry or a folder.
#[async_trait]
pub trait Store: Send + Sync {
    /// Content of a manifest, at most [`LARGEST_MANIFEST`](crate::manifest::LARGEST_MANIFEST) bytes; `None` if there is
    /// none. A requested digest is verified.
    async fn manifest(&self, version: Version<'_>) -> Result<Option<Bytes>, Error>;

    /// Content of a blob, with verified size and digest. A larger one than `limit` is not read.
    async fn blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Bytes, Error>;

    /// Stores a blob, unless it exists.
    async fn put_blob(&self, bytes: Bytes) -> Result<(), Error>;

    /// Stores a manifest, whose blobs exist, under its digest and the tag.
    async fn put_manifest(&self, tag: Option<&str>, media_type: &str, bytes: Bytes) -> Result<(), Error>;
}

/// Checks a requested digest.
pub(crate) fn check_manifest(version: Version<'_>, bytes: &[u8]) -> Result<(), Error> {
    if let Version::Digest(expected) = version {
        let found = Digest::of(bytes);
        if found != *expected {
            return Err(Error::WrongDigest { what: "the manifest".to_owned(), expected: expected.clone(), found });
        }
    }
    Ok(())
}

/// Refuses a blob that exceeds `limit` by its descriptor.
pub(crate) fn check_size(descriptor: &Descriptor, limit: u64) -> Result<(), Error> {
    if descriptor.size > limit {
        return Err(Error::TooLarge { what: format!("the blob {}", descriptor.digest), limit });
    }
    Ok(())
}

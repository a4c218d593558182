//! What a repository can do, wherever it is.

use async_trait::async_trait;
use bytes::Bytes;

use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::Descriptor;
use crate::reference::Version;

/// One repository: of a registry, or in a folder.
#[async_trait]
pub trait Store: Send + Sync {
    /// The manifest's bytes, at most [`LARGEST_MANIFEST`](crate::manifest::LARGEST_MANIFEST) of them; none where there is none.
    /// Asked for by digest, they have it.
    async fn manifest(&self, version: Version<'_>) -> Result<Option<Bytes>, Error>;

    /// A blob's bytes, which have its size and digest. More than `limit` are not read.
    async fn blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Bytes, Error>;

    /// Stores a blob. One that is there stays.
    async fn put_blob(&self, bytes: Bytes) -> Result<(), Error>;

    /// Stores a manifest, whose blobs are there, under its digest and this tag.
    async fn put_manifest(&self, tag: Option<&str>, media_type: &str, bytes: Bytes) -> Result<(), Error>;
}

/// Whether a manifest is the one that was asked for.
pub(crate) fn check_manifest(version: Version<'_>, bytes: &[u8]) -> Result<(), Error> {
    if let Version::Digest(expected) = version {
        let found = Digest::of(bytes);
        if found != *expected {
            return Err(Error::WrongDigest { what: "the manifest".to_owned(), expected: expected.clone(), found });
        }
    }
    Ok(())
}

/// Refuses a blob by its descriptor, before a byte of it is read.
pub(crate) fn check_size(descriptor: &Descriptor, limit: u64) -> Result<(), Error> {
    if descriptor.size > limit {
        return Err(Error::TooLarge { what: format!("the blob {}", descriptor.digest), limit });
    }
    Ok(())
}

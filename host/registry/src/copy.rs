//! Copies artifacts between repositories, with their signatures.

use bytes::Bytes;

use crate::artifact::{LARGEST_COMPONENT, resolve};
use crate::error::Error;
use crate::manifest::{IMAGE_MANIFEST, Manifest};
use crate::reference::{Reference, Version};
use crate::sign::{Verification, signature_tag, verify};
use crate::store::Store;

/// Copies an artifact with its signatures, after verifying them. Returns its reference by digest, and whether there
/// were signatures.
///
/// # Errors
/// When it cannot be read, verified or written.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    reference: &Reference,
    verification: &Verification,
) -> Result<(Reference, bool), Error> {
    let (digest, manifest) = resolve(from, reference).await?;
    let pinned = reference.pinned(&digest);
    if let Verification::Keys(keys) = verification {
        verify(from, &pinned, keys).await?;
    }
    one(from, to, reference.tag(), manifest, &pinned.to_string()).await?;
    let tag = signature_tag(&digest);
    let signatures = from.manifest(Version::Tag(&tag)).await?;
    let signed = signatures.is_some();
    if let Some(signatures) = signatures {
        one(from, to, Some(&tag), signatures, &format!("the signature of {pinned}")).await?;
    }
    Ok((pinned, signed))
}

async fn one(from: &dyn Store, to: &dyn Store, tag: Option<&str>, manifest: Bytes, what: &str) -> Result<(), Error> {
    let parsed = Manifest::parse(&manifest, what)?;
    for blob in parsed.layers.iter().chain([&parsed.config]) {
        to.put_blob(from.blob(blob, LARGEST_COMPONENT).await?).await?;
    }
    to.put_manifest(tag, IMAGE_MANIFEST, manifest).await
}

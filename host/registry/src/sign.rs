//! Signatures as cosign makes them with a key pair: a manifest beside the signed one, tagged `sha256-<hex>.sig`, with a layer
//! for each signature. The layer is the signed text, which names the digest of a manifest; the signature is an annotation of it.
//!
//! `cosign verify --key …` accepts what [`sign`] writes, and [`verify`] what `cosign sign --key …` writes.

pub(crate) mod blob;
mod encrypted;
pub(crate) mod key;
pub(crate) mod payload;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;

use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::{Descriptor, IMAGE_MANIFEST, Manifest};
use crate::reference::{Reference, Version};
use crate::store::Store;
use key::{PrivateKey, PublicKey};

const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Largest payload in bytes; usual ones have a few hundred.
const LARGEST_PAYLOAD: u64 = 64 << 10;
/// Signatures examined at most: each costs a request, and anybody may have written them.
const MOST_SIGNATURES: usize = 64;

/// Required signatures.
#[derive(Clone, Debug)]
pub enum Verification {
    /// None.
    None,
    /// By any of these keys.
    Keys(Vec<PublicKey>),
}

impl Verification {
    /// Requires a signature by any of these keys, or none without keys.
    #[must_use]
    pub fn of(keys: Vec<PublicKey>) -> Self {
        if keys.is_empty() { Verification::None } else { Verification::Keys(keys) }
    }
}

/// Tag of a manifest's signatures.
#[must_use]
pub(crate) fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

/// Whether a tag is one of signatures.
pub(crate) fn is_signature_tag(tag: &str) -> bool {
    let hex = tag.strip_prefix("sha256-").and_then(|tag| tag.strip_suffix(".sig"));
    hex.is_some_and(|hex| format!("sha256:{hex}").parse::<Digest>().is_ok())
}

/// Signs the manifest of a reference with digest, beside existing signatures.
///
/// # Errors
/// When the reference has no digest, or the repository does not answer.
pub async fn sign(store: &dyn Store, reference: &Reference, key: &PrivateKey) -> Result<(), Error> {
    let digest = pinned(reference)?;
    let tag = signature_tag(digest);
    let what = format!("the signature of {reference}");
    let mut layers = match store.manifest(Version::Tag(&tag)).await? {
        Some(bytes) => Manifest::parse(&bytes, &what)?.layers,
        None => Vec::new(),
    };
    let payload = Bytes::from(payload::write(&reference.name(), digest));
    let mut layer = Descriptor::of(SIMPLE_SIGNING, &payload);
    layer.annotations = BTreeMap::from([(SIGNATURE.to_owned(), STANDARD.encode(key.sign(&payload)?))]);
    // The same key has signed the same text before: its signature is replaced, not added to.
    let public = key.public()?;
    layers.retain(|old| {
        !(old.digest == layer.digest && signature_of(old).is_ok_and(|old| public.accepts(&payload, &old)))
    });
    layers.push(layer);

    // What copies images wants a config that lists the layers.
    let diff_ids: Vec<&Digest> = layers.iter().map(|layer| &layer.digest).collect();
    let config =
        json!({"architecture": "", "os": "", "config": {}, "rootfs": {"type": "layers", "diff_ids": diff_ids}});
    let config = Bytes::from(config.to_string());
    let manifest = Manifest::new(Descriptor::of(IMAGE_CONFIG, &config), layers).bytes()?;
    store.put_blob(payload).await?;
    store.put_blob(config).await?;
    store.put_manifest(Some(&tag), IMAGE_MANIFEST, manifest).await
}

/// Verifies the manifest of a reference with digest. Returns the key that signed it.
///
/// # Errors
/// When none did, the reference has no digest, or the repository does not answer.
pub async fn verify<'a>(
    store: &dyn Store,
    reference: &Reference,
    keys: &'a [PublicKey],
) -> Result<&'a PublicKey, Error> {
    let digest = pinned(reference)?;
    let tag = signature_tag(digest);
    let bytes = store.manifest(Version::Tag(&tag)).await?.ok_or_else(|| Error::Unsigned(reference.to_string()))?;
    let what = reference.to_string();
    let refused = |why: String| Error::BadSignature { what: what.clone(), why };
    let manifest = Manifest::parse(&bytes, "the signature").map_err(|error| refused(error.to_string()))?;
    let mut why = "there is none of cosign's kind".to_owned();
    let signatures = manifest.layers.iter().filter(|layer| layer.media_type == SIMPLE_SIGNING);
    for layer in signatures.take(MOST_SIGNATURES) {
        let signature = match signature_of(layer) {
            Ok(signature) => signature,
            Err(error) => {
                why = error;
                continue;
            }
        };
        let payload = match store.blob(layer, LARGEST_PAYLOAD).await {
            Ok(payload) => payload,
            // Another signature may be whole, but a registry that fails is not an artifact without one.
            Err(
                error @ (Error::WrongDigest { .. }
                | Error::WrongSize { .. }
                | Error::TooLarge { .. }
                | Error::NotFound(_)),
            ) => {
                why = error.to_string();
                continue;
            }
            Err(error) => return Err(error),
        };
        let Some(key) = keys.iter().find(|key| key.accepts(&payload, &signature)) else {
            why = "none of the trusted keys made it".to_owned();
            continue;
        };
        // Only now, that it is known who wrote it, it is read.
        match payload::names(&payload, digest) {
            Ok(()) => return Ok(key),
            Err(error) => why = error,
        }
    }
    Err(refused(why))
}

fn pinned(reference: &Reference) -> Result<&Digest, Error> {
    reference.digest().ok_or_else(|| Error::Unpinned(reference.to_string()))
}

fn signature_of(layer: &Descriptor) -> Result<Vec<u8>, String> {
    let text = layer.annotations.get(SIGNATURE).ok_or("a signature is missing its annotation")?;
    STANDARD.decode(text).map_err(|error| format!("a signature is not base64: {error}"))
}

#[cfg(test)]
mod tests;

//! What the fuzz targets in `fuzz/` need of the inside. No API: it changes as they do.

use crate::digest::Digest;
use crate::manifest::Manifest;
use crate::sign::payload;

/// Reads an image manifest; its bytes as they would be written.
///
/// # Errors
/// What is wrong with it.
pub fn manifest(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let manifest = Manifest::parse(bytes, "it").map_err(|error| error.to_string())?;
    manifest.bytes().map(Into::into).map_err(|error| error.to_string())
}

/// Whether what cosign signed names the digest.
///
/// # Errors
/// What it is instead.
pub fn payload_names(text: &[u8], digest: &Digest) -> Result<(), String> {
    payload::names(text, digest)
}

/// What cosign signs for a manifest in the repository `name`.
pub fn payload(name: &str, digest: &Digest) -> String {
    payload::write(name, digest)
}

//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

use crate::digest::Digest;
use crate::manifest::Manifest;
use crate::sign::payload;

/// Parses a manifest and serializes it again.
///
/// # Errors
/// What is wrong with it.
pub fn manifest(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let manifest = Manifest::parse(bytes, "it").map_err(|error| error.to_string())?;
    manifest.bytes().map(Into::into).map_err(|error| error.to_string())
}

/// Checks that a signed payload names the digest.
///
/// # Errors
/// What it is instead.
pub fn payload_names(text: &[u8], digest: &Digest) -> Result<(), String> {
    payload::names(text, digest)
}

/// The payload that cosign signs for a manifest in the repository `name`.
pub fn payload(name: &str, digest: &Digest) -> String {
    payload::write(name, digest)
}

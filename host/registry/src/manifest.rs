//! OCI image manifests.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Error;

/// Media type of an image manifest.
pub const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of a list of manifests, one for each platform.
pub const IMAGE_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Largest manifest in bytes, as registries accept it.
pub const LARGEST_MANIFEST: u64 = 4 << 20;

/// Reference to a blob or manifest by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Size of the content in bytes.
    pub size: u64,
    /// OCI annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Descriptor of `bytes`.
    #[must_use]
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            annotations: BTreeMap::new(),
        }
    }

    /// Checks size and digest of `bytes`.
    ///
    /// # Errors
    /// When they are not.
    pub fn check(&self, bytes: &[u8]) -> Result<(), Error> {
        let what = format!("the blob {}", self.digest);
        if bytes.len() as u64 != self.size {
            return Err(Error::WrongSize { what, expected: self.size, found: bytes.len() as u64 });
        }
        let found = Digest::of(bytes);
        if found != self.digest {
            return Err(Error::WrongDigest { what, expected: self.digest.clone(), found });
        }
        Ok(())
    }
}

/// OCI image manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// [`IMAGE_MANIFEST`], or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Descriptor of the config.
    pub config: Descriptor,
    /// Descriptors of the layers.
    pub layers: Vec<Descriptor>,
    /// OCI annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Manifest {
    /// A manifest of a config and layers.
    #[must_use]
    pub fn new(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(IMAGE_MANIFEST.to_owned()),
            config,
            layers,
            annotations: BTreeMap::new(),
        }
    }

    /// Parses a manifest. `what` names it in errors.
    ///
    /// # Errors
    /// When the bytes are anything else.
    pub fn parse(bytes: &[u8], what: &str) -> Result<Self, Error> {
        let refuse = |why: String| Error::NotAProvider { what: what.to_owned(), why };
        /// Checked first, since an index has neither config nor layers, and `missing field` would be a poor message.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            schema_version: u32,
            #[serde(default)]
            media_type: Option<String>,
            #[serde(default)]
            manifests: Option<serde::de::IgnoredAny>,
        }
        let kind: Kind =
            serde_json::from_slice(bytes).map_err(|error| refuse(format!("its manifest cannot be read: {error}")))?;
        if kind.manifests.is_some() || kind.media_type.as_deref() == Some(IMAGE_INDEX) {
            return Err(refuse("it is an index of images for several platforms".to_owned()));
        }
        if kind.schema_version != 2 || kind.media_type.as_deref().is_some_and(|media_type| media_type != IMAGE_MANIFEST)
        {
            let found = kind.media_type.unwrap_or_else(|| format!("schema version {}", kind.schema_version));
            return Err(refuse(format!("its manifest is {found:?}, not {IMAGE_MANIFEST:?}")));
        }
        serde_json::from_slice(bytes).map_err(|error| refuse(format!("its manifest cannot be read: {error}")))
    }

    /// The JSON of the manifest.
    ///
    /// # Errors
    /// None in practice: every part of it has a JSON form.
    pub fn bytes(&self) -> Result<Bytes, Error> {
        serde_json::to_vec(self)
            .map(Bytes::from)
            .map_err(|error| Error::BadLayout(format!("a manifest cannot be written: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn valid() -> Value {
        let descriptor = json!({"mediaType": "a/b", "digest": Digest::of(b"x"), "size": 1});
        json!({"schemaVersion": 2, "mediaType": IMAGE_MANIFEST, "config": descriptor, "layers": [descriptor],
            "artifactType": "ignored", "subject": {"more": "ignored"}})
    }

    #[test]
    fn a_manifest_comes_back_as_it_was_written() {
        let manifest = Manifest::parse(valid().to_string().as_bytes(), "it").unwrap();
        assert_eq!(Manifest::parse(&manifest.bytes().unwrap(), "it").unwrap(), manifest);
        manifest.config.check(b"x").unwrap();
        assert!(matches!(manifest.config.check(b"xy"), Err(Error::WrongSize { expected: 1, found: 2, .. })));
        assert!(matches!(manifest.config.check(b"y"), Err(Error::WrongDigest { .. })));
    }

    #[test]
    fn what_is_not_an_image_manifest_is_refused_with_what_it_is() {
        let edit = |pointer: &str, value: Value| {
            let mut manifest = valid();
            *manifest.pointer_mut(pointer).unwrap() = value;
            manifest.to_string()
        };
        let deep = "[".repeat(100_000);
        let table: [(String, &str); 9] = [
            (String::new(), "cannot be read"),
            (deep, "cannot be read"),
            ("{\"schemaVersion\":2,\"manifests\":[]}".to_owned(), "several platforms"),
            (edit("/mediaType", json!(IMAGE_INDEX)), "several platforms"),
            (edit("/mediaType", json!("application/vnd.docker.distribution.manifest.v2+json")), "docker"),
            (edit("/schemaVersion", json!(1)), "not"),
            (edit("/config/digest", json!("sha256:../../etc/passwd")), "not a digest"),
            (edit("/layers/0/size", json!(-1)), "cannot be read"),
            (valid().to_string().replace("\"layers\"", "\"config\""), "duplicate"),
        ];
        for (text, expected) in table {
            let error = Manifest::parse(text.as_bytes(), "it").unwrap_err().to_string();
            assert!(error.contains(expected), "{text:.80}: {error}");
        }
    }

    /// Every single byte of a manifest turned into others: refused or read, never worse.
    #[test]
    fn damaged_manifests_are_refused_or_read() {
        let good = valid().to_string().into_bytes();
        for at in 0..good.len() {
            for byte in [0, b'"', b'{', b'9', b'\\', 0xff, good[at] ^ 1] {
                let mut bad = good.clone();
                bad[at] = byte;
                let _ = Manifest::parse(&bad, "it").map(|manifest| manifest.bytes().unwrap());
            }
            assert!(Manifest::parse(&good[..at], "it").is_err());
        }
    }
}

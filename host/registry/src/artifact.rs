//! Components as artifacts, in the CNCF's layout for WebAssembly.
//!
//! The same component makes the same artifact: nothing in it tells when or where it was made.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Serialize;
use wasmparser::{Encoding, Parser, Payload};

use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::{Descriptor, IMAGE_MANIFEST, Manifest};
use crate::reference::Reference;
use crate::sign::{self, Verification};
use crate::store::Store;

/// Media type of the config of a WebAssembly artifact.
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Media type of the component's layer.
pub const COMPONENT_LAYER: &str = "application/wasm";
/// Largest component that a host takes, in bytes.
pub const LARGEST_COMPONENT: u64 = 64 << 20;

/// A component with the manifest and config of its artifact.
#[derive(Clone, Debug)]
pub struct Artifact {
    component: Bytes,
    config: Bytes,
    manifest: Bytes,
    digest: Digest,
}

/// Config of the artifact, which repeats properties of the layer for clients that do not fetch it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    /// The layout requires a time; a constant makes the digest depend on the component only.
    created: &'static str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: Vec<Digest>,
    component: Interfaces,
}

#[derive(Serialize, Default, Debug, PartialEq, Eq)]
struct Interfaces {
    exports: Vec<String>,
    imports: Vec<String>,
    target: Option<String>,
}

impl Artifact {
    /// Artifact of a component; `annotations` become those of the manifest.
    ///
    /// # Errors
    /// When the bytes are not a component.
    pub fn build(component: Bytes, annotations: BTreeMap<String, String>) -> Result<Self, Error> {
        let interfaces =
            interfaces(&component).map_err(|why| Error::NotAProvider { what: "the file".to_owned(), why })?;
        let layer = Descriptor::of(COMPONENT_LAYER, &component);
        let config = Config {
            created: "1970-01-01T00:00:00Z",
            architecture: "wasm",
            os: "wasip2",
            layer_digests: vec![layer.digest.clone()],
            component: interfaces,
        };
        let config = serde_json::to_vec(&config)
            .map(Bytes::from)
            .map_err(|error| Error::NotAProvider { what: "the file".to_owned(), why: error.to_string() })?;
        let manifest =
            Manifest { annotations, ..Manifest::new(Descriptor::of(WASM_CONFIG, &config), vec![layer]) }.bytes()?;
        Ok(Self { component, config, digest: Digest::of(&manifest), manifest })
    }

    /// Digest of the manifest, which is what signatures are for.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Stores the artifact. Returns its reference by digest.
    ///
    /// # Errors
    /// When the repository does not take it, or the reference asks for another digest.
    pub async fn push(&self, store: &dyn Store, reference: &Reference) -> Result<Reference, Error> {
        if let Some(expected) = reference.digest().filter(|expected| **expected != self.digest) {
            let what = "the artifact".to_owned();
            return Err(Error::WrongDigest { what, expected: expected.clone(), found: self.digest.clone() });
        }
        store.put_blob(self.component.clone()).await?;
        store.put_blob(self.config.clone()).await?;
        store.put_manifest(reference.tag(), IMAGE_MANIFEST, self.manifest.clone()).await?;
        Ok(reference.pinned(&self.digest))
    }
}

/// A pulled component.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// Reference by digest.
    pub reference: Reference,
    /// Content of the component.
    pub component: Bytes,
    /// Digest of the component.
    pub digest: Digest,
}

/// Digest and unparsed bytes of the manifest that a reference names at present.
///
/// # Errors
/// When there is no such manifest.
pub async fn resolve(store: &dyn Store, reference: &Reference) -> Result<(Digest, Bytes), Error> {
    let manifest = store.manifest(reference.version()).await?.ok_or_else(|| Error::NotFound(reference.to_string()))?;
    Ok((Digest::of(&manifest), manifest))
}

/// Fetches a component of at most `limit` bytes, after verifying its signature.
///
/// # Errors
/// When it is not there, is too large or damaged, is something else, or is not signed as demanded.
pub async fn pull(
    store: &dyn Store,
    reference: &Reference,
    verification: &Verification,
    limit: u64,
) -> Result<Pulled, Error> {
    let (digest, manifest) = resolve(store, reference).await?;
    let pinned = reference.pinned(&digest);
    if let Verification::Keys(keys) = verification {
        sign::verify(store, &pinned, keys).await?;
    }
    let what = pinned.to_string();
    let manifest = Manifest::parse(&manifest, &what)?;
    let layer = component_layer(&manifest).map_err(|why| Error::NotAProvider { what, why })?;
    let component = store.blob(layer, limit).await?;
    Ok(Pulled { reference: pinned, digest: layer.digest.clone(), component })
}

fn component_layer(manifest: &Manifest) -> Result<&Descriptor, String> {
    if manifest.config.media_type != WASM_CONFIG {
        return Err(format!("its config is {:?}, not {WASM_CONFIG:?}", manifest.config.media_type));
    }
    match manifest.layers.as_slice() {
        [layer] if layer.media_type == COMPONENT_LAYER => Ok(layer),
        [layer] => Err(format!("its layer is {:?}, not {COMPONENT_LAYER:?}", layer.media_type)),
        layers => Err(format!("it has {} layers, not one", layers.len())),
    }
}

/// Imports and exports of the outermost component.
fn interfaces(bytes: &[u8]) -> Result<Interfaces, String> {
    let (mut imports, mut exports) = (BTreeSet::new(), BTreeSet::new());
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| format!("it is not a component: {error}"))? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err("it is a core module, not a component".to_owned());
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.insert(import.map_err(|error| error.to_string())?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    exports.insert(export.map_err(|error| error.to_string())?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(Interfaces { exports: exports.into_iter().collect(), imports: imports.into_iter().collect(), target: None })
}

#[cfg(test)]
mod tests;

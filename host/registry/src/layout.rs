//! A folder of artifacts, for places that no registry reaches: an OCI image layout.
//!
//! Each entry of `index.json` has the full name of what it is (`registry/repository:tag`) in the annotation
//! `org.opencontainers.image.ref.name`. The folder is opened once; no name in it leads out of it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::{Descriptor, IMAGE_INDEX, LARGEST_MANIFEST};
use crate::reference::{Reference, Version};
use crate::store::{Store, check_manifest, check_size};

const REF_NAME: &str = "org.opencontainers.image.ref.name";
const MARK: &str = "oci-layout";
const MARK_CONTENT: &str = "{\"imageLayoutVersion\":\"1.0.0\"}";
const INDEX: &str = "index.json";

/// Folder with an OCI image layout.
#[derive(Clone)]
pub struct Layout(Arc<Dir>);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    media_type: Option<String>,
    manifests: Vec<Descriptor>,
}

impl Layout {
    /// Opens the folder, and creates it if necessary.
    ///
    /// # Errors
    /// When it cannot be made, or is something else.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Folder { path: path.display().to_string(), source };
        std::fs::create_dir_all(path).map_err(failed)?;
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
        let layout = Self(Arc::new(dir));
        if layout.0.exists(MARK) {
            layout.check()?;
        } else if layout.0.entries().map_err(failed)?.next().is_some() {
            return Err(Error::BadLayout(format!("{} holds something else", path.display())));
        } else {
            layout.write(MARK, MARK_CONTENT.as_bytes())?;
            layout.write_index(&Index {
                schema_version: 2,
                media_type: Some(IMAGE_INDEX.to_owned()),
                manifests: Vec::new(),
            })?;
        }
        Ok(layout)
    }

    /// Opens an existing folder.
    ///
    /// # Errors
    /// When it is not there, or is something else.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let dir = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|source| Error::Folder { path: path.display().to_string(), source })?;
        let layout = Self(Arc::new(dir));
        layout.check()?;
        Ok(layout)
    }

    /// References of the artifacts in the folder, without signatures.
    ///
    /// # Errors
    /// When its index cannot be read, or has an entry without a name.
    pub fn references(&self) -> Result<Vec<Reference>, Error> {
        let mut references = Vec::new();
        for entry in self.index()?.manifests {
            let name = entry
                .annotations
                .get(REF_NAME)
                .ok_or_else(|| Error::BadLayout(format!("{} has no name", entry.digest)))?;
            let reference: Reference = name.parse()?;
            if !reference.tag().is_some_and(crate::sign::is_signature_tag) {
                references.push(reference);
            }
        }
        Ok(references)
    }

    /// The repository of a reference.
    #[must_use]
    pub fn repository(&self, reference: &Reference) -> LayoutRepository {
        LayoutRepository { layout: self.clone(), name: reference.name() }
    }

    fn check(&self) -> Result<(), Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Mark {
            image_layout_version: String,
        }
        let mark: Mark = serde_json::from_slice(&self.read(MARK, 4096)?)
            .map_err(|error| Error::BadLayout(format!("{MARK} cannot be read: {error}")))?;
        if mark.image_layout_version.starts_with("1.") {
            Ok(())
        } else {
            Err(Error::BadLayout(format!("its version is {:?}", mark.image_layout_version)))
        }
    }

    fn index(&self) -> Result<Index, Error> {
        serde_json::from_slice(&self.read(INDEX, LARGEST_MANIFEST)?)
            .map_err(|error| Error::BadLayout(format!("{INDEX} cannot be read: {error}")))
    }

    fn write_index(&self, index: &Index) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(index)
            .map_err(|error| Error::BadLayout(format!("{INDEX} cannot be written: {error}")))?;
        self.write(INDEX, &text)
    }

    fn read(&self, path: &str, limit: u64) -> Result<Bytes, Error> {
        let failed = |source| Error::Folder { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        self.0.open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(failed)?;
        if bytes.len() as u64 > limit {
            return Err(Error::TooLarge { what: path.to_owned(), limit });
        }
        Ok(bytes.into())
    }

    /// Writes a file beside its place and renames it, so that readers never see a part of it.
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let part = format!("{path}.part");
        self.0
            .write(&part, bytes)
            .and_then(|()| self.0.rename(&part, &self.0, path))
            .map_err(|source| Error::Folder { path: path.to_owned(), source })
    }

    fn put(&self, bytes: &[u8]) -> Result<(), Error> {
        let failed = |source| Error::Folder { path: "blobs".to_owned(), source };
        self.0.create_dir_all("blobs/sha256").map_err(failed)?;
        self.write(&path(&Digest::of(bytes)), bytes)
    }
}

fn path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// A repository in the folder.
pub struct LayoutRepository {
    layout: Layout,
    name: String,
}

impl LayoutRepository {
    fn entry(&self, version: Version<'_>) -> String {
        match version {
            Version::Tag(tag) => format!("{}:{tag}", self.name),
            Version::Digest(digest) => format!("{}@{digest}", self.name),
        }
    }
}

#[async_trait]
impl Store for LayoutRepository {
    async fn manifest(&self, version: Version<'_>) -> Result<Option<Bytes>, Error> {
        let name = self.entry(version);
        let belongs = |entry: &Descriptor| {
            let named = entry.annotations.get(REF_NAME);
            match version {
                Version::Tag(_) => named == Some(&name),
                // An entry with a tag can be asked for by its digest, as in a registry.
                Version::Digest(digest) => {
                    entry.digest == *digest
                        && named
                            .and_then(|named| named.parse::<Reference>().ok())
                            .is_some_and(|named| named.name() == self.name)
                }
            }
        };
        let Some(entry) = self.layout.index()?.manifests.into_iter().find(belongs) else { return Ok(None) };
        let bytes = self.blob(&entry, LARGEST_MANIFEST).await?;
        check_manifest(version, &bytes)?;
        Ok(Some(bytes))
    }

    async fn blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Bytes, Error> {
        check_size(descriptor, limit)?;
        let bytes = self.layout.read(&path(&descriptor.digest), limit)?;
        descriptor.check(&bytes)?;
        Ok(bytes)
    }

    async fn put_blob(&self, bytes: Bytes) -> Result<(), Error> {
        self.layout.put(&bytes)
    }

    async fn put_manifest(&self, tag: Option<&str>, media_type: &str, bytes: Bytes) -> Result<(), Error> {
        self.layout.put(&bytes)?;
        let mut descriptor = Descriptor::of(media_type, &bytes);
        let name = self.entry(tag.map_or(Version::Digest(&descriptor.digest), Version::Tag));
        descriptor.annotations.insert(REF_NAME.to_owned(), name.clone());
        let mut index = self.layout.index()?;
        index.manifests.retain(|entry| entry.annotations.get(REF_NAME) != Some(&name));
        index.manifests.push(descriptor);
        self.layout.write_index(&index)
    }
}

#[cfg(test)]
mod tests;

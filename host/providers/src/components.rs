//! Components that serve or served, by digest, so that rollbacks and restarts do not need their source.
//!
//! Only components are stored, never native code; what is read must match the digest in its name. Beside each stands who signed it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};

use crate::loader::files::LARGEST;
use crate::loader::vouching::Vouched;

/// Why a component cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The folder cannot be created or opened.
    #[error("unable to use the folder of components {}", .0.display())]
    Folder(PathBuf, #[source] std::io::Error),
    /// The file is missing or unreadable.
    #[error("component {0} is not kept any more")]
    Read(String, #[source] std::io::Error),
    /// The content does not match the digest.
    #[error("the kept component {0} is damaged")]
    Damaged(String),
    /// The file cannot be written.
    #[error("unable to keep component {0}")]
    Write(String, #[source] std::io::Error),
}

/// Folder of components.
#[derive(Clone)]
pub struct Components(Arc<Dir>);

impl Components {
    /// Opens the folder, made with mode 0700 if it is not there.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn open(folder: &Path) -> Result<Self, ComponentError> {
        let failed = |error| ComponentError::Folder(folder.to_owned(), error);
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
        builder.create(folder).map_err(failed)?;
        Ok(Self(Arc::new(Dir::open_ambient_dir(folder, ambient_authority()).map_err(failed)?)))
    }

    /// The component with a digest (`sha256:<hex>`).
    pub(crate) async fn get(&self, digest: &str) -> Result<Vec<u8>, ComponentError> {
        let (dir, digest) = (self.0.clone(), digest.to_owned());
        let failed = digest.clone();
        let read = tokio::task::spawn_blocking(move || read(&dir, &digest)).await;
        read.map_err(|error| ComponentError::Read(failed, std::io::Error::other(error)))?
    }

    /// Stores a component under its digest.
    pub(crate) async fn put(&self, digest: &str, bytes: Vec<u8>) -> Result<(), ComponentError> {
        let (dir, digest) = (self.0.clone(), digest.to_owned());
        let failed = digest.clone();
        let written = tokio::task::spawn_blocking(move || write(&dir, &digest, &bytes)).await;
        written.map_err(|error| ComponentError::Write(failed, std::io::Error::other(error)))?
    }

    pub(crate) fn has(&self, digest: &str) -> bool {
        self.0.exists(file_name(digest))
    }

    /// Stores who signed a component.
    pub(crate) async fn vouch(&self, digest: &str, vouched: &Vouched) -> Result<(), ComponentError> {
        let text =
            serde_json::to_vec(vouched).map_err(|error| ComponentError::Write(digest.to_owned(), error.into()))?;
        let (dir, digest) = (self.0.clone(), digest.to_owned());
        let failed = digest.clone();
        let written =
            tokio::task::spawn_blocking(move || write_file(&dir, &digest, &signers_name(&digest), &text)).await;
        written.map_err(|error| ComponentError::Write(failed, std::io::Error::other(error)))?
    }

    /// Who signed a component; `None` when that is not known, or damaged.
    pub(crate) async fn vouched(&self, digest: &str) -> Option<Vouched> {
        let (dir, name) = (self.0.clone(), signers_name(digest));
        let read = tokio::task::spawn_blocking(move || {
            let mut text = Vec::new();
            dir.open(name).ok()?.take(SIGNERS).read_to_end(&mut text).ok()?;
            serde_json::from_slice(&text).ok()
        });
        read.await.ok()?
    }

    /// Removes a component, if it is there.
    pub(crate) fn remove(&self, digest: &str) {
        for name in [file_name(digest), signers_name(digest)] {
            if let Err(error) = self.0.remove_file(name)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(digest, %error, "unable to remove a component that is not needed any more");
            }
        }
    }
}

/// Bytes of a list of signers at most: some thousand keys.
const SIGNERS: u64 = 1 << 20;

/// File name of a digest. Digests come from statuses, which others may write, so only hex is accepted.
fn file_name(digest: &str) -> String {
    format!("sha256-{}.wasm", hex_of(digest))
}

/// Name of the file with who signed the component.
fn signers_name(digest: &str) -> String {
    format!("sha256-{}.signers.json", hex_of(digest))
}

fn hex_of(digest: &str) -> String {
    digest.trim_start_matches("sha256:").chars().filter(char::is_ascii_hexdigit).collect()
}

fn read(dir: &Dir, digest: &str) -> Result<Vec<u8>, ComponentError> {
    let failed = |error| ComponentError::Read(digest.to_owned(), error);
    let mut bytes = Vec::new();
    dir.open(file_name(digest)).map_err(failed)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if capwasm_runtime::digest(&bytes) == digest { Ok(bytes) } else { Err(ComponentError::Damaged(digest.to_owned())) }
}

fn write(dir: &Dir, digest: &str, bytes: &[u8]) -> Result<(), ComponentError> {
    write_file(dir, digest, &file_name(digest), bytes)
}

/// A file of a component, whole or not at all.
fn write_file(dir: &Dir, digest: &str, name: &str, bytes: &[u8]) -> Result<(), ComponentError> {
    let failed = |error| ComponentError::Write(digest.to_owned(), error);
    let draft = format!(".{name}.{}", std::process::id());
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = dir.open_with(&draft, &options).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    dir.rename(&draft, dir, name).map_err(failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_found_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("capwasm-components-{}", std::process::id()));
        let components = Components::open(&folder).unwrap();
        let digest = capwasm_runtime::digest(b"one");
        assert!(matches!(components.get(&digest).await, Err(ComponentError::Read(..))));
        components.put(&digest, b"one".to_vec()).await.unwrap();
        assert!(components.has(&digest));
        assert_eq!(components.get(&digest).await.unwrap(), b"one");
        std::fs::write(folder.join(file_name(&digest)), "two").unwrap();
        assert!(matches!(components.get(&digest).await, Err(ComponentError::Damaged(_))));
        assert_eq!(components.vouched(&digest).await, None);
        let vouched = Vouched { registry: true, keys: ["sha256:ab".to_owned()].into() };
        components.vouch(&digest, &vouched).await.unwrap();
        assert_eq!(components.vouched(&digest).await, Some(vouched));
        std::fs::write(folder.join(signers_name(&digest)), "{").unwrap();
        assert_eq!(components.vouched(&digest).await, None, "damage vouches for nothing");
        components.remove(&digest);
        components.remove(&digest);
        assert!(!components.has(&digest));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "nothing of it is left");
        assert_eq!(file_name("sha256:../../etc/passwd"), "sha256-ecad.wasm", "no way out of the folder");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

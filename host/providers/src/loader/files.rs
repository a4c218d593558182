//! The provider folder. Names are resolved by a directory handle, so that none leads out of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use sha2::{Digest, Sha256};

/// Largest component that is read.
const LARGEST: u64 = 64 << 20;

/// Why a component cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The folder is not there.
    #[error("unable to open the provider folder {}", .0.display())]
    Folder(PathBuf, #[source] std::io::Error),
    /// The file is not there, or not readable.
    #[error("unable to read {0:?} in the provider folder")]
    Read(String, #[source] std::io::Error),
    /// The file is larger than any provider.
    #[error("{0:?} is larger than {LARGEST} bytes")]
    TooLarge(String),
}

/// A folder with components.
#[derive(Clone)]
pub struct ProviderFiles(Arc<Dir>);

impl ProviderFiles {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not there.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        let dir = Dir::open_ambient_dir(folder, ambient_authority())
            .map_err(|error| FileError::Folder(folder.to_owned(), error))?;
        Ok(Self(Arc::new(dir)))
    }

    /// Names of the files that end in `.wasm`, sorted.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        let entries = self.0.entries().map_err(|error| FileError::Read(".".to_owned(), error))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".wasm") && !name.starts_with('.'))
            .collect();
        names.sort();
        Ok(names)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// When it is not there, leads out of the folder, or is too large.
    pub async fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let (dir, name) = (self.0.clone(), name.to_owned());
        let failed = name.clone();
        let read = tokio::task::spawn_blocking(move || read(&dir, &name)).await;
        read.map_err(|error| FileError::Read(failed, std::io::Error::other(error)))?
    }
}

fn read(dir: &Dir, name: &str) -> Result<Vec<u8>, FileError> {
    let failed = |error| FileError::Read(name.to_owned(), error);
    let file = dir.open(name).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(FileError::TooLarge(name.to_owned()));
    }
    Ok(bytes)
}

/// `sha256:<hex>` of a component.
pub fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn only_files_within_the_folder_are_read() {
        let outer = std::env::temp_dir().join(format!("capwasm-files-{}", std::process::id()));
        let folder = outer.join("providers");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(outer.join("secret.wasm"), "outside").unwrap();
        std::fs::write(folder.join("a.wasm"), "inside").unwrap();
        std::fs::write(folder.join(".a.wasm.part"), "").unwrap();
        let files = ProviderFiles::open(&folder).unwrap();
        assert_eq!(files.names().unwrap(), ["a.wasm"]);
        assert_eq!(files.read("a.wasm").await.unwrap(), b"inside");
        assert!(matches!(files.read("../secret.wasm").await, Err(FileError::Read(..))));
        assert!(matches!(files.read("none.wasm").await, Err(FileError::Read(..))));
        std::fs::remove_dir_all(outer).unwrap();
    }

    #[test]
    fn a_digest_names_its_algorithm() {
        assert_eq!(digest(b""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

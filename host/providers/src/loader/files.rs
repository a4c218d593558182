//! The provider folder. Names are resolved through a directory handle, so that none leads out of it. Readers of a file
//! are woken when it is replaced.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use capwasm_reconcile::{Interests, Token};
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// Largest component in bytes.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Why a component cannot be read from the folder.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The folder does not exist.
    #[error("unable to open the provider folder {}", .0.display())]
    Folder(PathBuf, #[source] std::io::Error),
    /// The file does not exist, or is not readable.
    #[error("unable to read {0:?} in the provider folder")]
    Read(String, #[source] std::io::Error),
    /// The system has no file watch left.
    #[error("unable to watch the provider folder {}", .0.display())]
    Watch(PathBuf, #[source] notify::Error),
    /// The file exceeds the size limit.
    #[error("{0:?} is larger than {LARGEST} bytes")]
    TooLarge(String),
}

/// Folder of components.
#[derive(Clone)]
pub struct ProviderFiles {
    dir: Arc<Dir>,
    path: Arc<Path>,
}

impl ProviderFiles {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not there.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        let dir = Dir::open_ambient_dir(folder, ambient_authority())
            .map_err(|error| FileError::Folder(folder.to_owned(), error))?;
        // For people and for the watch; a folder that has a handle has a path, unless it was moved just now.
        let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Ok(Self { dir: Arc::new(dir), path: path.into() })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Wakes readers of a file when it is replaced, until the returned watch is dropped.
    ///
    /// # Errors
    /// When the system has no watch left; files are then looked at when their WasmProviders are.
    pub fn watch(&self, interests: Arc<Interests>) -> Result<FolderWatch, FileError> {
        let failed = |error| FileError::Watch(self.path.to_path_buf(), error);
        let seen = move |event: notify::Result<Event>| match event {
            Ok(event) if replaces(event.kind) => {
                let names = event.paths.iter().filter_map(|path| path.file_name()?.to_str());
                names.for_each(|name| interests.fire(&file_token(name.strip_suffix(".sig").unwrap_or(name))));
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the watch of the provider folder failed"),
        };
        let mut watcher = notify::recommended_watcher(seen).map_err(failed)?;
        watcher.watch(&self.path, RecursiveMode::NonRecursive).map_err(failed)?;
        Ok(FolderWatch(watcher))
    }

    /// Names of the `.wasm` files, sorted.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        let entries = self.dir.entries().map_err(|error| FileError::Read(".".to_owned(), error))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".wasm") && !name.starts_with('.'))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Content of a file.
    ///
    /// # Errors
    /// When it is not there, leads out of the folder, or is too large.
    pub async fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let (dir, name) = (self.dir.clone(), name.to_owned());
        let failed = name.clone();
        let read = tokio::task::spawn_blocking(move || read(&dir, &name)).await;
        read.map_err(|error| FileError::Read(failed, std::io::Error::other(error)))?
    }
}

/// Ends the watch when dropped.
pub struct FolderWatch(#[expect(dead_code, reason = "lives as long as the watch is to")] RecommendedWatcher);

/// Whether the event means a complete file: writing goes on until the file is closed.
fn replaces(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Remove(_)
    )
}

/// Token that wakes readers of a file.
pub(crate) fn file_token(name: &str) -> Token {
    Token::new(&format!("provider-file:{name}"))
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
}

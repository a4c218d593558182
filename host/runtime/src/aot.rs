//! Compiled components, kept in a private folder.
//!
//! A compiled component is native code: whoever can write one into the folder runs as this process. So the folder must
//! belong to this user and to nobody else, files are 0600, and every use checks them again. The name of a file is
//! `<component digest>-<engine>-<digest of the compiled bytes>.cwasm`: another engine version, another CPU or a changed
//! configuration looks for another name, and a file whose bytes do not have the digest in its name is compiled anew.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::compatibility;

/// Folder of compiled components.
pub(crate) struct AotCache {
    dir: Dir,
    path: PathBuf,
    engine: String,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AotError {
    /// The folder cannot be created or opened.
    #[error("unable to open the folder of compiled components {path}")]
    Open {
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// The folder has another owner, or is accessible to others.
    #[error(
        "the folder of compiled components {path} must belong to this user, with mode 0700: it has owner {owner}, mode {mode:o}"
    )]
    NotPrivate {
        path: String,
        /// Uid of the owner.
        owner: u32,
        /// Permission bits.
        mode: u32,
    },
}

impl AotCache {
    /// Opens the folder, and creates it with mode 0700 if necessary.
    pub(crate) fn open(path: &Path, engine: &Engine) -> Result<Self, AotError> {
        let failed = |source| AotError::Open { path: path.display().to_string(), source };
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
        builder.create(path).map_err(failed)?;
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
        let metadata = dir.dir_metadata().map_err(failed)?;
        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
        if owner != rustix::process::geteuid().as_raw() || mode & 0o077 != 0 {
            return Err(AotError::NotPrivate { path: path.display().to_string(), owner, mode });
        }
        Ok(AotCache { dir, path: path.to_owned(), engine: compatibility(engine) })
    }

    /// The compiled component with this digest (hex), if it is stored and intact.
    pub(crate) fn get(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let name = self.find(digest)?;
        match self.verified(&name) {
            Ok(Some(component)) => self.deserialize(engine, &name, component),
            Ok(None) => {
                tracing::warn!(file = name, "a compiled component is damaged or not private; it is compiled anew");
                self.remove(&name);
                None
            }
            Err(error) => {
                tracing::warn!(file = name, %error, "unable to read a compiled component; it is compiled anew");
                None
            }
        }
    }

    fn find(&self, digest: &str) -> Option<String> {
        let prefix = format!("{digest}-{}-", self.engine);
        let entries = self.dir.entries().ok()?;
        let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.find(|name| name.starts_with(&prefix) && name.ends_with(".cwasm"))
    }

    /// Opens the file if it is private and its content has the digest in its name.
    fn verified(&self, name: &str) -> std::io::Result<Option<File>> {
        let mut file = self.dir.open(name)?;
        let metadata = file.metadata()?;
        let private = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        if !private || !metadata.is_file() {
            return Ok(None);
        }
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => hash.update(&buffer[..count]),
            }
        }
        let expected = name.trim_end_matches(".cwasm").rsplit('-').next();
        Ok((expected == Some(hex::encode(hash.finalize()).as_str())).then(|| file.into_std()))
    }

    /// Maps the file: unused code never becomes resident.
    fn deserialize(&self, engine: &Engine, name: &str, file: File) -> Option<Component> {
        // Through the descriptor whose bytes were hashed, so that no other file can take the name in between.
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        #[allow(
            unsafe_code,
            reason = "the bytes were written by this program: the folder and the file belong to this user alone, the \
                      digest of the bytes is the one that they were stored under, and files are replaced by rename only"
        )]
        let component = unsafe { Component::deserialize_file(engine, path) };
        match component {
            Ok(component) => Some(component),
            Err(error) => {
                tracing::warn!(file = name, %error, "unable to use a compiled component; it is compiled anew");
                self.remove(name);
                None
            }
        }
    }

    /// Stores compiled bytes. A failure only costs time at the next start.
    pub(crate) fn put(&self, digest: &str, compiled: &[u8]) {
        let name = format!("{digest}-{}-{}.cwasm", self.engine, hex::encode(Sha256::digest(compiled)));
        let draft = format!("{name}.{}.tmp", std::process::id());
        let written = self.write(&draft, compiled).and_then(|()| self.dir.rename(&draft, &self.dir, &name));
        if let Err(error) = written {
            tracing::warn!(folder = %self.path.display(), %error, "unable to keep a compiled component");
            self.remove(&draft);
        } else {
            self.remove_others(digest, &name);
        }
    }

    /// Removes what other engines compiled of the component; processes that have mapped it keep it.
    fn remove_others(&self, digest: &str, keep: &str) {
        let Ok(entries) = self.dir.entries() else { return };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let prefix = format!("{digest}-");
        names
            .filter(|name| name.starts_with(&prefix) && name != keep && name.ends_with(".cwasm"))
            .for_each(|name| self.remove(&name));
    }

    fn write(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = self.dir.open_with(name, &options)?;
        // Not synced: what a crash leaves torn does not have the digest in its name.
        file.write_all(bytes)
    }

    fn remove(&self, name: &str) {
        if let Err(error) = self.dir.remove_file(name)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(file = name, %error, "unable to remove a compiled component");
        }
    }
}

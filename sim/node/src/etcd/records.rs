//! Memberships as files of one directory, one for each cluster: thousands of clusters change one at a time.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::membership::Membership;

/// Where memberships are written down.
pub(super) struct Records {
    directory: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Record<M> {
    keyspace: String,
    membership: M,
}

impl Records {
    /// The directory, and what it holds.
    pub(super) fn open(directory: &Path) -> Result<(Self, Vec<(String, Membership)>), String> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
        let mut known = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(|error| failed(directory, &error))? {
            let path = entry.map_err(|error| failed(directory, &error))?.path();
            // Others are half-written ones, left by a program that was killed.
            if path.extension().is_some_and(|extension| extension == "json") {
                let text = std::fs::read(&path).map_err(|error| failed(&path, &error))?;
                let record: Record<Membership> =
                    serde_json::from_slice(&text).map_err(|error| failed(&path, &error))?;
                known.push((record.keyspace, record.membership));
            }
        }
        Ok((Self { directory: directory.to_owned() }, known))
    }

    /// Named by a digest, because keyspaces have slashes.
    fn path(&self, keyspace: &str) -> PathBuf {
        let name = hex::encode(&Sha256::digest(keyspace)[..16]);
        self.directory.join(name).with_extension("json")
    }

    pub(super) fn write(&self, keyspace: &str, membership: &Membership) -> Result<(), String> {
        let record = Record { keyspace: keyspace.to_owned(), membership };
        let text = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
        let path = self.path(keyspace);
        let next = path.with_extension("next");
        let written = std::fs::write(&next, text).and_then(|()| std::fs::rename(&next, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(super) fn remove(&self, keyspace: &str) -> Result<(), String> {
        let path = self.path(keyspace);
        let ignore_missing = |error: Error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) };
        std::fs::remove_file(&path).or_else(ignore_missing).map_err(|error| format!("{}: {error}", path.display()))
    }
}

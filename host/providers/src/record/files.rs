//! Folder of recordings: `<milliseconds>-<number>-<provider>-<function>-<object>[-failed].json`, so that names sort by
//! time.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt};
use capwasm_contract::recording::Ended;
use capwasm_object::meta;
use capwasm_runtime::record::{self, ReadError, Recording};

/// Longest part of an object's name in a file name, in characters.
const NAME: usize = 100;

/// Why a folder of recordings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder cannot be created, opened or listed.
    #[error("unable to open the folder of recordings {path}")]
    Open {
        /// Path of the folder.
        path: String,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The folder is readable by others.
    #[error("the folder of recordings {path} must belong to this user, with mode 0700: it has mode {mode:o}")]
    NotPrivate {
        /// Path of the folder.
        path: String,
        /// Permission bits, shown in octal.
        mode: u32,
    },
    /// A file of the folder is no recording.
    #[error("{name}")]
    Read {
        /// Name of the file.
        name: String,
        /// What is wrong with its content.
        #[source]
        source: ReadError,
    },
}

/// Folder of recordings.
pub struct RecordingFolder {
    dir: Dir,
    path: PathBuf,
    /// Names and sizes, oldest first.
    files: VecDeque<(String, u64)>,
    number: u64,
}

impl RecordingFolder {
    /// Opens an existing folder for reading.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let failed = |source| FolderError::Open { path: path.display().to_string(), source };
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
        let mut files = Vec::new();
        for entry in dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(".json") && !name.starts_with('.') {
                files.push((name, entry.metadata().map_err(failed)?.len()));
            }
        }
        files.sort();
        Ok(RecordingFolder { dir, path: path.to_owned(), files: files.into(), number: 0 })
    }

    /// Opens the folder for writing; creates it with mode 0700.
    ///
    /// # Errors
    /// When it cannot be made, or others can read it.
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        let failed = |source| FolderError::Open { path: path.display().to_string(), source };
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
        builder.create(path).map_err(failed)?;
        let folder = Self::open(path)?;
        let metadata = folder.dir.dir_metadata().map_err(failed)?;
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(FolderError::NotPrivate { path: path.display().to_string(), mode });
        }
        folder.tidy().map_err(failed)?;
        Ok(folder)
    }

    /// Removes temporary files of a killed host. One host writes to a folder.
    fn tidy(&self) -> std::io::Result<()> {
        for entry in self.dir.entries()? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(record::is_draft) {
                self.remove(Path::new(&name))?;
            }
        }
        Ok(())
    }

    fn remove(&self, name: &Path) -> std::io::Result<()> {
        match self.dir.remove_file(name) {
            // Somebody tidied up.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Writes a recording under a unique name, then removes the oldest files beyond `limit` bytes.
    pub(super) fn add(&mut self, recording: &Recording, limit: u64) -> std::io::Result<()> {
        self.number += 1;
        let name = name(recording, self.number);
        let bytes = record::write(&self.dir, &name, recording)?;
        self.files.push_back((name, bytes));
        let mut total: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        while total > limit && self.files.len() > 1 {
            let Some((oldest, bytes)) = self.files.pop_front() else { break };
            total -= bytes;
            self.remove(Path::new(&oldest))?;
        }
        Ok(())
    }

    /// Reads the last `count` calls of a provider, oldest first; 0 reads all.
    ///
    /// # Errors
    /// At the first file that is no recording.
    pub fn last(&self, provider: &str, count: usize) -> Result<Vec<Recording>, FolderError> {
        let mut recordings = VecDeque::new();
        for (name, _) in self.files.iter().rev() {
            let failed = |source| FolderError::Read { name: self.path.join(name).display().to_string(), source };
            let file = match self.dir.open(name) {
                // A host that goes on recording removes the oldest.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file.map_err(|error| failed(error.into()))?,
            };
            let recording = record::read(file).map_err(failed)?;
            if recording.provider == provider {
                recordings.push_front(recording);
            }
            if count > 0 && recordings.len() == count {
                break;
            }
        }
        Ok(recordings.into())
    }
}

fn name(recording: &Recording, number: u64) -> String {
    let object = recording.object();
    // Names of objects are lower case letters, digits, dots and dashes; what another component makes up is not trusted.
    let plain = |text: &str| -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
        text.chars().take(NAME).map(plain).collect()
    };
    let failed = if matches!(recording.ended, Ended::Failed(_)) { "-failed" } else { "" };
    format!(
        "{:013}-{number:06}-{}-{}-{}{failed}.json",
        recording.facts.now_ms,
        plain(&recording.provider),
        recording.function.name(),
        plain(meta::name(&object)),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::rehearse::testing::recording;
    use std::os::unix::fs::PermissionsExt as _;

    fn names(folder: &RecordingFolder) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(&folder.path).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn files_are_private_say_what_they_are_and_read_back() {
        let root = tempfile::tempdir().unwrap();
        let mut folder = RecordingFolder::create(&root.path().join("made/here")).unwrap();
        let recorded = recording("a");
        folder.add(&recorded, u64::MAX).unwrap();
        assert_eq!(names(&folder), ["0000000000007-000001-p-infrastructure-machine.provision-m.json"]);
        let file = folder.path.join(&names(&folder)[0]);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = RecordingFolder::open(&folder.path).unwrap();
        assert_eq!(again.last("p", 0).unwrap(), [recorded]);
        assert_eq!(again.last("another", 0).unwrap(), []);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(again.last("p", 0).unwrap(), [], "it went after the folder was listed");
    }

    #[test]
    fn what_a_killed_host_left_half_written_is_no_recording_and_goes_when_the_next_one_writes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("recordings");
        let mut folder = RecordingFolder::create(&path).unwrap();
        folder.add(&recording("a"), u64::MAX).unwrap();
        let draft = format!(".{}.part", names(&folder)[0]);
        std::fs::write(path.join(&draft), r#"{"format":1,"prov"#).unwrap();
        std::fs::write(path.join(".hidden"), "somebody else's").unwrap();
        assert_eq!(RecordingFolder::open(&path).unwrap().last("p", 0).unwrap().len(), 1);
        assert!(path.join(&draft).exists(), "who only reads removes nothing");
        RecordingFolder::create(&path).unwrap();
        assert!(!path.join(&draft).exists() && path.join(".hidden").exists());
    }

    #[test]
    fn the_oldest_files_go_when_there_are_too_many_bytes_also_after_a_restart() {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut folder = RecordingFolder::create(root.path()).unwrap();
        folder.add(&recording("a"), u64::MAX).unwrap();
        let one = folder.files[0].1;
        folder.add(&recording("b"), 2 * one).unwrap();
        let mut folder = RecordingFolder::create(root.path()).unwrap();
        folder.number = 7;
        folder.add(&recording("c"), 2 * one).unwrap();
        let left = folder.last("p", 0).unwrap();
        assert_eq!(left.iter().map(|r| r.facts.id.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn a_folder_that_others_can_read_is_not_written_to() {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(RecordingFolder::create(root.path()), Err(FolderError::NotPrivate { mode: 0o755, .. })));
    }

    #[test]
    fn what_is_no_recording_is_named() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("x.json"), r#"{"format": 99}"#).unwrap();
        let folder = RecordingFolder::open(root.path()).unwrap();
        let error = folder.last("p", 0).unwrap_err();
        assert!(matches!(&error, FolderError::Read { source: ReadError::Format { found: 99 }, .. }), "{error:?}");
    }
}

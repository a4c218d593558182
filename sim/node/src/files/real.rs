//! The real file system, for the node binary inside a real container.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::Path;

use bytes::Bytes;

use super::{Attributes, Files, Kind, base_name, join, parent};

/// The file system of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn attributes(&self, path: &str) -> io::Result<Option<Attributes>> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let kind = if found.is_dir() {
            Kind::Directory
        } else if found.is_symlink() {
            Kind::Link(fs::read_link(path)?.to_string_lossy().into_owned())
        } else {
            Kind::File
        };
        let size = if kind == Kind::File { found.len() } else { 0 };
        Ok(Some(Attributes {
            kind,
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            gid: found.gid(),
            size,
            mtime: found.mtime(),
        }))
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        match fs::canonicalize(path) {
            Ok(found) => Ok(found.to_string_lossy().into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(join(&fs::canonicalize(parent(path))?.to_string_lossy(), base_name(path)))
            }
            Err(error) => Err(error),
        }
    }

    fn read(&self, path: &str) -> io::Result<Bytes> {
        Ok(fs::read(path)?.into())
    }

    fn write(&self, path: &str, content: Bytes, mode: u32) -> io::Result<()> {
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?.write_all(&content)
    }

    fn append(&self, path: &str, content: &[u8]) -> io::Result<()> {
        fs::OpenOptions::new().append(true).create(true).mode(0o644).open(path)?.write_all(content)
    }

    fn make_directory(&self, path: &str, mode: u32) -> io::Result<()> {
        fs::DirBuilder::new().mode(mode).create(path)
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        symlink(target, path)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices && Path::new(from).is_file() => {
                fs::copy(from, to)?;
                fs::remove_file(from)
            }
            other => other,
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn set_mode(&self, path: &str, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn set_owner(&self, path: &str, uid: u32, gid: u32) -> io::Result<()> {
        chown(path, Some(uid), Some(gid))
    }
}

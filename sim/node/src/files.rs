//! Files of a node: in memory for the simulator, the real file system inside a real container.
//!
//! Paths are absolute and `/`-separated. Symbolic links are followed except by [`Files::attributes`], [`Files::remove`] and
//! [`Files::rename`]. Everything is small and local, so the trait is synchronous.

mod memory;
mod real;

use std::io;

use bytes::Bytes;

pub use memory::{Entry, MemoryFiles, Tree};
pub use real::RealFiles;

/// The type of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link to the path that it holds.
    Link(String),
}

/// What `stat` tells of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// The type of the file.
    pub kind: Kind,
    /// Permission bits, without the file type.
    pub mode: u32,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Bytes of a file; 0 for the rest.
    pub size: u64,
    /// Seconds since 1970 of the last change of content.
    pub mtime: i64,
}

impl Attributes {
    /// Whether this is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// A file system as far as a node needs one.
pub trait Files: Send + Sync {
    /// Metadata of `path` itself (a link is not followed), `None` when there is nothing.
    fn attributes(&self, path: &str) -> io::Result<Option<Attributes>>;
    /// `path` with its links resolved; the last component may be missing.
    fn resolve(&self, path: &str) -> io::Result<String>;
    /// The whole content of a file.
    fn read(&self, path: &str) -> io::Result<Bytes>;
    /// Creates or truncates a file; `mode` is for a new one only.
    fn write(&self, path: &str, content: Bytes, mode: u32) -> io::Result<()>;
    /// Adds to the end of a file, creating it with mode 0644.
    fn append(&self, path: &str, content: &[u8]) -> io::Result<()>;
    /// Creates one directory; fails when anything is there already.
    fn make_directory(&self, path: &str, mode: u32) -> io::Result<()>;
    /// Creates a symbolic link.
    fn link(&self, path: &str, target: &str) -> io::Result<()>;
    /// Removes a file, a link, or an empty directory.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Moves `from` with everything below to `to`, replacing a file.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Sets the permission bits.
    fn set_mode(&self, path: &str, mode: u32) -> io::Result<()>;
    /// Sets owner and group.
    fn set_owner(&self, path: &str, uid: u32, gid: u32) -> io::Result<()>;
}

impl dyn Files + '_ {
    /// Whether something is at `path`, links followed.
    pub fn exists(&self, path: &str) -> bool {
        self.stat(path).is_ok_and(|found| found.is_some())
    }

    /// Metadata of what `path` leads to.
    pub fn stat(&self, path: &str) -> io::Result<Option<Attributes>> {
        match self.resolve(path) {
            Ok(resolved) => self.attributes(&resolved),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates `path` and what is missing above it, mode 0755.
    pub fn make_directories(&self, path: &str) -> io::Result<()> {
        let mut at = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at.push('/');
            at.push_str(name);
            match self.stat(&at)? {
                Some(found) if found.is_directory() => {}
                Some(_) => return Err(io::ErrorKind::NotADirectory.into()),
                None => self.make_directory(&at, 0o755)?,
            }
        }
        Ok(())
    }

    /// Writes a file, making the directories above it.
    pub fn install(&self, path: &str, content: impl Into<Bytes>, mode: u32) -> io::Result<()> {
        self.make_directories(parent(path))?;
        self.write(path, content.into(), mode)?;
        self.set_mode(path, mode)
    }

    /// The content as text; bytes that are not UTF-8 are an error.
    pub fn read_text(&self, path: &str) -> io::Result<String> {
        String::from_utf8(self.read(path)?.to_vec()).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Removes `path` with everything below.
    pub fn remove_all(&self, path: &str) -> io::Result<()> {
        if self.attributes(path)?.is_some_and(|found| found.is_directory()) {
            for name in self.list(path)? {
                self.remove_all(&join(path, &name))?;
            }
        }
        self.remove(path)
    }
}

/// The directory that holds `path`.
pub fn parent(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        None | Some(("", _)) => "/",
        Some((parent, _)) => parent,
    }
}

/// The last component of `path`, empty for the root.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// `name` below `directory`, or `name` itself when it is absolute.
pub fn join(directory: &str, name: &str) -> String {
    if name.starts_with('/') { normal(name) } else { normal(&format!("{directory}/{name}")) }
}

/// An absolute path without empty, `.` and `..` components.
pub fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What the C library says about an error, as tools print it.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "No such file or directory".to_owned(),
        io::ErrorKind::AlreadyExists => "File exists".to_owned(),
        io::ErrorKind::NotADirectory => "Not a directory".to_owned(),
        io::ErrorKind::IsADirectory => "Is a directory".to_owned(),
        io::ErrorKind::DirectoryNotEmpty => "Directory not empty".to_owned(),
        io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        io::ErrorKind::InvalidData => "Invalid or incomplete multibyte or wide character".to_owned(),
        _ => error.to_string(),
    }
}

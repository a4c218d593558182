//! A file tree in memory: an ordered map from path to entry, contents as shared immutable bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Attributes, Files, Kind, join, normal, parent};

/// More links than this in one path are a loop.
const MAX_LINKS: usize = 16;

/// One path of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    mode: u32,
    uid: u32,
    gid: u32,
    mtime: i64,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Directory,
    File(Bytes),
    Link(Box<str>),
}

impl Entry {
    fn new(content: Content, mode: u32) -> Entry {
        let mtime = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Entry { mode: mode & 0o7777, uid: 0, gid: 0, mtime: i64::try_from(mtime).unwrap_or(i64::MAX), content }
    }

    /// The entry as it is kept on disk: kind, mode, owner, group, time (little-endian), then the content.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, payload): (u8, &[u8]) = match &self.content {
            Content::Directory => (b'd', &[]),
            Content::File(bytes) => (b'f', bytes),
            Content::Link(target) => (b'l', target.as_bytes()),
        };
        let mut out = Vec::with_capacity(21 + payload.len());
        out.push(kind);
        out.extend_from_slice(&self.mode.to_le_bytes());
        out.extend_from_slice(&self.uid.to_le_bytes());
        out.extend_from_slice(&self.gid.to_le_bytes());
        out.extend_from_slice(&self.mtime.to_le_bytes());
        out.extend_from_slice(payload);
        out
    }

    /// The inverse of [`Entry::encode`]; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Entry> {
        let (kind, rest) = bytes.split_first()?;
        let (mode, rest) = rest.split_first_chunk::<4>()?;
        let (uid, rest) = rest.split_first_chunk::<4>()?;
        let (gid, rest) = rest.split_first_chunk::<4>()?;
        let (mtime, payload) = rest.split_first_chunk::<8>()?;
        let content = match kind {
            b'd' => Content::Directory,
            b'f' => Content::File(Bytes::copy_from_slice(payload)),
            b'l' => Content::Link(std::str::from_utf8(payload).ok()?.into()),
            _ => return None,
        };
        Some(Entry {
            mode: u32::from_le_bytes(*mode),
            uid: u32::from_le_bytes(*uid),
            gid: u32::from_le_bytes(*gid),
            mtime: i64::from_le_bytes(*mtime),
            content,
        })
    }
}

/// All paths of one container. The root is always there and not in the map.
#[derive(Debug, Default)]
pub struct Tree {
    entries: BTreeMap<Box<str>, Entry>,
}

impl Tree {
    /// The entry at exactly this path.
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Puts an entry that was read back from disk.
    pub fn restore(&mut self, path: &str, entry: Entry) {
        self.entries.insert(path.into(), entry);
    }

    fn is_directory(&self, path: &str) -> bool {
        path == "/" || matches!(self.entries.get(path), Some(Entry { content: Content::Directory, .. }))
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        let mut pending: Vec<String> =
            normal(path).split('/').rev().filter(|p| !p.is_empty()).map(str::to_owned).collect();
        let mut at = String::from("/");
        let mut links = 0;
        while let Some(name) = pending.pop() {
            let next = join(&at, &name);
            match self.entries.get(next.as_str()).map(|entry| &entry.content) {
                Some(Content::Link(target)) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(io::Error::other("Too many levels of symbolic links"));
                    }
                    pending.extend(join(&at, target).split('/').rev().filter(|p| !p.is_empty()).map(str::to_owned));
                    at = String::from("/");
                }
                Some(Content::Directory) => at = next,
                Some(Content::File(_)) if pending.is_empty() => at = next,
                Some(Content::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None if pending.is_empty() => at = next,
                None => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Ok(at)
    }

    fn below<'a>(&'a self, path: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let start: Box<str> = prefix.as_str().into();
        self.entries.range(start..).map(|(path, _)| &**path).take_while(move |path| path.starts_with(&prefix))
    }
}

/// A handle on a [`Tree`] that remembers which paths it changed, so that an archive or an exec is made durable as one unit.
#[derive(Debug)]
pub struct MemoryFiles {
    tree: Arc<Mutex<Tree>>,
    touched: Mutex<BTreeSet<Box<str>>>,
}

impl MemoryFiles {
    /// A handle that has changed nothing yet.
    pub fn new(tree: Arc<Mutex<Tree>>) -> MemoryFiles {
        MemoryFiles { tree, touched: Mutex::default() }
    }

    /// Takes what changed through this handle since the last call: path and new entry, `None` when removed.
    pub fn take_changes(&self) -> Vec<(Box<str>, Option<Entry>)> {
        let touched = std::mem::take(&mut *self.touched.lock());
        let tree = self.tree.lock();
        touched.into_iter().map(|path| (path.clone(), tree.entry(&path).cloned())).collect()
    }

    fn touch(&self, path: &str) {
        self.touched.lock().insert(path.into());
    }

    /// Resolves `path` and says that its parent is a directory.
    fn place(tree: &Tree, path: &str) -> io::Result<String> {
        let at = tree.resolve(path)?;
        if tree.is_directory(parent(&at)) { Ok(at) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// As [`MemoryFiles::place`], but a link in the last place stays.
    fn place_itself(tree: &Tree, path: &str) -> io::Result<String> {
        let path = normal(path);
        if path == "/" {
            return Ok(path);
        }
        let directory = tree.resolve(parent(&path))?;
        if tree.is_directory(&directory) {
            Ok(join(&directory, super::base_name(&path)))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn insert(&self, tree: &mut Tree, path: &str, entry: Entry) {
        tree.entries.insert(path.into(), entry);
        self.touch(path);
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Entry)) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let at = Self::place(&tree, path)?;
        if at == "/" {
            return Ok(());
        }
        change(tree.entries.get_mut(at.as_str()).ok_or(io::ErrorKind::NotFound)?);
        self.touch(&at);
        Ok(())
    }
}

impl Files for MemoryFiles {
    fn attributes(&self, path: &str) -> io::Result<Option<Attributes>> {
        let tree = self.tree.lock();
        let at = match Self::place_itself(&tree, path) {
            Ok(at) => at,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if at == "/" {
            return Ok(Some(Attributes { kind: Kind::Directory, mode: 0o755, uid: 0, gid: 0, size: 0, mtime: 0 }));
        }
        Ok(tree.entries.get(at.as_str()).map(|entry| {
            let (kind, size) = match &entry.content {
                Content::Directory => (Kind::Directory, 0),
                Content::File(bytes) => (Kind::File, bytes.len() as u64),
                Content::Link(target) => (Kind::Link(target.to_string()), 0),
            };
            Attributes { kind, mode: entry.mode, uid: entry.uid, gid: entry.gid, size, mtime: entry.mtime }
        }))
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        self.tree.lock().resolve(path)
    }

    fn read(&self, path: &str) -> io::Result<Bytes> {
        let tree = self.tree.lock();
        let at = tree.resolve(path)?;
        match tree.entries.get(at.as_str()).map(|entry| &entry.content) {
            Some(Content::File(bytes)) => Ok(bytes.clone()),
            Some(_) => Err(io::ErrorKind::IsADirectory.into()),
            None if at == "/" => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn write(&self, path: &str, content: Bytes, mode: u32) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let at = Self::place(&tree, path)?;
        if tree.is_directory(&at) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut entry = Entry::new(Content::File(content), mode);
        if let Some(old) = tree.entries.get(at.as_str()) {
            (entry.mode, entry.uid, entry.gid) = (old.mode, old.uid, old.gid);
        }
        self.insert(&mut tree, &at, entry);
        Ok(())
    }

    fn append(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let old = match self.read(path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Bytes::new(),
            Err(error) => return Err(error),
        };
        self.write(path, [&old[..], content].concat().into(), 0o644)
    }

    fn make_directory(&self, path: &str, mode: u32) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let at = Self::place_itself(&tree, path)?;
        if at == "/" || tree.entries.contains_key(at.as_str()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.insert(&mut tree, &at, Entry::new(Content::Directory, mode));
        Ok(())
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let at = Self::place_itself(&tree, path)?;
        if at == "/" || tree.entries.contains_key(at.as_str()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.insert(&mut tree, &at, Entry::new(Content::Link(target.into()), 0o777));
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let at = Self::place_itself(&tree, path)?;
        if tree.below(&at).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        tree.entries.remove(at.as_str()).ok_or(io::ErrorKind::NotFound)?;
        self.touch(&at);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let (from, to) = (Self::place_itself(&tree, from)?, Self::place_itself(&tree, to)?);
        if from == to {
            return Ok(());
        }
        if to.starts_with(&format!("{from}/")) || from == "/" {
            return Err(io::Error::other("Invalid argument"));
        }
        if tree.below(&to).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let moved: Vec<String> = tree.below(&from).map(str::to_owned).chain([from.clone()]).collect();
        for path in moved {
            let entry = tree.entries.remove(path.as_str()).ok_or(io::ErrorKind::NotFound)?;
            self.touch(&path);
            self.insert(&mut tree, &format!("{to}{}", &path[from.len()..]), entry);
        }
        Ok(())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let tree = self.tree.lock();
        let at = tree.resolve(path)?;
        if !tree.is_directory(&at) {
            let missing = !tree.entries.contains_key(at.as_str());
            return Err(if missing { io::ErrorKind::NotFound } else { io::ErrorKind::NotADirectory }.into());
        }
        let skip = if at == "/" { 1 } else { at.len() + 1 };
        Ok(tree.below(&at).map(|path| &path[skip..]).filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn set_mode(&self, path: &str, mode: u32) -> io::Result<()> {
        self.change(path, |entry| entry.mode = mode & 0o7777)
    }

    fn set_owner(&self, path: &str, uid: u32, gid: u32) -> io::Result<()> {
        self.change(path, |entry| (entry.uid, entry.gid) = (uid, gid))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn files() -> MemoryFiles {
        MemoryFiles::new(Arc::default())
    }

    #[test]
    fn a_directory_is_made_once_and_only_below_a_directory() {
        let files = files();
        files.make_directory("/a", 0o755).unwrap();
        assert_eq!(files.make_directory("/a", 0o755).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(files.make_directory("/b/c", 0o755).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn links_are_followed_and_loops_end() {
        let files = files();
        files.make_directory("/run", 0o755).unwrap();
        files.make_directory("/var", 0o755).unwrap();
        files.link("/var/run", "../run").unwrap();
        files.write("/var/run/x", "1".into(), 0o600).unwrap();
        assert_eq!(files.read("/run/x").unwrap(), "1");
        files.link("/loop", "/loop").unwrap();
        assert!(files.read("/loop").is_err());
    }

    #[test]
    fn changes_are_taken_once_with_what_was_removed() {
        let files = files();
        files.make_directory("/a", 0o755).unwrap();
        files.write("/a/f", "x".into(), 0o644).unwrap();
        let changes = files.take_changes();
        assert_eq!(changes.iter().map(|(path, _)| &**path).collect::<Vec<_>>(), ["/a", "/a/f"]);
        files.rename("/a", "/b").unwrap();
        let changes: Vec<_> =
            files.take_changes().into_iter().map(|(path, entry)| (path.to_string(), entry.is_some())).collect();
        assert_eq!(changes, [("/a".into(), false), ("/a/f".into(), false), ("/b".into(), true), ("/b/f".into(), true)]);
        assert!(files.take_changes().is_empty());
    }

    #[test]
    fn an_entry_survives_its_encoding() {
        for content in [Content::Directory, Content::File("abc".into()), Content::Link("/x".into())] {
            let entry = Entry { mode: 0o640, uid: 1, gid: 2, mtime: 7, content };
            assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        }
        assert_eq!(Entry::decode(b"zzz"), None);
    }
}

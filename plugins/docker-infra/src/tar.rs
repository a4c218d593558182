//! Tar archives as the engine's archive calls speak them.

use std::collections::BTreeMap;
use std::io::{self, Read};

use ::tar::{Archive, Builder, EntryType, Header};

/// The largest numeric owner that every reader understands.
pub const MAX_ID: u32 = 0o7_777_777;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
}

/// Permissions and owner of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub mode: u32,
    /// Numeric user, at most [`MAX_ID`].
    pub uid: u32,
    /// Numeric group, at most [`MAX_ID`].
    pub gid: u32,
}

impl Attributes {
    /// Root's, with these permissions.
    pub fn root(mode: u32) -> Attributes {
        Attributes { mode, uid: 0, gid: 0 }
    }
}

/// Builds an archive in memory. What cannot be written is told at the end.
pub struct Writer {
    builder: Builder<Vec<u8>>,
    failed: Option<io::Error>,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer { builder: Builder::new(Vec::new()), failed: None }
    }
}

impl Writer {
    pub fn directory(&mut self, path: &str, attributes: Attributes) {
        self.entry(&format!("{}/", path.trim_end_matches('/')), EntryType::Directory, attributes, &[]);
    }

    pub fn file(&mut self, path: &str, attributes: Attributes, content: &[u8]) {
        self.entry(path, EntryType::Regular, attributes, content);
    }

    /// The archive with its end mark.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.failed {
            Some(error) => Err(error),
            None => self.builder.into_inner(),
        }
    }

    fn entry(&mut self, path: &str, kind: EntryType, attributes: Attributes, content: &[u8]) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(attributes.mode);
        header.set_uid(attributes.uid.into());
        header.set_gid(attributes.gid.into());
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        let result = self.builder.append_data(&mut header, path, content);
        self.failed = self.failed.take().or(result.err());
    }
}

/// One entry that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    /// Seconds since 1970.
    pub modified: u64,
    /// Empty for a directory.
    pub content: Vec<u8>,
}

/// Reads an archive of files and directories; paths come without a slash at either end.
pub fn read(bytes: &[u8]) -> io::Result<BTreeMap<String, Entry>> {
    let mut entries = BTreeMap::new();
    for entry in Archive::new(bytes).entries()? {
        let mut entry = entry?;
        let kind = match entry.header().entry_type() {
            EntryType::Regular => EntryKind::File,
            EntryType::Directory => EntryKind::Directory,
            _ => continue,
        };
        let path = String::from_utf8_lossy(&entry.path_bytes()).trim_matches('/').to_owned();
        let modified = entry.header().mtime()?;
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        entries.insert(path, Entry { kind, modified, content });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn what_was_written_is_read_back_also_under_long_names() {
        let long = format!("capwasm/{}/file", "d".repeat(200));
        let mut writer = Writer::default();
        writer.directory("capwasm", Attributes::root(0o755));
        writer.file("capwasm/a", Attributes { mode: 0o600, uid: 1000, gid: MAX_ID }, &[7; 513]);
        writer.file(&long, Attributes::root(0o644), b"x");
        let archive = writer.finish().unwrap();
        assert_eq!(archive.len() % 512, 0);
        let entries = read(&archive).unwrap();
        assert_eq!(entries["capwasm"].kind, EntryKind::Directory);
        assert_eq!(entries["capwasm/a"].content, [7; 513]);
        assert_eq!(entries[&long].content, b"x");
    }

    #[test]
    fn what_is_not_an_archive_is_refused_and_never_panics() {
        assert!(read(b"").unwrap().is_empty());
        assert!(read(b"hello").is_err());
        assert!(read(&[1; 2048]).is_err());
        let mut writer = Writer::default();
        writer.file("a", Attributes::root(0o644), &[1; 2000]);
        let archive = writer.finish().unwrap();
        for end in (1..archive.len()).step_by(37) {
            let _ = read(&archive[..end]);
        }
        let mut damaged = archive.clone();
        damaged[130] = b'9';
        assert!(read(&damaged).is_err());
    }

    #[test]
    fn the_system_tar_reads_what_was_written() {
        let mut writer = Writer::default();
        writer.directory("d", Attributes::root(0o755));
        writer.file(&format!("d/{}", "n".repeat(120)), Attributes { mode: 0o640, uid: 5, gid: 6 }, b"hello");
        let mut child = match std::process::Command::new("tar")
            .args(["-tvf", "-", "--numeric-owner"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
        {
            Ok(child) => child,
            Err(error) => panic!("this test needs tar: {error}"),
        };
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &writer.finish().unwrap()).unwrap();
        let output = child.wait_with_output().unwrap();
        let listing = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(listing.contains("-rw-r----- 5/6"), "{listing}");
        assert!(listing.contains(&"n".repeat(120)), "{listing}");
    }
}

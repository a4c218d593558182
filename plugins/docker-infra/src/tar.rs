//! Tar archives as the engine's archive calls speak them: a ustar writer, and a reader of small files.
//!
//! Written here because it is smaller in the component than a crate that knows file systems. Long names use GNU's
//! extension in both directions; PAX records are skipped when reading, because nothing that is read here needs them.

use std::collections::BTreeMap;

const BLOCK: usize = 512;
/// The largest number in the seven octal digits of an owner field.
pub const MAX_ID: u32 = 0o7_777_777;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
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

/// Builds an archive.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Adds a directory.
    pub fn directory(&mut self, path: &str, attributes: Attributes) {
        self.entry(&format!("{}/", path.trim_end_matches('/')), b'5', attributes, &[]);
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, attributes: Attributes, content: &[u8]) {
        self.entry(path, b'0', attributes, content);
    }

    /// The archive with its end mark.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    fn entry(&mut self, path: &str, kind: u8, attributes: Attributes, content: &[u8]) {
        if path.len() > 100 {
            let mut name = path.as_bytes().to_vec();
            name.push(0);
            self.block("././@LongLink", b'L', Attributes::root(0), &name);
        }
        self.block(path, kind, attributes, content);
    }

    fn block(&mut self, path: &str, kind: u8, attributes: Attributes, content: &[u8]) {
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, bytes: &[u8]| {
            for (slot, byte) in header.iter_mut().skip(at).zip(bytes) {
                *slot = *byte;
            }
        };
        put(0, path.as_bytes().get(..100).unwrap_or(path.as_bytes()));
        put(100, format!("{:07o}\0", attributes.mode).as_bytes());
        put(108, format!("{:07o}\0", attributes.uid).as_bytes());
        put(116, format!("{:07o}\0", attributes.gid).as_bytes());
        put(124, format!("{:011o}\0", content.len()).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[kind]);
        // GNU's magic, because of its long names.
        put(257, b"ustar  \0");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let text = format!("{sum:06o}\0 ");
        header.iter_mut().skip(148).zip(text.as_bytes()).for_each(|(slot, byte)| *slot = *byte);
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }
}

/// One entry that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File or directory.
    pub kind: EntryKind,
    /// Seconds since 1970.
    pub modified: u64,
    /// Of a file.
    pub content: Vec<u8>,
}

/// Reads an archive; paths come without a slash at either end. None when it is not one.
pub fn read(mut bytes: &[u8]) -> Option<BTreeMap<String, Entry>> {
    let mut entries = BTreeMap::new();
    let mut long_name = None;
    while let Some((header, rest)) = bytes.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            return Some(entries);
        }
        if !is_header(header) {
            return None;
        }
        let size = usize::try_from(number(header.get(124..136)?)?).ok()?;
        let content = rest.get(..size)?;
        bytes = rest.get(size.checked_next_multiple_of(BLOCK)?..).unwrap_or_default();
        let kind = match header.get(156)? {
            b'L' => {
                long_name = Some(text(content));
                continue;
            }
            b'0' | 0 => EntryKind::File,
            b'5' => EntryKind::Directory,
            _ => continue,
        };
        let short = || match text(header.get(345..500).unwrap_or_default()) {
            prefix if prefix.is_empty() || header.get(257..263) != Some(b"ustar\0") => text(&header[..100]),
            prefix => format!("{prefix}/{}", text(&header[..100])),
        };
        let path = long_name.take().unwrap_or_else(short);
        let modified = number(header.get(136..148)?)?;
        entries.insert(path.trim_matches('/').to_owned(), Entry { kind, modified, content: content.to_vec() });
    }
    bytes.is_empty().then_some(entries)
}

fn is_header(header: &[u8]) -> bool {
    let checked = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) };
    let sum: u64 = header.iter().enumerate().map(checked).sum();
    header.get(148..156).and_then(number) == Some(sum)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn number(field: &[u8]) -> Option<u64> {
    let digits = text(field);
    let digits = digits.trim();
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
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
        let archive = writer.finish();
        assert_eq!(archive.len() % BLOCK, 0);
        let entries = read(&archive).unwrap();
        assert_eq!(entries["capwasm"].kind, EntryKind::Directory);
        assert_eq!(entries["capwasm/a"].content, [7; 513]);
        assert_eq!(entries[&long].content, b"x");
    }

    #[test]
    fn what_is_not_an_archive_is_refused_and_never_panics() {
        assert!(read(b"").unwrap().is_empty());
        assert!(read(b"hello").is_none());
        assert!(read(&[1; 2048]).is_none());
        let mut writer = Writer::default();
        writer.file("a", Attributes::root(0o644), &[1; 2000]);
        let archive = writer.finish();
        for end in (1..archive.len()).step_by(37) {
            let _ = read(&archive[..end]);
        }
        let mut damaged = archive.clone();
        damaged[130] = b'9';
        assert!(read(&damaged).is_none());
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
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &writer.finish()).unwrap();
        let output = child.wait_with_output().unwrap();
        let listing = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(listing.contains("-rw-r----- 5/6"), "{listing}");
        assert!(listing.contains(&"n".repeat(120)), "{listing}");
    }
}

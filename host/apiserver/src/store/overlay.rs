//! A file of which a database believes that it writes to it: what it writes stays in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;

use parking_lot::Mutex;
use redb::StorageBackend;

const BLOCK: usize = 4096;
/// Where redb's file has its flags, and the one that says that it has to be recovered (redb's `docs/design.md`).
const FLAGS: u64 = 9;
const RECOVER: u8 = 2;

/// Memory: 4 KiB for each block of the file that is written to.
#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    length: u64,
    /// As far as the file itself is still what is there.
    of_file: u64,
    written: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Overlay {
    pub fn new(file: File, length: u64) -> Self {
        Self { file, state: Mutex::new(State { length, of_file: length, written: BTreeMap::new() }) }
    }

    /// A file that looks as if its last user had crashed: what it says of free pages is not believed, but found out again.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn unclean(file: File, length: u64) -> Result<Self> {
        let overlay = Self::new(file, length);
        let mut flags = [0];
        overlay.read(FLAGS, &mut flags)?;
        overlay.write(FLAGS, &[flags[0] | RECOVER])?;
        Ok(overlay)
    }

    /// A block as the file has it; zeros beyond its end.
    fn block(&self, of_file: u64, block: u64) -> Result<Box<[u8; BLOCK]>> {
        let mut bytes = Box::new([0; BLOCK]);
        let start = block * BLOCK as u64;
        let there = usize::try_from(of_file.saturating_sub(start)).unwrap_or(BLOCK).min(BLOCK);
        self.file.read_exact_at(&mut bytes[..there], start)?;
        Ok(bytes)
    }
}

/// Parts of `length` bytes from `offset` that lie in one block each: block, offset in it, length.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let part = (BLOCK - within).min(length - done);
        done += part;
        (part > 0).then_some((at / BLOCK as u64, within, part))
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64> {
        Ok(self.state.lock().length)
    }

    fn read(&self, offset: u64, mut out: &mut [u8]) -> Result<()> {
        let state = self.state.lock();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.length) {
            return Err(Error::new(ErrorKind::UnexpectedEof, "beyond the end of the database"));
        }
        for (block, within, length) in parts(offset, out.len()) {
            let (part, rest) = out.split_at_mut(length);
            match state.written.get(&block) {
                Some(bytes) => part.copy_from_slice(&bytes[within..within + length]),
                None => part.copy_from_slice(&self.block(state.of_file, block)?[within..within + length]),
            }
            out = rest;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let mut state = self.state.lock();
        state.length = length;
        // What is cut off comes back as zeros.
        state.of_file = state.of_file.min(length);
        state.written.retain(|block, _| block * (BLOCK as u64) < length);
        let within = (length % BLOCK as u64) as usize;
        if within > 0
            && let Some(last) = state.written.get_mut(&(length / BLOCK as u64))
        {
            last[within..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, mut data: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        for (block, within, length) in parts(offset, data.len()) {
            let (part, rest) = data.split_at(length);
            let fresh = if state.written.contains_key(&block) { None } else { Some(self.block(state.of_file, block)?) };
            let bytes = state.written.entry(block).or_insert_with(|| fresh.unwrap_or_else(|| Box::new([0; BLOCK])));
            bytes[within..within + length].copy_from_slice(part);
            data = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_file_is_as_it_was() {
        let mut file = tempfile::tempfile().unwrap();
        let was: Vec<u8> = (0..10_000_u32).map(|n| n as u8).collect();
        file.write_all(&was).unwrap();
        let overlay = Overlay::new(file.try_clone().unwrap(), 10_000);
        let read = |offset, length| {
            let mut bytes = vec![0; length];
            overlay.read(offset, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(0, 10_000).unwrap(), was);
        assert!(read(9_999, 2).is_err());
        overlay.write(4_090, &[7; 10]).unwrap();
        assert_eq!(read(4_089, 12).unwrap(), [&was[4_089..4_090], &[7; 10], &was[4_100..4_101]].concat());
        overlay.set_len(5_000).unwrap();
        overlay.set_len(20_000).unwrap();
        assert_eq!(read(4_999, 2).unwrap(), [was[4_999], 0]);
        assert_eq!(read(12_000, 8_000).unwrap(), [0; 8_000]);
        let mut now = vec![0; 10_000];
        file.read_exact_at(&mut now, 0).unwrap();
        assert_eq!(now, was);
    }
}

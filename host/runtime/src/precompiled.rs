//! Components that were compiled when this program was built: native code behind the program's own image.
//!
//! ```text
//! image of the program │ code of a component … │ index (JSON) │ length of the index (u64, little endian) │ MARK
//! ```
//!
//! Whoever can write native code runs as this process, so there is no file or folder beside the program that it is taken from:
//! whoever can change the program needs nothing else. An entry names the component by its digest, the engine that the code fits,
//! and the digest of the code; what does not fit is compiled as if there were no entry.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmtime::Engine;

use crate::compile::compatibility;
use crate::engine;

/// Last bytes of a program with precompiled code.
const MARK: &[u8; 16] = b"capwasm-code-v1\n";
/// Bytes behind the index: its length and the mark.
const TRAILER: u64 = 8 + MARK.len() as u64;

/// Precompiled components of a program.
#[derive(Debug)]
pub struct Precompiled {
    program: File,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// Digest of the component in hex.
    component: String,
    /// Engine that the code fits, from [`compatibility`].
    engine: String,
    /// Digest of the code in hex.
    code: String,
    /// Offset in the program's file in bytes.
    offset: u64,
    length: u64,
}

impl Precompiled {
    /// Of the running image, even if its file was replaced meanwhile. `None` without precompiled code.
    ///
    /// # Errors
    /// When the image cannot be read.
    pub fn of_this_program() -> io::Result<Option<Self>> {
        Self::of(Path::new("/proc/self/exe"))
    }

    /// Of a program that is as trusted as this one.
    ///
    /// # Errors
    /// When the file cannot be read, or says that there is code and where makes no sense.
    pub fn of(program: &Path) -> io::Result<Option<Self>> {
        let mut program = File::open(program)?;
        Ok(index(&mut program)?.map(|(_, entries)| Precompiled { program, entries }))
    }

    /// Code of a component (digest in hex) for an engine, if it is there and intact.
    pub(crate) fn get(&self, engine: &Engine, component: &str) -> Option<Vec<u8>> {
        let engine = compatibility(engine);
        let entry = self.entries.iter().find(|entry| entry.component == component && entry.engine == engine)?;
        let mut code = vec![0; usize::try_from(entry.length).ok()?];
        match self.program.read_exact_at(&mut code, entry.offset) {
            Ok(()) if hex::encode(Sha256::digest(&code)) == entry.code => Some(code),
            Ok(()) => {
                tracing::warn!(component, "compiled code of this program is damaged; the component is compiled anew");
                None
            }
            Err(error) => {
                tracing::warn!(component, %error, "unable to read compiled code of this program");
                None
            }
        }
    }
}

/// Copies a program and appends the code of components, in place of earlier code. `components` are pairs of component
/// and code by a [`Compiler`](crate::Compiler) of this process.
///
/// # Errors
/// When a file cannot be read or written, or there is no engine to say what the code fits.
pub fn attach(program: &Path, to: &Path, components: &[(Vec<u8>, Vec<u8>)]) -> io::Result<()> {
    let engine = compatibility(&engine::compiler().map_err(|error| io::Error::other(format!("{error:#}")))?);
    std::fs::copy(program, to)?;
    let mut file = File::options().read(true).write(true).open(to)?;
    let image = match index(&mut file)? {
        Some((image, _)) => image,
        None => file.metadata()?.len(),
    };
    file.set_len(image)?;
    let mut offset = file.seek(SeekFrom::Start(image))?;
    let mut entries = Vec::new();
    for (component, code) in components {
        file.write_all(code)?;
        let (component, code_digest) = (hex::encode(Sha256::digest(component)), hex::encode(Sha256::digest(code)));
        let length = code.len() as u64;
        entries.push(Entry { component, engine: engine.clone(), code: code_digest, offset, length });
        offset += length;
    }
    let index = serde_json::to_vec(&entries)?;
    file.write_all(&index)?;
    file.write_all(&(index.len() as u64).to_le_bytes())?;
    file.write_all(MARK)
}

/// Length of the program's image, and the index behind it.
fn index(program: &mut File) -> io::Result<Option<(u64, Vec<Entry>)>> {
    let size = program.metadata()?.len();
    let mut trailer = [0; TRAILER as usize];
    if size < TRAILER {
        return Ok(None);
    }
    program.read_exact_at(&mut trailer, size - TRAILER)?;
    let (length, mark) = trailer.split_at(8);
    if mark != MARK {
        return Ok(None);
    }
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "the index of compiled code is broken");
    let length = u64::from_le_bytes(length.try_into().map_err(|_| broken())?);
    let begin = (size - TRAILER).checked_sub(length).ok_or_else(broken)?;
    program.seek(SeekFrom::Start(begin))?;
    let mut text = Vec::new();
    program.take(length).read_to_end(&mut text)?;
    let entries: Vec<Entry> = serde_json::from_slice(&text)?;
    let inside = |entry: &Entry| entry.offset.checked_add(entry.length).is_some_and(|end| end <= begin);
    if !entries.iter().all(inside) {
        return Err(broken());
    }
    Ok(Some((entries.iter().map(|entry| entry.offset).min().unwrap_or(begin), entries)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn program(folder: &Path, bytes: &[u8]) -> std::path::PathBuf {
        let file = folder.join("program");
        std::fs::write(&file, bytes).unwrap();
        file
    }

    #[test]
    fn code_is_found_by_component_and_engine_and_only_whole() {
        let folder = tempfile::tempdir().unwrap();
        let bare = program(folder.path(), b"the image of a program, however long it may be");
        assert!(Precompiled::of(&bare).unwrap().is_none(), "built without");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let pair = |component: &str, code: &str| (component.as_bytes().to_vec(), code.as_bytes().to_vec());
        attach(&bare, &first, &[pair("a", "code of a"), pair("b", "code of b")]).unwrap();
        // Once more on top: what was there goes.
        attach(&first, &second, &[pair("b", "other code of b")]).unwrap();
        let engine = engine::compiler().unwrap();
        let name = |component: &str| hex::encode(Sha256::digest(component));
        let of = |file: &Path, component: &str| Precompiled::of(file).unwrap().unwrap().get(&engine, &name(component));
        assert_eq!(of(&first, "b").as_deref(), Some(b"code of b".as_slice()));
        assert_eq!(of(&second, "b").as_deref(), Some(b"other code of b".as_slice()));
        assert_eq!((of(&second, "a"), of(&first, "c")), (None, None));

        let mut other = Precompiled::of(&first).unwrap().unwrap();
        other.entries.iter_mut().for_each(|entry| entry.engine = "0123456789abcdef".to_owned());
        assert_eq!(other.get(&engine, &name("a")), None, "for another engine");

        let mut bytes = std::fs::read(&first).unwrap();
        let at = bytes.windows(9).position(|window| window == b"code of a").unwrap();
        bytes[at] ^= 1;
        let damaged = program(folder.path(), &bytes);
        assert_eq!(of(&damaged, "a"), None, "damaged");
        assert!(of(&damaged, "b").is_some());
        let cut = program(folder.path(), &bytes[bytes.len() - 60..]);
        assert!(Precompiled::of(&cut).is_err(), "an index that points outside");
    }
}

//! Files of recordings: JSON with a format version, private, written atomically.

use std::io::{Read, Write};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use capwasm_contract::recording::{FORMAT, Header, Written};

use super::Recording;

/// Largest file that is read, in bytes: base64 and JSON lengthen a full tape at most sixfold.
const FILE_BYTES: u64 = 128 << 20;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("unable to read the recording")]
    File(#[from] std::io::Error),
    /// Larger than any recording.
    #[error("more than {FILE_BYTES} bytes: this is no recording")]
    TooLarge,
    /// Not the JSON of a recording.
    #[error("this is no recording")]
    Json(#[from] serde_json::Error),
    /// Another format version.
    #[error("the recording has format {found}; this host reads format {FORMAT}")]
    Format {
        /// Format version of the file.
        found: u32,
    },
}

/// Suffix of an incomplete file, whose name also begins with a dot.
const DRAFT: &str = ".part";

/// Whether the name is that of a file that [`write`] has not completed.
pub fn is_draft(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(DRAFT)
}

/// Writes a recording to the file `name` with mode 0600, replacing it. Returns its size in bytes.
///
/// # Errors
/// Those of the file system; nothing is left behind then.
pub fn write(dir: &Dir, name: &str, recording: &Recording) -> std::io::Result<u64> {
    let text = to_json(recording)?;
    let draft = format!(".{name}{DRAFT}");
    let result = (|| {
        // One that a crash left may be there, with whatever mode.
        if let Err(error) = dir.remove_file(&draft)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = dir.open_with(&draft, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
        file.write_all(&text)?;
        dir.rename(&draft, dir, name)
    })();
    if result.is_err() {
        // The first error is the one to tell.
        let _ = dir.remove_file(&draft);
    }
    result.map(|()| text.len() as u64)
}

/// Content of a recording's file.
///
/// # Errors
/// None that a recording of this host can cause.
pub fn to_json(recording: &Recording) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&Written { format: FORMAT, recording })?;
    text.push(b'\n');
    Ok(text)
}

/// Parses a recording.
///
/// # Errors
/// When it cannot be read, or is none that this host can read.
pub fn read(file: impl Read) -> Result<Recording, ReadError> {
    let mut text = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(ReadError::TooLarge);
    }
    let Header { format } = serde_json::from_slice(&text)?;
    if format != FORMAT {
        return Err(ReadError::Format { found: format });
    }
    Ok(serde_json::from_slice(&text)?)
}

//! CRDs as files beside the code.

use std::fs;
use std::path::Path;

use super::CustomResource;

/// Set to anything, it makes [`check`] write the files.
const UPDATE: &str = "UPDATE_CRDS";

/// Compares `<folder>/<plural>.json` with what the types say, for each kind. With `UPDATE_CRDS=1` in the environment the files
/// are written instead.
///
/// # Panics
/// When a file is not as the types say, or cannot be written; it is meant for a test.
#[allow(clippy::panic, reason = "it is an assertion")]
pub fn check(folder: impl AsRef<Path>, kinds: &[CustomResource]) {
    let update = std::env::var_os(UPDATE).is_some();
    for kind in kinds {
        if let Err(problem) = file(folder.as_ref(), kind, update) {
            panic!("{problem}");
        }
    }
}

/// Writes or compares the file of one kind.
pub(super) fn file(folder: &Path, kind: &CustomResource, update: bool) -> Result<(), String> {
    let path = folder.join(format!("{}.json", kind.resource()));
    let wanted = format!("{:#}\n", kind.build());
    if update {
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, &wanted));
        return written.map_err(|error| format!("unable to write {}: {error}", path.display()));
    }
    match fs::read_to_string(&path) {
        Ok(found) if found == wanted => Ok(()),
        _ => {
            let path = path.display();
            Err(format!("{path} is not what the types say: run `{UPDATE}=1 cargo test`, and look at the difference"))
        }
    }
}

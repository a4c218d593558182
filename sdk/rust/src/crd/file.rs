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
    for kind in kinds {
        let path = folder.as_ref().join(format!("{}.json", kind.resource()));
        let wanted = format!("{:#}\n", kind.build());
        if std::env::var_os(UPDATE).is_some() {
            let written = fs::create_dir_all(folder.as_ref()).and_then(|()| fs::write(&path, &wanted));
            written.unwrap_or_else(|error| panic!("unable to write {}: {error}", path.display()));
        } else if fs::read_to_string(&path).ok().as_ref() != Some(&wanted) {
            panic!(
                "{} is not what the types say: run `{UPDATE}=1 cargo test`, and look at the difference",
                path.display()
            );
        }
    }
}

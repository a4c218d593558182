//! Certificates on disk: private to their owner, replaced atomically.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use capwasm_pki::Pair;

use super::PkiError;

fn failed(act: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PkiError {
    let path = path.to_owned();
    move |source| PkiError::File { act, path, source }
}

/// Makes the folder, for its owner only.
pub(super) fn private_dir(dir: &Path) -> Result<(), PkiError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(failed("create", dir))
}

/// Certificate and key by name; `None` unless both are there.
pub(super) fn read_pair(dir: &Path, name: &str) -> Result<Option<Pair>, PkiError> {
    let read = |extension: &str| {
        let path = dir.join(format!("{name}.{extension}"));
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &path)(error)),
        }
    };
    Ok(match (read("crt")?, read("key")?) {
        (Some(certificate), Some(key)) => Some(Pair { certificate, key }),
        _ => None,
    })
}

/// Writes the key first: a certificate without its key would be useless, a key without certificate is made anew.
pub(super) fn write_pair(dir: &Path, name: &str, pair: &Pair) -> Result<(), PkiError> {
    write(&dir.join(format!("{name}.key")), &pair.key)?;
    write(&dir.join(format!("{name}.crt")), &pair.certificate)
}

/// Writes a private file beside its place and moves it there.
pub(super) fn write(path: &Path, text: &str) -> Result<(), PkiError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let fresh = Path::new(&name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(fresh).map_err(failed("create", fresh))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write", fresh))?;
    fs::rename(fresh, path).map_err(failed("replace", path))
}

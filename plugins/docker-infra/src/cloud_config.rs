//! Reads cloud-config, as far as kubeadm's bootstrap data needs it in a container: `bootcmd`, `write_files`, `runcmd`.
//!
//! What cloud-init would do and this does not is named in [`CloudConfig::ignored`], never dropped silently. Each
//! command runs in a shell of its own, so that a `cd` does not last.

mod content;
mod document;
mod yaml;

use crate::tar::{Attributes, MAX_ID};
pub use document::quote;
use document::{Document, WriteFile};

/// Larger documents are refused before they are parsed.
const LARGEST: usize = 4 << 20;
/// Longer paths are refused.
const LONGEST_PATH: usize = 4_000;

/// Why a document is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CloudConfigError {
    /// Neither memory nor the engine should see it.
    #[error("the bootstrap data has {0} bytes, more than {LARGEST}")]
    TooLarge(usize),
    /// Not text.
    #[error("the bootstrap data is not UTF-8")]
    NotText,
    /// Not a cloud-config.
    #[error("the bootstrap data is not a cloud-config: {0}")]
    Malformed(String),
    /// A file cannot be written as asked for.
    #[error("write_files entry {path:?}: {why}")]
    BadFile {
        /// Its path.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Absolute, without `.`, `..` and double slashes.
    pub path: String,
    /// Decoded.
    pub content: Vec<u8>,
    /// Permissions and numeric owner.
    pub attributes: Attributes,
    /// An owner that only the machine can resolve.
    pub named_owner: Option<String>,
    /// Added to the end of what is there.
    pub append: bool,
}

/// What a cloud-config asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudConfig {
    /// In order.
    pub files: Vec<File>,
    /// Shell commands that come before the files, in order.
    pub boot_commands: Vec<String>,
    /// Shell commands that come after the files, in order.
    pub commands: Vec<String>,
    /// Modules and template expressions that have no effect here.
    pub ignored: Vec<String>,
}

/// Interprets a document for the machine of that name.
pub fn parse(bytes: &[u8], machine: &str) -> Result<CloudConfig, CloudConfigError> {
    if bytes.len() > LARGEST {
        return Err(CloudConfigError::TooLarge(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| CloudConfigError::NotText)?;
    let (text, mut ignored) = document::resolve_template(text, machine);
    let document = Document::parse(&text).map_err(CloudConfigError::Malformed)?;
    ignored.extend(document.ignored);
    let mut files: Vec<File> = Vec::new();
    for entry in document.write_files {
        let file = interpret(entry)?;
        match files.iter_mut().find(|known| known.path == file.path && file.append) {
            Some(known) => known.content.extend_from_slice(&file.content),
            None => {
                files.retain(|known| known.path != file.path);
                files.push(file);
            }
        }
    }
    Ok(CloudConfig { files, boot_commands: document.boot_commands, commands: document.commands, ignored })
}

fn interpret(entry: WriteFile) -> Result<File, CloudConfigError> {
    let bad = |why: &'static str| CloudConfigError::BadFile { path: entry.path.chars().take(200).collect(), why };
    let path = normalize(&entry.path).map_err(bad)?;
    let content = content::decode(&entry.content, &entry.encoding).map_err(bad)?;
    let mode = permissions(&entry.permissions).ok_or_else(|| bad("permissions are not octal"))?;
    let (owner, named_owner) = owner(&entry.owner).map_err(bad)?;
    let attributes = Attributes { mode, uid: owner.0, gid: owner.1 };
    Ok(File { path, content, attributes, named_owner, append: entry.append })
}

/// `/var/run` is a link to `/run` everywhere, and copying a directory over a link fails.
fn normalize(path: &str) -> Result<String, &'static str> {
    if !path.starts_with('/') {
        return Err("the path is not absolute");
    }
    if path.len() > LONGEST_PATH || path.chars().any(char::is_control) {
        return Err("the path is too long or has control characters");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err("the path leaves its directory");
    }
    if parts.is_empty() || path.ends_with('/') {
        return Err("the path names a directory");
    }
    let joined = format!("/{}", parts.join("/"));
    Ok(joined.strip_prefix("/var/run/").map_or(joined.clone(), |rest| format!("/run/{rest}")))
}

fn permissions(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    if digits.is_empty() {
        return Some(0o644);
    }
    u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777)
}

/// Numbers and root are known here; other names are resolved in the machine.
fn owner(text: &str) -> Result<((u32, u32), Option<String>), &'static str> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name(user) || !is_name(group) || user.starts_with('-') {
        return Err("the owner is neither user:group nor two numbers");
    }
    let number = |name: &str| match name {
        "" | "root" => Some(0),
        name => name.parse().ok().filter(|id| *id <= MAX_ID),
    };
    match (number(user), number(group)) {
        (Some(uid), Some(gid)) => Ok(((uid, gid), None)),
        _ => Ok(((0, 0), Some(text.to_owned()))),
    }
}

#[cfg(test)]
mod tests;

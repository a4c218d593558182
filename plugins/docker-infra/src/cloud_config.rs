//! Reads cloud-config, as far as a container can do what it asks for: `bootcmd`, `write_files`, `groups`, `users`, `runcmd`.
//!
//! What cloud-init would do and this does not is named in [`Recipe::ignored`], never dropped silently. Each command runs
//! in a shell of its own, so that a `cd` does not last.

mod accounts;
mod document;

use crate::recipe::{self, File, LARGEST, Recipe, Step, content, normalize};
use crate::tar::Attributes;
use document::{Document, WriteFile};

/// Why a document is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CloudConfigError {
    /// Neither memory nor the engine should see it.
    #[error("the bootstrap data has {0} bytes, more than {LARGEST}")]
    TooLarge(usize),
    #[error("the bootstrap data is not UTF-8")]
    NotText,
    #[error("the bootstrap data is not a cloud-config: {0}")]
    Malformed(String),
    /// A file cannot be written as asked for.
    #[error("write_files entry {path:?}: {why}")]
    BadFile { path: String, why: &'static str },
}

/// Interprets a document for the machine of that name.
pub fn parse(bytes: &[u8], machine: &str) -> Result<Recipe, CloudConfigError> {
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
    Ok(Recipe {
        before: document.boot_commands.into_iter().map(Step::command).collect(),
        directories: Vec::new(),
        files,
        groups: document.groups,
        users: document.users,
        commands: document.commands.into_iter().map(Step::command).collect(),
        ignored,
    })
}

fn interpret(entry: WriteFile) -> Result<File, CloudConfigError> {
    let bad = |why: &'static str| CloudConfigError::BadFile { path: entry.path.chars().take(200).collect(), why };
    let path = normalize(&entry.path).map_err(bad)?;
    let content = content::decode(&entry.content, &entry.encoding).map_err(bad)?;
    let mode = recipe::permissions(&entry.permissions).ok_or_else(|| bad("permissions are not octal"))?;
    let (owner, named_owner) = recipe::owner(&entry.owner).map_err(bad)?;
    let attributes = Attributes { mode, uid: owner.0, gid: owner.1 };
    Ok(File { path, content, attributes, named_owner, append: entry.append })
}

#[cfg(test)]
mod tests;

//! What bootstrap data asks a container to do, whatever language it is written in.

pub mod content;
mod path;
mod users;

use crate::tar::{Attributes, MAX_ID};
pub use path::normalize;
pub use users::{Group, User};

/// Larger documents are refused before they are parsed.
pub const LARGEST: usize = 4 << 20;
/// How much of a command stands in a condition.
const TITLE_LETTERS: usize = 120;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Absolute, without `.`, `..` and double slashes.
    pub path: String,
    /// Decoded.
    pub content: Vec<u8>,
    pub attributes: Attributes,
    /// An owner that only the machine can resolve.
    pub named_owner: Option<String>,
    /// Added to the end of what is there.
    pub append: bool,
}

/// A directory to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Absolute, as a file's.
    pub path: String,
    pub attributes: Attributes,
    /// An owner that only the machine can resolve.
    pub named_owner: Option<String>,
}

/// One shell script that runs at most once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// For a person; free of what must not be seen.
    pub title: String,
    pub script: String,
}

impl Step {
    /// A command that may be shown, as far as it is short.
    pub fn command(script: impl Into<String>) -> Step {
        let script = script.into();
        let title: String = script.chars().take(TITLE_LETTERS).collect();
        Step { title: title.trim_end().to_owned(), script }
    }

    /// A command under another name.
    pub fn titled(title: impl Into<String>, script: impl Into<String>) -> Step {
        Step { title: title.into().chars().take(TITLE_LETTERS).collect(), script: script.into() }
    }
}

/// All of it. Before the files come `before`; after the files users, then what only the machine can do to files, then
/// `commands`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Shell commands that come before the files, in order.
    pub before: Vec<Step>,
    pub directories: Vec<Directory>,
    pub files: Vec<File>,
    pub groups: Vec<Group>,
    pub users: Vec<User>,
    /// Shell commands that come after all that, in order.
    pub commands: Vec<Step>,
    /// What has no effect here, for a person.
    pub ignored: Vec<String>,
}

/// Octal, as both languages' users write it.
pub fn permissions(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    if digits.is_empty() {
        return Some(0o644);
    }
    u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777)
}

/// `user:group`: numbers and root are known here, other names are resolved in the machine.
pub fn owner(text: &str) -> Result<((u32, u32), Option<String>), &'static str> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    if !is_account(user) || !is_account(group) {
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

/// Whether a text can be the name of a user or group; also none at all.
pub fn is_account(name: &str) -> bool {
    !name.starts_with('-') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// A word that the shell takes as it is.
pub fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn owners_are_numbers_root_or_names_for_the_machine() {
        let table = [
            ("root:root", Ok(((0, 0), None))),
            ("", Ok(((0, 0), None))),
            ("1000:2000", Ok(((1000, 2000), None))),
            ("etcd:etcd", Ok(((0, 0), Some("etcd:etcd".to_owned())))),
            ("root:adm", Ok(((0, 0), Some("root:adm".to_owned())))),
            ("99999999", Ok(((0, 0), Some("99999999".to_owned())))),
            ("a b", Err("the owner is neither user:group nor two numbers")),
            ("--reference=/etc/shadow:x", Err("the owner is neither user:group nor two numbers")),
        ];
        for (text, expected) in table {
            assert_eq!(owner(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_command_is_cut_in_its_title_only() {
        let step = Step::command("x".repeat(5_000));
        assert_eq!((step.title.len(), step.script.len()), (TITLE_LETTERS, 5_000));
    }
}

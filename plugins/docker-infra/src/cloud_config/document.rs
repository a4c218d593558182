//! The YAML document itself, and its template header.

use super::accounts;
use crate::recipe::{Group, User, quote};
use capwasm_yaml::{Yaml, read};

/// A cloud-config in its own words.
#[derive(Debug, Default)]
pub struct Document {
    pub write_files: Vec<WriteFile>,
    pub boot_commands: Vec<String>,
    pub commands: Vec<String>,
    pub groups: Vec<Group>,
    pub users: Vec<User>,
    pub ignored: Vec<String>,
}

/// An entry of `write_files`.
#[derive(Debug, Default)]
pub struct WriteFile {
    pub path: String,
    pub content: String,
    pub encoding: String,
    pub permissions: String,
    pub owner: String,
    pub append: bool,
}

impl Document {
    /// Errors name places and keys, never content.
    pub fn parse(text: &str) -> Result<Document, String> {
        let mut document = Document::default();
        for (module, value) in map(read::only(text)?, "the document")? {
            match module.as_str() {
                "write_files" => {
                    let entries = list(value, "write_files")?;
                    document.write_files = entries.into_iter().map(write_file).collect::<Result<_, _>>()?;
                }
                "bootcmd" => document.boot_commands = commands(value, "bootcmd")?,
                "runcmd" => document.commands = commands(value, "runcmd")?,
                "groups" => {
                    let (groups, members) = accounts::groups(value)?;
                    document.groups = groups;
                    document.users.extend(members);
                }
                "users" => {
                    let (users, ignored) = accounts::users(value)?;
                    document.users.splice(0..0, users);
                    document.ignored.extend(ignored);
                }
                // Disks, mounts and the clock of a container are the engine's.
                _ => document.ignored.push(module.chars().take(80).collect()),
            }
        }
        Ok(document)
    }
}

/// A mapping; empty for null.
pub fn map(value: Option<Yaml>, what: &str) -> Result<Vec<(String, Yaml)>, String> {
    match value {
        Some(Yaml::Map(fields)) => Ok(fields),
        Some(value) if !value.is_null() => Err(format!("{what} is not a mapping")),
        _ => Ok(Vec::new()),
    }
}

/// A list; empty for null.
pub fn list(value: Yaml, what: &str) -> Result<Vec<Yaml>, String> {
    match value {
        Yaml::List(items) => Ok(items),
        value if value.is_null() => Ok(Vec::new()),
        _ => Err(format!("{what} is not a list")),
    }
}

fn write_file(entry: Yaml) -> Result<WriteFile, String> {
    let mut file = WriteFile::default();
    for (field, value) in map(Some(entry), "an entry of write_files")? {
        let Yaml::Scalar { text, binary, .. } = value else {
            return Err(format!("{field} of an entry of write_files is not a scalar"));
        };
        match field.as_str() {
            "path" => file.path = text,
            "content" => {
                if binary {
                    file.encoding = "base64".to_owned();
                }
                file.content = text;
            }
            "encoding" => file.encoding = text,
            "permissions" => file.permissions = text,
            "owner" => file.owner = text,
            "append" => file.append = matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "on"),
            // All files are written before the commands anyway.
            "defer" => {}
            _ => return Err(format!("an entry of write_files has the unknown field {field:?}")),
        }
    }
    Ok(file)
}

fn commands(value: Yaml, module: &str) -> Result<Vec<String>, String> {
    list(value, module)?.into_iter().map(|entry| command(entry, module)).collect()
}

/// A line for the shell, or words that the shell must take as they are.
fn command(entry: Yaml, module: &str) -> Result<String, String> {
    match entry {
        Yaml::Scalar { text, .. } => Ok(text),
        Yaml::List(words) => {
            let quoted: Result<Vec<String>, String> = words
                .into_iter()
                .map(|word| match word {
                    Yaml::Scalar { text, .. } => Ok(quote(&text)),
                    _ => Err(format!("a word of a command in {module} is not a scalar")),
                })
                .collect();
            Ok(quoted?.join(" "))
        }
        Yaml::Map(_) => Err(format!("a command in {module} is neither a string nor a list")),
    }
}

/// Replaces the machine's name in documents that ask to be a template; what else they use is told.
pub fn resolve_template(text: &str, machine: &str) -> (String, Vec<String>) {
    let is_template = text.lines().next().is_some_and(|line| line.replace(' ', "").starts_with("##template:jinja"));
    if !is_template {
        return (text.to_owned(), Vec::new());
    }
    let (mut out, mut unknown) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((expression, after)) = opened.split_once("}}") else {
            out.push_str("{{");
            rest = opened;
            continue;
        };
        if is_machine_name(expression.trim()) {
            out.push_str(machine);
        } else {
            out.push_str(&format!("{{{{{expression}}}}}"));
            unknown.push(if is_name(expression) { format!("{{{{{expression}}}}}") } else { "{{…}}".to_owned() });
        }
        rest = after;
    }
    out.push_str(rest);
    (out, unknown)
}

/// Anything longer may be a part of a file that nobody else is to see.
fn is_name(expression: &str) -> bool {
    expression.len() <= 80 && expression.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ._-".contains(&byte))
}

fn is_machine_name(expression: &str) -> bool {
    let name = expression
        .strip_prefix("ds.meta_data.")
        .or_else(|| expression.strip_prefix("v1."))
        .unwrap_or(expression)
        .replace('-', "_");
    matches!(name.as_str(), "local_hostname" | "hostname" | "instance_id" | "name")
}

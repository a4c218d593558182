//! The YAML document itself, and its template header.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A cloud-config in its own words.
#[derive(Debug, Default)]
pub struct Document {
    pub write_files: Vec<WriteFile>,
    pub commands: Vec<String>,
    pub ignored: Vec<String>,
}

/// An entry of `write_files`; scalars as they were written, so that `0600` stays what it says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WriteFile {
    pub path: String,
    pub content: String,
    pub encoding: String,
    pub permissions: String,
    pub owner: String,
    pub append: bool,
}

impl Document {
    pub fn parse(text: &str) -> Result<Document, String> {
        let options = serde_saphyr::options! { with_snippet: false };
        let parsed: Option<Document> = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| error.to_string().chars().take(500).collect::<String>())?;
        Ok(parsed.unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Document, D::Error> {
        struct Modules;
        impl<'de> Visitor<'de> for Modules {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of cloud-init modules")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut document = Document::default();
                while let Some(module) = map.next_key::<String>()? {
                    match module.as_str() {
                        "write_files" => document.write_files = map.next_value::<Option<_>>()?.unwrap_or_default(),
                        "runcmd" => {
                            let commands = map.next_value::<Option<Vec<Command>>>()?.unwrap_or_default();
                            document.commands = commands.into_iter().map(|command| command.0).collect();
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            document.ignored.push(module.chars().take(80).collect());
                        }
                    }
                }
                Ok(document)
            }
        }
        deserializer.deserialize_map(Modules)
    }
}

/// A line for the shell, or words that the shell must take as they are.
struct Command(String);

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Command, D::Error> {
        struct LineOrWords;
        impl<'de> Visitor<'de> for LineOrWords {
            type Value = Command;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command as a string or as a list of words")
            }

            fn visit_str<E: Error>(self, line: &str) -> Result<Command, E> {
                Ok(Command(line.to_owned()))
            }

            fn visit_bool<E: Error>(self, word: bool) -> Result<Command, E> {
                Ok(Command(word.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<Command, A::Error> {
                let mut line = String::new();
                while let Some(word) = words.next_element::<String>()? {
                    if !line.is_empty() {
                        line.push(' ');
                    }
                    line.push_str(&quote(&word));
                }
                Ok(Command(line))
            }
        }
        deserializer.deserialize_any(LineOrWords)
    }
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
            unknown.push(format!("{{{{{}}}}}", expression.chars().take(80).collect::<String>()));
        }
        rest = after;
    }
    out.push_str(rest);
    (out, unknown)
}

fn is_machine_name(expression: &str) -> bool {
    let name = expression
        .strip_prefix("ds.meta_data.")
        .or_else(|| expression.strip_prefix("v1."))
        .unwrap_or(expression)
        .replace('-', "_");
    matches!(name.as_str(), "local_hostname" | "hostname" | "instance_id" | "name")
}

//! `-o json|yaml`, or text for people.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;

/// The `-o` option.
#[derive(Args, Clone, Copy, Default)]
pub struct Output {
    /// Print for programs instead of people.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    Json,
    Yaml,
}

impl Output {
    /// Prints `value` as JSON or YAML, or as `people` renders it.
    pub fn print<T: Serialize>(self, value: &T, people: impl FnOnce(&T) -> String) -> Result<()> {
        let text = match self.output {
            Some(Form::Json) => format!("{}\n", serde_json::to_string_pretty(value)?),
            Some(Form::Yaml) => serde_saphyr::to_string(value)?,
            None => people(value),
        };
        write(&text)
    }
}

/// Untrusted text in one line: control characters would drive the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Writes to standard output. A closed pipe (`| head`) is no error.
pub fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("unable to write to standard output"),
    }
}

//! `-o json|yaml` beside what people read.

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
    /// Prints `value` for programs, or what `people` makes of it.
    pub fn print<T: Serialize>(self, value: &T, people: impl FnOnce(&T) -> String) -> Result<()> {
        let text = match self.output {
            Some(Form::Json) => format!("{}\n", serde_json::to_string_pretty(value)?),
            Some(Form::Yaml) => serde_saphyr::to_string(value)?,
            None => people(value),
        };
        write(&text)
    }
}

/// What a stranger wrote, in one line: control characters would drive the reader's terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Writes to standard output. A reader that has read enough (`| head`) is no error.
pub fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("unable to write to standard output"),
    }
}

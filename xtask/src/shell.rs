//! Running programs, aloud.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Runs a program after printing it; anything but success is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` ended with {status}", text(command));
    }
    Ok(())
}

/// Runs a program after printing it.
pub fn status(command: &mut Command) -> Result<ExitStatus> {
    eprintln!("+ {}", text(command));
    command.status().with_context(|| format!("unable to start `{}`", text(command)))
}

/// Whether a program is on PATH.
pub fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Becomes another program, so that signals and exit codes are its own.
pub fn replace(program: &Path, arguments: Vec<String>) -> Result<()> {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    command.args(arguments);
    eprintln!("+ {}", text(&command));
    Err(command.exec()).with_context(|| format!("unable to start `{}`", program.display()))
}

fn text(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

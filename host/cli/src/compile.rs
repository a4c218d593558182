//! Components are compiled by this program in a child process of its own: `capwasm compile-component`, which nobody else calls.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use capwasm_runtime::{ChildProcess, CompileLimits, Runtime, RuntimeOptions};
use clap::Args;

/// The hidden subcommand.
pub const COMMAND: &str = "compile-component";

/// Its arguments.
#[derive(Args)]
pub struct Options {
    /// Address space, bytes.
    memory_bytes: u64,
    /// CPU time, seconds.
    cpu_seconds: u64,
}

/// Reads a component from stdin and writes its native code to stdout.
pub fn run(options: &Options) -> ExitCode {
    capwasm_runtime::serve_compilation(options.memory_bytes, options.cpu_seconds)
}

/// A runtime that compiles in children, and keeps what was compiled in a folder.
pub fn runtime(aot_dir: Option<PathBuf>) -> Result<Arc<Runtime>> {
    let compiler = Arc::new(ChildProcess::this_program([COMMAND], CompileLimits::default()));
    Runtime::new(RuntimeOptions { aot_dir, compiler, ..RuntimeOptions::default() })
        .context("unable to start the WebAssembly runtime")
}

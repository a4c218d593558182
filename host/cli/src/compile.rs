//! Components are compiled by this program in a child process of its own: `capwasm compile-component`, which nobody else calls. Commands that
//! look at a component do the same as the host: a stranger's file may be anything.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use capwasm_registry::LARGEST_COMPONENT;
use capwasm_runtime::{ChildProcess, CompileLimits, Limits, Provider, Runtime, RuntimeOptions};
use clap::Args;

use crate::output::printable;

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

/// A component's file: no more of it than a component may have.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let unable = || format!("unable to read {}", file.display());
    let mut bytes = Vec::new();
    File::open(file).with_context(unable)?.take(LARGEST_COMPONENT + 1).read_to_end(&mut bytes).with_context(unable)?;
    if bytes.len() as u64 > LARGEST_COMPONENT {
        bail!("{} is larger than {LARGEST_COMPONENT} bytes, which no provider is", file.display());
    }
    Ok(bytes)
}

/// Loads a component by itself.
pub async fn load(file: &Path, bytes: &[u8], limits: Limits) -> Result<Arc<Provider>> {
    let loaded = runtime(None)?.load(bytes, limits).await;
    // Its names and its last words are in the reason.
    let reason = |error| anyhow!(printable(&format!("{:#}", anyhow::Error::new(error))));
    loaded.map_err(reason).with_context(|| format!("{} is not a provider", file.display()))
}

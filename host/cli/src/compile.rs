//! Commands that compile a component do so as the host does, in a child process: the hidden `capwasm
//! compile-component`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use capwasm_registry::LARGEST_COMPONENT;
use capwasm_runtime::{Limits, Provider, attach_precompiled};
use capwasm_server::compile;
use clap::Args;

use crate::output::printable;

/// Arguments of the hidden subcommand.
#[derive(Args)]
pub struct Options {
    /// Address space, bytes.
    memory_bytes: u64,
    /// CPU time, seconds.
    cpu_seconds: u64,
}

/// Arguments of the hidden subcommand that a build ends with.
#[derive(Args)]
pub struct Precompile {
    /// Components.
    files: Vec<PathBuf>,
    /// Where to write a copy of this program that has them compiled.
    #[arg(long)]
    to: PathBuf,
}

/// Compiles components, and writes a copy of this program with their code.
pub async fn precompile(options: Precompile) -> Result<()> {
    let compiler = compile::options(None).compiler;
    let mut components = Vec::new();
    for file in &options.files {
        let component = read(file)?;
        let code = compiler.compile(&component).await;
        let code = code.with_context(|| format!("unable to compile {}", file.display()))?;
        components.push((component, code));
    }
    let program = std::env::current_exe().context("unable to find this program")?;
    attach_precompiled(&program, &options.to, &components)
        .with_context(|| format!("unable to write {}", options.to.display()))
}

/// Reads a component from stdin and writes its native code to stdout.
pub fn run(options: &Options) -> ExitCode {
    capwasm_runtime::serve_compilation(options.memory_bytes, options.cpu_seconds)
}

/// Reads a component, up to the size limit.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let unable = || format!("unable to read {}", file.display());
    let mut bytes = Vec::new();
    File::open(file).with_context(unable)?.take(LARGEST_COMPONENT + 1).read_to_end(&mut bytes).with_context(unable)?;
    if bytes.len() as u64 > LARGEST_COMPONENT {
        bail!("{} is larger than {LARGEST_COMPONENT} bytes, which no provider is", file.display());
    }
    Ok(bytes)
}

pub async fn load(file: &Path, bytes: &[u8], limits: Limits) -> Result<Arc<Provider>> {
    let loaded = compile::runtime(compile::options(None))?.load(bytes, limits).await;
    // Its names and its last words are in the reason.
    let reason = |error| anyhow!(printable(&format!("{:#}", anyhow::Error::new(error))));
    loaded.map_err(reason).with_context(|| format!("{} is not a provider", file.display()))
}

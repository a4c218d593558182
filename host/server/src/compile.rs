//! Runtime of a host: components are compiled by this program in a child process, since anybody's file may be hostile.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use capwasm_runtime::{ChildProcess, CompileLimits, Precompiled, Runtime, RuntimeOptions};

/// Hidden subcommand of a program that runs a host: it must call [`capwasm_runtime::serve_compilation`] with its two
/// arguments.
pub const COMMAND: &str = "compile-component";

/// Options that use the precompiled components of this program, compile others in child processes, and cache both in a
/// folder.
pub fn options(aot_dir: Option<PathBuf>) -> RuntimeOptions {
    let precompiled = Precompiled::of_this_program().unwrap_or_else(|error| {
        tracing::warn!(%error, "unable to read what was compiled with this program");
        None
    });
    let compiler = Arc::new(ChildProcess::this_program([COMMAND], CompileLimits::default()));
    RuntimeOptions { aot_dir, precompiled: precompiled.map(Arc::new), compiler, ..RuntimeOptions::default() }
}

/// A runtime with these options.
pub fn runtime(options: RuntimeOptions) -> Result<Arc<Runtime>> {
    Runtime::new(options).context("unable to start the WebAssembly runtime")
}

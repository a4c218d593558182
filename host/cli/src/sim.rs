//! `capwasm sim`: the simulated container engine, as a process of its own.

use std::path::PathBuf;

use anyhow::Result;
use capwasm_sim::SimOptions;
use clap::Args;

use crate::signals;

/// Options of `capwasm sim`.
#[derive(Args)]
pub struct Options {
    /// Unix socket of the Docker Engine API.
    #[arg(long)]
    socket: PathBuf,
    /// Folder of everything that outlives the process.
    #[arg(long)]
    data_dir: PathBuf,
}

/// Runs until SIGINT or SIGTERM.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    eprintln!(
        "simulated container engine on {}: its machines are simulated, nothing runs in them",
        options.socket.display()
    );
    capwasm_sim::run(SimOptions::new(options.socket, options.data_dir), shutdown).await?;
    Ok(())
}

//! `capwasm sim`: the simulated container engine, as a process of its own.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use capwasm_sim::{NODE_GRACE, SimOptions};
use clap::Args;

use crate::signals;

/// How to ask the simulation to fail.
const FAILURES: &str = "\
Failures on request: the container label capwasm.dev/simulate (never-join, fail-bootstrap, slow-start=<ms>[..<ms>],
unhealthy=<static pod>, etcd-lost, not-ready, silent; several with commas), or POST /capwasm/faults on the socket, for
nodes and for calls of the engine's API. See host/sim/README.md.";

/// Options of `capwasm sim`.
#[derive(Args)]
#[command(after_help = FAILURES)]
pub struct Options {
    /// Unix socket of the Docker Engine API.
    #[arg(long)]
    socket: PathBuf,
    /// Folder of everything that outlives the process.
    #[arg(long)]
    data_dir: PathBuf,
    /// Seconds that a killed node may be silent until its Node becomes Unknown; Kubernetes waits 50.
    #[arg(long, value_name = "SECONDS", default_value_t = NODE_GRACE.as_secs())]
    node_grace: u64,
}

/// Runs until SIGINT or SIGTERM.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    eprintln!(
        "simulated container engine on {}: its machines are simulated, nothing runs in them",
        options.socket.display()
    );
    let node_grace = Duration::from_secs(options.node_grace);
    let sim = SimOptions { node_grace, ..SimOptions::new(options.socket, options.data_dir) };
    capwasm_sim::run(sim, shutdown).await?;
    Ok(())
}

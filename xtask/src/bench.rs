//! `cargo xtask bench`: the figures of `docs/performance.md`.

use crate::{build, setup, shell};
use anyhow::Result;
use clap::Args;
use std::process::Command;

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    /// What to provision on the simulator: numbers of single-node clusters, or machines of one cluster (`3+50`).
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,3+0,3+50")]
    clusters: Vec<String>,
    /// What to provision on the fake OpenStack, as above.
    #[arg(long, value_delimiter = ',', default_value = "3+97")]
    openstack: Vec<String>,
    /// Create the former by this many processes of kubectl at the same time, as a user of many clusters would.
    #[arg(long, value_name = "PROCESSES")]
    kubectl: Option<usize>,
    /// Delete them in the end, and measure that as well.
    #[arg(long)]
    delete: bool,
    /// Leave out the cost of a provider call, and of loading one.
    #[arg(long)]
    no_calls: bool,
}

/// Builds in release and measures.
pub fn run(options: &Options) -> Result<()> {
    setup::wasm_target()?;
    build::everything()?;
    if !options.no_calls {
        let benches = [("capwasm-runtime", "call"), ("capwasm-runtime", "load"), ("capwasm-providers", "record")];
        for (package, bench) in benches {
            shell::run(build::cargo().args(["bench", "--package", package, "--bench", bench]))?;
        }
    }
    shell::run(build::cargo().args([
        "build",
        "--release",
        "--package",
        "capwasm-tests",
        "--bin",
        "scale",
        "--bin",
        "swaps",
    ]))?;
    shell::run(Command::new(build::target().join("release/swaps")).env("CAPWASM_PREBUILT", "1"))?;
    let scale = || {
        let mut command = Command::new(build::target().join("release/scale"));
        command.arg(build::target().join("release/capwasm"));
        command
    };
    let mut clusters = scale();
    clusters.args(&options.clusters);
    if let Some(processes) = options.kubectl {
        clusters.args(["--kubectl", &processes.to_string()]);
    }
    if options.delete {
        clusters.arg("--delete");
    }
    shell::run(&mut clusters)?;
    if options.openstack.iter().all(String::is_empty) {
        return Ok(());
    }
    shell::run(scale().arg("--openstack").args(&options.openstack))
}

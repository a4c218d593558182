//! `cargo xtask`: everything that is done with this repository, from a bare machine on.
//!
//! Each step prints what it runs, so that a person can do without it.

mod bench;
mod build;
mod docker;
mod fuzz;
mod kinds;
mod kubeadm;
mod openstack;
mod setup;
mod shell;
mod test;

use clap::{Parser, Subcommand};

/// Set up, build, test and demonstrate capwasm.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add the WebAssembly target; say which optional system packages are missing and, on Debian as root, install them.
    Setup(setup::Options),
    /// Build `target/release/capwasm` and `target/plugins/*.wasm`.
    Build,
    /// Build (without optimisation), then provision a sample cluster in a single process. Arguments go to `capwasm quickstart`.
    Quickstart {
        /// For `capwasm quickstart`: see `cargo xtask quickstart -- --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run every test that this machine can run, and say loudly which it cannot.
    Test(test::Options),
    /// Measure: provider calls, clusters at scale, sizes. Writes a table to stdout.
    Bench(bench::Options),
    /// Look for inputs that break a rule of the host: loader, outcome mapping, grants, CRDs, files from elsewhere.
    Fuzz(fuzz::Options),
    /// Make the API server's table of built-in kinds from what Kubernetes publishes; needs Go.
    Kinds(kinds::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Setup(options) => setup::run(&options).map(|_| ()),
        Command::Build => build::everything(),
        Command::Quickstart { arguments } => {
            setup::wasm_target()?;
            let program = build::debug()?;
            shell::replace(&program, [vec!["quickstart".into()], arguments].concat())
        }
        Command::Test(options) => test::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Kinds(options) => kinds::run(&options),
    }
}

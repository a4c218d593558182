//! The `capwasm` binary: arguments and output. What runs is in `capwasm-server`.

mod apiserver;
mod bundled;
mod compile;
mod crds;
mod describe;
mod engine;
mod generate;
mod get;
mod kubeconfig;
mod memory;
mod openstack;
mod output;
mod provider;
mod quickstart;
mod recordings;
mod replay;
mod run;
mod signals;
mod sim;
mod sync;
mod telemetry;
mod tree;
mod up;
mod webhook;

use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

/// Cluster API in one binary, with providers as sandboxed WebAssembly components.
#[derive(Parser)]
#[command(name = "capwasm", version, arg_required_else_help = true)]
struct Arguments {
    #[command(flatten)]
    telemetry: telemetry::Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Provision a sample cluster with everything in this process, and show it.
    Quickstart(quickstart::Options),
    /// Run a management cluster: API server, core and providers, durable, in the foreground.
    Up(up::Options),
    /// Run core and providers against an existing Kubernetes API server.
    Run(run::Options),
    /// Run the embedded Kubernetes API server alone.
    Apiserver(apiserver::Options),
    /// Run the simulated container engine alone.
    Sim(sim::Options),
    /// Show an object and everything that belongs to it.
    #[command(subcommand)]
    Describe(Describe),
    /// Print something of a workload cluster.
    #[command(subcommand)]
    Get(Get),
    /// Write manifests.
    #[command(subcommand)]
    Generate(Generate),
    /// Build, look at, sign and move providers.
    #[command(subcommand)]
    Provider(provider::Command),
    /// Make a recorded call again, without the world that it ran in.
    Replay(replay::Options),
    /// Print the CustomResourceDefinitions that a host installs, as YAML.
    Crds(crds::Options),
    /// Print a completion script.
    Completion(Completion),
    /// Compile a component for the host that started this.
    #[command(name = capwasm_server::compile::COMMAND, hide = true)]
    CompileComponent(compile::Options),
    /// Write this program with components compiled into it.
    #[command(hide = true)]
    Precompile(compile::Precompile),
}

#[derive(Subcommand)]
enum Describe {
    /// A Cluster with its infrastructure, control plane and machines, as a tree with conditions.
    Cluster(describe::Options),
}

#[derive(Subcommand)]
enum Get {
    /// The admin kubeconfig of a workload cluster.
    Kubeconfig(get::Options),
}

#[derive(Subcommand)]
enum Generate {
    /// A cluster on Docker, with kubeadm.
    Cluster(generate::Options),
}

#[derive(Args)]
struct Completion {
    /// For which shell.
    shell: clap_complete::Shell,
}

#[cfg(test)]
#[test]
fn every_command_has_a_consistent_help() {
    Arguments::command().debug_assert();
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Command::CompileComponent(options) = &arguments.command {
        // First of all: it limits itself before anything else runs.
        return compile::run(options);
    }
    // One crypto provider for every TLS connection of the process; an error only says that there is one already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: unable to start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let quiet = matches!(arguments.command, Command::Quickstart(_));
    let telemetry = match arguments.telemetry.server(quiet).start(runtime.handle()) {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(dispatch(arguments.command));
    telemetry.finish();
    // A call of a provider or a blocking read may still run; nobody waits for it any more.
    runtime.shutdown_background();
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::CompileComponent(options) => return Ok(compile::run(&options)),
        Command::Precompile(options) => compile::precompile(options).await?,
        Command::Quickstart(options) => return quickstart::run(options).await,
        Command::Up(options) => {
            tokio::spawn(memory::forget_start());
            up::run(options).await?;
        }
        Command::Run(options) => {
            tokio::spawn(memory::forget_start());
            run::run(options).await?;
        }
        Command::Apiserver(options) => return apiserver::run(options).await,
        Command::Sim(options) => sim::run(options).await?,
        Command::Describe(Describe::Cluster(options)) => describe::run(options).await?,
        Command::Get(Get::Kubeconfig(options)) => get::run(options).await?,
        Command::Generate(Generate::Cluster(options)) => output::write(&generate::cluster(&options))?,
        Command::Provider(command) => return provider::run(command).await,
        Command::Replay(options) => return replay::run(options).await,
        Command::Crds(options) => crds::print(options).await?,
        Command::Completion(Completion { shell }) => {
            clap_complete::generate(shell, &mut Arguments::command(), "capwasm", &mut std::io::stdout());
        }
    }
    Ok(ExitCode::SUCCESS)
}

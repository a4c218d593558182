//! `capwasm provider`: a new one, what a component is, and what runs.

mod artifact;
mod build;
mod diff;
mod inspect;
mod list;
mod new;
mod registry;
mod signature;
mod swap;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// Subcommands of `capwasm provider`.
#[derive(Subcommand)]
pub enum Command {
    /// Start a project that builds, passes its tests and runs in `capwasm quickstart`.
    New(new::Options),
    /// Roles, contract version, kinds, wanted capabilities and size of a component.
    Inspect(inspect::Inspect),
    /// The providers of a running host.
    List(list::List),
    /// What another component would have done otherwise in recorded calls, without any effect.
    Diff(diff::Options),
    /// Let another component serve, without losing a reconcile.
    Swap(swap::Swap),
    /// Let a component serve again that served before.
    Rollback(swap::Rollback),
    /// Let a component serve that waits for approval.
    Approve(swap::Approve),
    /// Build a Rust project into a component, and check that a host would load it.
    Build(build::Build),
    /// Push a component to a registry, as an OCI artifact.
    Push(artifact::Push),
    /// Pull a component from a registry.
    Pull(artifact::Pull),
    /// Make a key pair to sign with, as cosign has them.
    Keygen(signature::Keygen),
    /// Sign an artifact, or a file, with a private key.
    Sign(signature::Sign),
    /// Tell whether an artifact, or a file, is signed by a key.
    Verify(signature::Verify),
    /// Save artifacts with their signatures to a folder, for places that no registry reaches.
    Save(artifact::Save),
    /// Push the artifacts of a folder that `save` wrote, with their signatures.
    Load(artifact::Load),
}

pub async fn run(command: Command) -> Result<ExitCode> {
    let ended = match command {
        Command::Diff(options) => return diff::run(options).await,
        Command::New(options) => new::run(&options),
        Command::Inspect(options) => inspect::inspect(options).await,
        Command::List(options) => list::list(options).await,
        Command::Swap(options) => swap::swap(options).await,
        Command::Rollback(options) => swap::rollback(options).await,
        Command::Approve(options) => swap::approve(options).await,
        Command::Build(options) => build::run(options).await,
        Command::Push(options) => artifact::push(options).await,
        Command::Pull(options) => artifact::run_pull(options).await,
        Command::Keygen(options) => signature::keygen(&options),
        Command::Sign(options) => signature::sign(options).await,
        Command::Verify(options) => signature::verify(options).await,
        Command::Save(options) => artifact::save(options).await,
        Command::Load(options) => artifact::load(options).await,
    };
    ended.map(|()| ExitCode::SUCCESS)
}

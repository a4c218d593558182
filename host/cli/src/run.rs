//! `capwasm run`: the host against any Kubernetes API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use capwasm_server::{host, leadership, run};
use clap::Args;

use crate::kubeconfig::Connection;
use crate::{bundled, engine, openstack, output, recordings, signals, sync, webhook};

/// Options of `capwasm run`.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    engine: engine::Options,
    #[command(flatten)]
    openstack: openstack::Options,
    #[command(flatten)]
    sync: sync::Options,
    #[command(flatten)]
    webhook: webhook::Options,
    #[command(flatten)]
    recordings: recordings::Options,
    /// Run the core reconcilers. `--core=false` runs providers beside Cluster API's own core.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    core: bool,
    /// Namespace of the Lease that keeps a second host out.
    #[arg(long, default_value = "kube-system")]
    lease_namespace: String,
    /// Seconds after which another host takes over from one that does not renew the Lease, as when it was killed. It is renewed five
    /// times in that time. Longer where the API server is at times slow to answer.
    #[arg(long, default_value_t = leadership::DURATION.as_secs(), value_parser = clap::value_parser!(u64).range(leadership::SHORTEST.as_secs()..=600))]
    lease_duration: u64,
    #[command(flatten)]
    bundled: bundled::Options,
    /// Folder for compiled components and the simulated engine.
    #[arg(long, default_value = "/var/lib/capwasm")]
    data_dir: PathBuf,
    /// Take components from registries only with a signature: WasmProviders need spec.verification.publicKeys.
    #[arg(long)]
    require_signatures: bool,
    /// Serve /metrics, /healthz and /readyz here, without TLS.
    #[arg(long, default_value = "127.0.0.1:9440")]
    diagnostics: SocketAddr,
}

/// Runs until SIGINT or SIGTERM, or until the Lease is lost.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    let bundled = options.bundled.chosen()?;
    let provider_dir = options.bundled.folder()?;
    let management = options.connection.answering().await?;
    let host = host::Options {
        bundled,
        core: options.core,
        grants: vec![options.openstack.grants()],
        sync_period: options.sync.period,
        recordings: Some(options.recordings.files(&options.data_dir)),
        require_signatures: options.require_signatures,
        ..host::Options::new(provider_dir, &options.data_dir)
    };
    let options = run::Options {
        host,
        engine: options.engine.server(),
        webhook: options.webhook.server(),
        lease_namespace: options.lease_namespace,
        lease_duration: Duration::from_secs(options.lease_duration),
        data_dir: options.data_dir,
        diagnostics: options.diagnostics,
    };
    run::run(management, options, shutdown, |line| drop(output::write(&format!("{line}\n")))).await
}

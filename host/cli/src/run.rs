//! `capwasm run`: the host against any Kubernetes API server.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::kubeconfig::Connection;
use crate::{bundle, diagnostics, engine, host, leadership, openstack, recordings, signals, sync, up, webhook};

/// Why it ends without being told to.
const LOST: &str = "the Lease was lost: another host takes over";

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
    /// Folder with components. Default: `plugins` beside the binary.
    #[arg(long)]
    provider_dir: Option<PathBuf>,
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
    let provider_dir = bundle::provider_dir(options.provider_dir)?;
    let client = options.connection.client().await?;
    if options.core {
        leadership::refuse_beside_upstream(&client).await?;
    }
    let identity = format!("{}_{}", hostname(), std::process::id());
    let mut held = tokio::select! {
        held = leadership::acquire(&client, &options.lease_namespace, &identity) => held?,
        () = shutdown.cancelled() => return Ok(()),
    };
    if options.core {
        // It may have come while we waited.
        leadership::refuse_beside_upstream(&client).await?;
    }
    crate::embedded::private_folder(&options.data_dir)?;
    let start = async {
        let engine = engine::start(&options.engine, &options.data_dir).await?;
        let webhook = webhook::start(&client, &options.webhook, &options.lease_namespace).await?;
        let host_options = host::Options {
            core: options.core,
            conversions: webhook.as_ref().map(|webhook| webhook.conversions.clone()),
            grants: vec![options.openstack.grants()],
            sync_period: options.sync.period,
            recordings: Some(options.recordings.files(&options.data_dir)),
            require_signatures: options.require_signatures,
            ..up::host_options(provider_dir, &options.data_dir, &engine)
        };
        anyhow::Ok((host::start(client, &host_options).await?, webhook, engine))
    };
    // Controllers run before all providers serve, which may take minutes: the Lease counts from the first.
    let (host, webhook, engine) = tokio::select! {
        started = start => started?,
        () = shutdown.cancelled() => return Ok(()),
        _ = held.wait_for(|held| !*held) => bail!(LOST),
    };
    let served = diagnostics::serve(options.diagnostics, host.registry.clone(), shutdown.clone()).await?;
    println!("capwasm runs (core: {}, machines: {})", options.core, engine.describe());
    let lost = tokio::select! {
        () = shutdown.cancelled() => false,
        _ = held.wait_for(|held| !*held) => true,
    };
    if lost {
        // Another host may write from now on: passes that run are not waited for, they end with the process.
        bail!(LOST);
    }
    host.stop().await;
    if let Some(webhook) = webhook {
        webhook.stop().await;
    }
    served.await?;
    Ok(())
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "capwasm".to_owned(), |name| name.trim().to_owned())
}

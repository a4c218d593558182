//! The host against any Kubernetes API server, guarded by a Lease.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use tokio_util::sync::CancellationToken;

use crate::{diagnostics, embedded, engine, host, leadership, webhook};

/// Error when the Lease is lost.
const LOST: &str = "the Lease was lost: another host takes over";

/// Options of `capwasm run`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Options of the host; `conversions` is set by the webhook.
    pub host: host::Options,
    /// Selection of the container engine.
    pub engine: engine::Options,
    /// Options of the webhook; `None` runs none.
    pub webhook: Option<webhook::Options>,
    /// Namespace of the Lease.
    pub lease_namespace: String,
    /// Folder for caches and the simulated engine.
    pub data_dir: PathBuf,
    /// Address of `/metrics`, `/healthz` and `/readyz`, without TLS.
    pub diagnostics: SocketAddr,
}

/// Waits for the Lease, then runs until `shutdown` is cancelled or the Lease is lost. `say` gets a line when everything
/// serves, and one for a simulated engine that is left running.
pub async fn run(
    client: kube::Client,
    options: Options,
    shutdown: CancellationToken,
    say: impl Fn(String),
) -> Result<()> {
    let core = options.host.core;
    if core {
        leadership::refuse_beside_upstream(&client).await?;
    }
    let identity = format!("{}_{}", hostname(), std::process::id());
    let mut held = tokio::select! {
        held = leadership::acquire(&client, &options.lease_namespace, &identity) => held?,
        () = shutdown.cancelled() => return Ok(()),
    };
    if core {
        // It may have come while we waited.
        leadership::refuse_beside_upstream(&client).await?;
    }
    embedded::private_folder(&options.data_dir)?;
    // From here on it answers that it lives, and what it waits for.
    let told = host::diagnostics(&options.host)?;
    let served = diagnostics::serve(options.diagnostics, told.clone(), shutdown.clone()).await?;
    let engine = engine::start(&options.engine, &options.data_dir).await?;
    let start = async {
        let webhook = match &options.webhook {
            Some(webhook) => Some(webhook::start(&client, webhook, &options.lease_namespace).await?),
            None => None,
        };
        let conversions = webhook.as_ref().map(|webhook| webhook.conversions.clone());
        let host = host::Options { conversions, ..options.host.clone() }.on(&engine);
        anyhow::Ok(Some((host::start(client.clone(), &host, &told).await?, webhook)))
    };
    // Controllers run before all providers serve, which may take minutes: the Lease counts from the first.
    let started = tokio::select! {
        started = start => started,
        () = shutdown.cancelled() => Ok(None),
        _ = held.wait_for(|held| !*held) => bail!(LOST),
    };
    let leave = async || {
        if let Some(left) = engine.leave().await? {
            say(left);
        }
        anyhow::Ok(())
    };
    let (host, webhook) = match started {
        Ok(Some(running)) => running,
        Ok(None) => return leave().await,
        Err(error) => {
            leave().await?;
            return Err(error);
        }
    };
    say(format!("capwasm runs (core: {core}, machines: {})", engine.describe()));
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
    leave().await
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "capwasm".to_owned(), |name| name.trim().to_owned())
}

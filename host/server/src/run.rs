//! The host against any Kubernetes API server, as the one that holds its Lease.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use tokio_util::sync::CancellationToken;

use crate::{diagnostics, embedded, engine, host, leadership, webhook};

/// Why it ends without being told to.
const LOST: &str = "the Lease was lost: another host takes over";

/// A host and what it needs around it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its controllers. Who converts is the webhook's affair.
    pub host: host::Options,
    /// What its machines run on.
    pub engine: engine::Options,
    /// The webhook, if there shall be one.
    pub webhook: Option<webhook::Options>,
    /// Namespace of the Lease that keeps a second host out.
    pub lease_namespace: String,
    /// Folder for compiled components and the simulated engine.
    pub data_dir: PathBuf,
    /// Where /metrics, /healthz and /readyz are served, without TLS.
    pub diagnostics: SocketAddr,
}

/// Waits for the Lease, then runs until `shutdown` is cancelled or the Lease is lost. `say` gets a line when everything serves,
/// and one when something is left behind.
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

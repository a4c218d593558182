//! The host against any Kubernetes API server, guarded by a Lease.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use capwasm_fence::Fence;
use tokio_util::sync::CancellationToken;

use crate::{diagnostics, embedded, engine, fenced, host, leadership, webhook};

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
    /// Duration of the Lease, in whole seconds: how long another host waits for one that does not renew it.
    pub lease_duration: Duration,
    /// Folder for caches and the simulated engine.
    pub data_dir: PathBuf,
    /// Address of `/metrics`, `/healthz` and `/readyz`, without TLS.
    pub diagnostics: SocketAddr,
}

/// Waits for the Lease of the management cluster, then runs until `shutdown` is cancelled or the Lease is lost. `say` gets a line when everything
/// serves, and one for a simulated engine that is left running.
pub async fn run(
    management: kube::Config,
    options: Options,
    shutdown: CancellationToken,
    say: impl Fn(String),
) -> Result<()> {
    let client = kube::Client::try_from(management.clone())?;
    if options.host.core {
        leadership::refuse_beside_upstream(&client).await?;
    }
    let lease = tokio::select! {
        lease = leadership::acquire(&client, &options.lease_namespace, options.lease_duration) => lease?,
        () = shutdown.cancelled() => return Ok(()),
    };
    // All that follows writes only while the Lease is held.
    let fenced = fenced::connect(management, lease.fence())?;
    let ended = tokio::select! {
        ended = hold(fenced, &options, lease.fence(), shutdown, say) => ended,
        // Another host may write from now on: passes that run are not waited for, they end with the process.
        () = lease.lost() => bail!(LOST),
    };
    lease.release().await;
    ended
}

/// What the holder of the Lease does until `shutdown` is cancelled. Nothing of it writes afterwards.
async fn hold(
    client: kube::Client,
    options: &Options,
    fence: &Fence,
    shutdown: CancellationToken,
    say: impl Fn(String),
) -> Result<()> {
    let core = options.host.core;
    if core {
        // It may have come while we waited.
        leadership::refuse_beside_upstream(&client).await?;
    }
    embedded::private_folder(&options.data_dir)?;
    // From here on it answers that it lives, and what it waits for.
    let told = host::diagnostics(&options.host)?;
    let served = diagnostics::serve(options.diagnostics, told.clone(), shutdown.clone()).await?;
    let engine = engine::start(&options.engine, &options.data_dir).await?;
    let keeper = engine::Keeper::start(&engine, &options.data_dir);
    // Controllers run before all providers serve, which may take minutes.
    let start = async {
        let webhook = match &options.webhook {
            Some(webhook) => Some(webhook::start(&client, webhook, &options.lease_namespace).await?),
            None => None,
        };
        let conversions = webhook.as_ref().map(|webhook| webhook.conversions.clone());
        let host = host::Options { conversions, fence: fence.clone(), ..options.host.clone() }.on(&engine);
        anyhow::Ok(Some((host::start(client.clone(), &host, &told).await?, webhook)))
    };
    let started = tokio::select! {
        started = start => started,
        () = shutdown.cancelled() => Ok(None),
    };
    let leave = async || {
        keeper.end().await;
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
    shutdown.cancelled().await;
    host.stop().await;
    if let Some(webhook) = webhook {
        webhook.stop().await;
    }
    served.await?;
    leave().await
}

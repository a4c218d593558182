//! A management cluster in one process: API server, core and providers.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::{diagnostics, embedded, host};

/// A management cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its API server.
    pub server: embedded::Options,
    /// Its controllers. Who converts is the API server's affair.
    pub host: host::Options,
    /// Where /metrics, /healthz and /readyz of the host are served, without TLS.
    pub diagnostics: Option<SocketAddr>,
}

/// A management cluster that runs.
pub struct Up {
    /// Its API server.
    pub server: embedded::Embedded,
    /// Its controllers.
    pub host: host::Host,
    /// What its machines run on.
    pub engine: Engine,
    diagnostics: Option<JoinHandle<()>>,
    shutdown: CancellationToken,
}

/// Starts server and host on an engine; returns when manifests of all that they come with can be applied. Until then both answer
/// that they live and what they wait for. From when `shutdown` is cancelled they say that they are about to end.
pub async fn start(options: &Options, engine: Engine, shutdown: &CancellationToken) -> Result<Up> {
    let shutdown = shutdown.child_token();
    let told = host::diagnostics(&options.host)?;
    let diagnostics = match options.diagnostics {
        Some(address) => Some(diagnostics::serve(address, told.clone(), shutdown.clone()).await?),
        None => None,
    };
    let server = embedded::start(&options.server, &told.readiness).await?;
    let host_options = host::Options { conversions: Some(server.conversions.clone()), ..options.host.clone() };
    match host::start(server.client.clone(), &host_options.on(&engine), &told).await {
        Ok(host) => Ok(Up { server, host, engine, diagnostics, shutdown }),
        Err(error) => {
            shutdown.cancel();
            server.stop().await?;
            Err(error)
        }
    }
}

impl Up {
    /// Stops the host before its server. The engine goes on: its machines outlive the host.
    pub async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        self.host.stop().await;
        self.server.stop().await?;
        if let Some(diagnostics) = self.diagnostics {
            diagnostics.await?;
        }
        Ok(())
    }
}

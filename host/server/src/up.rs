//! A management cluster in one process: API server, core and providers.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::{diagnostics, embedded, host};

/// Options of `capwasm up`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Options of the API server.
    pub server: embedded::Options,
    /// Options of the host; `conversions` is set to those of the API server.
    pub host: host::Options,
    /// Address of the host's `/metrics`, `/healthz` and `/readyz`, without TLS.
    pub diagnostics: Option<SocketAddr>,
}

/// A running management cluster.
pub struct Up {
    /// The API server.
    pub server: embedded::Embedded,
    /// The controllers and loaded providers.
    pub host: host::Host,
    /// The container engine.
    pub engine: Engine,
    diagnostics: Option<JoinHandle<()>>,
    shutdown: CancellationToken,
}

/// Starts server and host on an engine; returns when manifests of all their kinds can be applied. Until then both are
/// alive, and `/readyz` says what they wait for. Once `shutdown` is cancelled, they report that they are ending.
pub async fn start(options: &Options, engine: Engine, shutdown: &CancellationToken) -> Result<Up> {
    let shutdown = shutdown.child_token();
    let told = host::diagnostics(&options.host)?;
    let diagnostics = match options.diagnostics {
        Some(address) => Some(diagnostics::serve(address, told.clone(), shutdown.clone()).await?),
        None => None,
    };
    let server = embedded::start(&options.server, &told).await?;
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
    /// Stops the host, then its server. The engine continues: its machines outlive the host.
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

//! `capwasm apiserver`: the embedded server alone.

use anyhow::Result;
use clap::Args;

use crate::{embedded, signals};

/// Options of `capwasm apiserver`.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    server: embedded::Options,
}

/// Serves until SIGINT or SIGTERM.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    let server = embedded::start(&options.server).await?;
    println!("capwasm apiserver is ready on {} (kubeconfig: {})", server.url, server.kubeconfig.display());
    shutdown.cancelled().await;
    server.stop().await
}

//! `capwasm up`: a management cluster in one process.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use capwasm_server::engine::{Engine, Keeper};
use capwasm_server::{embedded, host, up};
use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::{apiserver, bundled, engine, openstack, output, recordings, signals, sync};

/// Options of `capwasm up`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    server: apiserver::Embedded,
    #[command(flatten)]
    engine: engine::Options,
    #[command(flatten)]
    openstack: openstack::Options,
    #[command(flatten)]
    sync: sync::Options,
    #[command(flatten)]
    recordings: recordings::Options,
    #[command(flatten)]
    bundled: bundled::Options,
    /// Take components from registries only with a signature: WasmProviders need spec.verification.publicKeys.
    #[arg(long)]
    require_signatures: bool,
    /// Serve /metrics, /healthz and /readyz of the host here, without TLS.
    #[arg(long)]
    diagnostics: Option<SocketAddr>,
}

/// Runs until SIGINT or SIGTERM.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    let bundled = options.bundled.chosen()?;
    let provider_dir = options.bundled.folder()?;
    let data_dir = options.server.server().data_dir;
    embedded::private_folder(&data_dir)?;
    let engine_options = options.engine.server();
    let engine = tokio::select! {
        engine = capwasm_server::engine::start(&engine_options, &data_dir) => engine?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let keeper = Keeper::start(&engine, &data_dir);
    let served = serve(&options, bundled, provider_dir, &engine, &shutdown).await;
    keeper.end().await;
    let left = engine.leave().await;
    served?;
    if let Some(left) = left? {
        output::write(&format!("{left}\n"))?;
    }
    Ok(())
}

async fn serve(
    options: &Options,
    bundled: Vec<String>,
    provider_dir: PathBuf,
    engine: &Engine,
    shutdown: &CancellationToken,
) -> Result<()> {
    let server = options.server.server();
    let host = host::Options {
        bundled,
        grants: vec![options.openstack.grants()],
        sync_period: options.sync.period,
        recordings: Some(options.recordings.files(&server.data_dir)),
        require_signatures: options.require_signatures,
        ..host::Options::new(provider_dir, &server.data_dir)
    };
    let up_options = up::Options { server, host, diagnostics: options.diagnostics };
    let up = tokio::select! {
        up = up::start(&up_options, engine.clone(), shutdown) => up?,
        () = shutdown.cancelled() => return Ok(()),
    };
    output::write(&format!(
        "capwasm is ready on {} (kubeconfig: {}, machines: {})\n",
        up.server.url,
        up.server.kubeconfig.display(),
        up.engine.describe()
    ))?;
    shutdown.cancelled().await;
    up.stop().await
}

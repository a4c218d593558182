//! `capwasm up`: a management cluster in one process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::engine::{self, Engine};
use crate::{bundle, diagnostics, embedded, host, openstack, recordings, signals, sync};

/// Options of `capwasm up`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    pub server: embedded::Options,
    #[command(flatten)]
    pub engine: engine::Options,
    #[command(flatten)]
    pub openstack: openstack::Options,
    #[command(flatten)]
    pub sync: sync::Options,
    #[command(flatten)]
    pub recordings: recordings::Options,
    /// Folder with components. Default: `plugins` beside the binary.
    #[arg(long)]
    pub provider_dir: Option<PathBuf>,
    /// Take components from registries only with a signature: WasmProviders need spec.verification.publicKeys.
    #[arg(long)]
    pub require_signatures: bool,
    /// Serve /metrics, /healthz and /readyz of the host here, without TLS.
    #[arg(long)]
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
}

/// Runs until SIGINT or SIGTERM.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    let up = tokio::select! {
        up = start(&options) => up?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let served = match options.diagnostics {
        Some(address) => Some(diagnostics::serve(address, up.host.registry.clone(), shutdown.clone()).await?),
        None => None,
    };
    println!(
        "capwasm is ready on {} (kubeconfig: {}, machines: {})",
        up.server.url,
        up.server.kubeconfig.display(),
        up.engine.describe()
    );
    shutdown.cancelled().await;
    stop(up).await?;
    if let Some(served) = served {
        served.await?;
    }
    Ok(())
}

/// Starts server, engine and host; returns when all of them serve.
pub async fn start(options: &Options) -> Result<Up> {
    let provider_dir = bundle::provider_dir(options.provider_dir.clone())?;
    embedded::private_folder(&options.server.data_dir)?;
    let engine = engine::start(&options.engine, &options.server.data_dir).await?;
    let server = embedded::start(&options.server).await?;
    let host_options = host::Options {
        conversions: Some(server.conversions.clone()),
        grants: vec![options.openstack.grants()],
        sync_period: options.sync.period,
        recordings: Some(options.recordings.files(&options.server.data_dir)),
        require_signatures: options.require_signatures,
        ..host_options(provider_dir, &options.server.data_dir, &engine)
    };
    let host = host::start(server.client.clone(), &host_options).await;
    match host {
        Ok(host) => Ok(Up { server, host, engine }),
        Err(error) => {
            server.stop().await?;
            Err(error)
        }
    }
}

/// The host on an engine, for a server that does not ask it to convert.
pub fn host_options(provider_dir: PathBuf, data_dir: &Path, engine: &Engine) -> host::Options {
    host::Options {
        provider_dir,
        aot_dir: Some(data_dir.join("aot")),
        components_dir: Some(data_dir.join("components")),
        require_signatures: false,
        endpoints: vec![("docker".to_owned(), engine.endpoint())],
        grants: Vec::new(),
        configurations: vec![("docker-infra".to_owned(), engine.configuration())],
        sync_period: sync::Options::default().period,
        core: true,
        conversions: None,
        recordings: None,
    }
}

/// Stops the host before its server. The engine goes on: its machines outlive the host.
pub async fn stop(up: Up) -> Result<()> {
    up.host.stop().await;
    up.server.stop().await
}

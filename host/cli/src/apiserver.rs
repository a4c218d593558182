//! `capwasm apiserver`: the embedded server alone.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use capwasm_server::embedded;
use capwasm_server::readiness::Readiness;
use clap::Args;

use crate::{output, signals};

/// Options of `capwasm apiserver`.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    server: Embedded,
}

/// Options of every command that runs the embedded server.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Embedded {
    /// Folder of everything that outlives the process.
    #[arg(long)]
    data_dir: PathBuf,
    /// Address to listen on. Port 0 picks a free one; the kubeconfig says which.
    #[arg(long, default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Where to write the admin kubeconfig (mode 0600). Default: `kubeconfig` in the data folder.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

impl Embedded {
    pub fn server(&self) -> embedded::Options {
        embedded::Options { data_dir: self.data_dir.clone(), listen: self.listen, kubeconfig: self.kubeconfig.clone() }
    }
}

/// Serves until SIGINT or SIGTERM.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    let server = embedded::start(&options.server.server(), &Readiness::default()).await?;
    let kubeconfig = server.kubeconfig.display();
    output::write(&format!("capwasm apiserver is ready on {} (kubeconfig: {kubeconfig})\n", server.url))?;
    shutdown.cancelled().await;
    server.stop().await
}

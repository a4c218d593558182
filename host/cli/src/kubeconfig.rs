//! Clients for commands that talk to a running management cluster.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Which API server, and which namespace.
#[derive(Args, Clone, Debug, Default)]
pub struct Connection {
    /// kubeconfig of the management cluster. Default: KUBECONFIG, ~/.kube/config, or the Pod's own service account.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long)]
    pub context: Option<String>,
}

/// A namespace option.
#[derive(Args, Clone, Debug)]
pub struct Namespace {
    /// Namespace of the Cluster.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
}

impl Connection {
    pub async fn config(&self) -> Result<kube::Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path)
                    .with_context(|| format!("unable to read kubeconfig {}", path.display()))?;
                kube::Config::from_custom_kubeconfig(file, &options)
                    .await
                    .with_context(|| format!("kubeconfig {} is not usable", path.display()))
            }
            None if self.context.is_some() => {
                kube::Config::from_kubeconfig(&options).await.context("the default kubeconfig is not usable")
            }
            None => kube::Config::infer()
                .await
                .context("no management cluster: give --kubeconfig, set KUBECONFIG, or run in a Pod"),
        }
    }

    /// A client, after a first request to the API server.
    pub async fn client(&self) -> Result<kube::Client> {
        first_request(self.config().await?).await
    }

    /// The configuration, after a first request to the API server.
    pub async fn answering(&self) -> Result<kube::Config> {
        let config = self.config().await?;
        first_request(config.clone()).await?;
        Ok(config)
    }
}

async fn first_request(config: kube::Config) -> Result<kube::Client> {
    let url = config.cluster_url.clone();
    let client = kube::Client::try_from(config).with_context(|| format!("unable to make a client for {url}"))?;
    client.apiserver_version().await.with_context(|| format!("no API server answers at {url}"))?;
    Ok(client)
}

/// A client from the text of a kubeconfig.
pub async fn client_from_text(text: &str) -> Result<kube::Client> {
    let config = Kubeconfig::from_yaml(text).context("not a kubeconfig")?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .context("the kubeconfig is not usable")?;
    Ok(kube::Client::try_from(config)?)
}

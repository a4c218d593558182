//! The host's one webhook, for API servers that are other processes: converts the kinds of the core and of providers, and
//! asks the providers that admit theirs.
//!
//! ```text
//! Secret (CA) ─► keeper ─► caBundle of CRDs and webhook configurations, serving certificate
//! API server ─► server ─► reviews ─► Conversions, Admissions ─► the generation that serves
//! ```
//!
//! Its certificates are its own: nothing else has to be installed. The CA is in a Secret, so that a host that starts again is
//! trusted at once, and is replaced long before it ends; both are trusted while they last.

mod address;
mod certificates;
mod configuration;
mod keeper;
mod reviews;
mod server;
mod shares;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use capwasm_providers::Conversions;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::address::{Address, Service, Url};

/// Options of the webhook.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen on, with TLS.
    pub listen: SocketAddr,
    /// How the API server reaches it.
    pub address: Address,
}

/// A running webhook.
pub struct Webhook {
    /// Conversion and admission by providers.
    pub conversions: Arc<Conversions>,
    running: JoinSet<()>,
    shutdown: CancellationToken,
}

/// Serves, and makes the API server trust the webhook. `namespace` is that of the Secret unless a Service has one.
pub async fn start(client: &kube::Client, options: &Options, namespace: &str) -> Result<Webhook> {
    let address = options.address.clone();
    let namespace = address.namespace().unwrap_or(namespace).to_owned();
    let conversions = Conversions::start().context("unable to start the thread of conversions")?;
    crate::admission::expect_installed(client, &conversions).await?;
    let certificate = Arc::new(server::Certificate::default());
    let mut keeper = keeper::Keeper::new(client.clone(), namespace, address, conversions.clone(), certificate.clone());
    // Before anything is installed: CRDs name the webhook and its CA.
    let due = keeper.pass().await?;
    let server = server::Server::bind(options.listen, certificate, conversions.clone()).await?;
    let shutdown = CancellationToken::new();
    let mut running = JoinSet::new();
    running.spawn(server.run(shutdown.clone()));
    running.spawn(keeper.run(due, shutdown.clone()));
    Ok(Webhook { conversions, running, shutdown })
}

impl Webhook {
    /// Finishes requests in flight and stops.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the webhook panicked");
            }
        }
    }
}

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

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use capwasm_providers::Conversions;
use clap::Args;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::address::Address;

/// Options of the webhook.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct Options {
    /// Serve the webhook (conversion between API versions, admission by providers) on this address, over TLS. Needs
    /// --webhook-service or --webhook-url, which say how the API server gets there.
    #[arg(long, value_name = "ADDRESS", requires = "reached")]
    webhook: Option<SocketAddr>,
    /// The Service in front of --webhook: namespace/name, and :port if it is not 443.
    #[arg(long, value_name = "NAMESPACE/NAME", group = "reached", requires = "webhook")]
    webhook_service: Option<address::Service>,
    /// The URL of --webhook, for an API server that sees this host without a Service: https://host:port
    #[arg(long, value_name = "URL", group = "reached", requires = "webhook")]
    webhook_url: Option<address::Url>,
}

/// A webhook that serves.
pub struct Webhook {
    /// Who answers.
    pub conversions: Arc<Conversions>,
    running: JoinSet<()>,
    shutdown: CancellationToken,
}

/// Serves and is trusted by the API server, if the options say so. `namespace` is where the Secret is when no Service says.
pub async fn start(client: &kube::Client, options: &Options, namespace: &str) -> Result<Option<Webhook>> {
    let Some(listen) = options.webhook else { return Ok(None) };
    let address = match (&options.webhook_service, &options.webhook_url) {
        (Some(service), _) => Address::Service(service.clone()),
        (None, Some(url)) => Address::Url(url.clone()),
        // The parser asks for one of them.
        (None, None) => anyhow::bail!("--webhook needs --webhook-service or --webhook-url"),
    };
    let namespace = address.namespace().unwrap_or(namespace).to_owned();
    let conversions = Conversions::start().context("unable to start the thread of conversions")?;
    crate::admission::expect_installed(client, &conversions).await?;
    let certificate = Arc::new(server::Certificate::default());
    let mut keeper = keeper::Keeper::new(client.clone(), namespace, address, conversions.clone(), certificate.clone());
    // Before anything is installed: CRDs name the webhook and its CA.
    let due = keeper.pass().await?;
    let server = server::Server::bind(listen, certificate, conversions.clone()).await?;
    let shutdown = CancellationToken::new();
    let mut running = JoinSet::new();
    running.spawn(server.run(shutdown.clone()));
    running.spawn(keeper.run(due, shutdown.clone()));
    Ok(Some(Webhook { conversions, running, shutdown }))
}

impl Webhook {
    /// Answers what is in flight, and ends.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the webhook panicked");
            }
        }
    }
}

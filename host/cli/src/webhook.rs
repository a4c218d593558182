//! Options of the webhook.

use std::net::SocketAddr;

use capwasm_server::webhook::{self, Address, Service, Url};
use clap::Args;

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
    webhook_service: Option<Service>,
    /// The URL of --webhook, for an API server that sees this host without a Service: https://host:port
    #[arg(long, value_name = "URL", group = "reached", requires = "webhook")]
    webhook_url: Option<Url>,
}

impl Options {
    /// `None` without `--webhook`.
    pub fn server(&self) -> Option<webhook::Options> {
        // The parser asks for all of it or nothing.
        let address = match (&self.webhook_service, &self.webhook_url) {
            (Some(service), _) => Address::Service(service.clone()),
            (None, url) => Address::Url(url.clone()?),
        };
        Some(webhook::Options { listen: self.webhook?, address })
    }
}

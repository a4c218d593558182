//! OTLP over HTTP, with the same HTTP and TLS crates as the rest.

use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;

use super::pass_trace::PassTraceIds;

/// Largest response in bytes; a collector sends `{}`.
const ANSWER_BYTES: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends spans in batches to `<endpoint>/v1/traces`; drops them while the collector is unreachable.
pub fn tracers(endpoint: &str, runtime: &Handle) -> Result<SdkTracerProvider> {
    let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let scheme = url.parse::<Uri>().ok().and_then(|uri| uri.scheme().cloned());
    anyhow::ensure!(
        scheme.is_some_and(|scheme| ["http", "https"].contains(&scheme.as_str())),
        "it has to be a URL that begins with http:// or https://"
    );
    let tls = rustls::ClientConfig::builder().with_native_roots().context("the system's CAs cannot be read")?;
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls.with_no_client_auth())
        .https_or_http()
        .enable_http1()
        .build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Sender { client, runtime: runtime.clone() })
        .with_endpoint(url)
        .build()?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_id_generator(PassTraceIds::default())
        .with_resource(Resource::builder().with_service_name("capwasm").build())
        .build())
}

/// HTTP client for the exporter's thread, which has no tokio runtime.
#[derive(Debug)]
struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.client.request(request.map(Full::new));
        let exchange = async move {
            let (parts, body) = sent.await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(parts, body))
        };
        self.runtime.spawn(async move { tokio::time::timeout(PATIENCE, exchange).await }).await??
    }
}

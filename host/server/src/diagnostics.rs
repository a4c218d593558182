//! `/metrics`, `/healthz`, `/livez` and `/readyz` of the host over plain HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::readiness::Readiness;

/// Diagnostics of a host, from before it is ready. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// Registry of all metrics.
    pub registry: Arc<Mutex<Registry>>,
    /// State of `/readyz`.
    pub readiness: Readiness,
}

/// Serves in a task until `shutdown`.
pub async fn serve(
    address: SocketAddr,
    diagnostics: Diagnostics,
    shutdown: CancellationToken,
) -> Result<JoinHandle<()>> {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("unable to listen on {address} for diagnostics"))?;
    Ok(tokio::spawn(async move {
        loop {
            let connection = tokio::select! {
                accepted = listener.accept() => accepted,
                () = shutdown.cancelled() => return,
            };
            let Ok((stream, _)) = connection else {
                // Out of file descriptors, say: no better at once.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let (diagnostics, shutdown) = (diagnostics.clone(), shutdown.clone());
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let response = answer(request.uri().path(), &diagnostics, &shutdown);
                async move { Ok::<_, Infallible>(response) }
            });
            tokio::spawn(async move {
                if let Err(error) =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
                {
                    tracing::debug!(%error, "diagnostics connection");
                }
            });
        }
    }))
}

fn answer(path: &str, diagnostics: &Diagnostics, shutdown: &CancellationToken) -> Response<Full<Bytes>> {
    let (status, text) = match path {
        "/metrics" => {
            let mut text = String::new();
            match prometheus_client::encoding::text::encode(&mut text, &diagnostics.registry.lock()) {
                Ok(()) => (StatusCode::OK, text),
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            }
        }
        "/healthz" | "/livez" => (StatusCode::OK, "ok".to_owned()),
        "/readyz" if shutdown.is_cancelled() => (StatusCode::SERVICE_UNAVAILABLE, "shutting down".to_owned()),
        "/readyz" => match diagnostics.readiness.missing() {
            Some(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing),
            None => (StatusCode::OK, "ok".to_owned()),
        },
        _ => (StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}

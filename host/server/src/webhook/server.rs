//! HTTPS server of the webhook, whose certificate may change at any time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use capwasm_apiserver::{FirstRequest, connections};
use capwasm_object::bounded;
use capwasm_providers::Conversions;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::certificates::Serving;
use super::configuration::{CONVERT, DEFAULT, Kind, VALIDATE};
use super::reviews::Reviews;
use super::shares::Shares;

/// Largest review in bytes: it has all objects of a list.
const LARGEST: usize = 64 << 20;
/// Memory of a parsed review in bytes at most: some thousand objects.
const TREE: usize = 256 << 20;
/// Bytes that are parsed within a millisecond or so.
const SHORT: usize = 32 << 10;
/// Reviews that are read at a time, each of which may be that large. Those that are read wait within their provider's share.
const AT_A_TIME: usize = 16;
/// Time to read one.
const READ: Duration = Duration::from_secs(10);
/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for requests in flight at shutdown.
const DRAIN: Duration = Duration::from_secs(5);

/// The present serving certificate.
#[derive(Debug, Default)]
pub struct Certificate(RwLock<Option<Arc<CertifiedKey>>>);

impl Certificate {
    /// Replaces the certificate.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn set(&self, serving: &Serving) -> Result<()> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(serving.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .context("unable to read the serving certificate")?;
        let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).context("unable to read its key")?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).context("unable to use the certificate")?;
        *self.0.write() = Some(Arc::new(certified));
        Ok(())
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

/// A bound listener that does not serve yet.
pub struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    service: Arc<Service>,
}

struct Service {
    reviews: Reviews,
    places: Semaphore,
    shares: Shares,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// When the address is taken, say.
    pub async fn bind(listen: SocketAddr, certificate: Arc<Certificate>, providers: Arc<Conversions>) -> Result<Self> {
        let listener =
            TcpListener::bind(listen).await.with_context(|| format!("unable to listen on {listen} for the webhook"))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("unable to configure TLS")?
            .with_no_client_auth()
            .with_cert_resolver(certificate);
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let service =
            Service { reviews: Reviews::new(providers), places: Semaphore::new(AT_A_TIME), shares: Shares::default() };
        Ok(Server { listener, acceptor: TlsAcceptor::from(Arc::new(tls)), service: Arc::new(service) })
    }

    /// Serves until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = shutdown.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connection = connection(self.acceptor.clone(), stream, self.service.clone(), shutdown.clone());
                    connections.spawn(connection);
                }
                Err(error) => {
                    // Out of file descriptors, say: no better at once.
                    tracing::warn!(%error, "unable to accept a connection to the webhook");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        connections.close();
        if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
            tracing::warn!(open = connections.len(), "connections to the webhook were cut off at shutdown");
        }
    }
}

async fn connection(acceptor: TlsAcceptor, stream: TcpStream, service: Arc<Service>, shutdown: CancellationToken) {
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake with the webhook failed"),
        Err(_) => return tracing::debug!("TLS handshake with the webhook timed out"),
    };
    let first = FirstRequest::default();
    let used = first.clone();
    let handler = service_fn(move |request: Request<Incoming>| {
        used.came();
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let builder = connections(HANDSHAKE);
    let connection = builder.serve_connection(TokioIo::new(stream), handler);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = first.missed(HANDSHAKE) => return tracing::debug!("no request came to the webhook"),
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error, "connection to the webhook ended");
    }
}

impl Service {
    async fn answer(&self, request: Request<impl Body<Data = Bytes, Error: Into<BoxError>>>) -> Response<Full<Bytes>> {
        if request.method() == Method::GET && request.uri().path() == "/healthz" {
            return response(StatusCode::OK, "text/plain", "ok".to_owned());
        }
        if request.method() != Method::POST {
            return response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "reviews are posted".to_owned());
        }
        let path = request.uri().path().to_owned();
        if ![CONVERT, DEFAULT, VALIDATE].contains(&path.as_str()) {
            let paths = format!("there are {CONVERT}, {DEFAULT} and {VALIDATE}");
            return response(StatusCode::NOT_FOUND, "text/plain", paths);
        }
        match self.review(&path, request.into_body()).await {
            Ok(Some(answer)) => response(StatusCode::OK, "application/json", answer),
            Ok(None) => {
                let why = "too many reviews of this provider wait; try again".to_owned();
                response(StatusCode::SERVICE_UNAVAILABLE, "text/plain", why)
            }
            Err(error) => {
                tracing::warn!(path, error = format!("{error:#}"), "a review cannot be answered");
                response(StatusCode::BAD_REQUEST, "text/plain", format!("{error:#}"))
            }
        }
    }

    /// Reads and answers a review; `None` when its provider has no room for it.
    async fn review(&self, path: &str, body: impl Body<Data = Bytes, Error: Into<BoxError>>) -> Result<Option<String>> {
        let (review, bytes) = self.read(body).await?;
        let provider = self.reviews.provider(&review);
        // What a default changes is a copy.
        let held = if path == DEFAULT { 2 * bytes } else { bytes };
        let Some(room) = self.shares.take(&provider, held) else {
            tracing::warn!(provider, "too many reviews of a provider wait; one is refused");
            return Ok(None);
        };
        let (reviews, path) = (self.reviews.clone(), path.to_owned());
        // A client that goes does not end the work, which keeps its room.
        let answer = tokio::spawn(async move {
            let _room = room;
            match &*path {
                CONVERT => reviews.convert(review).await,
                DEFAULT => reviews.admit(Kind::Mutating, review).await,
                _ => reviews.admit(Kind::Validating, review).await,
            }
        });
        answer.await?.map(Some)
    }

    /// The review, and the bytes that it takes.
    async fn read(&self, body: impl Body<Data = Bytes, Error: Into<BoxError>>) -> Result<(Value, usize)> {
        let _place = self.places.acquire().await.context("it ends")?;
        let body = tokio::time::timeout(READ, Limited::new(body, LARGEST).collect()).await;
        let body = body.context("the review is sent too slowly")?.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        let body_is_short = body.len() <= SHORT;
        let parse = move || {
            let mut left = TREE;
            let review = bounded::read_within(&body, &mut left).context("unable to parse the review")?;
            Ok((review, TREE - left))
        };
        // Beside the runtime's workers, which have handshakes and probes to answer.
        if body_is_short { parse() } else { tokio::task::spawn_blocking(parse).await? }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn reviews_beyond_a_providers_share_are_refused_and_nobody_elses() {
        let conversions = Conversions::start().unwrap();
        let kinds = json!([{"group": "a.example", "kind": "A", "version": "v1", "role": "x", "admission": "as"}]);
        conversions.admissions().expect(&json!({"metadata": {"name": "slow"}, "status": {"kinds": kinds}}));
        let reviews = Reviews::new(conversions);
        let service = Service { reviews, places: Semaphore::new(AT_A_TIME), shares: Shares::default() };
        let ask = async |api_version: &str, kind: &str| {
            let request = json!({"uid": "u", "desiredAPIVersion": api_version,
                "objects": [{"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}]});
            let review = json!({"apiVersion": "x/v1", "kind": "ConversionReview", "request": request}).to_string();
            let request = Request::post(CONVERT).body(Full::new(Bytes::from(review))).unwrap();
            service.answer(request).await.status()
        };
        assert_eq!(ask("a.example/v1", "A").await, StatusCode::OK);
        let _waiting: Vec<_> = std::iter::from_fn(|| service.shares.take("slow", 1)).collect();
        assert_eq!(ask("a.example/v1", "A").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask("cluster.x-k8s.io/v1beta2", "Cluster").await, StatusCode::OK);
    }

    #[tokio::test(start_paused = true)]
    async fn a_review_that_drips_is_not_waited_for() {
        let reviews = Reviews::new(Conversions::start().unwrap());
        let service = Service { reviews, places: Semaphore::new(AT_A_TIME), shares: Shares::default() };
        let drops = futures::stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, Infallible>(hyper::body::Frame::data(Bytes::from_static(b" "))), ()))
        });
        let begun = tokio::time::Instant::now();
        let request = Request::post(CONVERT).body(http_body_util::StreamBody::new(drops)).unwrap();
        assert_eq!(service.answer(request).await.status(), StatusCode::BAD_REQUEST);
        assert_eq!(begun.elapsed().as_secs(), READ.as_secs());
        assert_eq!(service.places.available_permits(), AT_A_TIME, "its place is free");
    }

    #[tokio::test]
    async fn a_review_is_charged_for_the_memory_that_it_takes() {
        let reviews = Reviews::new(Conversions::start().unwrap());
        let service = Service { reviews, places: Semaphore::new(AT_A_TIME), shares: Shares::default() };
        let of = |count: usize| Full::new(Bytes::from(format!(r#"{{"a":[{}0]}}"#, r#"{"":0},"#.repeat(count))));
        let (_, bytes) = service.read(of(1_000)).await.unwrap();
        assert!(bytes > 80 * 7 * 1_000, "{bytes}");
        let error = service.read(of(500_000)).await.unwrap_err();
        assert!(format!("{error:#}").contains("memory"), "{error:#}");
    }
}

//! TLS connections.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Filter, FirstRequest, Server, connections, service};
use crate::handler::{Body, authenticate, document, refuse};
use crate::identity::Identity;

/// Deadline of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections are closed after this long without a first request, and those of HTTP/1 without another one: longer than clients keep them, so that none is
/// closed while a request is on its way.
const IDLE: Duration = Duration::from_secs(120);
/// Time for requests in flight at shutdown.
const DRAIN: Duration = Duration::from_secs(5);

pub(super) async fn serve(
    server: &Server,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    shutdown: CancellationToken,
    filter: Option<Filter>,
) -> io::Result<()> {
    let acceptor = TlsAcceptor::from(tls);
    let connections = TaskTracker::new();
    // Either of the two ends the connections.
    let stop = server.stop().child_token();
    let result = loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Out of descriptors, or a peer that left in between: neither is the listener's end.
                Err(error) => {
                    tracing::warn!(%error, "unable to accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = shutdown.cancelled() => break Ok(()),
            () = stop.cancelled() => break Ok(()),
        };
        connections.spawn(connection(server.clone(), acceptor.clone(), stream, stop.clone(), filter.clone()));
    };
    drop(listener);
    stop.cancel();
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::warn!(open = connections.len(), "connections were cut off at shutdown");
    }
    result
}

async fn connection(
    server: Server,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    stop: CancellationToken,
    filter: Option<Filter>,
) {
    // Watch events are small and must not wait for more.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake timed out"),
    };
    let certificate =
        stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).and_then(|leaf| identity(leaf));
    let certificate = Arc::new(certificate);
    let watches = stop.clone();
    let first = FirstRequest::default();
    let used = first.clone();
    let handler = service_fn(move |request: Request<Incoming>| {
        used.came();
        let (server, certificate, watches) = (server.clone(), Arc::clone(&certificate), watches.clone());
        let said = filter.as_ref().and_then(|filter| filter(request.method(), request.uri().path()));
        async move {
            Ok::<_, Infallible>(match said {
                Some((code, said)) => document(code, &said),
                None => answer(&server, certificate.as_ref().as_ref(), request, watches).await,
            })
        }
    });
    let builder = connections(IDLE);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), handler);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = first.missed(IDLE) => return tracing::debug!("no request came"),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                served = &mut connection => served,
                () = tokio::time::sleep(DRAIN) => Ok(()),
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(error, "connection ended");
    }
}

async fn answer(
    server: &Server,
    certificate: Option<&Identity>,
    request: Request<Incoming>,
    watches: CancellationToken,
) -> Response<Body> {
    match authenticate(server.registry(), certificate, request.headers(), request.method(), request.uri().path()) {
        Ok(identity) => service::answer(server, identity, request, watches).await,
        Err(error) => refuse(&error),
    }
}

/// Identity in a verified client certificate: common name and organisations.
fn identity(certificate: &rustls_pki_types::CertificateDer<'_>) -> Option<Identity> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups: Vec<&str> = subject.iter_organization().filter_map(|organisation| organisation.as_str().ok()).collect();
    Some(Identity::new(user, &groups))
}

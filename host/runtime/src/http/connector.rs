//! Opens connections: to a unix socket, to an endpoint's server, or to an origin, whose address is checked for every
//! connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::Uri;
use futures::future::BoxFuture;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tower::Service;

use super::network::Network;
use super::tls::Wanted;
use crate::grants::{Origin, special_address};

/// Longest time to a connection, TLS included. The request's own limit does not end a connection that its pool goes on opening for
/// the next request, when another became free for this one.
const CONNECT: Duration = Duration::from_secs(30);

/// Destination of a pool's connections.
#[derive(Clone)]
pub(super) enum Route {
    /// Always this socket.
    Unix(PathBuf),
    /// The URL's host, which the grant names.
    Granted,
    /// The URL's host, if the address is not special or is granted by name.
    Origins(Arc<Vec<Origin>>),
}

#[derive(Clone)]
pub(super) struct Connector {
    route: Route,
    tls: Arc<Wanted>,
    network: Arc<dyn Network>,
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// The address is denied.
    #[error("{0}")]
    Address(String),
    /// The name does not resolve.
    #[error("unable to resolve {host}")]
    Resolve {
        host: String,
        #[source]
        source: io::Error,
    },
    /// No connection to any address.
    #[error("unable to connect to {to}")]
    Connect {
        to: String,
        #[source]
        source: io::Error,
    },
    /// No connection in time.
    #[error("no connection to {host} within {CONNECT:?}")]
    Late { host: String },
    /// The TLS handshake failed.
    #[error("unable to speak TLS with {host}: {problem}")]
    Tls { host: String, problem: String },
}

impl Connector {
    pub(super) fn new(route: Route, tls: Wanted, network: Arc<dyn Network>) -> Self {
        Connector { route, tls: Arc::new(tls), network }
    }

    async fn open(self, uri: Uri) -> Result<Wire, ConnectError> {
        if let Route::Unix(path) = &self.route {
            let stream = UnixStream::connect(path)
                .await
                .map_err(|source| ConnectError::Connect { to: path.display().to_string(), source })?;
            return Ok(Wire::plain(stream));
        }
        let secure = uri.scheme_str() == Some("https");
        let host = super::bare_host(uri.host().unwrap_or_default()).to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let stream = self.tcp(&host, port).await?;
        if !secure {
            return Ok(Wire::plain(stream));
        }
        let (stream, h2) =
            self.tls.handshake(&host, stream).await.map_err(|problem| ConnectError::Tls { host, problem })?;
        Ok(Wire { io: TokioIo::new(Box::new(stream)), h2 })
    }

    async fn tcp(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let addresses = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = self.network.resolve(host).await;
                found.map_err(|source| ConnectError::Resolve { host: host.to_owned(), source })?
            }
        };
        let (mut last, mut refused) = (None, None);
        for address in addresses {
            if !self.may_reach(address, host) {
                refused = Some(address);
                continue;
            }
            let to = SocketAddr::new(address, port);
            match self.network.connect(to).await {
                Ok(stream) => {
                    // Requests are whole when they are written; without this the kernel waits for more.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(source) => last = Some(ConnectError::Connect { to: to.to_string(), source }),
            }
        }
        Err(match (last, refused) {
            (Some(error), _) => error,
            (None, Some(address)) => ConnectError::Address(format!(
                "{host} is at {address}, an address of this machine, its links or a metadata service; grant that address \
                 by itself in spec.grants.origins, or an endpoint"
            )),
            (None, None) => ConnectError::Resolve {
                host: host.to_owned(),
                source: io::Error::new(io::ErrorKind::NotFound, "no address"),
            },
        })
    }

    fn may_reach(&self, address: IpAddr, host: &str) -> bool {
        match &self.route {
            Route::Origins(origins) if special_address(address) => {
                let literal =
                    host.parse::<IpAddr>().is_ok_and(|literal| literal.to_canonical() == address.to_canonical());
                literal && origins.iter().any(|origin| origin.is_address(address))
            }
            _ => true,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Wire;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Wire, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let host = uri.host().unwrap_or_default().to_owned();
        let opened = tokio::time::timeout(CONNECT, self.clone().open(uri));
        Box::pin(async move { opened.await.unwrap_or(Err(ConnectError::Late { host })) })
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) struct Wire {
    io: TokioIo<Box<dyn Stream>>,
    h2: bool,
}

impl Wire {
    fn plain(stream: impl Stream + 'static) -> Self {
        Wire { io: TokioIo::new(Box::new(stream)), h2: false }
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        if self.h2 { Connected::new().negotiated_h2() } else { Connected::new() }
    }
}

impl Read for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use tokio::net::TcpListener;

    use super::super::network::System;
    use super::super::tls::Trust;
    use super::*;

    /// By the runtime's clock, which goes on when nothing else does.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_a_connection_and_says_nothing_is_left() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("https://{}/", silent.local_addr().unwrap()).parse().unwrap();
        let mut trust = Trust::default();
        trust.do_not_verify();
        let mut connector = Connector::new(Route::Granted, Wanted::guest(trust), Arc::new(System::default()));
        let told = tokio::time::timeout(10 * CONNECT, connector.call(uri)).await.unwrap();
        assert!(matches!(told, Err(ConnectError::Late { host }) if host == "127.0.0.1"));
    }
}

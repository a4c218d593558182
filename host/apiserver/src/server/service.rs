//! The in-process service.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::upgrade::OnUpgrade;
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::handler::{Body, Call, handle, refuse};
use crate::identity::Identity;
use crate::request::Query;
use crate::status::ApiError;

/// Largest request body in bytes, as upstream's.
const BODY_LIMIT: usize = 3 << 20;

/// A tower service that answers requests of one identity; see [`Server::service`].
#[derive(Clone, Debug)]
pub struct InProcess {
    server: Server,
    identity: Identity,
}

impl InProcess {
    pub(super) fn new(server: Server, identity: Identity) -> Self {
        Self { server, identity }
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { server, identity } = self.clone();
        let watches = server.stop().clone();
        Box::pin(async move { Ok(answer(&server, identity, request, watches).await) })
    }
}

/// Answers a request of an identified sender; `watches` ends its watch.
pub(super) async fn answer<B>(
    server: &Server,
    identity: Identity,
    request: Request<B>,
    watches: CancellationToken,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut head, body) = request.into_parts();
    let upgrade = head.extensions.remove::<OnUpgrade>();
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {BODY_LIMIT}");
            return refuse(&ApiError::new(413, "RequestEntityTooLarge", message));
        }
        Err(error) => return refuse(&ApiError::bad_request(format!("unable to read the request body: {error}"))),
    };
    let call = Call {
        path: head.uri.path().to_owned(),
        query: Query::parse(head.uri.query().unwrap_or_default()),
        method: head.method,
        headers: head.headers,
        body,
        identity,
        shutdown: watches,
        upgrade,
    };
    if matches!(call.method, Method::GET | Method::HEAD) {
        return handle(server.registry(), call).await;
    }
    // A write is more than its commit (a CRD is served from then on), so it goes on when the client goes.
    let registry = Arc::clone(server.registry());
    let writing = tokio::spawn(async move { handle(&registry, call).await });
    writing.await.unwrap_or_else(|error| refuse(&ApiError::internal(format!("the request was broken off: {error}"))))
}

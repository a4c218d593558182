//! The in-process service.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::handler::{Body, Call, authorize, handle, refuse};
use crate::identity::Identity;
use crate::registry::Registry;
use crate::request::{Query, Route};
use crate::status::{ApiError, ApiResult};
use crate::turn::{self, Turn};

/// Largest request body in bytes, as upstream's.
const BODY_LIMIT: usize = 3 << 20;
/// Bytes of it that are held before any of it has come.
const FIRST: usize = 64 << 10;
/// Time to send one.
const READ: Duration = Duration::from_secs(60);
/// How long the rest of a body is read that is refused.
const DISCARD: Duration = Duration::from_secs(5);

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

/// Answers a request of an identified sender; `watches` ends its watch. What the sender may not do, or holds too much for, is refused
/// before anything of the body is read.
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
    let call = Call {
        path: head.uri.path().to_owned(),
        route: Route::parse(head.uri.path()),
        query: Query::parse(head.uri.query().unwrap_or_default()),
        method: head.method,
        headers: head.headers,
        body: Bytes::new(),
        identity,
        shutdown: watches,
        upgrade,
    };
    match admitted(server.registry(), call, body).await {
        Ok(response) => response,
        Err(error) => refuse(&error),
    }
}

async fn admitted<B>(registry: &Arc<Registry>, call: Call, body: B) -> ApiResult<Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = pin!(body);
    let begun = async {
        // Probes are answered to everybody at any time.
        let bytes = if matches!(call.route, Route::Health) { 0 } else { turn::REQUEST + head(&call) };
        let turn = registry.turns.begin(&call.identity, bytes)?;
        let registry = Arc::clone(registry);
        let authorized = turn.run(async move { authorize(&registry, &call).await.map(|()| call) }).await??;
        Ok::<_, ApiError>((turn, authorized))
    };
    let (turn, mut call) = match begun.await {
        Ok(begun) => begun,
        Err(error) => {
            discard(body.as_mut()).await;
            return Err(error);
        }
    };
    call.body = match read(body.as_mut(), &turn).await {
        Ok(body) => body,
        Err(error) => {
            discard(body.as_mut()).await;
            return Err(error);
        }
    };
    let registry = Arc::clone(registry);
    let reads = matches!(call.method, Method::GET | Method::HEAD);
    let handling = Arc::clone(&turn);
    let handling = async move { handling.run(async move { handle(&registry, call).await }).await };
    let response = if reads {
        handling.await?
    } else {
        // A write is more than its commit (a CRD is served from then on), so it goes on when the client goes.
        let broken = |error| ApiError::internal(format!("the request was broken off: {error}"));
        tokio::spawn(handling).await.map_err(broken)??
    };
    Ok(response.map(|body| body.of(turn)))
}

/// Bytes of the headers and of the path.
fn head(call: &Call) -> usize {
    call.path.len() + call.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
}

/// The whole body, within a time.
async fn read<B>(body: Pin<&mut B>, turn: &Turn) -> ApiResult<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let late = || format!("the request body was not complete after {} s", READ.as_secs());
    let read = tokio::time::timeout(READ, charged(body, turn)).await;
    read.unwrap_or_else(|_| Err(ApiError::new(408, "Timeout", late())))
}

/// The body, charged as it comes: at most twice what was sent of it, and no more than it says it is long.
async fn charged<B>(mut body: Pin<&mut B>, turn: &Turn) -> ApiResult<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large =
        || ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {BODY_LIMIT}"));
    let said = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if said > BODY_LIMIT {
        return Err(too_large());
    }
    let mut charged = said.min(FIRST);
    turn.charge(charged)?;
    let mut whole = BytesMut::with_capacity(charged);
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| ApiError::bad_request(format!("unable to read the request body: {}", error.into())))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = whole.len() + data.len();
        if length > BODY_LIMIT {
            return Err(too_large());
        }
        if let Some(missing) = length.checked_sub(charged).filter(|missing| *missing > 0) {
            let again = if said > charged { charged.min(said - charged) } else { charged };
            let more = missing.max(again);
            turn.charge(more)?;
            charged += more;
            whole.reserve(charged - whole.len());
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Reads on what a client sends of a body that is refused, and keeps nothing: many a client reads no answer before it has sent
/// everything.
async fn discard<B: http_body::Body<Data = Bytes>>(mut body: Pin<&mut B>) {
    let all = async {
        let mut left = BODY_LIMIT;
        while let Some(Ok(frame)) = body.frame().await {
            let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(DISCARD, all).await;
}

//! Client of one etcd member.

use std::fmt;
use std::future::Future;
use std::io;
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tonic_prost::ProstCodec;

use crate::Credentials;
use crate::message::{
    AlarmAction, AlarmMember, AlarmRequest, AlarmResponse, MemberAddRequest, MemberAddResponse, MemberListRequest,
    MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse,
    MoveLeaderRequest, MoveLeaderResponse, StatusRequest, StatusResponse,
};

/// Timeout of what a member answers by itself.
const LOCAL: Duration = Duration::from_secs(3);
/// Timeout of what the members have to agree on.
const AGREED: Duration = Duration::from_secs(7);
/// Largest answer in bytes: members and alarms are a few kilobytes.
const ANSWER_BYTES: usize = 1 << 20;
/// Most bytes of headers and trailers, in which the words of a refusal stand.
const HEADER_BYTES: u32 = 16 << 10;

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The expected name cannot be in a certificate.
    #[error("{0:?} is not a name that a certificate can hold")]
    Name(String),
    /// The TLS handshake failed: the certificate is not of the expected member, or ours is not trusted.
    #[error("the TLS handshake failed")]
    Tls(#[source] io::Error),
    /// The HTTP/2 handshake failed.
    #[error("the HTTP/2 handshake failed")]
    Http(#[source] hyper::Error),
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Status of the answer; for a broken connection [`tonic::Code::Unavailable`] or [`tonic::Code::Unknown`].
    #[error("{}", said(.0))]
    Status(Box<tonic::Status>),
    /// No answer within this time.
    #[error("it did not answer within {0:?}")]
    Deadline(Duration),
}

impl Error {
    /// gRPC code.
    #[must_use]
    pub fn code(&self) -> tonic::Code {
        match self {
            Self::Status(status) => status.code(),
            Self::Deadline(_) => tonic::Code::DeadlineExceeded,
        }
    }

    /// Whether the member itself answered, so that another one would hardly answer otherwise.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        use tonic::Code::{Cancelled, DeadlineExceeded, Internal, OutOfRange, Unavailable, Unknown};
        // An answer that is too large is out of range; etcd says so of revisions alone, which nobody asks for.
        !matches!(self.code(), Cancelled | DeadlineExceeded | Internal | OutOfRange | Unavailable | Unknown)
    }
}

pub(crate) fn said(status: &tonic::Status) -> String {
    let mut text =
        if status.message().is_empty() { status.code().description().to_owned() } else { status.message().to_owned() };
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}

/// Connection to one member. Cheap to clone; it ends with the last clone.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    origin: Uri,
}

impl Client {
    /// Connects over `stream`. `name` is the DNS name or address that the member's certificate must have; kubeadm uses
    /// the Node's name.
    ///
    /// # Errors
    /// When a handshake fails. Without a timeout: `stream` decides.
    pub async fn connect<S>(stream: S, name: &str, credentials: &Credentials) -> Result<Self, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let invalid = || ConnectError::Name(name.to_owned());
        let server = ServerName::try_from(name.to_owned()).map_err(|_| invalid())?;
        let authority = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
        let origin = format!("https://{authority}").parse().map_err(|_| invalid())?;
        let connector = TlsConnector::from(credentials.0.clone());
        let stream = connector.connect(server, stream).await.map_err(ConnectError::Tls)?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10))
            .max_header_list_size(HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(ConnectError::Http)?;
        // Ends with the last sender or the stream; requests say why.
        tokio::spawn(connection);
        Ok(Self { channel: Channel(sender), origin })
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.channel.0.is_closed()
    }

    /// Status of the member.
    ///
    /// # Errors
    /// When there is no answer in time.
    pub async fn status(&self) -> Result<StatusResponse, Error> {
        self.ask("/etcdserverpb.Maintenance/Status", StatusRequest {}, LOCAL).await
    }

    /// The members that this one knows; with `linearizable` those that a majority agrees on.
    ///
    /// # Errors
    /// When there is no answer in time, or no majority.
    pub async fn member_list(&self, linearizable: bool) -> Result<MemberListResponse, Error> {
        let deadline = if linearizable { AGREED } else { LOCAL };
        self.ask("/etcdserverpb.Cluster/MemberList", MemberListRequest { linearizable }, deadline).await
    }

    /// Alarms of all members. Needs a majority.
    ///
    /// # Errors
    /// When there is no answer in time, or no majority.
    pub async fn alarms(&self) -> Result<AlarmResponse, Error> {
        self.alarm(AlarmAction::Get, AlarmMember::default()).await
    }

    /// Lists, raises or clears alarms. Needs a majority.
    ///
    /// # Errors
    /// When there is no answer in time, or no majority.
    pub async fn alarm(&self, action: AlarmAction, of: AlarmMember) -> Result<AlarmResponse, Error> {
        let request = AlarmRequest { action: action.into(), member_id: of.member_id, alarm: of.alarm };
        self.ask("/etcdserverpb.Maintenance/Alarm", request, LOCAL).await
    }

    /// Adds a member, as a learner or with a vote.
    ///
    /// # Errors
    /// When it is a member already, or a majority does not agree.
    pub async fn member_add(&self, peer_urls: Vec<String>, is_learner: bool) -> Result<MemberAddResponse, Error> {
        self.ask("/etcdserverpb.Cluster/MemberAdd", MemberAddRequest { peer_urls, is_learner }, AGREED).await
    }

    /// Removes a member.
    ///
    /// # Errors
    /// [`tonic::Code::NotFound`] when it is no member; otherwise when a majority does not agree.
    pub async fn member_remove(&self, id: u64) -> Result<MemberRemoveResponse, Error> {
        self.ask("/etcdserverpb.Cluster/MemberRemove", MemberRemoveRequest { id }, AGREED).await
    }

    /// Gives a learner its vote.
    ///
    /// # Errors
    /// When it is none, or has not caught up.
    pub async fn member_promote(&self, id: u64) -> Result<MemberPromoteResponse, Error> {
        self.ask("/etcdserverpb.Cluster/MemberPromote", MemberPromoteRequest { id }, AGREED).await
    }

    /// Transfers leadership to `target_id`. Only the leader does.
    ///
    /// # Errors
    /// [`tonic::Code::FailedPrecondition`] when this member does not lead, or the target cannot.
    pub async fn move_leader(&self, target_id: u64) -> Result<MoveLeaderResponse, Error> {
        self.ask("/etcdserverpb.Maintenance/MoveLeader", MoveLeaderRequest { target_id }, AGREED).await
    }

    async fn ask<Q, A>(&self, path: &'static str, message: Q, deadline: Duration) -> Result<A, Error>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let grpc = tonic::client::Grpc::with_origin(self.channel.clone(), self.origin.clone());
        let mut grpc = grpc.max_decoding_message_size(ANSWER_BYTES);
        let mut request = tonic::Request::new(message);
        request.set_timeout(deadline);
        let path = PathAndQuery::from_static(path);
        let answer = async {
            let broken = |error: hyper::Error| tonic::Status::from_error(Box::new(error));
            grpc.ready().await.map_err(broken)?;
            grpc.unary(request, path, ProstCodec::<Q, A>::default()).await
        };
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Error::Status(Box::new(status))),
            Err(_) => Err(Error::Deadline(deadline)),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.origin).finish()
    }
}

/// Adapts hyper's sender to tonic.
#[derive(Clone)]
struct Channel(SendRequest<Body>);

impl tower::Service<http::Request<Body>> for Channel {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

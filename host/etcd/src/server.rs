//! Server side of a member, for simulations.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tonic::body::Body;
use tonic_prost::ProstCodec;

use crate::credentials::{CredentialsError, certificates, private_key, roots};
use crate::message::{
    AlarmRequest, AlarmResponse, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse,
    MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MoveLeaderRequest,
    MoveLeaderResponse, StatusRequest, StatusResponse,
};

pub use tonic::Status;

/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a stopping member waits for requests in progress.
const FAREWELL: Duration = Duration::from_millis(200);

/// Answers of a simulated member.
#[async_trait]
pub trait Answers: Send + Sync + 'static {
    /// `Maintenance/Status`
    async fn status(&self, request: StatusRequest) -> Result<StatusResponse, Status>;
    /// `Maintenance/Alarm`
    async fn alarm(&self, request: AlarmRequest) -> Result<AlarmResponse, Status>;
    /// `Maintenance/MoveLeader`
    async fn move_leader(&self, request: MoveLeaderRequest) -> Result<MoveLeaderResponse, Status>;
    /// `Cluster/MemberList`
    async fn member_list(&self, request: MemberListRequest) -> Result<MemberListResponse, Status>;
    /// `Cluster/MemberAdd`
    async fn member_add(&self, request: MemberAddRequest) -> Result<MemberAddResponse, Status>;
    /// `Cluster/MemberRemove`
    async fn member_remove(&self, request: MemberRemoveRequest) -> Result<MemberRemoveResponse, Status>;
    /// `Cluster/MemberPromote`
    async fn member_promote(&self, request: MemberPromoteRequest) -> Result<MemberPromoteResponse, Status>;
}

/// TLS configuration of a member: it presents `certificate`, and clients must present one of `authority`. PEM texts.
///
/// # Errors
/// When they cannot be read or do not fit together.
pub fn tls(authority: &str, certificate: &str, key: &str) -> Result<Arc<rustls::ServerConfig>, CredentialsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(authority)?), provider.clone())
        .build()
        .map_err(CredentialsError::Authority)?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(CredentialsError::Tls)?
        .with_client_cert_verifier(clients)
        .with_single_cert(certificates(certificate)?, private_key(key)?)
        .map_err(CredentialsError::Tls)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Clients come with credentials of the day, and resume nothing.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Serves one connection until it ends; after `stop` only requests in progress.
///
/// # Errors
/// When the peer is refused, does not speak HTTP/2, or breaks off.
pub async fn serve<S>(
    stream: S,
    tls: Arc<rustls::ServerConfig>,
    member: Arc<dyn Answers>,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut stop = pin!(stop);
    let stream = tokio::select! {
        shaken = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)) => shaken??,
        () = &mut stop => return Ok(()),
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let member = member.clone();
        async move { Ok::<_, Infallible>(answer(member, request).await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = stop => {
            connection.as_mut().graceful_shutdown();
            // Clients that do not let go are cut off.
            tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
        }
    };
    served.map_err(io::Error::other)
}

/// A unary call: decodes the message, calls a method of [`Answers`], encodes the result.
macro_rules! unary {
    ($member:ident, $request:ident, $method:ident) => {{
        let call = tower::service_fn(move |request: tonic::Request<_>| {
            let member = $member.clone();
            async move { member.$method(request.into_inner()).await.map(tonic::Response::new) }
        });
        tonic::server::Grpc::new(ProstCodec::default()).unary(call, $request).await
    }};
}

async fn answer(member: Arc<dyn Answers>, request: Request<Incoming>) -> Response<Body> {
    match request.uri().path() {
        "/etcdserverpb.Maintenance/Status" => unary!(member, request, status),
        "/etcdserverpb.Maintenance/Alarm" => unary!(member, request, alarm),
        "/etcdserverpb.Maintenance/MoveLeader" => unary!(member, request, move_leader),
        "/etcdserverpb.Cluster/MemberList" => unary!(member, request, member_list),
        "/etcdserverpb.Cluster/MemberAdd" => unary!(member, request, member_add),
        "/etcdserverpb.Cluster/MemberRemove" => unary!(member, request, member_remove),
        "/etcdserverpb.Cluster/MemberPromote" => unary!(member, request, member_promote),
        path => Status::unimplemented(format!("unknown method {path}")).into_http(),
    }
}

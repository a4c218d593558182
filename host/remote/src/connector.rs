//! From a kubeconfig to a client.
//!
//! kube's own client speaks HTTP/1.1, where each watch and each request at a time has its own connection. With thousands
//! of clusters that is what costs, so this one negotiates HTTP/2 and shares one connection per cluster. Its answers are
//! bounded, see [`bounds`].

use std::time::Duration;

use async_trait::async_trait;
use capwasm_fence::Fence;
use capwasm_reconcile::ClusterId;
use hyper_util::{
    client::legacy::connect::HttpConnector,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt},
};
use tower::{BoxError, ServiceBuilder};

use crate::{
    bounds::{self, Bounded, BoundsError, Limits},
    kubeconfig::{self, KubeconfigError},
};

/// Time without an answer to a ping after which a connection is given up.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a client could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is refused.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// A certificate or key in the kubeconfig is unreadable.
    #[error("unable to make a client of the kubeconfig: {0}")]
    Client(#[source] Box<kube::Error>),
    /// `tls-server-name` of the kubeconfig is no valid name.
    #[error("the kubeconfig's tls-server-name is not a name")]
    ServerName,
}

/// Creates clients. Tests and simulations have their own.
#[async_trait]
pub trait Connector: Send + Sync {
    /// A client of `cluster` from the content of its kubeconfig Secret. Need not connect yet.
    async fn connect(&self, cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError>;

    /// As [`Connector::connect`], with connections that can be upgraded, which HTTP/2 ones cannot.
    async fn connect_for_forwarding(&self, cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        self.connect(cluster, kubeconfig).await
    }

    /// What writes have to pass that do not go through the clients: those to etcd.
    fn fence(&self) -> Fence {
        Fence::none()
    }
}

/// Connects over the network.
#[derive(Clone, Copy, Debug)]
pub struct KubeconfigConnector;

#[async_trait]
impl Connector for KubeconfigConnector {
    async fn connect(&self, _cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        let config = kubeconfig::read(kubeconfig).await?;
        client(&config, Connections::Shared, Limits::default())
    }

    async fn connect_for_forwarding(&self, _cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        let config = kubeconfig::read(kubeconfig).await?;
        client(&config, Connections::Taken, Limits::default())
    }
}

/// Use of a client's connections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Connections {
    /// One HTTP/2 connection for all requests.
    Shared,
    /// A connection per request, which takes it over. kube's own client would do, but for its delay of small packets.
    Taken,
}

fn client(config: &Config, purpose: Connections, limits: Limits) -> Result<Client, ConnectError> {
    let unusable = |error| ConnectError::Client(Box::new(error));
    // An error means that another thread was first, with the same provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut tls = config.rustls_client_config().map_err(unusable)?;
    // One connection that lives long has little to resume, and the default cache is large.
    tls.resumption = rustls::client::Resumption::in_memory_sessions(2);
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(limits.head));
    http.set_nodelay(true);
    let mut https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = rustls::pki_types::ServerName::try_from(name.clone()).map_err(|_| ConnectError::ServerName)?;
        https = https.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name));
    }
    let connections = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(2)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http1_max_buf_size(2 * limits.header_bytes)
        .http2_max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .build::<_, Body>(match purpose {
            Connections::Shared => https.enable_all_versions().wrap_connector(http),
            Connections::Taken => https.enable_http1().wrap_connector(http),
        });
    let answer = tower::service_fn(move |request: http::Request<Body>| {
        let is_watch = bounds::is_watch(request.uri());
        let answer = connections.request(request);
        async move {
            let answer =
                tokio::time::timeout(limits.head, answer).await.map_err(|_| BoundsError::Head(limits.head))??;
            Ok::<_, BoxError>(answer.map(|body| Bounded::new(body, limits, is_watch)))
        }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(unusable)?)
        .layer(config.extra_headers_layer().map_err(unusable)?)
        .service(answer);
    Ok(Client::new(service, config.default_namespace.clone()))
}

#[cfg(test)]
mod tests;

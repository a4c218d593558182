//! From a kubeconfig to a client.
//!
//! kube's own client speaks HTTP/1.1, where each watch and each request at a time has its own connection. With thousands
//! of clusters that is what costs, so this one negotiates HTTP/2 and shares one connection per cluster.

use std::time::Duration;

use async_trait::async_trait;
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

use crate::kubeconfig::{self, KubeconfigError};

/// How long connecting, and any answer's first byte, may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is not used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// No client can be made of it: certificates or keys that cannot be read.
    #[error("unable to make a client of the kubeconfig: {0}")]
    Client(#[source] Box<kube::Error>),
    /// The server's name in it is no name.
    #[error("the kubeconfig's tls-server-name is not a name")]
    ServerName,
}

/// Makes clients. Tests and simulations have their own.
#[async_trait]
pub trait Connector: Send + Sync {
    /// A client of `cluster` by what its kubeconfig Secret holds. Need not talk to the server yet.
    async fn connect(&self, cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError>;

    /// The same with connections that can be taken over, which those of HTTP/2 cannot.
    async fn connect_for_forwarding(&self, cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        self.connect(cluster, kubeconfig).await
    }
}

/// Over the network.
#[derive(Clone, Copy, Debug)]
pub struct KubeconfigConnector;

#[async_trait]
impl Connector for KubeconfigConnector {
    async fn connect(&self, _cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        let config = kubeconfig::read(kubeconfig).await?;
        client(&config, Connections::Shared)
    }

    async fn connect_for_forwarding(&self, _cluster: &ClusterId, kubeconfig: &[u8]) -> Result<Client, ConnectError> {
        let config = kubeconfig::read(kubeconfig).await?;
        client(&config, Connections::Taken)
    }
}

/// What a client makes its connections for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Connections {
    /// One for everything.
    Shared,
    /// Each is taken over by its request. kube's own client would do, if it did not hold back small packets.
    Taken,
}

fn client(config: &Config, purpose: Connections) -> Result<Client, ConnectError> {
    let unusable = |error| ConnectError::Client(Box::new(error));
    // An error means that another thread was first, with the same provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut tls = config.rustls_client_config().map_err(unusable)?;
    // One connection that lives long has little to resume, and the default cache is large.
    tls.resumption = rustls::client::Resumption::in_memory_sessions(2);
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(TIMEOUT));
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
        .http2_keep_alive_timeout(TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build::<_, Body>(match purpose {
            Connections::Shared => https.enable_all_versions().wrap_connector(http),
            Connections::Taken => https.enable_http1().wrap_connector(http),
        });
    let answer = tower::service_fn(move |request: http::Request<Body>| {
        let answer = connections.request(request);
        // Until the headers are here: a watch's body takes as long as it takes.
        async move { Ok::<_, BoxError>(tokio::time::timeout(TIMEOUT, answer).await??) }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(unusable)?)
        .layer(config.extra_headers_layer().map_err(unusable)?)
        .service(answer);
    Ok(Client::new(service, config.default_namespace.clone()))
}

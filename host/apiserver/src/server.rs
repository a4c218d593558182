//! One API server: a registry, its controllers, the in-process service and the TLS listeners.

mod connection;
mod limits;
mod service;

pub use limits::{FirstRequest, connections};

use std::io;
use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::ServerConfig;
use crate::controllers;
use crate::identity::Identity;
use crate::registry::Registry;
use crate::store::{Store, StoreError};

pub use service::InProcess;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The store could not be read or written.
    #[error("unable to use the store")]
    Store(#[from] StoreError),
    /// Objects that the server needs in its keyspace could not be read or written.
    #[error("unable to prepare keyspace {keyspace}: {message}")]
    Prepare {
        /// Name of the keyspace.
        keyspace: String,
        /// Message of the API error.
        message: String,
    },
}

/// Answers some requests of one listener in place of the server, by method and path; `None` passes the request on.
/// Called before authentication: for answers that are the same for everyone, such as that the storage is down.
pub type Filter = Arc<dyn Fn(&Method, &str) -> Option<(StatusCode, Value)> + Send + Sync>;

struct Inner {
    registry: Arc<Registry>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// A running API server. Cheap to clone; end it with [`Server::shutdown`].
#[derive(Clone)]
pub struct Server(Arc<Inner>);

impl Server {
    /// Starts a server on its keyspace of `store`: loads the CRDs, creates the system namespaces and starts the controllers
    /// (tasks, no threads). Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the store fails or holds something unreadable.
    pub async fn start(store: Arc<Store>, config: ServerConfig) -> Result<Self, ServerError> {
        let keyspace = config.keyspace.clone();
        let prepare = |error: crate::status::ApiError| ServerError::Prepare {
            keyspace: keyspace.clone(),
            message: error.to_string(),
        };
        let registry = Arc::new(Registry::new(store, config).map_err(prepare)?);
        let inner = Inner { registry, stop: CancellationToken::new(), tasks: TaskTracker::new() };
        controllers::bootstrap(&inner.registry).await.map_err(prepare)?;
        controllers::start(&inner.registry, &inner.tasks, &inner.stop).map_err(prepare)?;
        Ok(Self(Arc::new(inner)))
    }

    /// The server as a tower service for a fixed identity: no socket, but the same authorisation, routing and encoding as
    /// over TLS. Watches stream.
    #[must_use]
    pub fn service(&self, identity: Identity) -> InProcess {
        InProcess::new(self.clone(), identity)
    }

    /// A client over [`Server::service`]. Must be called within a tokio runtime.
    #[must_use]
    pub fn client(&self, identity: Identity) -> kube::Client {
        kube::Client::new(self.service(identity), "default")
    }

    /// Serves HTTPS (HTTP/1.1 and HTTP/2) until `shutdown` or [`Server::shutdown`]. Clients are identified by certificate
    /// (common name and organisations) or bearer token. On the way out watches end, and requests in flight are finished.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        connection::serve(self, listener, tls, shutdown, None).await
    }

    /// As [`Server::serve`], with `filter` in front of this listener only.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve_filtered(
        &self,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
        shutdown: CancellationToken,
        filter: Filter,
    ) -> io::Result<()> {
        connection::serve(self, listener, tls, shutdown, Some(filter)).await
    }

    /// Ends watches, connections and controllers, and waits for them.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Server").field(&self.0.registry.config.keyspace).finish()
    }
}

//! Port-forwards to pods through the workload cluster's API server.
//!
//! Each takes over its connection, so it has an HTTP/1.1 connection of its own; their client is created with the first
//! one, and dropped when none is left.

use std::{future::Future, io, sync::Arc, time::Duration};

use capwasm_reconcile::{Cache, CacheError, ClusterId, cache::secret_kind};
use futures::{FutureExt as _, future::BoxFuture};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::{io::DuplexStream, sync::Mutex};

use crate::{
    connector::{ConnectError, Connector},
    kubeconfig,
};

/// Timeout of connecting to a port, including the first handshake.
pub(crate) const DIAL: Duration = Duration::from_secs(10);

/// Why a port of a pod could not be reached or used.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The kubeconfig Secret cannot be read.
    #[error("unable to read the kubeconfig of {cluster}")]
    Kubeconfig {
        /// The workload cluster.
        cluster: ClusterId,
        /// Error of the read; `None` when there is no Secret.
        #[source]
        source: Option<CacheError>,
    },
    /// No client can be created from the kubeconfig.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The API server refused the port-forward, or is unreachable.
    #[error("the API server does not forward port {port} of pod {pod}")]
    Refused {
        /// Name of the pod.
        pod: String,
        /// Port of the pod.
        port: u16,
        /// Error of the request.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server cannot reach the port.
    #[error("port {port} of pod {pod} cannot be reached: {message}")]
    Unreachable {
        /// Name of the pod.
        pod: String,
        /// Port of the pod.
        port: u16,
        /// Message of the API server.
        message: String,
    },
    /// The TLS handshake with the port failed.
    #[error("the TLS handshake with port {port} of pod {pod} failed")]
    Tls {
        /// Name of the pod.
        pod: String,
        /// Port of the pod.
        port: u16,
        /// Error of the handshake.
        #[source]
        source: io::Error,
    },
    /// The timeout passed.
    #[error("port {port} of pod {pod} did not answer within {DIAL:?}")]
    Timeout {
        /// Name of the pod.
        pod: String,
        /// Port of the pod.
        port: u16,
    },
}

/// Port-forwards to one cluster.
pub(crate) struct Forwarder {
    cluster: ClusterId,
    management: Cache,
    connector: Arc<dyn Connector>,
    /// Of the last port-forwards, until [`Forwarder::rest`].
    client: Mutex<Option<kube::Client>>,
}

#[derive(Clone, Copy)]
pub(crate) struct PodPort<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) pod: &'a str,
    pub(crate) port: u16,
}

impl PodPort<'_> {
    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.pod)
    }

    pub(crate) fn tls_error(&self, source: io::Error) -> ForwardError {
        ForwardError::Tls { pod: self.name(), port: self.port, source }
    }
}

impl Forwarder {
    pub(crate) fn new(cluster: ClusterId, management: Cache, connector: Arc<dyn Connector>) -> Self {
        Self { cluster, management, connector, client: Mutex::default() }
    }

    async fn client(&self) -> Result<kube::Client, ForwardError> {
        // Held while it is made: the members of one etcd are asked at the same time.
        let mut known = self.client.lock().await;
        if let Some(client) = &*known {
            return Ok(client.clone());
        }
        let ClusterId { namespace, name } = &self.cluster;
        let unreadable = |source| ForwardError::Kubeconfig { cluster: self.cluster.clone(), source };
        let secret = kubeconfig::secret_name(name);
        let secret = self.management.get_live(&secret_kind(), namespace, &secret).await;
        let secret = secret.map_err(|error| unreadable(Some(error)))?;
        let kubeconfig = secret.as_ref().and_then(kubeconfig::of_secret).ok_or_else(|| unreadable(None))?;
        let client = self.connector.connect_for_forwarding(&self.cluster, &kubeconfig).await?;
        Ok(known.insert(client).clone())
    }

    /// Drops the client, unless one is being made: the next port-forward reads the kubeconfig again.
    pub(crate) fn rest(&self) {
        if let Ok(mut known) = self.client.try_lock() {
            *known = None;
        }
    }

    /// Connects to a port and runs `first` on the stream: a handshake, whose failure the API server can often explain
    /// better.
    pub(crate) async fn reach<T, D, F>(&self, at: PodPort<'_>, first: F) -> Result<T, ForwardError>
    where
        F: FnOnce(DuplexStream) -> D,
        D: Future<Output = Result<T, ForwardError>>,
    {
        let timeout = || ForwardError::Timeout { pod: at.name(), port: at.port };
        let reached = tokio::time::timeout(DIAL, async {
            let pods: Api<Pod> = Api::namespaced(self.client().await?, at.namespace);
            let refused = |source| ForwardError::Refused { pod: at.name(), port: at.port, source: Box::new(source) };
            let mut forward = pods.portforward(at.pod, &[at.port]).await.map_err(refused)?;
            // The one port that was asked for is there to be taken, once.
            let unreachable = |message: String| ForwardError::Unreachable {
                pod: at.name(),
                port: at.port,
                message: steady(&message),
            };
            let stream = forward.take_stream(at.port).ok_or_else(|| unreachable("no stream came of it".to_owned()))?;
            let mut error: BoxFuture<'_, String> = match forward.take_error(at.port) {
                Some(error) => Box::pin(async move {
                    match error.await {
                        Some(message) => message,
                        None => std::future::pending().await,
                    }
                }),
                None => Box::pin(std::future::pending()),
            };
            tokio::select! {
                biased;
                message = &mut error => Err(unreachable(message)),
                // The API server's words come before the end that they explain, maybe since they were last looked for.
                done = first(stream) => match done {
                    Err(failed) => Err(error.now_or_never().map_or(failed, unreachable)),
                    done => done,
                },
            }
        });
        reached.await.unwrap_or_else(|_| Err(timeout()))
    }
}

/// Longest message of an API server that is passed on, in characters.
const LONGEST: usize = 500;

/// Removes what differs between equal failures from a message, which is the source port, and shortens it.
fn steady(message: &str) -> String {
    let mut text = String::new();
    let mut parts = message.split("->").peekable();
    while let Some(part) = parts.next() {
        let dialled = part.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        match dialled {
            Some((address, _)) if parts.peek().is_some() => text.push_str(address),
            _ => text.push_str(part),
        }
        if parts.peek().is_some() {
            text.push_str("->");
        }
    }
    if text.chars().count() > LONGEST {
        text = text.chars().take(LONGEST).chain("...".chars()).collect();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_the_same_are_the_same_and_short() {
        for (said, kept) in [
            (
                "dial tcp4 127.0.0.1:2379: connect: connection refused",
                "dial tcp4 127.0.0.1:2379: connect: connection refused",
            ),
            (
                "read tcp 127.0.0.1:41234->127.0.0.1:2379: reset, then: a->b",
                "read tcp 127.0.0.1->127.0.0.1:2379: reset, then: a->b",
            ),
            ("[::1]:9->[::1]:2379", "[::1]->[::1]:2379"),
            ("->", "->"),
            ("", ""),
        ] {
            assert_eq!(steady(said), kept);
        }
        assert_eq!(steady(&"\u{fc}".repeat(10_000)).chars().count(), LONGEST + 3);
    }
}

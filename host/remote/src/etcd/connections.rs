//! Connections to the etcd members of one cluster: created on demand, kept while in use.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use capwasm_etcd::{Client, ConnectError, Credentials};
use capwasm_fence::Fence;
use capwasm_reconcile::{Cache, ClusterId};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{EtcdError, MemberPod, authority};
use crate::forward::{ForwardError, Forwarder, PodPort};

/// Client port of members.
const PORT: u16 = 2379;
/// Unused connections are closed after this time. Each takes some 200 kB here, and as much of the API server that forwards it; a
/// cluster is asked many times while it comes up, and every ten minutes when it is settled.
const IDLE: Duration = Duration::from_secs(3);

pub(crate) struct Connections {
    cluster: ClusterId,
    management: Cache,
    forwarder: Arc<Forwarder>,
    issued: tokio::sync::Mutex<Option<Issued>>,
    open: Mutex<Open>,
    /// What changes of the membership have to pass.
    pub(crate) fence: Fence,
}

struct Issued {
    credentials: Credentials,
    at: Instant,
}

#[derive(Default)]
struct Open {
    /// By name of the node.
    clients: HashMap<String, Used>,
    /// Whether a task closes idle connections.
    swept: bool,
}

struct Used {
    client: Client,
    /// Uid of the pod: a new pod of the same name is another process.
    uid: String,
    last: Instant,
}

impl Connections {
    pub(crate) fn new(cluster: ClusterId, management: Cache, forwarder: Arc<Forwarder>, fence: Fence) -> Self {
        Self { cluster, management, forwarder, issued: tokio::sync::Mutex::default(), open: Mutex::default(), fence }
    }

    /// The client certificate, renewed when it is too old.
    pub(crate) async fn credentials(&self) -> Result<Credentials, EtcdError> {
        let mut issued = self.issued.lock().await;
        if let Some(issued) = issued.as_ref().filter(|issued| issued.at.elapsed() < authority::USED) {
            return Ok(issued.credentials.clone());
        }
        let credentials = authority::credentials(&self.management, &self.cluster).await?;
        *issued = Some(Issued { credentials: credentials.clone(), at: Instant::now() });
        Ok(credentials)
    }

    /// A connection to a member; reuses an open one.
    pub(crate) async fn to(
        self: &Arc<Self>,
        pod: &MemberPod,
        credentials: &Credentials,
    ) -> Result<Client, ForwardError> {
        if let Some(client) = self.known(pod) {
            return Ok(client);
        }
        let at = PodPort { namespace: "kube-system", pod: &pod.name, port: PORT };
        let shaken = self.forwarder.reach(at, |stream| async move {
            let client = Client::connect(stream, &pod.node, credentials).await;
            client.map_err(|error| match error {
                ConnectError::Tls(source) => at.tls_error(source),
                error => at.tls_error(io::Error::other(error)),
            })
        });
        let client = match shaken.await {
            Ok(client) => client,
            Err(error) => {
                // The authority may be another one by now.
                if matches!(error, ForwardError::Tls { .. }) {
                    *self.issued.lock().await = None;
                }
                return Err(error);
            }
        };
        self.keep(pod, client.clone());
        Ok(client)
    }

    fn known(&self, pod: &MemberPod) -> Option<Client> {
        let mut open = self.open.lock();
        let used = open.clients.get_mut(&pod.node)?;
        if used.uid != pod.uid || used.client.is_closed() {
            open.clients.remove(&pod.node);
            return None;
        }
        used.last = Instant::now();
        Some(used.client.clone())
    }

    fn keep(self: &Arc<Self>, pod: &MemberPod, client: Client) {
        let mut open = self.open.lock();
        open.clients.insert(pod.node.clone(), Used { client, uid: pod.uid.clone(), last: Instant::now() });
        if !open.swept {
            open.swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Drops the connection to the member on a node.
    pub(crate) fn forget(&self, node: &str) {
        self.open.lock().clients.remove(node);
    }
}

/// Closes idle connections until none is open.
async fn sweep(connections: Weak<Connections>) {
    loop {
        tokio::time::sleep(IDLE / 3).await;
        let Some(connections) = connections.upgrade() else { return };
        let mut open = connections.open.lock();
        open.clients.retain(|_, used| used.last.elapsed() < IDLE && !used.client.is_closed());
        if open.clients.is_empty() {
            open.swept = false;
            connections.forwarder.rest();
            return;
        }
    }
}

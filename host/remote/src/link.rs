//! The life of one connection: made, probed, made again when credentials change, given up when nobody wants it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use base64::Engine;
use capwasm_reconcile::{
    Cache, CacheError, ClusterId, Interests, Key, Source,
    cache::{Scope, secret_kind},
    interests::{ControllerId, Interest},
};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    Connected, Inner, NotConnected, Workload,
    connector::{ConnectError, Connector},
    token,
};

/// Time between probes, give or take a tenth.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Failed probes in a row that end a connection.
const PROBE_FAILURES: u32 = 5;
/// Delay after the first failed attempt; doubled by each further one.
const RETRY: Duration = Duration::from_millis(100);
/// Most delay between attempts.
const MOST_RETRY: Duration = Duration::from_secs(10);
/// Without a kubeconfig only a change of the Secret helps; this is for the case that it goes unseen.
const WITHOUT_KUBECONFIG: Duration = Duration::from_secs(120);
/// Looks in a row (one per probe or retry) at which nobody wanted the connection before it is given up.
const UNWANTED: u32 = 3;

/// One connection, up or not.
pub(crate) struct Link {
    cluster: ClusterId,
    state: RwLock<State>,
    changed: Notify,
    last_probe: Mutex<Option<Timestamp>>,
}

/// How a connection is.
#[derive(Clone)]
pub(crate) enum State {
    Down(NotConnected),
    Up(Workload),
}

impl State {
    pub(crate) fn connected(self) -> Result<Workload, NotConnected> {
        match self {
            Self::Up(workload) => Ok(workload),
            Self::Down(why) => Err(why),
        }
    }
}

/// What a link needs of the rest. It holds the remote weakly: with its last user gone, the link ends.
pub(crate) struct Surroundings {
    pub(crate) management: Cache,
    pub(crate) interests: Arc<Interests>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) reader: ControllerId,
    pub(crate) remote: Weak<Inner>,
}

/// What stands between here and a connection.
struct Obstacle {
    reason: &'static str,
    message: String,
}

impl Obstacle {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What the management cluster says about the cluster.
enum Credentials {
    Kubeconfig(Vec<u8>),
    Missing(String),
    ClusterGone,
    Unknown(CacheError),
}

impl Link {
    pub(crate) fn new(cluster: ClusterId) -> Self {
        let down = NotConnected {
            cluster: cluster.clone(),
            reason: "Connecting",
            message: "the connection is being made".to_owned(),
            last_probe: None,
        };
        Self { cluster, state: RwLock::new(State::Down(down)), changed: Notify::new(), last_probe: Mutex::default() }
    }

    pub(crate) fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    pub(crate) fn state(&self) -> State {
        self.state.read().clone()
    }

    /// The Cluster, its kubeconfig or the remote has changed.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change, at most for this long. Returns whether there was one.
    async fn wait(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.changed.notified()).await.is_ok()
    }

    fn set_up(&self, workload: &Workload, interests: &Interests) {
        tracing::info!(cluster = %self.cluster, "connected");
        *self.state.write() = State::Up(workload.clone());
        interests.fire(&token(&self.cluster));
    }

    /// Tells readers when the reason is a new one.
    fn set_down(&self, obstacle: Obstacle, interests: &Interests) {
        let Obstacle { reason, message } = obstacle;
        let known = matches!(&*self.state.read(), State::Down(why) if why.reason == reason);
        if !known {
            tracing::info!(cluster = %self.cluster, reason, message, "not connected");
        }
        let last_probe = *self.last_probe.lock();
        *self.state.write() = State::Down(NotConnected { cluster: self.cluster.clone(), reason, message, last_probe });
        if !known {
            interests.fire(&token(&self.cluster));
        }
    }
}

/// Keeps a connection until its Cluster is gone, nobody wants it, or the remote is dropped.
pub(crate) async fn run(link: Arc<Link>, around: Surroundings) {
    let mut retry = RETRY;
    let mut unwanted = 0;
    while around.remote.strong_count() > 0 && unwanted < UNWANTED {
        unwanted = if around.is_wanted(&link) { 0 } else { unwanted + 1 };
        let pause = match around.credentials(&link).await {
            Credentials::ClusterGone => {
                link.set_down(Obstacle::new("ClusterGone", "the Cluster does not exist"), &around.interests);
                break;
            }
            Credentials::Missing(message) => {
                link.set_down(Obstacle::new("KubeconfigMissing", message), &around.interests);
                WITHOUT_KUBECONFIG
            }
            Credentials::Unknown(error) => {
                link.set_down(Obstacle::new("KubeconfigMissing", error.to_string()), &around.interests);
                retry
            }
            Credentials::Kubeconfig(kubeconfig) => match around.connect(&link, &kubeconfig).await {
                Ok(workload) => {
                    link.set_up(&workload, &around.interests);
                    retry = RETRY;
                    let Some(obstacle) = around.hold(&link, &workload, &kubeconfig).await else { break };
                    link.set_down(obstacle, &around.interests);
                    retry
                }
                Err(obstacle) => {
                    link.set_down(obstacle, &around.interests);
                    retry
                }
            },
        };
        retry = if link.wait(pause).await { RETRY } else { (retry * 2).min(MOST_RETRY) };
    }
    around.interests.forget(around.reader, &around.key(&link));
    if let Some(remote) = around.remote.upgrade() {
        remote.forget(&link);
    }
}

impl Surroundings {
    fn key(&self, link: &Link) -> Key {
        // Not the Cluster's key as such: a name for this reader.
        Key::new(&secret_kind(), &link.cluster.namespace, &link.cluster.name)
    }

    fn is_wanted(&self, link: &Link) -> bool {
        self.interests.has_readers(&token(&link.cluster))
    }

    /// Reads Cluster and Secret, and has the link woken when either changes.
    async fn credentials(&self, link: &Link) -> Credentials {
        let reading = self.interests.begin(self.reader, &self.key(link));
        let credentials = self.read_credentials(link, |kind, name| {
            self.interests.note(
                reading,
                Interest::Object {
                    source: Source::Management,
                    kind: kind.clone(),
                    namespace: link.cluster.namespace.as_str().into(),
                    name: name.into(),
                },
            );
        });
        let credentials = credentials.await.unwrap_or_else(Credentials::Unknown);
        self.interests.finish(reading);
        credentials
    }

    async fn read_credentials(
        &self,
        link: &Link,
        note: impl Fn(&capwasm_reconcile::Kind, &str),
    ) -> Result<Credentials, CacheError> {
        let ClusterId { namespace, name } = &link.cluster;
        let clusters = self.management.kind("cluster.x-k8s.io", "Cluster").await?;
        note(&clusters, name);
        if self.management.get(&clusters, namespace, name).await?.is_none() {
            return Ok(Credentials::ClusterGone);
        }
        let (secrets, secret_name) = (secret_kind(), format!("{name}-kubeconfig"));
        note(&secrets, &secret_name);
        if self.management.get(&secrets, namespace, &secret_name).await?.is_none() {
            return Ok(Credentials::Missing(format!("there is no Secret {secret_name}")));
        }
        let secret = self.management.get_live(&secrets, namespace, &secret_name).await?;
        let value = secret.as_ref().and_then(|secret| secret.pointer("/data/value")).and_then(Value::as_str);
        let value = value.and_then(|value| base64::engine::general_purpose::STANDARD.decode(value).ok());
        Ok(match value {
            Some(kubeconfig) => Credentials::Kubeconfig(kubeconfig),
            None => Credentials::Missing(format!("Secret {secret_name} holds no kubeconfig under the key value")),
        })
    }

    async fn connect(&self, link: &Link, kubeconfig: &[u8]) -> Result<Workload, Obstacle> {
        let client = self.connector.connect(&link.cluster, kubeconfig).await.map_err(|error| match error {
            ConnectError::Kubeconfig(_) | ConnectError::Client(_) | ConnectError::ServerName => {
                Obstacle::new("KubeconfigInvalid", error.to_string())
            }
        })?;
        probe(&client).await?;
        let now = Timestamp::now();
        *link.last_probe.lock() = Some(now);
        let cache = Cache::scoped(
            client,
            Source::Workload(link.cluster.clone()),
            self.interests.clone(),
            Scope::Only(&[("", "Node")]),
        );
        Ok(Workload(Arc::new(Connected { cache, last_probe: Mutex::new(now) })))
    }

    /// Probes until the connection has to be made anew, with why; `None` when it is not wanted any more.
    async fn hold(&self, link: &Link, workload: &Workload, kubeconfig: &[u8]) -> Option<Obstacle> {
        let (mut failures, mut unwanted) = (0, 0);
        loop {
            let interval = PROBE_INTERVAL.mul_f64(0.9 + 0.2 * rand::random::<f64>());
            if link.wait(interval).await {
                if self.remote.strong_count() == 0 {
                    return None;
                }
                match self.credentials(link).await {
                    Credentials::ClusterGone => {
                        return Some(Obstacle::new("ClusterGone", "the Cluster does not exist"));
                    }
                    Credentials::Kubeconfig(now) if now != kubeconfig => {
                        return Some(Obstacle::new("Connecting", "the kubeconfig has changed"));
                    }
                    // A kubeconfig that cannot be read just now is no reason to drop a connection that works.
                    Credentials::Kubeconfig(_) | Credentials::Missing(_) | Credentials::Unknown(_) => {}
                }
                continue;
            }
            unwanted = if self.is_wanted(link) { 0 } else { unwanted + 1 };
            if unwanted >= UNWANTED {
                return None;
            }
            match probe(workload.cache().client()).await {
                Ok(()) => {
                    failures = 0;
                    let now = Timestamp::now();
                    *link.last_probe.lock() = Some(now);
                    *workload.0.last_probe.lock() = now;
                }
                Err(obstacle) if obstacle.reason == "Unauthorized" => return Some(obstacle),
                Err(obstacle) => {
                    failures += 1;
                    if failures >= PROBE_FAILURES {
                        return Some(Obstacle::new("ProbeFailed", obstacle.message));
                    }
                }
            }
        }
    }
}

/// Whether there is an API server that takes our credentials. Being forbidden to look is an answer too.
async fn probe(client: &kube::Client) -> Result<(), Obstacle> {
    let request =
        http::Request::get("/").body(Vec::new()).map_err(|error| Obstacle::new("Unreachable", error.to_string()))?;
    match tokio::time::timeout(PROBE_TIMEOUT, client.request_text(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code == 401 => Err(Obstacle::new("Unauthorized", status.message)),
        Ok(Err(kube::Error::Api(status))) if status.code < 500 => Ok(()),
        Ok(Err(error)) => Err(Obstacle::new("Unreachable", explain(&error))),
        Err(_) => Err(Obstacle::new("Unreachable", "the API server did not answer in time")),
    }
}

/// The error with its causes: the outer ones say no more than that a request failed.
fn explain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.ends_with(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}

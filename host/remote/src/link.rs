//! Connection to one cluster: created, probed, replaced when credentials change, closed when unused.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use capwasm_object::meta;
use capwasm_reconcile::{
    Cache, CacheError, ClusterId, Interests, Key, Kind, Source,
    cache::{Extent, Scope, secret_kind},
    interests::{ControllerId, Interest, News},
};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::{
    Connected, Inner, NotConnected, Probing, Workload,
    connector::{ConnectError, Connector},
    etcd::connections::Connections,
    forward::Forwarder,
    kubeconfig, token,
};

/// Delay after the first failure; doubled by each further one.
const RETRY: Duration = Duration::from_millis(100);
/// Longest delay between attempts.
const MOST_RETRY: Duration = Duration::from_secs(10);
/// Delay without Cluster or kubeconfig, when only a change helps, in case that it is missed.
const UNTIL_A_CHANGE: Duration = Duration::from_secs(60);
/// Consecutive checks (one per probe or retry) without readers after which a connection is closed.
const UNWANTED: u32 = 3;

/// Besides Nodes, the static Pods of control planes, which are few and rarely change.
const WATCHED: Scope =
    Scope::Only(&[Extent::whole("", "Node"), Extent::part("", "Pod", "kube-system", &[("tier", "control-plane")])]);

/// Bytes that the watches of one cluster may hold, compressed as they are: some ten thousands of Nodes.
const HELD: usize = 64 << 20;

/// Connection to one cluster, up or down.
pub(crate) struct Link {
    cluster: ClusterId,
    state: RwLock<State>,
    changed: Notify,
    last_probe: Mutex<Option<Timestamp>>,
}

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

/// Dependencies of a link. The remote is weak, so that links end with its last user.
pub(crate) struct Surroundings {
    pub(crate) management: Cache,
    pub(crate) interests: Arc<Interests>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) probing: Probing,
    pub(crate) reader: ControllerId,
    pub(crate) remote: Weak<Inner>,
}

/// Why there is no connection.
struct Obstacle {
    reason: &'static str,
    message: String,
}

impl Obstacle {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Content of the kubeconfig Secret, with its resourceVersion.
struct Credentials {
    kubeconfig: Vec<u8>,
    version: String,
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

    /// Wakes the link after a change of Cluster, kubeconfig or remote.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change. Returns whether there was one in time.
    async fn wait(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.changed.notified()).await.is_ok()
    }

    fn set_up(&self, workload: &Workload, interests: &Interests) {
        tracing::info!(cluster = %self.cluster, "connected");
        *self.state.write() = State::Up(workload.clone());
        interests.fire(&token(&self.cluster));
    }

    /// Sets the state; wakes readers if the reason is new.
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

/// Keeps a connection until it has no readers or the remote is dropped.
pub(crate) async fn run(link: Arc<Link>, around: Surroundings) {
    let mut retry = RETRY;
    let mut unwanted = 0;
    while around.remote.strong_count() > 0 && unwanted < UNWANTED {
        unwanted = if around.is_wanted(&link) { 0 } else { unwanted + 1 };
        let pause = match around.credentials(&link).await {
            Ok(credentials) => match around.connect(&link, &credentials.kubeconfig).await {
                Ok(workload) => {
                    link.set_up(&workload, &around.interests);
                    retry = RETRY;
                    let Some(obstacle) = around.hold(&link, &workload, credentials).await else { break };
                    link.set_down(obstacle, &around.interests);
                    retry
                }
                Err(obstacle) => {
                    link.set_down(obstacle, &around.interests);
                    retry
                }
            },
            Err(obstacle) => {
                let pause = if obstacle.reason == "Connecting" { retry } else { UNTIL_A_CHANGE };
                link.set_down(obstacle, &around.interests);
                pause
            }
        };
        retry = if link.wait(pause).await { RETRY } else { (retry * 2).min(MOST_RETRY) };
    }
    around.interests.forget(around.reader, &around.key(&link));
    if let Some(remote) = around.remote.upgrade() {
        remote.forget(&link);
    }
    // For a reader that came in the very last moment: it is woken, asks again, and gets a new link.
    link.set_down(Obstacle::new("Closed", "nobody wanted the connection"), &around.interests);
}

impl Surroundings {
    fn key(&self, link: &Link) -> Key {
        // Not the Cluster's key as such: a name for this reader.
        Key::new(&secret_kind(), &link.cluster.namespace, &link.cluster.name)
    }

    fn is_wanted(&self, link: &Link) -> bool {
        self.interests.has_readers(&token(&link.cluster))
    }

    /// Reads Cluster and Secret, whose changes wake the link.
    async fn credentials(&self, link: &Link) -> Result<Credentials, Obstacle> {
        let reading = self.interests.begin(self.reader, &self.key(link));
        let unreadable = |error: CacheError| Obstacle::new("Connecting", explain(&error));
        let ClusterId { namespace, name } = &link.cluster;
        let note = |kind: &Kind, name: &str| {
            let (source, namespace) = (Source::Management, namespace.as_str().into());
            let interest =
                Interest::Object { source, kind: kind.clone(), namespace, name: name.into(), news: News::Any };
            self.interests.note(reading, interest);
        };
        let clusters = self.management.kind("cluster.x-k8s.io", "Cluster").await.map_err(unreadable)?;
        note(&clusters, name);
        let cluster = self.management.get(&clusters, namespace, name).await.map_err(unreadable)?;
        let secret_name = kubeconfig::secret_name(name);
        note(&secret_kind(), &secret_name);
        let metadata = self.management.get(&secret_kind(), namespace, &secret_name).await.map_err(unreadable)?;
        self.interests.finish(reading);
        if cluster.is_none() {
            return Err(Obstacle::new("ClusterGone", "the Cluster does not exist"));
        }
        let missing = || Obstacle::new("KubeconfigMissing", format!("there is no Secret {secret_name}"));
        let version = meta::resource_version(&*metadata.ok_or_else(missing)?).to_owned();
        let secret = self.management.get_live(&secret_kind(), namespace, &secret_name).await.map_err(unreadable)?;
        let secret = secret.ok_or_else(missing)?;
        let kubeconfig = kubeconfig::of_secret(&secret).ok_or_else(|| {
            Obstacle::new("KubeconfigInvalid", format!("Secret {secret_name} holds no kubeconfig under the key value"))
        })?;
        Ok(Credentials { kubeconfig, version })
    }

    /// Why the connection must be replaced, by the present Cluster and Secret. Failed reads do not end a working
    /// connection.
    async fn is_outdated(&self, link: &Link, held: &mut Credentials) -> Option<Obstacle> {
        let ClusterId { namespace, name } = &link.cluster;
        let secret = self.management.get(&secret_kind(), namespace, &kubeconfig::secret_name(name)).await;
        let same = matches!(&secret, Ok(Some(secret)) if meta::resource_version(secret) == held.version);
        if same && self.cluster_exists(link).await {
            return None;
        }
        match self.credentials(link).await {
            Ok(now) if now.kubeconfig != held.kubeconfig => {
                Some(Obstacle::new("Connecting", "the kubeconfig has changed"))
            }
            Ok(now) => {
                *held = now;
                None
            }
            Err(obstacle) => (obstacle.reason == "ClusterGone").then_some(obstacle),
        }
    }

    async fn cluster_exists(&self, link: &Link) -> bool {
        let Ok(clusters) = self.management.kind("cluster.x-k8s.io", "Cluster").await else { return false };
        let cluster = self.management.get(&clusters, &link.cluster.namespace, &link.cluster.name).await;
        matches!(cluster, Ok(Some(_)))
    }

    async fn connect(&self, link: &Link, kubeconfig: &[u8]) -> Result<Workload, Obstacle> {
        let client = self.connector.connect(&link.cluster, kubeconfig).await.map_err(|error| match error {
            ConnectError::Kubeconfig(_) | ConnectError::Client(_) | ConnectError::ServerName => {
                Obstacle::new("KubeconfigInvalid", error.to_string())
            }
        })?;
        self.probe(&client).await?;
        let client = self.preferred(link, client, kubeconfig).await;
        let now = Timestamp::now();
        *link.last_probe.lock() = Some(now);
        let cache = Cache::scoped(
            client,
            Source::Workload(Arc::new(link.cluster.clone())),
            self.interests.clone(),
            WATCHED,
            HELD,
        );
        let (cluster, management) = (&link.cluster, &self.management);
        let forwarder = Arc::new(Forwarder::new(cluster.clone(), management.clone(), self.connector.clone()));
        let etcd =
            Arc::new(Connections::new(cluster.clone(), management.clone(), forwarder.clone(), self.connector.fence()));
        Ok(Workload(Arc::new(Connected { cache, forwarder, etcd, last_probe: Mutex::new(now) })))
    }

    /// Probes until the connection must be replaced, and returns why; `None` when it has no readers.
    async fn hold(&self, link: &Link, workload: &Workload, mut credentials: Credentials) -> Option<Obstacle> {
        let (mut failures, mut unwanted) = (0, 0);
        loop {
            let interval = self.probing.interval.mul_f64(0.9 + 0.2 * rand::random::<f64>());
            let next_probe = Instant::now() + interval;
            while link.wait(next_probe.saturating_duration_since(Instant::now())).await {
                if self.remote.strong_count() == 0 {
                    return None;
                }
                if let Some(obstacle) = self.is_outdated(link, &mut credentials).await {
                    return Some(obstacle);
                }
            }
            unwanted = if self.is_wanted(link) { 0 } else { unwanted + 1 };
            if unwanted >= UNWANTED {
                return None;
            }
            let client = workload.cache().client();
            if self.is_ready(client).await.is_err() && self.better(link, &credentials.kubeconfig).await.is_some() {
                return Some(Obstacle::new("Connecting", "this API server is not ready, and another one is"));
            }
            match self.probe(client).await {
                Ok(()) => {
                    failures = 0;
                    let now = Timestamp::now();
                    *link.last_probe.lock() = Some(now);
                    *workload.0.last_probe.lock() = now;
                }
                Err(obstacle) if obstacle.reason == "Unauthorized" => return Some(obstacle),
                Err(obstacle) => {
                    failures += 1;
                    if failures >= self.probing.failures {
                        return Some(Obstacle::new("ProbeFailed", obstacle.message));
                    }
                }
            }
        }
    }

    /// A new connection, if its API server is ready. Behind a load balancer, the API server of the present one may have
    /// lost its etcd: it accepts requests and answers none.
    async fn better(&self, link: &Link, kubeconfig: &[u8]) -> Option<kube::Client> {
        let client = self.connector.connect(&link.cluster, kubeconfig).await.ok()?;
        self.is_ready(&client).await.is_ok().then_some(client)
    }

    /// The client, or a new one if that is connected to an API server that is ready, and this one not: a round-robin
    /// load balancer would otherwise lead back to the bad one.
    async fn preferred(&self, link: &Link, client: kube::Client, kubeconfig: &[u8]) -> kube::Client {
        if self.is_ready(&client).await.is_ok() {
            return client;
        }
        self.better(link, kubeconfig).await.unwrap_or(client)
    }

    /// Whether the API server is ready.
    async fn is_ready(&self, client: &kube::Client) -> Result<(), Obstacle> {
        self.ask(client, "/readyz").await
    }

    /// Whether the API server accepts the credentials; 403 counts as accepted.
    async fn probe(&self, client: &kube::Client) -> Result<(), Obstacle> {
        self.ask(client, "/").await
    }

    async fn ask(&self, client: &kube::Client, path: &str) -> Result<(), Obstacle> {
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|error| Obstacle::new("Unreachable", error.to_string()))?;
        match tokio::time::timeout(self.probing.timeout, client.request_text(request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 401 => {
                Err(Obstacle::new("Unauthorized", status.message))
            }
            Ok(Err(kube::Error::Api(status))) if status.code < 500 => Ok(()),
            Ok(Err(error)) => Err(Obstacle::new("Unreachable", explain(&error))),
            Err(_) => Err(Obstacle::new("Unreachable", "the API server did not answer in time")),
        }
    }
}

/// The error with its causes, which say more than that a request failed.
pub(crate) fn explain(error: &dyn std::error::Error) -> String {
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

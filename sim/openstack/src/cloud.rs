//! What all services share: the state, the time that things take, and who asks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cinder::Volumes;
use super::glance::Images;
use super::keystone::Identity;
use super::neutron::Networking;
use super::nodes::Runner;
use super::nova::Compute;
use super::octavia::Balancing;
use super::pace::Pace;
use super::{Delays, Nodes};

pub(super) struct Cloud {
    /// `http://host:port`.
    pub base: String,
    pub pace: Pace,
    /// Whether servers, load balancers and volumes end in an error instead of becoming active.
    pub breaks: AtomicBool,
    pub zones: Vec<String>,
    pub token_lifetime: Duration,
    pub runner: Option<Runner>,
    state: Mutex<State>,
    /// Notified when something changed that traffic depends on.
    pub changed: Notify,
    pub stop: CancellationToken,
    tasks: TaskTracker,
    own: Weak<Cloud>,
}

#[derive(Default)]
pub(super) struct State {
    pub identity: Identity,
    pub compute: Compute,
    pub images: Images,
    pub networking: Networking,
    pub balancing: Balancing,
    pub volumes: Volumes,
}

/// Who sends a request, and with which rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Scope {
    pub user: String,
    pub project: String,
    pub admin: bool,
}

impl Scope {
    /// Whether a resource is of the project that asks, or of any when an administrator does.
    pub fn owns(&self, resource: &Value) -> bool {
        self.admin || resource["project_id"].as_str() == Some(&self.project)
    }
}

impl Cloud {
    pub fn new(
        base: String,
        pace: Pace,
        zones: Vec<String>,
        token_lifetime: Duration,
        nodes: Option<Nodes>,
        state: State,
    ) -> Arc<Cloud> {
        Arc::new_cyclic(|own| Cloud {
            base,
            pace,
            breaks: AtomicBool::new(false),
            zones,
            token_lifetime,
            runner: nodes.map(Runner::new),
            state: Mutex::new(state),
            changed: Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            own: own.clone(),
        })
    }

    /// Looks at the state or changes it. Who changes what traffic depends on rings [`Cloud::changed`].
    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock())
    }

    /// Looks at the state only.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    /// Changes the state when the time for it has come: what `delay` says has passed, or `id` was looked at often enough.
    pub fn later(
        &self,
        delay: impl Fn(&Delays) -> Duration,
        id: &str,
        act: impl FnOnce(&Cloud, &mut State) + Send + 'static,
    ) {
        let delays = match &self.pace {
            Pace::Time(delays) => delays,
            Pace::Looks(looks) => return looks.wait(id, Box::new(act)),
        };
        let (Some(cloud), after) = (self.own.upgrade(), delay(delays)) else { return };
        self.spawn(async move {
            tokio::time::sleep(after).await;
            cloud.with(|state| act(&cloud, state));
            cloud.changed.notify_one();
        });
    }

    /// Whether what takes time ends in an error.
    pub fn breaks(&self) -> bool {
        self.breaks.load(Ordering::Relaxed)
    }

    /// Whether a text may be an id: where ids are not made at random, they may be any text.
    pub fn is_id(&self, text: &str) -> bool {
        matches!(self.pace, Pace::Looks(_)) || is_id(text)
    }

    /// Does something in the background, until the cloud ends.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        drop(self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        }));
    }

    /// Does something in the background that sees by itself when the cloud ends.
    pub fn spawn_whole(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(work));
    }

    /// Itself, for what outlives a call.
    pub fn shared(&self) -> Option<Arc<Cloud>> {
        self.own.upgrade()
    }

    /// Ends everything that runs in the background.
    pub async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Limits of the projects by project and resource; what has none is unlimited.
#[derive(Debug, Default)]
pub(super) struct Quotas(BTreeMap<(String, String), i64>);

impl Quotas {
    /// The limit; -1 when there is none.
    pub fn limit(&self, project: &str, resource: &str) -> i64 {
        self.0.get(&(project.to_owned(), resource.to_owned())).copied().unwrap_or(-1)
    }

    pub fn set(&mut self, project: &str, resource: &str, limit: i64) {
        self.0.insert((project.to_owned(), resource.to_owned()), limit);
    }

    pub fn clear(&mut self, project: &str) {
        self.0.retain(|(of, _), _| of != project);
    }

    pub fn allows(&self, project: &str, resource: &str, used: u64) -> bool {
        let limit = self.limit(project, resource);
        limit < 0 || i64::try_from(used).is_ok_and(|used| used < limit)
    }
}

/// A new id, with dashes.
pub(super) fn new_id() -> String {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string()
}

/// A new id without dashes, as Keystone's are.
pub(super) fn plain_id() -> String {
    new_id().replace('-', "")
}

/// Whether a text is an id with dashes.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// As `2026-11-22T04:46:13Z`.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// As `2026-11-22T04:46:13.000000`.
pub(super) fn now_exactly() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
}

/// As `2026-11-22T04:46:13`.
pub(super) fn now_plain() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

//! The keys of one server, and their watchers.

use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::backend::StoredKeyspace;

/// Events that a watcher may lag behind before its watch is ended; its client resumes from the history.
const WATCH_BUFFER: usize = 1024;
/// Bytes of these events, unless one alone is larger.
const WATCH_BYTES: usize = 8 << 20;

/// A key: resource, namespace (empty for cluster-scoped objects) and name. Parts are separated by NUL, which sorts before
/// every character of a name, so that order by key is order by namespace, then name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(Box<str>);

impl Key {
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self(format!("{resource}\0{namespace}\0{name}").into())
    }

    /// Prefix of all keys of a resource, or of those in one namespace.
    pub fn prefix(resource: &str, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{resource}\0{namespace}\0"),
            None => format!("{resource}\0"),
        }
    }

    pub fn parse(raw: &str) -> Self {
        Self(raw.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn part(&self, index: usize) -> &str {
        self.0.split('\0').nth(index).unwrap_or_default()
    }

    pub fn resource(&self) -> &str {
        self.part(0)
    }

    pub fn namespace(&self) -> &str {
        self.part(1)
    }

    pub fn name(&self) -> &str {
        self.part(2)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.replace('\0', "/"))
    }
}

/// One committed write, shared by all watchers.
#[derive(Debug)]
pub(crate) struct Event {
    pub revision: u64,
    pub key: Key,
    /// The new state; of a deleted key its last state. Carries this event's revision.
    pub data: Bytes,
    /// The preceding state; `None` for a new key.
    pub previous: Option<Bytes>,
    pub deleted: bool,
    /// The watch frame for clients without selector or transformation, made by the first of them.
    pub frame: OnceLock<Bytes>,
}

impl Event {
    pub fn new(revision: u64, key: Key, data: Bytes, previous: Option<Bytes>, deleted: bool) -> Self {
        Self { revision, key, data, previous, deleted, frame: OnceLock::new() }
    }

    /// Bytes of both states.
    pub fn bytes(&self) -> usize {
        self.data.len() + self.previous.as_ref().map_or(0, Bytes::len)
    }
}

struct Watcher {
    prefix: Box<str>,
    events: mpsc::Sender<Arc<Event>>,
    lag: Arc<AtomicUsize>,
}

impl Watcher {
    /// Whether there was room for the event.
    fn take(&self, event: &Arc<Event>) -> bool {
        let before = self.lag.fetch_add(event.bytes(), Ordering::Relaxed);
        (before == 0 || before + event.bytes() <= WATCH_BYTES) && self.events.try_send(Arc::clone(event)).is_ok()
    }
}

/// Events since the subscription; ends when the watcher was too slow or the keyspace is removed.
pub(crate) struct Subscription {
    events: mpsc::Receiver<Arc<Event>>,
    /// Bytes of the events in the buffer.
    lag: Arc<AtomicUsize>,
}

impl Subscription {
    pub async fn recv(&mut self) -> Option<Arc<Event>> {
        let event = self.events.recv().await?;
        self.lag.fetch_sub(event.bytes(), Ordering::Relaxed);
        Some(event)
    }

    pub fn try_recv(&mut self) -> Result<Arc<Event>, mpsc::error::TryRecvError> {
        let event = self.events.try_recv()?;
        self.lag.fetch_sub(event.bytes(), Ordering::Relaxed);
        Ok(event)
    }
}

pub(crate) struct Keyspace {
    id: u32,
    name: String,
    /// Whether the keyspace is in the database.
    persisted: AtomicBool,
    watchers: Mutex<Vec<Watcher>>,
}

impl Keyspace {
    pub(super) fn fresh(id: u32, name: &str) -> Self {
        Self { id, name: name.to_owned(), persisted: AtomicBool::new(false), watchers: Mutex::default() }
    }

    pub(super) fn stored(stored: StoredKeyspace) -> Self {
        Self { id: stored.id, name: stored.name, persisted: AtomicBool::new(true), watchers: Mutex::default() }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn persisted(&self) -> bool {
        self.persisted.load(Ordering::Acquire)
    }

    pub(super) fn set_persisted(&self) {
        self.persisted.store(true, Ordering::Release);
    }

    /// Subscribes to later writes to keys with this prefix.
    pub fn subscribe(&self, prefix: &str) -> Subscription {
        let (events, received) = mpsc::channel(WATCH_BUFFER);
        let lag = Arc::new(AtomicUsize::new(0));
        self.watchers.lock().push(Watcher { prefix: prefix.into(), events, lag: Arc::clone(&lag) });
        Subscription { events: received, lag }
    }

    /// Notifies the watchers; those whose buffer is full or closed are removed.
    pub(super) fn publish(&self, event: &Arc<Event>) {
        self.watchers.lock().retain(|watcher| !event.key.as_str().starts_with(&*watcher.prefix) || watcher.take(event));
    }

    /// Removes watchers whose receivers are closed.
    pub(super) fn sweep(&self) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| !watcher.events.is_closed());
        if watchers.is_empty() {
            watchers.shrink_to_fit();
        }
    }

    /// Ends all watches.
    pub fn disconnect(&self) {
        self.watchers.lock().clear();
    }
}

//! One watch per kind per process. Kinds are added at run time, by the first read.
//!
//! What is kept of an object is its compressed text (without managedFields) and the few fields that are indexed; parsed
//! JSON costs several times its bytes and exists only while a reader uses it. Secrets and CRDs are kept as metadata
//! only: the data of a Secret is read live, and schemas are big.
//!
//! A cache also answers the question that keeps decisions sound, whether it [has caught up](Cache::caught_up) with
//! what was written.

mod discovery;
mod lean;
mod request;
mod room;
mod scope;
mod store;
mod text;
mod watch;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::RwLock;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::discovery::{crd_kind, event_kind, node_kind, secret_kind};
pub(crate) use self::request::Requests;
pub use self::scope::{Extent, Part, Scope};
use self::{
    discovery::Discovery,
    room::Room,
    scope::Coverage,
    store::{Entry, Store},
    watch::{Progress, Watch},
};
use crate::{
    interests::Interests,
    kind::{Kind, Source},
    selector::Selector,
};

/// How long a read waits for the first list of a new watch.
const SYNC_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a cache may lag behind a write before it lists again.
const LAG_TIMEOUT: Duration = Duration::from_secs(15);

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The server does not serve the kind (at that version).
    #[error("the server does not know kind {kind} of {group_version:?}")]
    UnknownKind {
        /// The requested group, or group and version.
        group_version: String,
        /// The requested kind.
        kind: String,
    },
    /// Discovery failed.
    #[error("unable to discover the kinds of {group:?}")]
    Discover {
        /// The requested group.
        group: String,
        /// Error of the request.
        #[source]
        source: Box<kube::Error>,
    },
    /// The first list of a watch did not complete in time.
    #[error("{kind} objects cannot be watched yet: {problem}")]
    NotSynced {
        /// The watched kind.
        kind: Kind,
        /// The last error of the watch; may be empty.
        problem: String,
    },
    /// A live read failed.
    #[error("unable to read {what}")]
    Read {
        /// The requested object or list.
        what: String,
        /// Error of the request.
        #[source]
        source: Box<kube::Error>,
    },
    /// The texts of a list are longer than whoever reads it may have.
    #[error("the {kind} objects are more than {most} bytes of text together")]
    ListTooLarge {
        /// The kind of the list.
        kind: Kind,
        /// Bytes that it may have.
        most: usize,
    },
    /// A cached object is not valid JSON; does not happen, since the watch parsed it.
    #[error("unable to decode a cached object")]
    Decode(#[source] serde_json::Error),
}

impl CacheError {
    /// Whether a retry may help: the server was unreachable or too slow.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Discover { source, .. } | Self::Read { source, .. } => match &**source {
                kube::Error::Api(status) => status.code == 429 || status.code >= 500,
                kube::Error::BuildRequest(_) => false,
                _ => true,
            },
            Self::NotSynced { .. } => true,
            Self::UnknownKind { .. } | Self::ListTooLarge { .. } | Self::Decode(_) => false,
        }
    }
}

/// A write that a cache must show before its key runs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// API server that was written to.
    pub source: Source,
    /// Kind of the object.
    pub kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// State that the cache must reach.
    pub mark: Mark,
}

/// State of a cache that shows a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// At least this resourceVersion of the kind.
    Version(u64),
    /// Without the object of this uid.
    Gone(Arc<str>),
}

/// Indexed fields of a cached object.
pub(crate) struct Known {
    pub(crate) uid: Arc<str>,
    pub(crate) version: u64,
    pub(crate) deleting: bool,
}

/// Result of a lookup.
enum Found {
    Held(Arc<Entry>),
    Live(Arc<Value>),
}

impl Found {
    fn object(self) -> Result<Arc<Value>, CacheError> {
        match self {
            Found::Held(entry) => entry.object().map_err(CacheError::Decode),
            Found::Live(object) => Ok(object),
        }
    }

    /// Length of its text in bytes; `None` where only the text tells.
    fn length(&self) -> Option<usize> {
        match self {
            Found::Held(entry) => Some(entry.text_length()),
            Found::Live(_) => None,
        }
    }

    fn text(self) -> Result<String, CacheError> {
        match self {
            Found::Held(entry) => entry.text().map_err(CacheError::Decode),
            Found::Live(object) => Ok(object.to_string()),
        }
    }
}

/// Cache of one API server. Cheap to clone; the watches end with the last clone.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    source: Source,
    scope: Scope,
    /// Kinds that are watched beyond the scope.
    followed: RwLock<HashSet<Kind>>,
    interests: Arc<Interests>,
    requests: Requests,
    room: Arc<Room>,
    discovery: Discovery,
    watches: RwLock<HashMap<Kind, Arc<Watch>>>,
    shutdown: CancellationToken,
    _end_watches: DropGuard,
}

impl Cache {
    /// An empty cache of all kinds that are read through `client`. Several caches share one [`Interests`].
    pub fn new(client: kube::Client, source: Source, interests: Arc<Interests>) -> Self {
        Self::scoped(client, source, interests, Scope::Everything, usize::MAX)
    }

    /// An empty cache of the kinds in `scope`, which holds up to `most` bytes. Where there is more, reads fail as if the server did
    /// not answer, and it is tried again after a minute.
    pub fn scoped(client: kube::Client, source: Source, interests: Arc<Interests>, scope: Scope, most: usize) -> Self {
        let shutdown = CancellationToken::new();
        Self(Arc::new(Inner {
            source,
            scope,
            followed: RwLock::default(),
            interests,
            discovery: Discovery::new(client.clone()),
            requests: Requests::new(client),
            room: Room::new(most),
            watches: RwLock::default(),
            _end_watches: shutdown.clone().drop_guard(),
            shutdown,
        }))
    }

    /// API server behind this cache.
    pub fn source(&self) -> &Source {
        &self.0.source
    }

    /// Client of that server.
    pub fn client(&self) -> &kube::Client {
        self.0.requests.client()
    }

    /// Receives the changes.
    pub fn interests(&self) -> &Arc<Interests> {
        &self.0.interests
    }

    /// The kind at the server's preferred version (the highest that it serves).
    ///
    /// # Errors
    /// When the server does not know the kind, or cannot be asked.
    pub async fn kind(&self, group: &str, kind: &str) -> Result<Kind, CacheError> {
        self.0.discovery.find(group, None, kind).await
    }

    /// The kind at this version.
    ///
    /// # Errors
    /// When the server does not know the kind at this version, or cannot be asked.
    pub async fn kind_at(&self, api_version: &str, kind: &str) -> Result<Kind, CacheError> {
        let (group, version) = crate::kind::split_api_version(api_version);
        self.0.discovery.find(group, Some(version), kind).await
    }

    /// Watches the kind, whatever the scope says: reads are answered from the watch and wake their readers.
    pub fn follow(&self, kind: &Kind) {
        if matches!(self.coverage(kind), Coverage::Whole) || !self.0.followed.write().insert(kind.clone()) {
            return;
        }
        // A watch of a part of it gives way to one of the whole.
        self.0.watches.write().remove(kind);
    }

    fn coverage(&self, kind: &Kind) -> Coverage {
        match self.0.scope.of(kind) {
            Coverage::Part(_) | Coverage::Nothing if self.0.followed.read().contains(kind) => Coverage::Whole,
            coverage => coverage,
        }
    }

    /// Whether reads of this kind are answered from a watch of all its objects.
    pub fn watches(&self, kind: &Kind) -> bool {
        matches!(self.coverage(kind), Coverage::Whole)
    }

    /// Whether such a list is answered from a watch.
    pub(crate) fn answers(&self, kind: &Kind, namespace: Option<&str>, selector: &Selector) -> bool {
        self.coverage(kind).answers(namespace, selector)
    }

    /// Whether the watch may have an object of that namespace.
    pub(crate) fn may_hold(&self, kind: &Kind, namespace: &str) -> bool {
        self.coverage(kind).may_hold(namespace)
    }

    /// Whether cached objects of this kind are metadata only.
    pub fn holds_metadata_only(&self, kind: &Kind) -> bool {
        watch::metadata_only(kind)
    }

    /// Number of watched kinds.
    pub fn watch_count(&self) -> usize {
        self.0.watches.read().len()
    }

    /// Number of cached objects, and the bytes of their texts as they are held.
    pub fn size(&self) -> (usize, usize) {
        let watches = self.0.watches.read();
        watches.values().map(|watch| watch.store().size()).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Starts the watch of a kind, as far as it is in scope, without waiting.
    pub fn start(&self, kind: &Kind) {
        self.watch(kind);
    }

    /// Starts the watch of a kind, as far as it is in scope, and waits for its first list.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn synced(&self, kind: &Kind) -> Result<(), CacheError> {
        self.in_sync(kind, |_| ()).await
    }

    /// An object from the cache; read live when it is not cached. Live reads start no watch.
    ///
    /// # Errors
    /// When the cache cannot be filled in time, or the live read fails.
    pub async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Arc<Value>>, CacheError> {
        self.find(kind, namespace, name).await?.map(Found::object).transpose()
    }

    /// As [`Cache::get`], as JSON text that is not parsed on the way.
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub async fn get_text(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<String>, CacheError> {
        self.find(kind, namespace, name).await?.map(Found::text).transpose()
    }

    async fn find(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Found>, CacheError> {
        match self.coverage(kind) {
            Coverage::Whole => {
                let held = self.in_sync(kind, |store| store.get(scope_of(kind, namespace), name)).await?;
                Ok(held.map(Found::Held))
            }
            Coverage::Part(_) | Coverage::Nothing => {
                let watch = self.0.watches.read().get(kind).cloned();
                match watch.and_then(|watch| watch.store().get(scope_of(kind, namespace), name)) {
                    Some(held) => Ok(Some(Found::Held(held))),
                    None => Ok(self.get_live(kind, namespace, name).await?.map(|live| Found::Live(Arc::new(live)))),
                }
            }
        }
    }

    /// Objects by namespace and name; read live when the list is not cached.
    ///
    /// # Errors
    /// When the cache cannot be filled in time, or the live read fails.
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<Arc<Value>>, CacheError> {
        self.find_all(kind, namespace, selector).await?.into_iter().map(Found::object).collect()
    }

    /// As [`Cache::list`], as JSON texts of at most `most` bytes together that are not parsed on the way.
    ///
    /// # Errors
    /// As [`Cache::list`]; [`CacheError::ListTooLarge`] where there are more.
    pub async fn list_texts(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
        most: usize,
    ) -> Result<Vec<String>, CacheError> {
        let mut left = most;
        let texts = self.find_all(kind, namespace, selector).await?.into_iter().map(|found| {
            let too_large = || CacheError::ListTooLarge { kind: kind.clone(), most };
            let known = found.length();
            left = left.checked_sub(known.unwrap_or_default()).ok_or_else(too_large)?;
            let text = found.text()?;
            if known.is_none() {
                left = left.checked_sub(text.len()).ok_or_else(too_large)?;
            }
            Ok(text)
        });
        texts.collect()
    }

    async fn find_all(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<Found>, CacheError> {
        let namespace = namespace.filter(|namespace| kind.namespaced && !namespace.is_empty());
        if !self.answers(kind, namespace, selector) {
            return Ok(self.list_live(kind, namespace, selector).await?.into_iter().map(Found::Live).collect());
        }
        let held = self.in_sync(kind, |store| store.list(namespace, selector)).await?;
        Ok(held.into_iter().map(Found::Held).collect())
    }

    /// An object read from the server, without managedFields.
    ///
    /// # Errors
    /// When the server cannot be asked or does not answer within ten seconds.
    pub async fn get_live(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Value>, CacheError> {
        self.0
            .requests
            .get(kind, namespace, name)
            .await
            .map_err(|source| CacheError::Read { what: format!("{kind} {namespace}/{name}"), source: Box::new(source) })
    }

    /// A list read from the server, without managedFields.
    ///
    /// # Errors
    /// When the server cannot be asked or does not answer within ten seconds.
    pub async fn list_live(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<Arc<Value>>, CacheError> {
        let labels = selector.to_string();
        let objects = self.0.requests.list(kind, namespace.unwrap_or_default(), &labels).await;
        let objects = objects.map_err(|source| CacheError::Read {
            what: format!("the list of {kind} in {:?} with {labels:?}", namespace.unwrap_or("all namespaces")),
            source: Box::new(source),
        })?;
        Ok(objects.into_iter().filter(|object| selector.matches_object(object)).map(Arc::new).collect())
    }

    /// Waits until the cache shows all of `written`, which must be of its source. A watch that lags too far is replaced
    /// by a consistent list, so a lost watch cannot block a key, and no key decides on older data than its own writes.
    /// Unwatched kinds are not waited for.
    pub async fn caught_up(&self, written: &[Written]) {
        for one in written {
            let Some(watch) = self.0.watches.read().get(&one.kind).cloned() else { continue };
            if matches!(self.coverage(&one.kind), Coverage::Part(_))
                && watch.store().get(scope_of(&one.kind, &one.namespace), &one.name).is_none()
            {
                // It need not be one of those that are watched.
                continue;
            }
            let mut waiting = match &one.mark {
                Mark::Version(version) => watch.store().reached(*version),
                Mark::Gone(uid) => watch.store().gone(scope_of(&one.kind, &one.namespace), &one.name, uid),
            };
            while let Some(receiver) = &mut waiting {
                if tokio::time::timeout(LAG_TIMEOUT, receiver).await.is_ok() {
                    break;
                }
                if watch.is_overfull() {
                    // Nothing is decided on what it shows: its reads fail.
                    break;
                }
                tracing::warn!(kind = %one.kind, namespace = one.namespace, name = one.name, mark = ?one.mark,
                    "the watch lags behind a write, listing anew");
                watch.relist(&one.mark);
            }
        }
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Indexed fields of an object; `None` also while the kind is not watched.
    pub(crate) fn known(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Known> {
        let watch = self.0.watches.read().get(kind).cloned()?;
        let entry = watch.store().get(scope_of(kind, namespace), name)?;
        Some(Known { uid: entry.uid.clone(), version: entry.version, deleting: entry.deleting })
    }

    /// Value of an object's label; `None` also while the kind is not watched.
    pub(crate) fn label(&self, kind: &Kind, namespace: &str, name: &str, label: &str) -> Option<Arc<str>> {
        let watch = self.0.watches.read().get(kind).cloned()?;
        watch.store().get(scope_of(kind, namespace), name)?.label(label)
    }

    /// When to retry discovery of an unknown kind.
    pub(crate) fn look_again_after(&self, group: &str, kind: &str) -> Duration {
        let crds = self.0.watches.read().get(&crd_kind()).map_or(0, |watch| watch.store().version());
        self.0.discovery.look_again_after(group, kind, crds)
    }

    /// Requests to the same server, for writes.
    pub(crate) fn requests(&self) -> &Requests {
        &self.0.requests
    }

    /// Namespaces and names of all cached objects of the kind.
    pub(crate) fn names(&self, kind: &Kind) -> Vec<(Arc<str>, Arc<str>)> {
        self.0.watches.read().get(kind).map(|watch| watch.store().names()).unwrap_or_default()
    }

    /// Reads what is watched, once that is complete.
    async fn in_sync<T>(&self, kind: &Kind, read: impl FnOnce(&Store) -> T) -> Result<T, CacheError> {
        let watch = self.watch(kind);
        // A watch that fails already is not waited for by every reader for long.
        let patience = if watch.problem().is_empty() { SYNC_TIMEOUT } else { SYNC_TIMEOUT / 10 };
        match tokio::time::timeout(patience, watch.synced()).await {
            Ok(Progress::Synced) => {
                let found = read(watch.store());
                // It may have been emptied meanwhile.
                if watch.is_synced() { Ok(found) } else { Err(self.not_synced(kind, &watch)) }
            }
            Ok(Progress::Unserved) => {
                Err(CacheError::UnknownKind { group_version: kind.api_version(), kind: kind.kind.to_string() })
            }
            Ok(Progress::Waiting | Progress::Overfull) | Err(_) => Err(self.not_synced(kind, &watch)),
        }
    }

    fn not_synced(&self, kind: &Kind, watch: &Watch) -> CacheError {
        CacheError::NotSynced { kind: kind.clone(), problem: watch.problem() }
    }

    fn watch(&self, kind: &Kind) -> Arc<Watch> {
        if let Some(watch) = self.0.watches.read().get(kind) {
            return watch.clone();
        }
        let mut watches = self.0.watches.write();
        let start = || {
            let store =
                Arc::new(Store::new(self.0.source.clone(), kind.clone(), self.0.interests.clone(), &self.0.room));
            let part = match self.coverage(kind) {
                Coverage::Part(part) => Some(part),
                Coverage::Whole | Coverage::Nothing => None,
            };
            Arc::new(Watch::start(self.client().clone(), store, part, self.0.shutdown.child_token()))
        };
        watches.entry(kind.clone()).or_insert_with(start).clone()
    }
}

/// The namespace under which objects of the kind are cached; empty for cluster-scoped kinds.
fn scope_of<'a>(kind: &Kind, namespace: &'a str) -> &'a str {
    if kind.namespaced { namespace } else { "" }
}

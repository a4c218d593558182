//! Watches: initial state, history, then live events, without gap or repetition.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::{Instant, sleep_until};

use super::list::{Match, revision, version_match};
use super::{Filter, Registry};
use crate::catalog::Resource;
use crate::request::Query;
use crate::status::{ApiError, ApiResult, Cause};
use crate::store::{Event, Key, Store, Subscription};
use crate::turn;

const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Watches without `timeoutSeconds` end after this plus up to as much again, so that clients do not all return at once.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// The longest `timeoutSeconds` that is honoured; clients start again when a watch ends.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

#[derive(Clone, Debug)]
pub(crate) struct WatchRequest {
    pub namespace: Option<String>,
    pub filter: Filter,
    pub revision: Option<u64>,
    /// Whether the present state is sent first (`sendInitialEvents`).
    pub initial: bool,
    /// Whether a bookmark marks the end of the initial state.
    pub mark_initial: bool,
    pub bookmarks: bool,
    pub timeout: Duration,
}

impl WatchRequest {
    pub fn parse(query: &Query, resource: &Resource, namespace: Option<&str>) -> ApiResult<Self> {
        let revision = revision(query)?;
        let matching = version_match(query)?;
        let forbidden = |field: &str, message: &str| {
            let cause = Cause {
                reason: "FieldValueForbidden".into(),
                message: format!("Forbidden: {message}"),
                field: field.into(),
            };
            ApiError::invalid("meta.k8s.io", "ListOptions", "", vec![cause])
        };
        let asked = query.get("sendInitialEvents").is_some();
        let send = query.flag("sendInitialEvents");
        if asked && matching != Some(Match::NotOlderThan) {
            let message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return Err(forbidden("resourceVersionMatch", message));
        }
        if !asked && matching.is_some() {
            let message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            return Err(forbidden("resourceVersionMatch", message));
        }
        let timeout = match query.get("timeoutSeconds").map(str::parse::<u64>) {
            Some(Ok(seconds)) if seconds > 0 => Duration::from_secs(seconds).min(LONGEST),
            None | Some(Ok(_)) => TIMEOUT + Duration::from_secs(rand::random_range(0..TIMEOUT.as_secs())),
            Some(Err(_)) => return Err(ApiError::bad_request("timeoutSeconds must be a non-negative number")),
        };
        let bookmarks = query.flag("allowWatchBookmarks");
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            filter: Filter::parse(query, resource)?,
            revision: revision.filter(|r| *r != 0),
            // Without a revision, or from 0, the watch starts with the present state (unless that was declined).
            initial: if asked { send } else { revision.is_none_or(|r| r == 0) },
            mark_initial: send && bookmarks,
            bookmarks,
            timeout,
        })
    }
}

/// An event as one watcher sees it: an object that leaves the selector is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

pub(crate) enum WatchStep {
    /// An object of the initial state: its stored bytes and revision.
    Initial(Bytes, u64),
    Event(Change, Arc<Event>),
    /// All events up to this revision were delivered; `true` at the end of the initial state.
    Bookmark(u64, bool),
}

impl WatchStep {
    fn bytes(&self) -> usize {
        match self {
            Self::Initial(data, _) => data.len(),
            Self::Event(_, event) => event.bytes(),
            Self::Bookmark(..) => 0,
        }
    }
}

pub(crate) struct Watching {
    store: Arc<Store>,
    subscription: Subscription,
    filter: Filter,
    queue: VecDeque<WatchStep>,
    /// Bytes of the state or history in `queue`, which are charged until they are sent.
    backlog: usize,
    /// Live events up to this revision are in `queue` already.
    seen: u64,
    deadline: Instant,
    bookmark_at: Option<Instant>,
    ended: bool,
}

impl Registry {
    /// Starts a watch. A revision that is too old is an error here, before anything is sent.
    pub async fn watch(&self, resource: &Resource, request: &WatchRequest) -> ApiResult<Watching> {
        self.wait_for(request.revision).await?;
        let prefix = Key::prefix(&resource.store, request.namespace.as_deref());
        // First listen, then read: an event is either in the snapshot or still to come, or both, and then `seen` drops it.
        let subscription = self.keyspace.subscribe(&prefix);
        let mut queue = VecDeque::new();
        let filter = &request.filter;
        let initial = request.initial;
        // The whole state or history is looked at.
        turn::long(usize::MAX).await;
        let (mut backlog, mut refused) = (0, None);
        let mut hold = |bytes| {
            refused = turn::charge(bytes).err();
            backlog += if refused.is_none() { bytes } else { 0 };
            refused.is_none()
        };
        let seen = self.store.read(&self.keyspace, |view| {
            if initial {
                view.walk(&prefix, None, None, &mut |record| {
                    if filter.matches(&record.key, &record.data) {
                        let held = hold(record.data.len());
                        queue.push_back(WatchStep::Initial(record.data, record.revision));
                        return held;
                    }
                    true
                })?;
            } else {
                let after = request.revision.unwrap_or_else(|| view.revision());
                view.events(&prefix, after, &mut |event| {
                    let Some(change) = classify(filter, &event) else { return true };
                    let held = hold(event.bytes());
                    if held {
                        queue.push_back(WatchStep::Event(change, event));
                    }
                    held
                })?;
            }
            Ok(view.revision())
        })?;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if initial && request.mark_initial {
            queue.push_back(WatchStep::Bookmark(seen, true));
        }
        let now = Instant::now();
        Ok(Watching {
            store: Arc::clone(&self.store),
            subscription,
            filter: request.filter.clone(),
            queue,
            backlog,
            seen,
            deadline: now + request.timeout,
            bookmark_at: request.bookmarks.then(|| now + BOOKMARK_EVERY),
            ended: false,
        })
    }
}

/// How `event` appears through `filter`; `None` when it does not.
fn classify(filter: &Filter, event: &Event) -> Option<Change> {
    if filter.selects_everything() {
        return Some(match (event.deleted, &event.previous) {
            (true, _) => Change::Deleted,
            (false, None) => Change::Added,
            (false, Some(_)) => Change::Modified,
        });
    }
    let before = event.previous.as_ref().is_some_and(|data| filter.matches(&event.key, data));
    let after = !event.deleted && filter.matches(&event.key, &event.data);
    match (before, after) {
        (false, true) => Some(Change::Added),
        (true, true) => Some(Change::Modified),
        (true, false) => Some(Change::Deleted),
        (false, false) => None,
    }
}

impl Watching {
    /// The next step; `None` when the watch is over: its time is up, the server goes, or the client was too slow.
    pub async fn next(&mut self) -> Option<WatchStep> {
        loop {
            if let Some(step) = self.queue.pop_front() {
                let sent = step.bytes().min(self.backlog);
                self.backlog -= sent;
                turn::give_back(sent);
                return Some(step);
            }
            if self.ended {
                return None;
            }
            let wake = self.bookmark_at.map_or(self.deadline, |at| at.min(self.deadline));
            tokio::select! {
                biased;
                event = self.subscription.recv() => match event {
                    Some(event) => self.take(event).await,
                    None => return None,
                },
                () = sleep_until(wake) => self.tick().await,
            }
        }
    }

    async fn take(&mut self, event: Arc<Event>) {
        if event.revision <= self.seen {
            return;
        }
        self.seen = event.revision;
        if !self.filter.selects_everything() {
            turn::long(event.bytes()).await;
        }
        if let Some(change) = classify(&self.filter, &event) {
            self.queue.push_back(WatchStep::Event(change, event));
        }
    }

    /// Time for a bookmark, or the end (with a last bookmark).
    async fn tick(&mut self) {
        let now = Instant::now();
        self.ended = now >= self.deadline;
        if self.bookmark_at.is_some() {
            self.bookmark_at = Some(now + BOOKMARK_EVERY);
            // Published means: already in our buffer. So after draining it nothing up to `published` is missing.
            let published = self.store.revision();
            loop {
                match self.subscription.try_recv() {
                    Ok(event) => self.take(event).await,
                    Err(TryRecvError::Empty) => break,
                    // Cut off meanwhile: something up to `published` may be missing.
                    Err(TryRecvError::Disconnected) => {
                        self.ended = true;
                        return;
                    }
                }
            }
            self.queue.push_back(WatchStep::Bookmark(published.max(self.seen), false));
        }
    }
}

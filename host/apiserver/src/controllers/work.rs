//! The task that turns events of the store into work for the controllers.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::garbage::{Dependent, Garbage};
use super::{certificates, cleanup, expiry, garbage, namespaces};
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::store::{Event, Key, Subscription};

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// How often expired Events are looked for.
const EXPIRY: Duration = Duration::from_secs(60);
/// Delay before failed work is retried, doubled up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Pieces of work in progress at most.
const CONCURRENT: usize = 16;

/// A piece of work. All are idempotent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// An object whose owners or deletion may need the garbage collector.
    Collect(Key),
    /// A namespace that was created, or is to be emptied.
    Namespace(String),
    /// Deletion of the custom resources of a CRD.
    Cleanup(String),
    Sign(String),
    Expire,
}

/// Starts the controllers of a server on what is there, and on what happens from now on.
pub(crate) fn start(registry: &Arc<Registry>, tasks: &TaskTracker, stop: &CancellationToken) -> ApiResult<()> {
    // First listen, then look: nothing falls in between.
    let events = registry.keyspace.subscribe("");
    let task = Task {
        registry: Arc::clone(registry),
        garbage: Garbage::default(),
        emptying: HashSet::new(),
        cleaning: HashSet::new(),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = task.run(events) => {}
        }
    });
    Ok(())
}

struct Task {
    registry: Arc<Registry>,
    garbage: Garbage,
    emptying: HashSet<String>,
    cleaning: HashSet<String>,
}

impl Task {
    async fn run(mut self, mut events: Subscription) {
        let mut queue = Queue::default();
        let mut running = FuturesUnordered::new();
        self.resync(&mut queue);
        let mut expiry = tokio::time::interval(EXPIRY);
        expiry.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            while running.len() < CONCURRENT
                && let Some(work) = queue.next()
            {
                let registry = Arc::clone(&self.registry);
                let dependents = self.garbage.view(&work);
                running.push(async move {
                    let result = perform(&registry, &work, dependents).await;
                    (work, result)
                });
            }
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.observe(&event, &mut queue),
                    // Too slow for the buffer, or the keyspace was removed: listen anew and look at everything.
                    None => {
                        events = self.registry.keyspace.subscribe("");
                        self.resync(&mut queue);
                        tokio::time::sleep(RETRY).await;
                    }
                },
                Some((work, result)) = running.next() => queue.done(work, result),
                () = queue.due() => {}
                _ = expiry.tick() => queue.add(Work::Expire),
            }
        }
    }

    /// Queues work for everything that is stored.
    fn resync(&mut self, queue: &mut Queue) {
        self.garbage = Garbage::default();
        let mut records = Vec::new();
        let read = self.registry.store.read(&self.registry.keyspace, |view| {
            view.walk("", None, None, &mut |record| {
                records.push(record);
                true
            })
        });
        if let Err(error) = read {
            tracing::error!(%error, "the controllers could not read the keyspace");
            return;
        }
        for record in records {
            let event = Event::new(record.revision, record.key, record.data, None, false);
            self.observe(&event, queue);
        }
    }

    fn observe(&mut self, event: &Event, queue: &mut Queue) {
        for key in self.garbage.observe(event) {
            queue.add(Work::Collect(key));
        }
        let name = || event.key.name().to_owned();
        match event.key.resource() {
            "namespaces" if event.deleted => drop(self.emptying.remove(event.key.name())),
            "namespaces" => {
                if garbage::deleting(&event.data) {
                    self.emptying.insert(name());
                }
                queue.add(Work::Namespace(name()));
            }
            CRDS if event.deleted => drop(self.cleaning.remove(event.key.name())),
            CRDS if garbage::deleting(&event.data) => {
                self.cleaning.insert(name());
                queue.add(Work::Cleanup(name()));
            }
            "certificatesigningrequests.certificates.k8s.io" if !event.deleted => queue.add(Work::Sign(name())),
            _ => {}
        }
        // What waits until it is empty looks again whenever something in it goes, or still arrived.
        if (event.deleted || event.previous.is_none()) && self.emptying.contains(event.key.namespace()) {
            queue.add(Work::Namespace(event.key.namespace().to_owned()));
        }
        if event.deleted && self.cleaning.contains(event.key.resource()) {
            queue.add(Work::Cleanup(event.key.resource().to_owned()));
        }
    }
}

async fn perform(registry: &Registry, work: &Work, dependents: Vec<Dependent>) -> ApiResult<()> {
    match work {
        Work::Collect(key) => garbage::collect(registry, key, dependents).await,
        Work::Namespace(name) => namespaces::reconcile(registry, name).await,
        Work::Cleanup(name) => cleanup::reconcile(registry, name).await,
        Work::Sign(name) => certificates::reconcile(registry, name).await,
        Work::Expire => expiry::reconcile(registry).await,
    }
}

/// Each piece of work is in progress at most once; failed pieces are retried later.
#[derive(Default)]
struct Queue {
    ready: VecDeque<Work>,
    queued: HashSet<Work>,
    running: HashSet<Work>,
    /// Queued while running.
    again: HashSet<Work>,
    failures: HashMap<Work, u32>,
    delayed: BTreeMap<(tokio::time::Instant, u64), Work>,
    sequence: u64,
}

impl Queue {
    fn add(&mut self, work: Work) {
        if self.running.contains(&work) {
            self.again.insert(work);
        } else if self.queued.insert(work.clone()) {
            self.ready.push_back(work);
        }
    }

    fn next(&mut self) -> Option<Work> {
        let now = tokio::time::Instant::now();
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now
        {
            let work = entry.remove();
            self.add(work);
        }
        let work = self.ready.pop_front()?;
        self.queued.remove(&work);
        self.running.insert(work.clone());
        Some(work)
    }

    fn done(&mut self, work: Work, result: Result<(), ApiError>) {
        self.running.remove(&work);
        let again = self.again.remove(&work);
        match result {
            Ok(()) => {
                self.failures.remove(&work);
                if again {
                    self.add(work);
                }
            }
            Err(error) => {
                let failures = self.failures.entry(work.clone()).or_default();
                let delay = RETRY.saturating_mul(1 << (*failures).min(10)).min(RETRY_MAX);
                *failures += 1;
                tracing::debug!(?work, error = error.message, ?delay, "controller work will be tried again");
                self.sequence += 1;
                self.delayed.insert((tokio::time::Instant::now() + delay, self.sequence), work);
            }
        }
    }

    async fn due(&self) {
        match self.delayed.first_key_value() {
            Some(((at, _), _)) => tokio::time::sleep_until(*at).await,
            None => std::future::pending().await,
        }
    }
}

//! Queue of a controller, shared between wakers and the task that starts passes.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prometheus_client::metrics::{counter::Counter, gauge::Gauge, histogram::Histogram};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    interests::Wake,
    kind::Key,
    manager::worker_slots::WorkerSlot,
    metrics::{Metrics, QueueLabels},
    queue::{Outcome, Queue, Rank, Rates, Run, Urgency},
};

pub(super) struct Scheduler {
    queue: Mutex<Queue<Key>>,
    /// Exclusion group that each parked key waits for.
    waiting_for: Mutex<HashMap<Key, String>>,
    /// Keys with a slot that were not started yet.
    granted: Mutex<VecDeque<(Key, WorkerSlot)>>,
    changed: Notify,
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
}

impl Scheduler {
    pub(super) fn new(controller: &str, rates: Rates, metrics: &Metrics) -> Self {
        let labels = QueueLabels { name: controller.to_owned(), controller: controller.to_owned() };
        Self {
            queue: Mutex::new(Queue::new(rates, Instant::now())),
            waiting_for: Mutex::default(),
            granted: Mutex::default(),
            changed: Notify::new(),
            depth: metrics.depth.get_or_create_owned(&labels),
            adds: metrics.adds.get_or_create_owned(&labels),
            retries: metrics.retries.get_or_create_owned(&labels),
            waited: metrics.waited.get_or_create_owned(&labels),
        }
    }

    /// The next key that is ready.
    pub(super) fn ready(&self) -> Option<(Key, Rank)> {
        self.queue.lock().ready(Instant::now())
    }

    /// Gives a slot to a key. Neither blocks nor drops it.
    pub(super) fn grant(&self, key: Key, slot: WorkerSlot) {
        self.granted.lock().push_back((key, slot));
        self.changed.notify_one();
    }

    /// The next key with its slot, and its run unless that has begun already.
    pub(super) fn granted(&self) -> Option<(Option<Run<Key>>, WorkerSlot)> {
        let (key, slot) = self.granted.lock().pop_front()?;
        let mut queue = self.queue.lock();
        let run = queue.start(&key, Instant::now());
        self.depth.set(count(queue.waiting()));
        if let Some(run) = &run {
            self.waited.observe(run.waited.as_secs_f64());
        }
        Some((run, slot))
    }

    /// Waits for work; `false` when stopped.
    pub(super) async fn changed(&self, stopping: &CancellationToken) -> bool {
        let timer = self.queue.lock().next_timer();
        let timer = timer.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            biased;
            () = stopping.cancelled() => false,
            // Remembers one notification, so that none between a look and this is lost.
            () = self.changed.notified() => true,
            () = tokio::time::sleep_until(timer.into()) => true,
        }
    }

    pub(super) fn add_resync(&self, key: &Key) {
        self.adds.inc();
        self.with(|queue, now| queue.add_resync(key, now));
    }

    pub(super) fn park(&self, key: &Key, group: &str) {
        self.waiting_for.lock().insert(key.clone(), group.to_owned());
        self.with(|queue, _| queue.park(key));
    }

    pub(super) fn resume(&self, key: &Key) {
        self.waiting_for.lock().remove(key);
        self.with(|queue, _| queue.resume(key));
    }

    pub(super) fn unpark(&self, key: &Key) {
        self.with(|queue, now| queue.unpark(key, now));
    }

    /// The group that a key was parked for.
    pub(super) fn take_waiting_for(&self, key: &Key) -> Option<String> {
        self.waiting_for.lock().remove(key)
    }

    /// All parked keys with their groups.
    pub(super) fn drain_waiting(&self) -> Vec<(Key, String)> {
        self.waiting_for.lock().drain().collect()
    }

    /// `wrote` are the versions that the run made of objects.
    pub(super) fn done(&self, key: &Key, outcome: Outcome, wrote: &[u64]) {
        if matches!(outcome, Outcome::Backoff | Outcome::Conflict | Outcome::RetryAfter(_)) {
            self.retries.inc();
        }
        self.with(|queue, now| {
            queue.wrote(key, wrote);
            queue.done(key, outcome, rand::random(), now);
        });
    }

    fn with(&self, change: impl FnOnce(&mut Queue<Key>, Instant)) {
        {
            let mut queue = self.queue.lock();
            change(&mut queue, Instant::now());
            self.depth.set(count(queue.waiting()));
        }
        self.changed.notify_one();
    }
}

impl Wake for Scheduler {
    fn wake(&self, key: &Key, urgency: Urgency) {
        self.adds.inc();
        self.with(|queue, now| match urgency {
            Urgency::Now => queue.add(key, now),
            Urgency::Later => queue.add_later(key, now),
        });
    }

    fn changed(&self, key: &Key, version: u64, urgency: Urgency) {
        self.adds.inc();
        self.with(|queue, now| queue.add_version(key, version, urgency, now));
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

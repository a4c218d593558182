//! Runs controllers: key popped, object loaded, reconciled, plan applied, caches caught up, key released.
//!
//! Controllers come and go at run time. A key's run ends only when the caches show what its plan wrote, so no pass
//! ever decides on older data than its own predecessor wrote; the slot of the controller is free much earlier.

mod controller;
mod scheduler;
mod worker_slots;

use std::{sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::worker_slots::WorkerSlots;
use self::{controller::Controller, scheduler::Scheduler};
use crate::{
    apply::{Executor, Workloads},
    cache::Cache,
    exclusion::Exclusion,
    interests::{ControllerId, Interests},
    kind::{Key, Kind},
    metrics::Metrics,
    queue::Rates,
    reconciler::Reconciler,
};

/// Settings of a [`Manager`].
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// Every key runs at least this often, give or take a tenth.
    pub resync: Duration,
    /// How long passes in progress may take after shutdown.
    pub drain: Duration,
    /// Backoff and rate limits.
    pub rates: Rates,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self { resync: Duration::from_secs(600), drain: Duration::from_secs(20), rates: Rates::default() }
    }
}

/// Runs controllers over one management cluster. Cheap to clone.
#[derive(Clone)]
pub struct Manager(Arc<Shared>);

struct Shared {
    cache: Cache,
    interests: Arc<Interests>,
    workloads: Arc<dyn Workloads>,
    executor: Executor,
    metrics: Arc<Metrics>,
    options: ManagerOptions,
    exclusion: Exclusion<Claim>,
    tasks: TaskTracker,
    /// Cancelled: no new passes.
    stopping: CancellationToken,
    /// Cancelled: passes no longer wait for caches.
    draining: CancellationToken,
}

/// A key of a controller as a member of exclusion groups.
#[derive(Clone)]
struct Claim {
    controller: ControllerId,
    scheduler: Arc<Scheduler>,
    key: Key,
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.controller == other.controller && self.key == other.key
    }
}

impl Manager {
    /// A manager without controllers. `cache` is of the management cluster and uses `interests`.
    pub fn new(
        cache: Cache,
        interests: Arc<Interests>,
        workloads: Arc<dyn Workloads>,
        metrics: Arc<Metrics>,
        options: ManagerOptions,
    ) -> Self {
        Self(Arc::new(Shared {
            executor: Executor::new(cache.clone(), workloads.clone(), metrics.clone()),
            cache,
            interests,
            workloads,
            metrics,
            options,
            exclusion: Exclusion::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            draining: CancellationToken::new(),
        }))
    }

    /// Starts a controller for all objects of `kind`, with at most `concurrency` passes at a time.
    pub fn add(&self, kind: Kind, reconciler: Arc<dyn Reconciler>, concurrency: usize) -> ControllerHandle {
        self.add_to(&WorkerSlots::new(concurrency), kind, reconciler)
    }

    /// As [`Manager::add`], with slots that other controllers may share.
    pub fn add_to(&self, slots: &WorkerSlots, kind: Kind, reconciler: Arc<dyn Reconciler>) -> ControllerHandle {
        ControllerHandle(Controller::start(&self.0, kind, reconciler, slots))
    }

    /// Runs until `shutdown`; then starts no pass, waits for running ones within the drain time, and writes queued
    /// events.
    pub async fn run(&self, shutdown: CancellationToken) {
        shutdown.cancelled().await;
        self.0.stopping.cancel();
        self.0.draining.cancel();
        self.0.tasks.close();
        let drained = async {
            self.0.tasks.wait().await;
            self.0.executor.flush().await;
        };
        if tokio::time::timeout(self.0.options.drain, drained).await.is_err() {
            tracing::warn!(passes = self.0.tasks.len(), "passes did not finish in time, leaving them");
        }
    }
}

/// A running controller. Dropping the handle leaves it running.
#[derive(Clone)]
pub struct ControllerHandle(Arc<Controller>);

impl ControllerHandle {
    /// Replaces the reconciler: running passes finish on the old one, and their keys run again only after that. Every
    /// key runs again.
    pub fn replace(&self, reconciler: Arc<dyn Reconciler>) {
        self.0.replace(reconciler);
        self.trigger_all();
    }

    /// Changes the number of slots, for all controllers that share them: see [`WorkerSlots::resize`].
    pub fn resize(&self, slots: usize) {
        self.0.resize(slots);
    }

    /// Queues every key, behind those with changes.
    pub fn trigger_all(&self) {
        self.0.trigger_all();
    }

    /// Starts no further pass, and waits for the running ones.
    pub async fn stop(&self) {
        self.0.stop().await;
    }
}

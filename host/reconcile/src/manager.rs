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

/// How a manager runs.
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// Every key runs at least this often, give or take a tenth.
    pub resync: Duration,
    /// How long running passes may take to finish after shutdown.
    pub drain: Duration,
    /// Backoff and rates.
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

/// What all controllers share.
struct Shared {
    cache: Cache,
    interests: Arc<Interests>,
    workloads: Arc<dyn Workloads>,
    executor: Executor,
    metrics: Arc<Metrics>,
    options: ManagerOptions,
    exclusion: Exclusion<Claim>,
    /// The tasks of controllers and passes.
    tasks: TaskTracker,
    /// No new passes.
    stopping: CancellationToken,
    /// Passes do not wait for caches any more.
    draining: CancellationToken,
}

/// A key of a controller, as it enters groups.
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
    /// A manager of nothing yet. `cache` is of the management cluster and shares `interests`.
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

    /// Starts a controller for all objects of `kind`, with at most `concurrency` passes at a time. Passes start at once.
    pub fn add(&self, kind: Kind, reconciler: Arc<dyn Reconciler>, concurrency: usize) -> ControllerHandle {
        self.add_to(&WorkerSlots::new(concurrency), kind, reconciler)
    }

    /// As [`Manager::add`], with slots that other controllers may use as well.
    pub fn add_to(&self, slots: &WorkerSlots, kind: Kind, reconciler: Arc<dyn Reconciler>) -> ControllerHandle {
        ControllerHandle(Controller::start(&self.0, kind, reconciler, slots))
    }

    /// Runs until `shutdown`; then starts no further pass, lets running ones finish within the drain time, and writes
    /// the events that are still waiting.
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
    /// Passes that start from now on use this reconciler; running ones finish on the old, and their keys run again
    /// only after that. Every key runs again.
    pub fn replace(&self, reconciler: Arc<dyn Reconciler>) {
        self.0.replace(reconciler);
        self.trigger_all();
    }

    /// So many passes at a time from now on, of all controllers that have the same slots: see [`WorkerSlots::resize`].
    pub fn resize(&self, slots: usize) {
        self.0.resize(slots);
    }

    /// Runs every key soon, after those with changes.
    pub fn trigger_all(&self) {
        self.0.trigger_all();
    }

    /// Starts no further pass, and waits for those that run.
    pub async fn stop(&self) {
        self.0.stop().await;
    }
}

//! The loop around controllers.
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use crate::{apply::Workloads, cache::Cache, interests::Interests, kind::{Kind, Key}, metrics::Metrics, reconciler::Reconciler};

/// How a manager runs.
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    /// Every key runs at least this often (with jitter).
    pub resync: Duration,
    /// How long running passes may take to finish after shutdown.
    pub drain: Duration,
}
impl Default for ManagerOptions {
    fn default() -> Self { Self { resync: Duration::from_secs(600), drain: Duration::from_secs(20) } }
}

/// Runs controllers. Cheap to clone.
#[derive(Clone)]
pub struct Manager;

impl Manager {
    /// A manager of nothing yet.
    pub fn new(_cache: Cache, _interests: Arc<Interests>, _workloads: Arc<dyn Workloads>, _metrics: Arc<Metrics>, _options: ManagerOptions) -> Self { Self }
    /// Starts a controller; may be called at any time, before and after `run`.
    pub fn add(&self, _kind: Kind, _reconciler: Arc<dyn Reconciler>, _concurrency: usize) -> ControllerHandle { todo!() }
    /// Runs until shutdown, then drains.
    pub async fn run(&self, _shutdown: CancellationToken) { todo!() }
}

/// A running controller. Dropping the handle leaves it running.
#[derive(Clone)]
pub struct ControllerHandle;

impl ControllerHandle {
    /// Passes that start from now on use this reconciler; running ones finish on the old. Every key runs again.
    pub fn replace(&self, _reconciler: Arc<dyn Reconciler>) { todo!() }
    /// Runs this key soon.
    pub fn trigger(&self, _key: &Key) { todo!() }
    /// Runs every key soon.
    pub fn trigger_all(&self) { todo!() }
    /// Starts no further pass, and waits for those that run.
    pub async fn stop(&self) { todo!() }
}

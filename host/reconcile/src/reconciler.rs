//! Interface of a controller: a function from observed state to a [`Plan`].

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cache::CacheError,
    kind::Key,
    plan::{Plan, Results},
    view::View,
};

/// Time limit of a pass: some slow answers of a workload cluster.
const DEADLINE: Duration = Duration::from_secs(60);

/// Reconciler of one kind. It reads through the pass's view, and writes only through its plan.
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// Name for metrics (label `controller`), logs and events, as in `machine`.
    fn name(&self) -> &str;

    /// Exclusion group of an object: passes of one group never run at the same time, over all controllers. Must be
    /// cheap.
    fn exclusion(&self, _object: &Value) -> Option<String> {
        None
    }

    /// Label that divides the slots: the objects of one namespace with the same value get at most a quarter of them,
    /// and so do those without the label. `None`: first come, first served.
    fn divided_by(&self) -> Option<&str> {
        None
    }

    /// Time limit of a pass, which then has failed; `None` where what the pass waits for has limits of its own.
    fn deadline(&self) -> Option<Duration> {
        Some(DEADLINE)
    }

    /// Finalizers of every object of its kind. Plans of other controllers create objects with them.
    fn finalizers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Decides what should be. Runs again after each change of the object or of anything that it read.
    ///
    /// # Errors
    /// An error discards the pass: nothing is written, and the key is tried again with backoff.
    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError>;
}

/// Input of [`Reconciler::reconcile`].
pub struct Pass<'a> {
    /// Key of the object.
    pub key: &'a Key,
    /// The object from the cache, without managedFields.
    pub object: Arc<Value>,
    /// Reads; remembered for this key.
    pub view: &'a View,
    /// 1 for the first run, counting up while passes fail.
    pub attempt: u32,
    /// Results of the operations of the previous plan; empty after a restart.
    pub results: Results,
    /// Time of the pass, to be used instead of the clock.
    pub now: Timestamp,
    /// Id of logs, spans and calls of the pass: 32 hex digits.
    pub trace_id: &'a str,
}

/// Why a pass has no plan.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A read failed.
    #[error(transparent)]
    Read(#[from] CacheError),
    /// Another failure.
    #[error("{reason}: {message}")]
    Failed {
        /// CamelCase reason for the event.
        reason: String,
        /// Message of the event.
        message: String,
    },
}

impl ReconcileError {
    /// A failure of the reconciler itself.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), message: message.into() }
    }
}

//! The one shape of a controller: a function from what is observed to a [`Plan`].

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cache::CacheError,
    kind::Key,
    plan::{Plan, Results},
    view::View,
};

/// A reconciler of one kind. It reads through the pass's view and writes nothing: what it wants goes into the plan.
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// Name for metrics (label `controller`), logs and events, as in `machine`.
    fn name(&self) -> &str;

    /// Passes with the same answer never run at the same time, whatever their controller. Must be cheap.
    fn exclusion(&self, _object: &Value) -> Option<String> {
        None
    }

    /// The label that divides its slots: objects of one namespace with the same value have at most a quarter of them, and so have
    /// those of a namespace without the label. `None`: whoever comes first.
    fn divided_by(&self) -> Option<&str> {
        None
    }

    /// The finalizers that it puts on every object of its kind before it acts on it. What a plan creates is born with them.
    fn finalizers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Decides what should be. Called again after each change of the object or of anything that was read.
    ///
    /// # Errors
    /// An error discards the pass: nothing is written, and the key is tried again with backoff.
    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError>;
}

/// What one call of [`Reconciler::reconcile`] is about.
pub struct Pass<'a> {
    /// The object's key.
    pub key: &'a Key,
    /// The object as the cache has it, without managedFields.
    pub object: Arc<Value>,
    /// Reads, remembered for this key.
    pub view: &'a View,
    /// 1 for the first try, counting up while passes fail.
    pub attempt: u32,
    /// How the operations of this key's previous plan ended; empty after a restart.
    pub results: Results,
    /// The time of the pass. Decisions use this instead of the clock.
    pub now: Timestamp,
    /// Of everything that happens in the pass: 32 hex digits.
    pub trace_id: &'a str,
}

/// A pass that came to no plan.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Something could not be read.
    #[error(transparent)]
    Read(#[from] CacheError),
    /// Anything else.
    #[error("{reason}: {message}")]
    Failed {
        /// CamelCase reason for the event.
        reason: String,
        /// One sentence for a human.
        message: String,
    },
}

impl ReconcileError {
    /// A failure of the reconciler's own.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), message: message.into() }
    }
}

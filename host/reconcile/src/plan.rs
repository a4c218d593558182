//! What a reconcile wants to be true: the only thing that it hands back, and the only thing that is ever written.
//!
//! The [`Executor`](crate::Executor) turns a [`Plan`] into requests in this order: own metadata and spec (finalizers are
//! added here), the operations one after the other until one fails, own status, removal of the released finalizers.

use std::time::Duration;

use capwasm_contract::{Event, Refused};
use capwasm_object::meta::add_finalizer;
use serde_json::Value;

use crate::kind::{ClusterId, Kind};

/// What should be, as one pass decided it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The reconciled object as it should be: what was observed, modified. `None` leaves it alone. The executor writes
    /// the differences (metadata and spec, then status) as merge patches, and nothing where nothing differs.
    pub desired: Option<Value>,
    /// The reconciled object as its status should be when an operation fails: without what only the operations make true.
    /// `None`: as `desired`.
    pub fallback: Option<Value>,
    /// Writes to other objects, in this order; the first failure stops the rest.
    pub operations: Vec<Operation>,
    /// Finalizers of the reconciled object to remove last, only when everything before succeeded.
    pub release: Vec<String>,
    /// Events about the reconciled object. Repeats are counted on one Event object.
    pub events: Vec<Event>,
    /// The status has no news for anybody but people: it may wait for more, as [`status_delay`](crate::status_delay) says. Everything
    /// else that the plan holds is written at once.
    pub status_may_wait: bool,
    /// Run again after this time at the latest, though nothing changed.
    pub wake_after: Option<Duration>,
    /// Run again as soon as the caches show what this plan wrote.
    pub wake_when_applied: bool,
    /// How the pass ended.
    pub verdict: Verdict,
}

impl Plan {
    /// A plan that writes nothing and waits for a change.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// A plan that makes the reconciled object `desired`.
    pub fn desire(desired: Value) -> Self {
        Self { desired: Some(desired), ..Self::default() }
    }

    /// A plan that adds a finalizer, and runs again once that can be read: it has to be there before the first effect.
    pub fn finalize(object: &Value, finalizer: &str) -> Self {
        let mut desired = object.clone();
        add_finalizer(&mut desired, finalizer);
        Self { wake_when_applied: true, ..Self::desire(desired) }
    }
}

/// How a pass ended. What a plan holds is written whatever the verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Verdict {
    /// As desired; the retry count starts again.
    #[default]
    Done,
    /// Something that was read has to change first; the retry count starts again.
    Waiting,
    /// Failed: an event and a log line tell why.
    Failed {
        /// CamelCase reason of the event.
        reason: String,
        /// One sentence for a human.
        message: String,
        /// When to run again at the latest; overrides the backoff.
        retry_after: Option<Duration>,
        /// Whether to run again by exponential backoff. Otherwise only a change (or `retry_after`) runs it again.
        backoff: bool,
    },
}

impl Verdict {
    /// A failure that is tried again with exponential backoff.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), message: message.into(), retry_after: None, backoff: true }
    }
}

/// Which API server an operation goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The management cluster.
    #[default]
    Management,
    /// A workload cluster.
    Workload(ClusterId),
}

/// One write to an object other than the reconciled one.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Names its result in the next pass.
    pub key: String,
    /// Where.
    pub place: Place,
    /// What.
    pub action: Action,
}

impl Operation {
    /// An operation on the management cluster.
    pub fn management(key: impl Into<String>, action: Action) -> Self {
        Self { key: key.into(), place: Place::Management, action }
    }

    /// An operation on a workload cluster.
    pub fn workload(key: impl Into<String>, cluster: &ClusterId, action: Action) -> Self {
        Self { key: key.into(), place: Place::Workload(cluster.clone()), action }
    }
}

/// What an operation does. Objects are complete: apiVersion, kind, metadata.
#[derive(Clone, Debug)]
pub enum Action {
    /// Create if absent. An object of that name that is ours is adopted; another's is a conflict. Ours is what shares an
    /// owner reference with it or, for objects without owner references, carries the annotation
    /// [`CREATED_FOR`](crate::apply::CREATED_FOR) with the reconciled object's uid, which the executor sets.
    Create(Value),
    /// Server-side apply: only for objects whose whole intent is ours.
    Apply {
        /// The intent.
        object: Value,
        /// Field manager.
        manager: String,
        /// Take fields from other managers.
        force: bool,
    },
    /// JSON merge patch.
    Patch {
        /// The object to patch.
        target: Target,
        /// The patch.
        merge: Value,
        /// Refused (conflict) unless the object still has this resourceVersion.
        resource_version: Option<String>,
        /// `Some("status")` patches the status.
        subresource: Option<&'static str>,
    },
    /// Delete. An object that is gone, or has another uid, is a success.
    Delete {
        /// The object to delete.
        target: Target,
        /// Only the object with this uid.
        uid: Option<String>,
        /// What becomes of its dependents; the server's default when `None`.
        propagation: Option<Propagation>,
    },
    /// Sets one condition on another object's status, read live and guarded by its resourceVersion.
    SetCondition {
        /// The object to set it on.
        target: Target,
        /// The condition: `type`, `status`, `reason`, `message`; `lastTransitionTime` is kept or set by the executor.
        condition: Value,
    },
    /// Evicts a Pod. Refused with [`Refusal::Limit`](capwasm_contract::Refusal::Limit) while a disruption budget forbids it.
    Evict {
        /// The Pod.
        target: Target,
        /// Grace period in seconds; the Pod's own when `None`.
        grace_period: Option<i64>,
    },
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Deleted after it.
    Background,
    /// Deleted before it.
    Foreground,
    /// Left alone.
    Orphan,
}

/// One object, named without knowing its plural or scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `group/version`.
    pub api_version: String,
    /// Kind in CamelCase.
    pub kind: String,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Target {
    /// `namespace/name` of `kind`.
    pub fn new(kind: &Kind, namespace: &str, name: &str) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.to_string(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The target that an object is itself.
    pub fn of(object: &Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }
}

/// How the operations of a plan ended, by their keys, in order. Those after the first failure are not in it.
pub type Results = Vec<(String, Result<(), Refused>)>;

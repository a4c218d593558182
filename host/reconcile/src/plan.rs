//! What a reconcile wants to be true: the only thing that it hands back, and the only thing that is ever written.
//!
//! The [`Executor`](crate::Executor) turns a [`Plan`] into requests in this order: own metadata and spec (finalizers are
//! added here), the operations one after the other until one fails, own status, removal of the released finalizers.

use std::time::Duration;

use capwasm_contract::{Event, Refused};
use capwasm_object::meta::add_finalizer;
use serde_json::Value;

use crate::kind::{ClusterId, Kind};

/// Decision of a pass.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The reconciled object as it should be: what was observed, modified. `None` leaves it alone. The executor writes
    /// the differences (metadata and spec, then status) as merge patches, and nothing where nothing differs.
    pub desired: Option<Value>,
    /// The object to write when an operation fails: its status lacks what only the operations achieve. `None`:
    /// `desired`.
    pub fallback: Option<Value>,
    /// Writes to other objects, in this order; the first failure stops the rest.
    pub operations: Vec<Operation>,
    /// Finalizers of the reconciled object to remove last, only when everything before succeeded.
    pub release: Vec<String>,
    /// Events about the reconciled object. Repeats are counted on one Event object.
    pub events: Vec<Event>,
    /// The status changes only for human readers and may be written later, as [`status_delay`](crate::status_delay) says.
    /// The rest of the plan is written at once.
    pub status_may_wait: bool,
    /// Run again after this time at the latest, without a change.
    pub wake_after: Option<Duration>,
    /// Run again as soon as the caches show what this plan wrote.
    pub wake_when_applied: bool,
    /// Result of the pass.
    pub verdict: Verdict,
}

impl Plan {
    /// A plan that writes nothing and waits for a change.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// A plan that makes the object `desired`.
    pub fn desire(desired: Value) -> Self {
        Self { desired: Some(desired), ..Self::default() }
    }

    /// A plan that adds a finalizer before the first side effect, and runs again once the cache shows it.
    pub fn finalize(object: &Value, finalizer: &str) -> Self {
        let mut desired = object.clone();
        add_finalizer(&mut desired, finalizer);
        Self { wake_when_applied: true, ..Self::desire(desired) }
    }
}

/// Result of a pass. The plan is written in any case.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Verdict {
    /// Desired state reached; resets the retry count.
    #[default]
    Done,
    /// Something that was read has to change first; resets the retry count.
    Waiting,
    /// Failed; reported by an event and a log line.
    Failed {
        /// CamelCase reason of the event.
        reason: String,
        /// Message of the event.
        message: String,
        /// When to run again at the latest; overrides the backoff.
        retry_after: Option<Duration>,
        /// Whether to run again by exponential backoff. Otherwise only a change (or `retry_after`) runs it again.
        backoff: bool,
    },
}

impl Verdict {
    /// A failure that is retried with exponential backoff.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), message: message.into(), retry_after: None, backoff: true }
    }
}

/// API server of an operation.
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
    /// Name of the result in the next pass.
    pub key: String,
    /// API server to write to.
    pub place: Place,
    /// The write.
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

/// Action of an operation. Objects are complete: apiVersion, kind, metadata.
#[derive(Clone, Debug)]
pub enum Action {
    /// Create if absent. An object of that name that is ours is adopted; another's is a conflict. Ours is what shares an
    /// owner reference with it or, for objects without owner references, carries the annotation
    /// [`CREATED_FOR`](crate::apply::CREATED_FOR) with the reconciled object's uid, which the executor sets.
    Create(Value),
    /// Server-side apply: only for objects whose whole intent is ours.
    Apply {
        /// The applied configuration.
        object: Value,
        /// Field manager.
        manager: String,
        /// Takes fields from other managers.
        force: bool,
    },
    /// JSON merge patch (RFC 7396).
    Patch {
        /// The object to patch.
        target: Target,
        /// The merge patch.
        merge: Value,
        /// Refused as a conflict unless the object has this resourceVersion.
        resource_version: Option<String>,
        /// `Some("status")` patches the status.
        subresource: Option<&'static str>,
    },
    /// Delete. An object that is gone, or has another uid, is a success.
    Delete {
        /// The object to delete.
        target: Target,
        /// Deletes only the object with this uid.
        uid: Option<String>,
        /// Deletion of dependents; the server's default when `None`.
        propagation: Option<Propagation>,
    },
    /// Sets one condition on another object's status, read live and guarded by its resourceVersion.
    SetCondition {
        /// Object with the condition.
        target: Target,
        /// `type`, `status`, `reason` and `message`; the executor sets `lastTransitionTime`.
        condition: Value,
    },
    /// Evicts a Pod. Refused with [`Refusal::Limit`](capwasm_contract::Refusal::Limit) while a disruption budget forbids it.
    Evict {
        /// Pod to evict.
        target: Target,
        /// Grace period in seconds; the Pod's own when `None`.
        grace_period: Option<i64>,
    },
}

/// Deletion of dependents (`propagationPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// After the object.
    Background,
    /// Before the object.
    Foreground,
    /// Never.
    Orphan,
}

/// Reference to an object, without plural or scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `group/version`, or `v1` for the core group.
    pub api_version: String,
    /// Kind in CamelCase.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
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

    /// Reference to `object`.
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

/// Results of operations by key, in order, up to the first failure.
pub type Results = Vec<(String, Result<(), Refused>)>;

//! What a call collected: everything that should be, besides the typed answer. Nothing here has taken effect.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bindings::types;
use crate::refused::Refused;

/// Names one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `group/version`, `v1` for the core group, or `group/` where the host picks the version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; none is the object's own, or a cluster-scoped kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// The API group; `""` for the core group.
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }
}

/// The group of an `apiVersion`; `""` for the core group.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl From<types::ObjectRef> for ObjectRef {
    fn from(target: types::ObjectRef) -> Self {
        ObjectRef { api_version: target.api_version, kind: target.kind, namespace: target.namespace, name: target.name }
    }
}

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// The one that holds the Cluster objects.
    Management,
    /// The one of the cluster being provisioned.
    Workload,
}

impl From<types::Place> for Place {
    fn from(place: types::Place) -> Self {
        match place {
            types::Place::Management => Place::Management,
            types::Place::Workload => Place::Workload,
        }
    }
}

/// Everything that a call collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcome {
    /// Merge patches of the object's status, in order.
    pub status: Vec<Value>,
    /// Merge patches of the object's own paths outside status, in order; not yet held against the descriptor.
    pub own: Vec<Value>,
    /// Conditions of the object, in order.
    pub conditions: Vec<Condition>,
    /// Events for the object.
    pub events: Vec<Event>,
    /// Writes, to be run in order; the first failure stops the rest.
    pub operations: Vec<Operation>,
    /// Call again after this time at the latest.
    pub wake_after: Option<Duration>,
    /// Call again as soon as what this outcome wrote can be read.
    pub wake_when_applied: bool,
}

impl Outcome {
    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        *self == Outcome::default()
    }
}

/// A condition; the host keeps its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type.
    pub name: String,
    /// True, False, or none for Unknown.
    pub status: Option<bool>,
    /// CamelCase.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// A Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// `Warning` rather than `Normal`.
    pub warning: bool,
    /// CamelCase.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// One write. `key` names it in the results of the next pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Create if absent; ours is adopted, another's is a conflict.
    Create {
        /// Name of the operation.
        key: String,
        /// Where.
        place: Place,
        /// The whole object.
        object: Value,
    },
    /// Server-side apply of an object whose whole intent is ours.
    Apply {
        /// Name of the operation.
        key: String,
        /// Where.
        place: Place,
        /// The whole intent.
        object: Value,
    },
    /// JSON merge patch.
    Patch {
        /// Name of the operation.
        key: String,
        /// Where.
        place: Place,
        /// Of what.
        target: ObjectRef,
        /// The patch.
        merge: Value,
    },
    /// A condition on another object of the management cluster.
    SetConditionOf {
        /// Name of the operation.
        key: String,
        /// On what.
        target: ObjectRef,
        /// The condition.
        condition: Condition,
    },
    /// Deletes; already gone is a success.
    Delete {
        /// Name of the operation.
        key: String,
        /// Where.
        place: Place,
        /// What.
        target: ObjectRef,
        /// Only if it has this uid.
        uid: Option<String>,
    },
    /// A write that is not granted, at the place where the guest asked for it: it fails there and stops the rest, so
    /// that no later operation relies on it.
    Refused {
        /// Name of the operation.
        key: String,
        /// Why.
        refused: Refused,
    },
}

impl Operation {
    /// The name of the operation.
    pub fn key(&self) -> &str {
        match self {
            Operation::Create { key, .. }
            | Operation::Apply { key, .. }
            | Operation::Patch { key, .. }
            | Operation::SetConditionOf { key, .. }
            | Operation::Delete { key, .. }
            | Operation::Refused { key, .. } => key,
        }
    }
}

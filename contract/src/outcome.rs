//! What should be: collected during a call, carried out by the host after it, in order.
//!
//! An outcome is a plain value. Nothing takes effect while the provider runs; all of it does afterwards, also when the
//! provider returned a [`Problem`](crate::Problem). What is not set stays as it is.

use std::time::Duration;

use capwasm_object::merge_patch;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reference::{ObjectRef, Place};
use crate::refused::Refused;

/// Everything that one call collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcome {
    /// JSON merge patches of the object's status, in order.
    pub status: Vec<Value>,
    /// JSON merge patches of the object's spec and metadata, in order; not yet held against the paths that the descriptor
    /// declares as the provider's own.
    pub own: Vec<Value>,
    /// Conditions of the object, in order; the last one of a name counts.
    pub conditions: Vec<Condition>,
    /// Events about the object, in order.
    pub events: Vec<Event>,
    /// Writes, to be run in order; the first failure stops the rest.
    pub operations: Vec<Operation>,
    /// Call again after this time at the latest: the shortest that was asked for, in whole milliseconds.
    pub wake_after: Option<Duration>,
    /// Call again as soon as what this outcome wrote can be read.
    pub wake_when_applied: bool,
}

/// A condition; the host keeps its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type: `ContainerProvisioned`.
    pub name: String,
    /// True, False, or none for Unknown.
    pub status: Option<bool>,
    /// CamelCase.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// An event about the reconciled object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// CamelCase.
    pub reason: String,
    /// For a person, one sentence.
    pub message: String,
}

impl Event {
    /// A `Normal` event.
    pub fn normal(reason: impl Into<String>, message: impl Into<String>) -> Event {
        Event { warning: false, reason: reason.into(), message: message.into() }
    }

    /// A `Warning` event.
    pub fn warning(reason: impl Into<String>, message: impl Into<String>) -> Event {
        Event { warning: true, reason: reason.into(), message: message.into() }
    }
}

/// One write. `key` names it in the results of the next pass ([`Facts::results`](crate::Facts::results)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are those of the methods of `Outcome`")]
pub enum Operation {
    /// Create if absent; ours is adopted, another's is a conflict.
    Create { key: String, place: Place, object: Value },
    /// Server-side apply of an object whose whole intent is ours.
    Apply { key: String, place: Place, object: Value },
    /// JSON merge patch.
    Patch { key: String, place: Place, target: ObjectRef, merge: Value },
    /// A condition on another object of the management cluster.
    SetConditionOf { key: String, target: ObjectRef, condition: Condition },
    /// Deletes, only the object with this uid if there is one; already gone is a success.
    Delete { key: String, place: Place, target: ObjectRef, uid: Option<String> },
    /// A write that is not granted, which the host puts at the place where the guest asked for it: it fails there and stops
    /// the rest, so that no later operation relies on it.
    Refused { key: String, refused: Refused },
}

impl Operation {
    /// What names it in the results of the next pass.
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

impl Outcome {
    /// Merged into the status (JSON merge patch: null clears).
    pub fn status(&mut self, fields: Value) -> &mut Outcome {
        self.status.push(fields);
        self
    }

    /// Merged into spec or metadata: `json!({"spec": {"providerID": …}})`.
    pub fn own(&mut self, fields: Value) -> &mut Outcome {
        self.own.push(fields);
        self
    }

    /// Sets a condition of the object; none is `Unknown`.
    pub fn condition(
        &mut self,
        name: &str,
        status: Option<bool>,
        reason: &str,
        message: impl Into<String>,
    ) -> &mut Outcome {
        self.conditions.retain(|known| known.name != name);
        self.conditions.push(Condition {
            name: name.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.into(),
        });
        self
    }

    /// A normal event.
    pub fn event(&mut self, reason: &str, message: impl Into<String>) -> &mut Outcome {
        self.events.push(Event::normal(reason, message));
        self
    }

    /// A warning event.
    pub fn warning(&mut self, reason: &str, message: impl Into<String>) -> &mut Outcome {
        self.events.push(Event::warning(reason, message));
        self
    }

    /// Call again after this time at the latest; the shortest counts.
    pub fn wake_after(&mut self, delay: Duration) -> &mut Outcome {
        self.wake_after = Some(self.wake_after.map_or(delay, |known| known.min(delay)));
        self
    }

    /// Call again as soon as what this outcome wrote can be read: persist first, act then.
    pub fn wake_when_applied(&mut self) -> &mut Outcome {
        self.wake_when_applied = true;
        self
    }

    /// Creates if absent; ours is adopted, another's is a conflict.
    pub fn create(&mut self, key: impl Into<String>, place: Place, object: Value) -> &mut Outcome {
        self.operations.push(Operation::Create { key: key.into(), place, object });
        self
    }

    /// Server-side apply of an object whose whole intent is ours.
    pub fn apply(&mut self, key: impl Into<String>, place: Place, object: Value) -> &mut Outcome {
        self.operations.push(Operation::Apply { key: key.into(), place, object });
        self
    }

    /// JSON merge patch.
    pub fn patch(&mut self, key: impl Into<String>, place: Place, target: ObjectRef, merge: Value) -> &mut Outcome {
        self.operations.push(Operation::Patch { key: key.into(), place, target, merge });
        self
    }

    /// A condition on another object of the management cluster.
    pub fn set_condition_of(
        &mut self,
        key: impl Into<String>,
        target: ObjectRef,
        name: &str,
        status: Option<bool>,
        reason: &str,
        message: impl Into<String>,
    ) -> &mut Outcome {
        let condition = Condition { name: name.to_owned(), status, reason: reason.to_owned(), message: message.into() };
        self.operations.push(Operation::SetConditionOf { key: key.into(), target, condition });
        self
    }

    /// Deletes; an object that is already gone, or has another uid, is a success.
    pub fn delete(
        &mut self,
        key: impl Into<String>,
        place: Place,
        target: ObjectRef,
        uid: Option<String>,
    ) -> &mut Outcome {
        self.operations.push(Operation::Delete { key: key.into(), place, target, uid });
        self
    }

    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        *self == Outcome::default()
    }

    /// The condition of that name, when it was set.
    pub fn condition_named(&self, name: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.name == name)
    }

    /// What the status patches make of an empty status.
    pub fn merged_status(&self) -> Value {
        let mut merged = Value::Object(Map::new());
        self.status.iter().for_each(|patch| merge_patch::apply(&mut merged, patch));
        merged
    }
}

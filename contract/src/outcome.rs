//! What should be: collected during a call, carried out by the host after it, in order.
//!
//! An outcome is a plain value. Nothing takes effect while the provider runs; all of it does afterwards, also when the
//! provider returned a [`Problem`](crate::Problem). What is not set stays as it is.

use std::time::Duration;

use capwasm_object::{bounded, merge_patch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reference::{ObjectRef, Place};
use crate::refused::Refused;

/// Everything that a call collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcome {
    /// JSON merge patches of the object's status, in order.
    pub status: Vec<Value>,
    /// JSON merge patches of the object's spec and metadata, in order; not checked yet against the provider's own
    /// paths.
    pub own: Vec<Value>,
    /// Conditions of the object, in order; the last one of a type counts.
    pub conditions: Vec<Condition>,
    /// Events about the object, in order.
    pub events: Vec<Event>,
    /// Writes, in order; the first failure stops the rest.
    pub operations: Vec<Operation>,
    /// Call again after this time at the latest, in whole milliseconds: the shortest requested one.
    pub wake_after: Option<Duration>,
    /// Call again when the caches show what this outcome wrote.
    pub wake_when_applied: bool,
}

/// A condition; the host sets its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type, such as `ContainerProvisioned`.
    pub name: String,
    /// True or False; `None` is Unknown.
    pub status: Option<bool>,
    /// CamelCase reason.
    pub reason: String,
    /// Message for people.
    pub message: String,
}

impl Condition {
    /// Memory use in bytes, roughly.
    fn bytes(&self) -> usize {
        size_of::<Condition>() + self.name.len() + self.reason.len() + self.message.len()
    }
}

/// An event about the reconciled object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Type `Warning` instead of `Normal`.
    pub warning: bool,
    /// CamelCase reason.
    pub reason: String,
    /// One sentence for people.
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

/// A write. `key` names its result in the next pass ([`Facts::results`](crate::Facts::results)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are those of the methods of `Outcome`")]
pub enum Operation {
    /// Create if absent; an object that an earlier pass created is adopted, another one is a conflict.
    Create { key: String, place: Place, object: Value },
    /// Server-side apply; only for objects whose whole intent is the provider's.
    Apply { key: String, place: Place, object: Value },
    /// JSON merge patch.
    Patch { key: String, place: Place, target: ObjectRef, merge: Value },
    /// Sets a condition on another object of the management cluster.
    SetConditionOf { key: String, target: ObjectRef, condition: Condition },
    /// Deletes the object, with this uid if given; a missing one is a success.
    Delete { key: String, place: Place, target: ObjectRef, uid: Option<String> },
    /// A write without grant, in its place: it fails there and stops later operations, which may rely on it.
    Refused { key: String, refused: Refused },
}

impl Operation {
    /// Name of its result in the next pass.
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

    /// Memory use in bytes, roughly.
    fn bytes(&self) -> usize {
        let what = match self {
            Operation::Create { object, .. } | Operation::Apply { object, .. } => bounded::cost(object),
            Operation::Patch { target, merge, .. } => target.bytes() + bounded::cost(merge),
            Operation::SetConditionOf { target, condition, .. } => target.bytes() + condition.bytes(),
            Operation::Delete { target, uid, .. } => target.bytes() + uid.as_ref().map_or(0, String::len),
            Operation::Refused { refused, .. } => refused.reason.len() + refused.message.len(),
        };
        size_of::<Operation>() + self.key().len() + what
    }
}

impl Outcome {
    /// Adds a JSON merge patch of the status; null removes a field.
    pub fn status(&mut self, fields: Value) -> &mut Outcome {
        self.status.push(fields);
        self
    }

    /// Adds a JSON merge patch of spec or metadata: `json!({"spec": {"providerID": …}})`.
    pub fn own(&mut self, fields: Value) -> &mut Outcome {
        self.own.push(fields);
        self
    }

    /// Sets a condition of the object; a status of `None` is Unknown.
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

    /// Adds a `Normal` event.
    pub fn event(&mut self, reason: &str, message: impl Into<String>) -> &mut Outcome {
        self.events.push(Event::normal(reason, message));
        self
    }

    /// Adds a `Warning` event.
    pub fn warning(&mut self, reason: &str, message: impl Into<String>) -> &mut Outcome {
        self.events.push(Event::warning(reason, message));
        self
    }

    /// Requests a call after this time at the latest; the shortest counts.
    pub fn wake_after(&mut self, delay: Duration) -> &mut Outcome {
        self.wake_after = Some(self.wake_after.map_or(delay, |known| known.min(delay)));
        self
    }

    /// Requests a call when the caches show what this outcome wrote: persist first, act then.
    pub fn wake_when_applied(&mut self) -> &mut Outcome {
        self.wake_when_applied = true;
        self
    }

    /// Adds an [`Operation::Create`].
    pub fn create(&mut self, key: impl Into<String>, place: Place, object: Value) -> &mut Outcome {
        self.operations.push(Operation::Create { key: key.into(), place, object });
        self
    }

    /// Adds an [`Operation::Apply`].
    pub fn apply(&mut self, key: impl Into<String>, place: Place, object: Value) -> &mut Outcome {
        self.operations.push(Operation::Apply { key: key.into(), place, object });
        self
    }

    /// Adds an [`Operation::Patch`].
    pub fn patch(&mut self, key: impl Into<String>, place: Place, target: ObjectRef, merge: Value) -> &mut Outcome {
        self.operations.push(Operation::Patch { key: key.into(), place, target, merge });
        self
    }

    /// Adds an [`Operation::SetConditionOf`].
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

    /// Adds an [`Operation::Delete`].
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

    /// Memory use in bytes, roughly.
    pub fn bytes(&self) -> usize {
        let trees: usize = self.status.iter().chain(&self.own).map(bounded::cost).sum();
        let conditions: usize = self.conditions.iter().map(Condition::bytes).sum();
        let events: usize =
            self.events.iter().map(|event| size_of::<Event>() + event.reason.len() + event.message.len()).sum();
        trees + conditions + events + self.operations.iter().map(Operation::bytes).sum::<usize>()
    }

    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        *self == Outcome::default()
    }

    /// The condition of this type, if it was set.
    pub fn condition_named(&self, name: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.name == name)
    }

    /// The status patches applied to an empty status.
    pub fn merged_status(&self) -> Value {
        let mut merged = Value::Object(Map::new());
        self.status.iter().for_each(|patch| merge_patch::apply(&mut merged, patch));
        merged
    }
}

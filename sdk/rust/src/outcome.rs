//! What should be: collected during a call, carried out by the host after it, in order.
//!
//! An outcome is a plain value. Nothing takes effect while the provider runs; all of it does afterwards, also when the
//! provider returned a [`crate::Problem`]. What is not set stays as it is.

use std::time::Duration;

use serde_json::Value;

use crate::host::ObjectRef;

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The one that holds the Cluster objects.
    Management,
    /// The one of the cluster being provisioned.
    Workload,
}

/// A condition; no status is `Unknown`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type: `ContainerProvisioned`.
    pub name: String,
    /// True, false or unknown.
    pub status: Option<bool>,
    /// CamelCase.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// An event about the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// CamelCase.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// One operation. `key` names it in [`crate::Host::results`] of the next pass.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of the methods of `Outcome`")]
pub enum Operation {
    Create { key: String, place: Place, object: Value },
    Apply { key: String, place: Place, object: Value },
    Patch { key: String, place: Place, target: ObjectRef, merge: Value },
    SetConditionOf { key: String, target: ObjectRef, condition: Condition },
    Delete { key: String, place: Place, target: ObjectRef, uid: Option<String> },
}

/// Everything that one call collected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// JSON merge patches of the status, in order.
    pub status: Vec<Value>,
    /// JSON merge patches of spec and metadata, within the declared own paths.
    pub own: Vec<Value>,
    /// The last one of a name counts.
    pub conditions: Vec<Condition>,
    /// In order.
    pub events: Vec<Event>,
    /// In order; the first failure stops the rest.
    pub operations: Vec<Operation>,
    /// The shortest that was asked for.
    pub wake_after: Option<Duration>,
    /// Call again as soon as what was written can be read.
    pub wake_when_applied: bool,
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
        self.events.push(Event { warning: false, reason: reason.to_owned(), message: message.into() });
        self
    }

    /// A warning event.
    pub fn warning(&mut self, reason: &str, message: impl Into<String>) -> &mut Outcome {
        self.events.push(Event { warning: true, reason: reason.to_owned(), message: message.into() });
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

    /// The condition of that name, when it was set.
    pub fn condition_named(&self, name: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.name == name)
    }

    /// What the status patches make of an empty status.
    pub fn merged_status(&self) -> Value {
        let mut merged = Value::Object(serde_json::Map::new());
        for patch in &self.status {
            crate::object::merge(&mut merged, patch);
        }
        merged
    }
}

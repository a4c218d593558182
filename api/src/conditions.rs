//! Conditions in metav1 form on untyped objects: reading, setting, and building one from others.
//!
//! - [`get`] and [`set`] work on `status.conditions`; `set` keeps `lastTransitionTime` unless the status changed.
//! - [`mirror`] copies another object's condition, or falls back when it was not reported.
//! - [`summary`] merges conditions of one object (`Ready` of a Machine from its parts).
//! - [`aggregate`] merges the same condition of many objects (`WorkersAvailable` from MachineDeployments).
//!
//! No condition carries `observedGeneration`: with it, every write to a spec would cause a second write to a status that
//! says nothing new.

mod aggregate;
mod informational;
mod merge;
mod mirror;
mod summary;

pub use aggregate::{Aggregate, Reported, aggregate, aggregate_reported};
pub use informational::is_informational;
pub use merge::{Polarity, Reasons};
pub use mirror::mirror;
pub use summary::{Part, summary};

use capwasm_object::{conditions, json};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    Unknown,
}

impl Status {
    /// `True`, `False` or `Unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
            Status::Unknown => "Unknown",
        }
    }

    /// Other texts than `True` and `False` are unknown.
    pub fn parse(text: &str) -> Status {
        match text {
            "True" => Status::True,
            "False" => Status::False,
            _ => Status::Unknown,
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Status {
        if holds { Status::True } else { Status::False }
    }
}

/// A condition in metav1 form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Type, such as `Ready`.
    pub name: String,
    /// Status of the condition.
    pub status: Status,
    /// CamelCase reason.
    pub reason: String,
    /// Message for people; may be empty.
    pub message: String,
    /// When the status last changed, RFC 3339. Ignored by [`set`], which maintains it.
    pub last_transition_time: Option<String>,
}

impl Condition {
    /// A condition without a message.
    pub fn new(name: impl Into<String>, status: impl Into<Status>, reason: impl Into<String>) -> Condition {
        Condition {
            name: name.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            last_transition_time: None,
        }
    }

    /// Sets the message.
    pub fn message(mut self, message: impl Into<String>) -> Condition {
        self.message = message.into();
        self
    }

    /// Sets the type.
    pub fn named(mut self, name: impl Into<String>) -> Condition {
        self.name = name.into();
        self
    }

    /// [`Condition::last_transition_time`], parsed.
    pub fn since(&self) -> Option<Timestamp> {
        self.last_transition_time.as_deref()?.parse().ok()
    }

    /// Parses an entry of a list of conditions. v1beta1 conditions need no reason when they are True.
    pub fn from_value(entry: &Value) -> Option<Condition> {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let (name, since) = (text("type"), text("lastTransitionTime"));
        (!name.is_empty()).then(|| Condition {
            name: name.to_owned(),
            status: Status::parse(text("status")),
            reason: text("reason").to_owned(),
            message: text("message").to_owned(),
            last_transition_time: (!since.is_empty()).then(|| since.to_owned()),
        })
    }
}

/// A condition of an object. Objects of contract v1beta1 may have metav1 conditions in `status.v1beta2`, which are
/// preferred.
pub fn get(object: &Value, name: &str) -> Option<Condition> {
    conditions::entries(object, name).find_map(Condition::from_value)
}

/// The status of a condition.
pub fn status(object: &Value, name: &str) -> Option<Status> {
    conditions::get(object, name)
        .map(|entry| Status::parse(entry.get("status").and_then(Value::as_str).unwrap_or_default()))
}

/// Whether a condition is reported as True.
pub fn is_true(object: &Value, name: &str) -> bool {
    status(object, name) == Some(Status::True)
}

/// Whether a condition is reported as False.
pub fn is_false(object: &Value, name: &str) -> bool {
    status(object, name) == Some(Status::False)
}

/// Sets a condition in `status.conditions`. The time of the last transition changes only with the status.
pub fn set(object: &mut Value, condition: &Condition, now: Timestamp) {
    // metav1 wants a reason; providers of the v1beta1 contract may have none.
    let reason = if condition.reason.is_empty() { crate::names::reason::NO_REASON_REPORTED } else { &condition.reason };
    let entry = json!({
        "type": condition.name, "status": condition.status.as_str(), "reason": reason, "message": condition.message,
    });
    let list = json::map(object, &["status"]).entry("conditions").or_insert(Value::Null);
    conditions::put(json::list(list), entry, &timestamp(now));
}

/// Removes a condition from `status.conditions`.
pub fn remove(object: &mut Value, name: &str) {
    if let Some(list) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        list.retain(|entry| json::text(entry, "/type") != Some(name));
    }
}

/// RFC 3339 in seconds, as metav1.Time.
pub fn timestamp(now: Timestamp) -> String {
    // Without a formatter's language, which would be part of every component.
    format!("{now:.0}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut object = json!({});
        set(&mut object, &Condition::new("Ready", false, "NotReady"), at("2026-01-01T00:00:00.5Z"));
        set(&mut object, &Condition::new("Ready", false, "Other").message("why"), at("2026-01-02T00:00:00Z"));
        let kept = get(&object, "Ready").unwrap();
        assert_eq!(kept.last_transition_time.as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!((kept.reason.as_str(), kept.message.as_str()), ("Other", "why"));
        set(&mut object, &Condition::new("Ready", true, ""), at("2026-01-03T00:00:00Z"));
        let changed = get(&object, "Ready").unwrap();
        assert_eq!(changed.last_transition_time.as_deref(), Some("2026-01-03T00:00:00Z"));
        assert_eq!(changed.reason, "NoReasonReported");
        assert_eq!(object["status"]["conditions"].as_array().unwrap().len(), 1);
        remove(&mut object, "Ready");
        assert_eq!(get(&object, "Ready"), None);
    }

    #[test]
    fn metav1_conditions_of_an_old_contract_object_are_preferred() {
        let object = json!({"status": {
            "conditions": [{"type": "Ready", "status": "False", "severity": "Info"}],
            "v1beta2": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}}});
        assert!(is_true(&object, "Ready"));
        assert!(!is_false(&object, "Absent"));
    }
}

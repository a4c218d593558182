//! Conditions as objects carry them: lists of maps with `type`, `status`, `reason`, `message` and `lastTransitionTime`.
//!
//! Reading knows both versions of Cluster API's contract; writing has one rule for time, metav1's: `lastTransitionTime` changes when
//! the status does, and with nothing else.

use serde_json::{Value, json};

use crate::json;

/// Paths of conditions, in order of preference: v1beta1 objects may have metav1 conditions besides their older ones.
const LISTS: [&str; 2] = ["/status/v1beta2/conditions", "/status/conditions"];

/// Conditions of a type, the preferred one first.
pub fn entries<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    LISTS.into_iter().filter_map(move |list| find(json::items(object, list), name))
}

/// The preferred condition of a type.
pub fn get<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    entries(object, name).next()
}

/// Whether a condition is reported as True.
pub fn is_true(object: &Value, name: &str) -> bool {
    get(object, name).is_some_and(|condition| text(condition, "status") == "True")
}

/// The condition of a type in a list.
pub fn find<'a>(list: &'a [Value], name: &str) -> Option<&'a Value> {
    list.iter().find(|condition| text(condition, "type") == name)
}

/// Adds a condition to a list, or replaces the one of its type.
pub fn put(list: &mut Vec<Value>, mut condition: Value, now: &str) {
    stamp(&mut condition, list, now);
    match list.iter_mut().find(|held| text(held, "type") == text(&condition, "type")) {
        Some(held) => *held = condition,
        None => list.push(condition),
    }
}

/// Sets `lastTransitionTime`: that of `before` if the status is the same there, otherwise `now` (RFC 3339).
pub fn stamp(condition: &mut Value, before: &[Value], now: &str) {
    let held = find(before, text(condition, "type"));
    let same = held.filter(|held| text(held, "status") == text(condition, "status"));
    let since = same.map(|held| text(held, "lastTransitionTime")).filter(|since| !since.is_empty());
    json::set(condition, &["lastTransitionTime"], json!(since.unwrap_or(now)));
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_time_changes_with_the_status_and_with_nothing_else() {
        let held = json!({"type": "A", "status": "True", "reason": "R", "lastTransitionTime": "then"});
        for (row, held, condition, expected) in [
            ("another reason", Some(&held), json!({"type": "A", "status": "True", "reason": "S"}), "then"),
            ("another message", Some(&held), json!({"type": "A", "status": "True", "message": "m"}), "then"),
            ("another severity", Some(&held), json!({"type": "A", "status": "True", "severity": "Info"}), "then"),
            ("another status", Some(&held), json!({"type": "A", "status": "False", "reason": "R"}), "now"),
            (
                "no time so far",
                Some(&json!({"type": "A", "status": "True"})),
                json!({"type": "A", "status": "True"}),
                "now",
            ),
            ("another type", Some(&held), json!({"type": "B", "status": "True"}), "now"),
            ("the first one", None, json!({"type": "A", "status": "True"}), "now"),
        ] {
            let mut list: Vec<Value> = held.cloned().into_iter().collect();
            let mut expected_one = condition.clone();
            json::set(&mut expected_one, &["lastTransitionTime"], expected);
            put(&mut list, condition, "now");
            assert_eq!(list.last(), Some(&expected_one), "{row}");
            assert_eq!(list.len(), if row == "another type" { 2 } else { 1 }, "{row}");
        }
    }

    #[test]
    fn metav1_conditions_of_an_old_contract_object_are_preferred() {
        let object = json!({"status": {
            "conditions": [{"type": "Ready", "status": "False", "severity": "Info"}, {"type": "Old", "status": "True"}],
            "v1beta2": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}}});
        assert!(is_true(&object, "Ready") && is_true(&object, "Old"));
        assert!(!is_true(&object, "Absent"));
        assert_eq!(entries(&object, "Ready").count(), 2);
    }
}

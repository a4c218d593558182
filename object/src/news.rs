//! What of an object anybody but people acts on, as a digest: two states with the same digest differ in nothing else.

use std::hash::{Hash, Hasher};

use serde_json::{Map, Value};

/// Bookkeeping of `metadata`.
const BOOKKEEPING: [&str; 4] = ["generation", "managedFields", "resourceVersion", "selfLink"];

/// Fields of a status that say in other words what its other fields say.
const ABOUT: [&str; 3] = ["lastUpdated", "observedGeneration", "phase"];

/// What others act on of a provider's object, in the words of both contract versions, for [`field`]. The rest of its status is for
/// people, or sums up what happens to other objects.
pub const OF_PROVIDED: &[&str] = &[
    "/metadata/annotations",
    "/metadata/deletionTimestamp",
    "/metadata/labels",
    "/spec",
    "/status/addresses",
    "/status/conditions#Available",
    "/status/conditions#Ready",
    "/status/dataSecretName",
    "/status/failureDomains",
    "/status/failureReason",
    "/status/initialization",
    "/status/initialized",
    "/status/ready",
];

/// Feeds `hasher` with everything but bookkeeping, fields of the status that sum up others, and of conditions all but the types of
/// those that are True: reasons, messages and times are for people, and whether something is False or Unknown is as good as the same.
pub fn digest(object: &Value, hasher: &mut impl Hasher) {
    let Some(fields) = object.as_object() else { return object.hash(hasher) };
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                metadata
                    .iter()
                    .filter(|(name, _)| !BOOKKEEPING.contains(&name.as_str()))
                    .for_each(|field| field.hash(hasher));
            }
            ("status", Value::Object(fields)) => status(fields, hasher),
            field => field.hash(hasher),
        }
    }
}

/// A field by its JSON pointer; behind a `#`, the status of the condition of that type, as in `/status/conditions#Ready`.
pub fn field<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    let Some((conditions, wanted)) = field.split_once('#') else { return object.pointer(field) };
    object.pointer(conditions)?.as_array()?.iter().find(|condition| condition["type"] == wanted)?.get("status")
}

fn status(fields: &Map<String, Value>, hasher: &mut impl Hasher) {
    for (name, value) in fields {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            (name, _) if ABOUT.contains(&name) => {}
            ("conditions", Value::Array(conditions)) => {
                for condition in conditions.iter().filter(|condition| condition["status"] == "True") {
                    condition["type"].hash(hasher);
                }
            }
            // The same in the words of older versions.
            ("deprecated", Value::Object(versions)) => {
                versions.values().filter_map(Value::as_object).for_each(|version| status(version, hasher));
            }
            field => field.hash(hasher),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_a_pointer_or_the_status_of_a_condition() {
        let object =
            json!({"spec": {"a": 1}, "status": {"conditions": [{"type": "Up"}, {"type": "Ready", "status": "True"}]}});
        let rows = [
            ("/spec/a", Some(json!(1))),
            ("/spec/b", None),
            ("/status/conditions#Ready", Some(json!("True"))),
            ("/status/conditions#Up", None),
            ("/status/conditions#Down", None),
            ("/spec/a#Ready", None),
        ];
        for (name, expected) in rows {
            assert_eq!(field(&object, name), expected.as_ref(), "{name}");
        }
    }

    #[test]
    fn what_only_people_read_is_no_news() {
        let with = |patch: Value| {
            let mut object = json!({
                "metadata": {"name": "m", "labels": {"a": "1"}, "resourceVersion": "1", "generation": 1},
                "spec": {"paused": false},
                "status": {"replicas": 1, "phase": "Pending", "conditions": [
                    {"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "t"},
                    {"type": "Up", "status": "False", "reason": "R"},
                ]},
            });
            crate::merge_patch::apply(&mut object, &patch);
            object
        };
        let conditions = |ready: &str, reason: &str, up: &str| {
            json!({"status": {"conditions": [
                {"type": "Ready", "status": ready, "reason": reason}, {"type": "Up", "status": up},
            ]}})
        };
        let digest_of = |object: &Value| {
            let mut hasher = DefaultHasher::new();
            digest(object, &mut hasher);
            hasher.finish()
        };
        let rows = [
            ("nothing", json!({}), false),
            (
                "bookkeeping",
                json!({"metadata": {"resourceVersion": "2", "generation": 2, "managedFields": [1]}}),
                false,
            ),
            ("what sums up", json!({"status": {"phase": "Running", "observedGeneration": 3}}), false),
            ("a reason", conditions("True", "Other", "False"), false),
            ("False becomes Unknown", conditions("True", "R", "Unknown"), false),
            ("False becomes True", conditions("True", "R", "True"), true),
            ("True becomes Unknown", conditions("Unknown", "R", "False"), true),
            (
                "an older version's reason",
                json!({"status": {"deprecated": {"v1beta1": {"conditions": [{"type": "Ready", "status": "False"}]}}}}),
                false,
            ),
            ("a counter", json!({"status": {"replicas": 2}}), true),
            ("a label", json!({"metadata": {"labels": {"a": "2"}}}), true),
            ("deletion", json!({"metadata": {"deletionTimestamp": "t"}}), true),
            ("the spec", json!({"spec": {"paused": true}}), true),
            ("another field", json!({"data": {"k": "v"}}), true),
        ];
        let before = digest_of(&with(json!({})));
        for (row, patch, news) in rows {
            assert_eq!(digest_of(&with(patch)) != before, news, "{row}");
        }
    }
}

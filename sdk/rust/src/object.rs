//! Small accessors for Kubernetes objects as JSON, typed specs, and the JSON merge patch (RFC 7386).

use capwasm_api::json;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::problem::Problem;
use crate::refused::{Refusal, Refused};

/// The string at a JSON pointer, empty when it is not there: `text(&object, "/spec/clusterName")`.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    json::at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Reads the text of an object, but no more than some parts of it: paths of keys, which go on in each item of a list. Most of
/// what a read costs is parsing what nobody looks at. What is absent stays absent.
///
/// ```
/// let pod = r#"{"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "message": "long"}]}}"#;
/// let seen = capwasm_sdk::object::parts(pod, &["metadata", "status/conditions/type"]).unwrap();
/// assert_eq!(seen, serde_json::json!({"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready"}]}}));
/// ```
///
/// # Errors
/// When the text is not JSON, which no host hands out.
pub fn parts(text: &str, parts: &[&str]) -> Result<Value, Refused> {
    let read = crate::parts::read(text, parts);
    read.map_err(|error| Refused::new(Refusal::Invalid, "NotJson", format!("an object is not JSON: {error}")))
}

/// `kind`.
pub fn kind(object: &Value) -> &str {
    text(object, "/kind")
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    json::name(object)
}

/// `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    json::namespace(object)
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    json::uid(object)
}

/// `spec` in the shape that a provider reads it; the default when there is none, an `invalid` problem when it has
/// another shape.
///
/// ```
/// #[derive(Default, PartialEq, Debug, serde::Deserialize)]
/// #[serde(default)]
/// struct BoxSpec { size: u32 }
///
/// let sized = serde_json::json!({"spec": {"size": 3, "colour": "red"}});
/// assert_eq!(capwasm_sdk::object::spec::<BoxSpec>(&sized), Ok(BoxSpec { size: 3 }));
/// ```
pub fn spec<T: for<'de> Deserialize<'de> + Default>(object: &Value) -> Result<T, Problem> {
    match object.get("spec") {
        None | Some(Value::Null) => Ok(T::default()),
        Some(spec) => T::deserialize(spec)
            .map_err(|error| Problem::invalid("BadSpec", format!("spec of {}: {error}", name(object)))),
    }
}

/// A label's value.
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

/// An annotation's value.
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// An owner reference to `owner`, for what is made for it and should go with it.
pub fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": text(owner, "/apiVersion"), "kind": kind(owner), "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Whether it is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    json::at(object, "/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// A condition of `status.conditions` by its type.
pub fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    json::at(object, "/status/conditions")?.as_array()?.iter().find(|condition| text(condition, "/type") == name)
}

/// Whether a condition is `True`.
pub fn is_true(object: &Value, name: &str) -> bool {
    condition(object, name).is_some_and(|condition| text(condition, "/status") == "True")
}

/// Applies a JSON merge patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(existing) = target {
        for (name, value) in fields {
            if value.is_null() {
                existing.remove(name);
            } else {
                merge(existing.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_merge_patch_adds_replaces_and_clears() {
        let mut target = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        merge(&mut target, &json!({"a": {"b": null, "c": [3], "e": {"f": null}}, "d": {"g": 1}}));
        assert_eq!(target, json!({"a": {"c": [3], "e": {}}, "d": {"g": 1}}));
    }
}

//! What every object carries: its kind, and `metadata` with names, labels, versions, finalizers and deletion.
//!
//! What an object does not have reads as empty: an object that was not stored yet has no uid, one of a cluster-scoped kind no namespace.

use serde_json::{Map, Value};

use crate::{group_version, json};

static NULL: Value = Value::Null;

/// `metadata.<name>`; null when absent.
pub fn field<'a>(object: &'a Value, name: &str) -> &'a Value {
    object.get("metadata").and_then(|metadata| metadata.get(name)).unwrap_or(&NULL)
}

/// `metadata.<name>` as text; empty when absent.
pub fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    field(object, name).as_str().unwrap_or_default()
}

/// `metadata.<name>` as a list; empty when absent.
pub fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    field(object, name).as_array().map_or(&[], Vec::as_slice)
}

/// `apiVersion`; empty when absent.
pub fn api_version(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

/// The group of `apiVersion`; empty for the core group.
pub fn group(object: &Value) -> &str {
    group_version::group(api_version(object))
}

/// `kind`; empty when absent.
pub fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// A label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    field(object, "labels").get(key)?.as_str()
}

/// An annotation's value.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    field(object, "annotations").get(key)?.as_str()
}

/// `metadata.resourceVersion`; empty for an object that was not stored.
pub fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

/// The resourceVersion as a number, where it is one. Servers promise that these can be compared within a resource.
pub fn revision(object: &Value) -> Option<u64> {
    resource_version(object).parse().ok()
}

/// `metadata.generation`, which counts the changes of the spec; 0 where it is not counted.
pub fn generation(object: &Value) -> i64 {
    field(object, "generation").as_i64().unwrap_or(0)
}

/// Whether `metadata.deletionTimestamp` is set.
pub fn is_deleting(object: &Value) -> bool {
    !field(object, "deletionTimestamp").is_null()
}

/// `metadata.finalizers`, in order.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "finalizers").iter().filter_map(Value::as_str)
}

/// Whether it carries the finalizer.
pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).any(|held| held == finalizer)
}

/// Adds the finalizer unless it is there. Returns whether it was added.
pub fn add_finalizer(object: &mut Value, finalizer: &str) -> bool {
    let missing = !has_finalizer(object, finalizer);
    if missing {
        list_mut(object, "finalizers").push(Value::String(finalizer.to_owned()));
    }
    missing
}

/// Replaces the finalizers; an empty list removes the field.
pub fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        remove(object, "finalizers");
    } else {
        set(object, "finalizers", finalizers);
    }
}

/// Sets `metadata.<name>`.
pub fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    map(object).insert(name.to_owned(), value.into());
}

/// Removes `metadata.<name>`.
pub fn remove(object: &mut Value, name: &str) {
    map(object).remove(name);
}

/// Removes and returns `metadata.<name>`; null when absent.
pub fn take(object: &mut Value, name: &str) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.and_then(|metadata| metadata.remove(name)).unwrap_or(Value::Null)
}

/// Puts back a value of [`take`]; null is ignored.
pub fn give(object: &mut Value, name: &str, value: Value) {
    if !value.is_null() {
        set(object, name, value);
    }
}

/// Sets `metadata.<name>` to that of `from`, or removes it.
pub fn copy(object: &mut Value, from: &Value, name: &str) {
    match field(from, name) {
        Value::Null => remove(object, name),
        value => set(object, name, value.clone()),
    }
}

/// `metadata`, created if absent; other values are replaced.
pub fn map(object: &mut Value) -> &mut Map<String, Value> {
    json::map(object, &["metadata"])
}

/// The list `metadata.<name>`, created if absent; other values are replaced.
pub fn list_mut<'a>(object: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    json::list(map(object).entry(name).or_insert(Value::Null))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_object_does_not_have_reads_as_empty() {
        let bare = json!({"metadata": {"name": 7, "deletionTimestamp": null}});
        assert_eq!((api_version(&bare), group(&bare), kind(&bare), name(&bare), uid(&bare)), ("", "", "", "", ""));
        assert_eq!((revision(&bare), generation(&bare), is_deleting(&bare)), (None, 0, false));
        assert_eq!((label(&bare, "a"), annotation(&bare, "a"), finalizers(&bare).count()), (None, None, 0));
        assert_eq!(name(&json!("no object")), "");
    }

    #[test]
    fn what_it_has_is_read_as_it_stands() {
        let object = json!({"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "n", "namespace": "s", "uid": "u",
            "labels": {"l": ""}, "annotations": {"x/y": "z"}, "resourceVersion": "12", "generation": 3,
            "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!((group(&object), kind(&object)), ("a.b", "K"));
        assert_eq!((name(&object), namespace(&object), uid(&object)), ("n", "s", "u"));
        assert_eq!((label(&object, "l"), annotation(&object, "x/y")), (Some(""), Some("z")));
        assert_eq!((resource_version(&object), revision(&object), generation(&object)), ("12", Some(12), 3));
        assert!(is_deleting(&object));
    }

    #[test]
    fn what_was_taken_is_given_back() {
        let mut object = json!({"metadata": {"a": 1}});
        let (held, absent) = (take(&mut object, "a"), take(&mut object, "b"));
        assert_eq!((&held, &absent, &object), (&json!(1), &Value::Null, &json!({"metadata": {}})));
        give(&mut object, "a", held);
        give(&mut object, "b", absent);
        assert_eq!(object, json!({"metadata": {"a": 1}}));
    }

    #[test]
    fn a_finalizer_is_added_once() {
        let mut object = json!({});
        assert!(add_finalizer(&mut object, "a"));
        assert!(!add_finalizer(&mut object, "a"));
        assert_eq!(object, json!({"metadata": {"finalizers": ["a"]}}));
        set_finalizers(&mut object, Vec::new());
        assert_eq!(object, json!({"metadata": {}}));
    }

    #[test]
    fn a_field_is_copied_or_removed_with_the_other() {
        let mut object = json!({"metadata": {"a": 1, "b": 2}});
        copy(&mut object, &json!({"metadata": {"a": 3}}), "a");
        copy(&mut object, &json!({}), "b");
        assert_eq!(object, json!({"metadata": {"a": 3}}));
    }
}

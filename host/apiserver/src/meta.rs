//! Reading and writing `metadata` of untyped objects.

use serde_json::{Map, Value, json};

static NULL: Value = Value::Null;

/// `metadata.<field>` as text, empty when absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.<field>`, null when absent.
pub(crate) fn field<'a>(object: &'a Value, field: &str) -> &'a Value {
    object.get("metadata").and_then(|m| m.get(field)).unwrap_or(&NULL)
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// The revision in `metadata.resourceVersion`; `None` when absent, empty or not a number.
pub(crate) fn revision(object: &Value) -> Option<u64> {
    text(object, "resourceVersion").parse().ok()
}

pub(crate) fn generation(object: &Value) -> i64 {
    field(object, "generation").as_i64().unwrap_or(0)
}

/// Whether deletion was asked for.
pub(crate) fn deleting(object: &Value) -> bool {
    !field(object, "deletionTimestamp").is_null()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    field(object, "finalizers").as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).contains(&finalizer)
}

/// Replaces the finalizers; an empty list removes the field.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        remove(object, "finalizers");
    } else {
        set(object, "finalizers", json!(finalizers));
    }
}

/// The metadata map, made if absent. A non-object `metadata` is replaced: callers have checked the shape before.
pub(crate) fn map(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let root = object.as_object_mut()?;
    let metadata = root.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut()
}

pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(metadata) = map(object) {
        metadata.insert(field.to_owned(), value);
    }
}

pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Some(metadata) = map(object) {
        metadata.remove(field);
    }
}

/// Sets `field` of `object` to what `from` has, or removes it.
pub(crate) fn copy(object: &mut Value, from: &Value, name: &str) {
    match field(from, name) {
        Value::Null => remove(object, name),
        value => set(object, name, value.clone()),
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub blocks: bool,
}

pub(crate) fn owners(object: &Value) -> Vec<OwnerRef> {
    let text =
        |reference: &Value, field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let owner = |reference: &Value| OwnerRef {
        api_version: text(reference, "apiVersion"),
        kind: text(reference, "kind"),
        name: text(reference, "name"),
        uid: text(reference, "uid"),
        blocks: reference.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false),
    };
    field(object, "ownerReferences").as_array().into_iter().flatten().map(owner).collect()
}

/// Splits `group/version`; the core group is empty.
pub(crate) fn split_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Joins group and version.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

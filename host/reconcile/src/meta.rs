//! Reading and editing the metadata of objects as JSON: finalizers and owner references.

use serde_json::{Map, Value, json};

/// A text field of the metadata; empty when it is not there.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// The resourceVersion as a number, where it is one. Servers promise that these can be compared within a resource.
pub fn version(object: &Value) -> Option<u64> {
    text(object, "resourceVersion").parse().ok()
}

/// Whether deletion has been asked for.
pub fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// The finalizers, in order.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "finalizers").iter().filter_map(Value::as_str)
}

/// Whether it carries the finalizer.
pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).any(|held| held == finalizer)
}

/// Adds the finalizer unless it is there. Returns whether it was added.
pub fn add_finalizer(object: &mut Value, finalizer: &str) -> bool {
    if has_finalizer(object, finalizer) {
        return false;
    }
    list_mut(object, "finalizers").push(Value::String(finalizer.to_owned()));
    true
}

/// The owner references, in order.
pub fn owner_references(object: &Value) -> &[Value] {
    list(object, "ownerReferences")
}

/// Whether an owner has this uid.
pub fn is_owned_by(object: &Value, uid: &str) -> bool {
    owner_references(object).iter().any(|owner| owner["uid"] == uid)
}

/// An owner reference to `owner`, which must carry its apiVersion, kind, name and uid. `controller` makes it the
/// controlling one, which also blocks a foreground deletion of the owner.
pub fn reference_to(owner: &Value, controller: bool) -> Value {
    let mut reference = json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    });
    if controller {
        reference["controller"] = Value::Bool(true);
        reference["blockOwnerDeletion"] = Value::Bool(true);
    }
    reference
}

/// Makes `reference` one of the owner references: one to the same owner (group, kind and name) is replaced, whatever
/// its version or uid; a new controlling reference takes control from another. Returns whether anything changed.
pub fn set_owner(object: &mut Value, reference: Value) -> bool {
    let same_owner = |held: &Value| {
        let group =
            |value: &Value| value["apiVersion"].as_str().unwrap_or_default().rsplit_once('/').map(|g| g.0.to_owned());
        group(held) == group(&reference) && held["kind"] == reference["kind"] && held["name"] == reference["name"]
    };
    let owners = list_mut(object, "ownerReferences");
    let before = owners.clone();
    if reference["controller"] == true {
        for owner in owners.iter_mut().filter(|held| !same_owner(held)) {
            if let Some(fields) = owner.as_object_mut() {
                fields.remove("controller");
            }
        }
    }
    match owners.iter().position(same_owner) {
        Some(index) => owners[index] = reference,
        None => owners.push(reference),
    }
    *owners != before
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The list at `metadata.<field>`, made if it is not there; what is no list or no object is replaced.
fn list_mut<'a>(object: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    let list = object_at(object_at(object).entry("metadata").or_insert(Value::Null))
        .entry(field)
        .or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    match list {
        Value::Array(items) => items,
        _ => unreachable!("made an array above"),
    }
}

fn object_at(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_added_once() {
        let mut object = json!({});
        assert!(add_finalizer(&mut object, "a"));
        assert!(!add_finalizer(&mut object, "a"));
        assert_eq!(object, json!({"metadata": {"finalizers": ["a"]}}));
    }

    #[test]
    fn an_owner_is_replaced_across_versions_and_takes_control() {
        let owner = |version: &str, uid: &str| json!({"apiVersion": format!("g.io/{version}"), "kind": "Set", "metadata": {"name": "s", "uid": uid}});
        let mut object = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "0", "controller": true}]}});
        assert!(set_owner(&mut object, reference_to(&owner("v1", "1"), false)));
        assert!(set_owner(&mut object, reference_to(&owner("v2", "2"), true)));
        assert!(!set_owner(&mut object, reference_to(&owner("v2", "2"), true)));
        assert_eq!(owner_references(&object).len(), 2);
        assert_eq!(owner_references(&object)[0].get("controller"), None);
        assert!(is_owned_by(&object, "2") && !is_owned_by(&object, "1"));
    }
}

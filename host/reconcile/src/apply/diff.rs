//! What differs between what was observed and what is desired, as JSON merge patches (RFC 7386).
//!
//! A merge patch replaces lists as a whole. So a patch that touches a list to which others add too (finalizers, owner
//! references, conditions) carries the resourceVersion that the list was computed from, and the server refuses it when
//! the object has changed since.

use capwasm_object::{merge_patch, meta};
use serde_json::{Map, Value, json};

/// Metadata that a plan can change.
const OWN_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// The patch for everything but the status. Finalizers in `release` are not removed by it.
pub(crate) fn own_patch(observed: &Value, desired: &Value, release: &[String]) -> Option<Value> {
    let mut wanted = own_part(desired);
    let kept: Vec<&str> = meta::finalizers(observed)
        .filter(|finalizer| release.iter().any(|released| released == finalizer))
        .filter(|finalizer| !meta::has_finalizer(desired, finalizer))
        .collect();
    for finalizer in kept {
        meta::add_finalizer(&mut wanted, finalizer);
    }
    let mut patch = merge_patch::diff(&own_part(observed), &wanted)?;
    let shared = ["/metadata/finalizers", "/metadata/ownerReferences"];
    if shared.iter().any(|list| patch.pointer(list).is_some()) {
        guard(&mut patch, observed);
    }
    Some(patch)
}

/// The patch for the status. Conditions are merged by type into those of `live`, which may be newer than `observed`.
pub(crate) fn status_patch(observed: &Value, desired: &Value, live: &Value) -> Option<Value> {
    let nothing = json!({});
    let status = |object: &'_ Value| object.get("status").cloned().unwrap_or_else(|| nothing.clone());
    desired.get("status")?;
    let (before, now) = (status(observed), status(live));
    let mut difference = merge_patch::diff(&before, &status(desired))?;
    let with_conditions = rebase_conditions(&mut difference, &before, &now);
    let mut patch = json!({ "status": difference });
    if with_conditions {
        guard(&mut patch, live);
    }
    Some(patch)
}

/// The patch that removes the released finalizers, if the object has any.
pub(crate) fn release_patch(live: &Value, release: &[String]) -> Option<Value> {
    let is_released = |finalizer: &&str| release.iter().any(|released| released == finalizer);
    if !meta::finalizers(live).any(|finalizer| is_released(&finalizer)) {
        return None;
    }
    let rest: Vec<&str> = meta::finalizers(live).filter(|finalizer| !is_released(finalizer)).collect();
    let mut patch = json!({"metadata": {"finalizers": rest}});
    guard(&mut patch, live);
    Some(patch)
}

/// Adds the resourceVersion of `seen`, so that the server refuses the patch if the object has changed.
pub(crate) fn guard(patch: &mut Value, seen: &Value) {
    patch["metadata"]["resourceVersion"] = json!(meta::resource_version(seen));
}

/// The object without apiVersion, kind, status and metadata that only the server sets.
fn own_part(object: &Value) -> Value {
    let mut own = object.as_object().cloned().unwrap_or_default();
    for field in ["apiVersion", "kind", "status"] {
        own.remove(field);
    }
    let metadata = own.remove("metadata").unwrap_or_default();
    let kept: Map<String, Value> = OWN_METADATA
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), metadata.get(field)?.clone())))
        // An empty list or map and none are the same to the server.
        .filter(|(_, value)| !is_empty(value))
        .collect();
    own.insert("metadata".to_owned(), Value::Object(kept));
    Value::Object(own)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Applies the changes of each condition list in `patch`, computed from `before`, to `now`. Returns whether there were
/// any.
fn rebase_conditions(patch: &mut Value, before: &Value, now: &Value) -> bool {
    let Some(fields) = patch.as_object_mut() else { return false };
    let mut found = false;
    for (key, change) in fields {
        let (before, now) = (&before[key.as_str()], &now[key.as_str()]);
        if key == "conditions" && (change.is_array() || change.is_null()) {
            found = true;
            if before != now {
                *change = Value::Array(rebased(list(before), list(change), list(now)));
            }
        } else if change.is_object() {
            found |= rebase_conditions(change, before, now);
        }
    }
    found
}

fn rebased(before: &[Value], wanted: &[Value], now: &[Value]) -> Vec<Value> {
    let of_type =
        |list: &[Value], condition: &Value| list.iter().find(|held| held["type"] == condition["type"]).cloned();
    let mut result: Vec<Value> = now
        .iter()
        .filter(|held| of_type(before, held).is_none() || of_type(wanted, held).is_some())
        .map(|held| match of_type(wanted, held) {
            Some(condition) if of_type(before, held).as_ref() != Some(&condition) => condition,
            _ => held.clone(),
        })
        .collect();
    for condition in wanted {
        if of_type(now, condition).is_none() && of_type(before, condition).as_ref() != Some(condition) {
            result.push(condition.clone());
        }
    }
    result
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_patch_leaves_the_servers_fields_and_the_status_alone() {
        let observed = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "uid": "u",
            "resourceVersion": "7", "generation": 2, "labels": {"a": "1"}, "finalizers": ["x"]},
            "spec": {"replicas": 1}, "status": {"ready": false}});
        let table = [
            ("nothing", json!({}), None),
            ("status only", json!({"status": {"ready": true}}), None),
            ("server metadata", json!({"metadata": {"generation": 9, "resourceVersion": "1"}}), None),
            ("empty annotations", json!({"metadata": {"annotations": {}}}), None),
            ("spec, unguarded", json!({"spec": {"replicas": 2}}), Some(json!({"spec": {"replicas": 2}}))),
            (
                "label, unguarded",
                json!({"metadata": {"labels": {"b": "2"}}}),
                Some(json!({"metadata": {"labels": {"b": "2"}}})),
            ),
            (
                "finalizer, whole list, guarded",
                json!({"metadata": {"finalizers": ["x", "y"]}}),
                Some(json!({"metadata": {"finalizers": ["x", "y"], "resourceVersion": "7"}})),
            ),
            (
                "owner, guarded",
                json!({"metadata": {"ownerReferences": [{"uid": "o"}]}}),
                Some(json!({"metadata": {"ownerReferences": [{"uid": "o"}], "resourceVersion": "7"}})),
            ),
        ];
        for (row, change, expected) in table {
            let mut desired = observed.clone();
            merge_patch::apply(&mut desired, &change);
            assert_eq!(own_patch(&observed, &desired, &[]), expected, "{row}");
        }
    }

    #[test]
    fn released_finalizers_go_last_and_alone() {
        let observed = json!({"metadata": {"resourceVersion": "7", "finalizers": ["x", "ours"]}});
        let desired = json!({"metadata": {"finalizers": ["x"]}});
        let release = ["ours".to_owned()];
        assert_eq!(own_patch(&observed, &desired, &release), None);
        assert_eq!(
            release_patch(&observed, &release),
            Some(json!({"metadata": {"finalizers": ["x"], "resourceVersion": "7"}}))
        );
        assert_eq!(release_patch(&desired, &release), None);
    }

    #[test]
    fn conditions_are_merged_by_type_into_what_is_there_now() {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
        let object = |version: &str, conditions: Vec<Value>| json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions, "phase": "A"}});
        let observed = object("1", vec![condition("Ready", "False"), condition("Old", "True")]);
        let desired = object("1", vec![condition("Ready", "True"), condition("New", "True")]);
        let live =
            object("2", vec![condition("Ready", "False"), condition("Theirs", "True"), condition("Old", "True")]);
        assert_eq!(
            status_patch(&observed, &desired, &live),
            Some(json!({"metadata": {"resourceVersion": "2"}, "status": {"conditions": [
                condition("Ready", "True"), condition("Theirs", "True"), condition("New", "True")]}}))
        );
        let mut phase = observed.clone();
        phase["status"]["phase"] = json!("B");
        assert_eq!(status_patch(&observed, &phase, &live), Some(json!({"status": {"phase": "B"}})), "unguarded");
        assert_eq!(status_patch(&observed, &observed, &live), None);
        assert_eq!(status_patch(&observed, &json!({}), &live), None, "a plan without status leaves it alone");
    }
}

//! What differs between what was observed and what is desired, as JSON merge patches (RFC 7386).
//!
//! A merge patch replaces lists as a whole. So a patch that touches a list to which others add too (finalizers, owner
//! references, conditions) carries the resourceVersion that the list was computed from, and the server refuses it when
//! the object has changed since.

use capwasm_object::{merge_patch, meta};
use serde_json::{Map, Value, json};

/// Metadata that a plan can change, besides the finalizers.
const OWN_METADATA: [&str; 3] = ["annotations", "labels", "ownerReferences"];

/// Fields whose changes are not those of the object itself, or are looked at one by one.
const ELSEWHERE: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The patch for everything but the status, apiVersion, kind and metadata that only the server sets. Finalizers in `release` are not
/// removed by it.
pub(crate) fn own_patch(observed: &Value, desired: &Value, release: &[String]) -> Option<Value> {
    let nothing = Map::new();
    let (old, new) = (observed.as_object().unwrap_or(&nothing), desired.as_object().unwrap_or(&nothing));
    let mut patch = merge_patch::diff_fields(old, new, |field| !ELSEWHERE.contains(&field));
    let metadata = own_metadata(observed, desired, release);
    let shared = ["finalizers", "ownerReferences"].iter().any(|list| metadata.contains_key(*list));
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if patch.is_empty() {
        return None;
    }
    let mut patch = Value::Object(patch);
    if shared {
        guard(&mut patch, observed);
    }
    Some(patch)
}

fn own_metadata(observed: &Value, desired: &Value, release: &[String]) -> Map<String, Value> {
    let changed = |field: &str| merge_patch::diff_optional(metadata(observed, field), metadata(desired, field));
    let mut patch: Map<String, Value> =
        OWN_METADATA.into_iter().filter_map(|field| Some((field.to_owned(), changed(field)?))).collect();
    let kept = meta::finalizers(observed)
        .filter(|finalizer| release.iter().any(|released| released == finalizer))
        .filter(|finalizer| !meta::has_finalizer(desired, finalizer));
    let wanted: Vec<&str> = meta::finalizers(desired).chain(kept).collect();
    if !meta::finalizers(observed).eq(wanted.iter().copied()) {
        patch.insert("finalizers".to_owned(), if wanted.is_empty() { Value::Null } else { json!(wanted) });
    }
    patch
}

/// A field of the metadata. An empty list or map and none are the same to the server.
fn metadata<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(field).filter(|value| !is_empty(value))
}

/// The patch for the status. Conditions are merged by type into those of `live`, which may be newer than `observed`.
pub(crate) fn status_patch(observed: &Value, desired: &Value, live: &Value) -> Option<Value> {
    let nothing = json!({});
    let (before, now) = (observed.get("status").unwrap_or(&nothing), live.get("status").unwrap_or(&nothing));
    let mut difference = merge_patch::diff(before, desired.get("status")?)?;
    let with_conditions = rebase_conditions(&mut difference, before, now);
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

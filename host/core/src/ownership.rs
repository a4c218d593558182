//! Owner references and labels that tie objects together.

use capwasm_api::json;
use capwasm_api::names::{CORE_GROUP, labels};
use capwasm_reconcile::{Action, Target};
use serde_json::{Value, json};

/// An owner reference to `owner`. At most one owner of an object controls it.
pub(crate) fn reference(owner: &Value, controller: bool) -> Value {
    let mut reference = json!({
        "apiVersion": json::text(owner, "/apiVersion").unwrap_or_default(),
        "kind": json::kind(owner),
        "name": json::name(owner),
        "uid": json::uid(owner),
    });
    if controller {
        json::set(&mut reference, &["controller"], true);
        json::set(&mut reference, &["blockOwnerDeletion"], true);
    }
    reference
}

/// The uid of the owner that controls an object.
pub(crate) fn controller_uid(object: &Value) -> Option<&str> {
    json::items(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| json::flag(owner, "/controller") == Some(true))
        .and_then(|owner| json::text(owner, "/uid"))
}

/// Whether another object of this core kind than the one with `uid` controls it: then it is not to be deleted for the sake of a
/// reference that merely names it.
pub(crate) fn is_of_another(object: &Value, kind: &str, uid: &str) -> bool {
    json::items(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| json::flag(owner, "/controller") == Some(true))
        .is_some_and(|owner| {
            json::kind(owner) == kind && json::group(owner) == CORE_GROUP && json::text(owner, "/uid") != Some(uid)
        })
}

/// Whether an object with this uid is among the owners.
pub(crate) fn is_owned_by(object: &Value, uid: &str) -> bool {
    json::items(object, "/metadata/ownerReferences").iter().any(|owner| json::text(owner, "/uid") == Some(uid))
}

/// Adds or renews an owner in the object itself. What else is said in a reference that is there already stays.
pub(crate) fn own(object: &mut Value, reference: &Value) {
    let metadata = json::map(object, &["metadata"]);
    let list = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|owner| owner.get("uid") == reference.get("uid")) {
        Some(owner) => {
            if let (Some(owner), Some(reference)) = (owner.as_object_mut(), reference.as_object()) {
                owner.extend(reference.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        None => list.push(reference.clone()),
    }
}

/// Another object controls what should be ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name} is controlled by another object")]
pub(crate) struct Foreign {
    kind: String,
    name: String,
}

/// The patch of metadata alone that gives `object` the owner and the cluster's label, and takes away the owners with the
/// uids in `replaced`. `None` when it has all that already. Guarded by resourceVersion, because it writes a list.
pub(crate) fn adopt(
    object: &Value,
    owner: &Value,
    cluster: &str,
    replaced: &[&str],
) -> Result<Option<Action>, Foreign> {
    let mut wanted = json!({"metadata": object.get("metadata").cloned().unwrap_or_default()});
    if let Some(list) = wanted.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
        list.retain(|owner| json::text(owner, "/uid").is_none_or(|uid| !replaced.contains(&uid)));
    }
    let controls = json::flag(owner, "/controller") == Some(true);
    if controls && controller_uid(&wanted).is_some_and(|uid| Some(uid) != json::text(owner, "/uid")) {
        return Err(Foreign { kind: json::kind(object).to_owned(), name: json::name(object).to_owned() });
    }
    own(&mut wanted, owner);
    json::set(&mut wanted, &["metadata", "labels", labels::CLUSTER_NAME], cluster);
    let before = json!({"metadata": object.get("metadata").cloned().unwrap_or_default()});
    Ok(json::merge_patch(&before, &wanted).map(|merge| Action::Patch {
        target: Target::of(object),
        merge,
        resource_version: json::text(object, "/metadata/resourceVersion").map(str::to_owned),
        subresource: None,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn owner() -> Value {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m", "uid": "m-uid"}})
    }

    #[test]
    fn c6_c7_adoption_is_one_metadata_patch_and_none_when_it_is_done() {
        let infra = json!({"apiVersion": "i/v1", "kind": "Infra", "metadata": {"name": "i", "namespace": "n", "resourceVersion": "7", "labels": {"a": "b"},
            "ownerReferences": [{"uid": "set-uid"}, {"uid": "other"}]}, "status": {"ready": true}});
        let Some(Action::Patch { merge, resource_version, subresource, .. }) =
            adopt(&infra, &reference(&owner(), true), "c", &["set-uid"]).unwrap()
        else {
            panic!("a patch is due");
        };
        assert_eq!(resource_version.as_deref(), Some("7"));
        assert_eq!(subresource, None);
        assert_eq!(
            merge,
            json!({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "c"}, "ownerReferences": [{"uid": "other"},
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "m-uid", "controller": true, "blockOwnerDeletion": true}]}})
        );
        let mut done = infra.clone();
        done["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] = json!("c");
        done["metadata"]["ownerReferences"] = merge["metadata"]["ownerReferences"].clone();
        assert!(adopt(&done, &reference(&owner(), true), "c", &["set-uid"]).unwrap().is_none());
    }

    #[test]
    fn what_another_object_controls_is_not_taken() {
        let infra =
            json!({"kind": "Infra", "metadata": {"name": "i", "ownerReferences": [{"uid": "x", "controller": true}]}});
        assert!(adopt(&infra, &reference(&owner(), true), "c", &[]).is_err());
        assert!(adopt(&infra, &reference(&owner(), false), "c", &[]).unwrap().is_some());
    }
}

//! Owner references of an object.

use serde_json::{Value, json};

use crate::{group_version, json, meta};

/// An owner reference; absent fields are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// `group/version`; only the group identifies the owner's kind.
    pub api_version: &'a str,
    /// Kind of the owner.
    pub kind: &'a str,
    /// Name of the owner, which is in the same namespace or cluster-scoped.
    pub name: &'a str,
    /// Uid, which distinguishes the owner from a later object of the same name.
    pub uid: &'a str,
    /// Whether it is the controller.
    pub controls: bool,
    /// `blockOwnerDeletion`: whether a foreground deletion of the owner waits for the object.
    pub blocks: bool,
}

/// Owner references, in order.
pub fn all(object: &Value) -> impl Iterator<Item = Owner<'_>> {
    references(object).iter().map(|reference| Owner {
        api_version: meta::api_version(reference),
        kind: meta::kind(reference),
        name: reference.get("name").and_then(Value::as_str).unwrap_or_default(),
        uid: uid(reference),
        controls: controls(reference),
        blocks: reference.get("blockOwnerDeletion") == Some(&Value::Bool(true)),
    })
}

/// `metadata.ownerReferences`, unparsed.
pub fn references(object: &Value) -> &[Value] {
    meta::list(object, "ownerReferences")
}

/// The uids of the owners, in order.
pub fn uids(object: &Value) -> impl Iterator<Item = &str> {
    references(object).iter().map(uid).filter(|uid| !uid.is_empty())
}

/// Whether an object with this uid is among the owners.
pub fn is_owned_by(object: &Value, uid: &str) -> bool {
    uids(object).any(|held| held == uid)
}

/// The controlling owner; at most one controls.
pub fn controller(object: &Value) -> Option<Owner<'_>> {
    all(object).find(|owner| owner.controls)
}

/// The uid of the owner that controls the object.
pub fn controller_uid(object: &Value) -> Option<&str> {
    controller(object).map(|owner| owner.uid).filter(|uid| !uid.is_empty())
}

/// Whether a reference is to the controller.
pub fn controls(reference: &Value) -> bool {
    reference.get("controller") == Some(&Value::Bool(true))
}

/// Uid in a reference; empty when absent.
pub fn uid(reference: &Value) -> &str {
    reference.get("uid").and_then(Value::as_str).unwrap_or_default()
}

/// A reference to `owner`. With `controller` it is controlling, and blocks a foreground deletion of the owner.
pub fn reference_to(owner: &Value, controller: bool) -> Value {
    let mut reference = json!({
        "apiVersion": meta::api_version(owner),
        "kind": meta::kind(owner),
        "name": meta::name(owner),
        "uid": meta::uid(owner),
    });
    if controller {
        json::set(&mut reference, &["controller"], true);
        json::set(&mut reference, &["blockOwnerDeletion"], true);
    }
    reference
}

/// Adds an owner reference, or updates the one with the same uid, whose other fields stay.
pub fn add(object: &mut Value, reference: &Value) {
    let references = meta::list_mut(object, "ownerReferences");
    match references.iter_mut().find(|held| uid(held) == uid(reference)) {
        Some(held) => {
            if let (Some(held), Some(fields)) = (held.as_object_mut(), reference.as_object()) {
                held.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        None => references.push(reference.clone()),
    }
}

/// Sets an owner reference in place of one to the same owner (group, kind and name), whatever its version or uid; a new
/// controlling reference replaces the controller. Returns whether anything changed.
pub fn set(object: &mut Value, reference: Value) -> bool {
    let same_owner = |held: &Value| {
        let group = |reference| group_version::group(meta::api_version(reference));
        group(held) == group(&reference)
            && meta::kind(held) == meta::kind(&reference)
            && held.get("name") == reference.get("name")
    };
    let references = meta::list_mut(object, "ownerReferences");
    let mut changed = false;
    if controls(&reference) {
        for held in references.iter_mut().filter(|held| !same_owner(held)) {
            changed |= held.as_object_mut().is_some_and(|fields| fields.remove("controller").is_some());
        }
    }
    match references.iter().position(same_owner) {
        Some(index) if references[index] == reference => changed,
        Some(index) => {
            references[index] = reference;
            true
        }
        None => {
            references.push(reference);
            true
        }
    }
}

/// Removes references to uids that are `gone`, and the field when none are left.
pub fn remove(object: &mut Value, gone: impl Fn(&str) -> bool) {
    let references = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"));
    let Some(references) = references.and_then(Value::as_array_mut) else { return };
    references.retain(|reference| !gone(uid(reference)));
    if references.is_empty() {
        meta::remove(object, "ownerReferences");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(version: &str, uid: &str) -> Value {
        json!({"apiVersion": format!("g.io/{version}"), "kind": "Set", "metadata": {"name": "s", "uid": uid}})
    }

    #[test]
    fn an_owner_is_replaced_across_versions_and_takes_control() {
        let mut object = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "0", "controller": true}]}});
        assert!(set(&mut object, reference_to(&owner("v1", "1"), false)));
        assert!(set(&mut object, reference_to(&owner("v2", "2"), true)));
        assert!(!set(&mut object, reference_to(&owner("v2", "2"), true)));
        assert_eq!(references(&object).len(), 2);
        assert_eq!(references(&object)[0].get("controller"), None);
        assert!(is_owned_by(&object, "2") && !is_owned_by(&object, "1"));
        assert_eq!(controller_uid(&object), Some("2"));
    }

    #[test]
    fn a_renewed_reference_keeps_what_else_was_said_in_it() {
        let mut object = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "g.io/v1", "kind": "Set", "name": "s", "uid": "1", "blockOwnerDeletion": false}]}});
        add(&mut object, &reference_to(&owner("v2", "1"), false));
        add(&mut object, &reference_to(&owner("v2", "2"), true));
        assert_eq!(
            references(&object),
            [
                json!({"apiVersion": "g.io/v2", "kind": "Set", "name": "s", "uid": "1", "blockOwnerDeletion": false}),
                json!({"apiVersion": "g.io/v2", "kind": "Set", "name": "s", "uid": "2", "controller": true, "blockOwnerDeletion": true}),
            ]
        );
    }

    #[test]
    fn an_owner_is_taken_away_and_the_last_one_takes_the_field() {
        let mut object = json!({"metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}, {"name": "no uid"}]}});
        remove(&mut object, |uid| uid == "2");
        assert_eq!(references(&object), [json!({"uid": "1"}), json!({"name": "no uid"})]);
        remove(&mut object, |_| true);
        assert_eq!(object, json!({"metadata": {}}));
    }

    #[test]
    fn who_has_no_owner_has_no_controller() {
        let bare = json!({"metadata": {"ownerReferences": null}});
        assert_eq!((controller(&bare), uids(&bare).count(), is_owned_by(&bare, "")), (None, 0, false));
    }
}

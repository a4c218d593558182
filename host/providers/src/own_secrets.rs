//! Secrets that belong to an object by their names: a machine's bootstrap data, the keys of a control plane's cluster. One that
//! lost its owner would stay behind when the object goes, and one without the cluster's label is not found by others: both are
//! given back. What another object controls, and what a user made of another type, is left alone.

use std::sync::Arc;

use capwasm_api::names::{SECRET_TYPE, labels::CLUSTER_NAME};
use capwasm_object::{json, merge_patch, meta, owners};
use capwasm_reconcile::{Action, CacheError, Operation, Target, View};
use serde_json::{Value, json};

/// Metadata of those Secrets that exist.
pub async fn read(view: &View, namespace: &str, names: &[String]) -> Result<Vec<Arc<Value>>, CacheError> {
    let mut found = Vec::new();
    if names.is_empty() {
        return Ok(found);
    }
    let kind = view.kind_at("v1", "Secret").await?;
    for name in names {
        found.extend(view.get(&kind, namespace, name).await?);
    }
    Ok(found)
}

/// Gives back owner and label where they are missing in `secrets`. Their type, which the caches do not have, is read only then.
pub async fn take_back(
    view: &View,
    object: &Value,
    cluster: &str,
    secrets: impl Iterator<Item = &Arc<Value>>,
) -> Result<Vec<Operation>, CacheError> {
    let mut operations = Vec::new();
    let lacking: Vec<&Arc<Value>> = secrets.filter(|secret| wanted(secret, object, cluster).is_some()).collect();
    if lacking.is_empty() {
        return Ok(operations);
    }
    let kind = view.kind_at("v1", "Secret").await?;
    for secret in lacking {
        let name = meta::name(secret);
        let Some(secret) = view.get_live(&kind, meta::namespace(secret), name).await? else { continue };
        if let Some(merge) = wanted(&secret, object, cluster).filter(|_| is_of_cluster_api(&secret)) {
            let action = Action::Patch {
                target: Target::of(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": secret["metadata"]})),
                merge,
                // It writes a list.
                resource_version: json::text(&secret, "/metadata/resourceVersion").map(str::to_owned),
                subresource: None,
            };
            operations.push(Operation::management(format!("own Secret {name}"), action));
        }
    }
    Ok(operations)
}

/// Whether it has the type that Cluster API's controllers give; users may bring along keys of another, which stay theirs.
fn is_of_cluster_api(secret: &Value) -> bool {
    json::text(secret, "/type") == Some(SECRET_TYPE)
}

/// The merge patch that makes `object` the controller and adds the cluster's label. `None` when both are there, or the Secret
/// is another's or goes.
fn wanted(secret: &Value, object: &Value, cluster: &str) -> Option<Value> {
    let is_anothers = owners::controller_uid(secret).is_some_and(|uid| uid != meta::uid(object));
    if is_anothers || meta::is_deleting(secret) {
        return None;
    }
    let before = json!({"metadata": secret["metadata"]});
    let mut after = before.clone();
    if owners::controller(secret).is_none() {
        owners::add(&mut after, &owners::reference_to(object, true));
    }
    if meta::label(secret, CLUSTER_NAME).is_none() && !cluster.is_empty() {
        json::set(&mut after, &["metadata", "labels", CLUSTER_NAME], cluster);
    }
    merge_patch::diff(&before, &after)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_nobody_controls_is_taken_back_and_what_another_controls_is_not() {
        let object = json!({"apiVersion": "x/v1", "kind": "Plane", "metadata": {"name": "p", "uid": "u"}});
        let own = || json!([owners::reference_to(&object, true)]);
        let labels = || json!({(CLUSTER_NAME): "c"});
        let user = json!([{"uid": "v"}]);
        let both = json!([{"uid": "v"}, owners::reference_to(&object, true)]);
        let anothers = json!([{"uid": "v", "controller": true}]);
        let rows = [
            ("whole", own(), labels(), None),
            ("no owner", json!([]), labels(), Some(json!({"ownerReferences": own()}))),
            ("an owner that does not control", user, labels(), Some(json!({"ownerReferences": both}))),
            ("another's", anothers.clone(), labels(), None),
            ("another's, without a label", anothers, json!({}), None),
            ("no label", own(), json!({}), Some(json!({"labels": labels()}))),
            ("neither", json!([]), json!({}), Some(json!({"labels": labels(), "ownerReferences": own()}))),
        ];
        for (what, owners, labels, expected) in rows {
            let mut secret = json!({"metadata": {"name": "c-ca", "ownerReferences": owners, "labels": labels}});
            let merge = wanted(&secret, &object, "c");
            assert_eq!(merge.map(|merge| merge["metadata"].clone()), expected, "{what}");
            secret["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            assert_eq!(wanted(&secret, &object, "c"), None, "{what}, and it goes");
        }
    }

    #[test]
    fn secrets_of_another_type_stay_their_users() {
        for (of_type, expected) in [("cluster.x-k8s.io/secret", true), ("Opaque", false), ("kubernetes.io/tls", false)]
        {
            assert_eq!(is_of_cluster_api(&json!({"type": of_type})), expected, "{of_type}");
        }
        assert!(!is_of_cluster_api(&json!({})));
    }
}

//! Owner references and cluster labels.

use std::collections::HashSet;
use std::sync::Arc;

use capwasm_api::names::{CORE_GROUP, labels};
use capwasm_object::{group_version, json, merge_patch, meta, owners};
use capwasm_reconcile::{Action, Target};
use serde_json::{Value, json};

/// Whether an object of this core kind other than the one with `uid` controls it: a mere reference must not lead to its
/// deletion.
pub(crate) fn is_of_another(object: &Value, kind: &str, uid: &str) -> bool {
    owners::controller(object).is_some_and(|owner| {
        owner.kind == kind && group_version::group(owner.api_version) == CORE_GROUP && owner.uid != uid
    })
}

/// Of objects that were found by owner, label or name: those that `uid` controls, and the cluster's own that nobody
/// controls, each once, by name. What another object controls is another's, however it was found.
pub(crate) fn claimed(found: impl IntoIterator<Item = Arc<Value>>, uid: &str, cluster: &str) -> Vec<Arc<Value>> {
    let is_own = |object: &Value| match owners::controller(object) {
        Some(controller) => controller.uid == uid,
        None => json::text(object, "/spec/clusterName") == Some(cluster),
    };
    let mut seen = HashSet::new();
    let mut claimed: Vec<_> = found.into_iter().filter(|object| is_own(object)).collect();
    claimed.retain(|object| seen.insert(meta::name(object).to_owned()));
    claimed.sort_by(|a, b| meta::name(a).cmp(meta::name(b)));
    claimed
}

/// Whether nobody controls the object, and it stays: it may be taken over.
pub(crate) fn is_stray(object: &Value) -> bool {
    owners::controller(object).is_none() && !meta::is_deleting(object)
}

/// Another object is the controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name} is controlled by another object")]
pub(crate) struct Foreign {
    kind: String,
    name: String,
}

/// The patch that adds the owner and the cluster's label, and removes owners with the uids in `replaced`. `None` when
/// nothing differs. Guarded by resourceVersion, since it writes a list.
pub(crate) fn adopt(
    object: &Value,
    owner: &Value,
    cluster: &str,
    replaced: &[&str],
) -> Result<Option<Action>, Foreign> {
    let mut wanted = json!({"metadata": object.get("metadata").cloned().unwrap_or_default()});
    owners::remove(&mut wanted, |uid| replaced.contains(&uid));
    if owners::controls(owner) && owners::controller_uid(&wanted).is_some_and(|uid| uid != owners::uid(owner)) {
        return Err(Foreign { kind: meta::kind(object).to_owned(), name: meta::name(object).to_owned() });
    }
    owners::add(&mut wanted, owner);
    json::set(&mut wanted, &["metadata", "labels", labels::CLUSTER_NAME], cluster);
    let before = json!({"metadata": object.get("metadata").cloned().unwrap_or_default()});
    Ok(merge_patch::diff(&before, &wanted).map(|merge| Action::Patch {
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
            adopt(&infra, &owners::reference_to(&owner(), true), "c", &["set-uid"]).unwrap()
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
        assert!(adopt(&done, &owners::reference_to(&owner(), true), "c", &["set-uid"]).unwrap().is_none());
    }

    #[test]
    fn what_nobody_controls_counts_and_what_another_controls_does_not() {
        let object = |name: &str, owners: Value| {
            Arc::new(json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": {"clusterName": "c"}}))
        };
        let by = |uid: &str| json!([{"uid": uid, "controller": true}]);
        let elsewhere = Arc::new(json!({"metadata": {"name": "e"}, "spec": {"clusterName": "d"}}));
        let going =
            Arc::new(json!({"metadata": {"name": "g", "deletionTimestamp": "t"}, "spec": {"clusterName": "c"}}));
        let rows = [
            ("its own", object("a", by("u")), true, false),
            ("another's", object("a", by("v")), false, false),
            ("nobody's", object("a", json!([])), true, true),
            ("nobody's, with an owner that does not control", object("a", json!([{"uid": "v"}])), true, true),
            ("nobody's, and it goes", going, true, false),
            ("nobody's, of another cluster", elsewhere, false, true),
        ];
        for (what, object, counts, stray) in rows {
            assert_eq!(claimed([object.clone()], "u", "c").len(), usize::from(counts), "{what}");
            assert_eq!(is_stray(&object), stray, "{what}");
        }
        let (a, b) = (object("a", by("u")), object("b", json!([])));
        assert_eq!(claimed([b.clone(), a.clone(), b.clone()], "u", "c"), [a, b], "found in two ways");
    }

    #[test]
    fn what_another_object_controls_is_not_taken() {
        let infra =
            json!({"kind": "Infra", "metadata": {"name": "i", "ownerReferences": [{"uid": "x", "controller": true}]}});
        assert!(adopt(&infra, &owners::reference_to(&owner(), true), "c", &[]).is_err());
        assert!(adopt(&infra, &owners::reference_to(&owner(), false), "c", &[]).unwrap().is_some());
    }
}

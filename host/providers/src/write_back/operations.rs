//! Operations of an outcome, as the executor takes them.

use capwasm_contract::{ObjectRef, Operation as Wanted, Place as WantedPlace, Refused};
use capwasm_object::json;
use capwasm_reconcile::{Action, ClusterId, Operation, Place, Target};
use serde_json::{Value, json};

/// Operations in order, up to the first without a grant, which is returned. `namespace` is the object's; without a
/// cluster, operations on the workload cluster have no target.
pub fn operations(
    wanted: &[Wanted],
    namespace: &str,
    cluster: Option<&ClusterId>,
) -> (Vec<Operation>, Option<(String, Refused)>) {
    let mut operations = Vec::new();
    let place_of = |place: WantedPlace| match (place, cluster) {
        (WantedPlace::Workload, Some(cluster)) => Some(Place::Workload(cluster.clone())),
        (WantedPlace::Workload, None) => None,
        (WantedPlace::Management, _) => Some(Place::Management),
    };
    let target_of = |target: &ObjectRef| Target {
        api_version: target.api_version.clone(),
        kind: target.kind.clone(),
        namespace: target.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
        name: target.name.clone(),
    };
    for wanted in wanted {
        let mut status = None;
        let (place, action) = match wanted {
            Wanted::Patch { place, target, merge, .. } => {
                let (first, second) = patches(merge);
                let patch = |(merge, subresource)| Action::Patch {
                    target: target_of(target),
                    merge,
                    resource_version: None,
                    subresource,
                };
                status = second.map(patch);
                (*place, patch(first))
            }
            Wanted::Create { place, object, .. } => (*place, Action::Create(with_namespace(object, *place, namespace))),
            Wanted::Apply { place, object, .. } => (
                *place,
                Action::Apply {
                    object: with_namespace(object, *place, namespace),
                    manager: "capwasm".into(),
                    force: true,
                },
            ),
            Wanted::SetConditionOf { target, condition, .. } => (
                WantedPlace::Management,
                Action::SetCondition {
                    target: target_of(target),
                    condition: json!({
                        "type": condition.name,
                        "status": match condition.status { Some(true) => "True", Some(false) => "False", None => "Unknown" },
                        "reason": condition.reason,
                        "message": condition.message,
                    }),
                },
            ),
            Wanted::Delete { place, target, uid, .. } => {
                (*place, Action::Delete { target: target_of(target), uid: uid.clone(), propagation: None })
            }
            Wanted::Refused { key, refused } => return (operations, Some((key.clone(), refused.clone()))),
        };
        let Some(place) = place_of(place) else {
            let message = "the object belongs to no cluster, so there is no workload cluster to write to";
            return (operations, Some((wanted.key().to_owned(), Refused::invalid("NoCluster", message))));
        };
        let second = status.map(|action| Operation { key: wanted.key().to_owned(), place: place.clone(), action });
        operations.push(Operation { key: wanted.key().to_owned(), place, action });
        operations.extend(second);
    }
    (operations, None)
}

/// Merge patch with its subresource.
type PartialPatch = (Value, Option<&'static str>);

/// Splits a patch for API servers: the status goes to its subresource, after the rest. A resource version guards the
/// first patch only, which changes it.
fn patches(merge: &Value) -> (PartialPatch, Option<PartialPatch>) {
    let Some(status) = merge.get("status") else { return ((merge.clone(), None), None) };
    let mut rest = merge.clone();
    if let Some(rest) = rest.as_object_mut() {
        rest.remove("status");
    }
    let says_more = |(key, value): (&String, &Value)| match key.as_str() {
        "apiVersion" | "kind" => false,
        "metadata" => value.as_object().is_none_or(|metadata| metadata.keys().any(|key| key != "resourceVersion")),
        _ => true,
    };
    if rest.as_object().is_some_and(|rest| rest.iter().any(says_more)) {
        return ((rest, None), Some((json!({"status": status}), Some("status"))));
    }
    ((merge.clone(), Some("status")), None)
}

/// Defaults the namespace of an object for the management cluster to that of the reconciled object.
fn with_namespace(object: &Value, place: WantedPlace, namespace: &str) -> Value {
    let mut object = object.clone();
    if place == WantedPlace::Management && json::text(&object, "/metadata/namespace").is_none() && !namespace.is_empty()
    {
        json::set(&mut object, &["metadata", "namespace"], namespace);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_of_the_status_goes_to_its_subresource_after_the_rest() {
        let versioned = json!({"metadata": {"resourceVersion": "7"}, "status": {"a": 1}});
        let both = json!({"metadata": {"resourceVersion": "7", "labels": {"l": "1"}}, "status": {"a": 1}});
        let finalizers = json!({"metadata": {"resourceVersion": "7", "finalizers": []}});
        let rows = [
            ("no status", finalizers.clone(), (finalizers, None), None),
            ("the status alone", versioned.clone(), (versioned, Some("status")), None),
            (
                "both",
                both,
                (json!({"metadata": {"resourceVersion": "7", "labels": {"l": "1"}}}), None),
                Some((json!({"status": {"a": 1}}), Some("status"))),
            ),
        ];
        for (name, merge, first, second) in rows {
            assert_eq!(patches(&merge), (first, second), "{name}");
        }
    }
}

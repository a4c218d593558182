//! Changes of the template that are applied to existing Machines.

use capwasm_api::names::{annotations, label_value, labels};
use capwasm_object::{json, merge_patch, meta};
use capwasm_reconcile::{Action, Target};
use serde_json::{Value, json};

/// Fields of a Machine's spec that follow the template, also when it lacks them.
const FOLLOWING: [&str; 3] = ["readinessGates", "minReadySeconds", "taints"];
/// Fields of `spec.deletion` that follow the template. The last is defaulted on each Machine, so its absence means
/// nothing.
const LIMITS: [&str; 3] = ["nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds"];

/// The patch that updates a Machine by its set's template; `None` when nothing differs. Labels and annotations are
/// never removed: a user may have added them. A Machine that is being deleted gets only the timeouts.
pub(super) fn patch(machine: &Value, set: &Value) -> Option<Action> {
    let keep = |object: &Value| {
        json!({"metadata": {
            "labels": object.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
            "annotations": object.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({})),
        }, "spec": object.get("spec").cloned().unwrap_or_else(|| json!({}))})
    };
    let before = keep(machine);
    let mut wanted = before.clone();
    let template = set.pointer("/spec/template").unwrap_or(&Value::Null);
    for (index, limit) in LIMITS.into_iter().enumerate() {
        let value = template.pointer(&format!("/spec/deletion/{limit}")).cloned().unwrap_or_default();
        if !value.is_null() || index < 2 {
            json::set(&mut wanted, &["spec", "deletion", limit], value);
        }
    }
    if !meta::is_deleting(machine) {
        for field in FOLLOWING {
            json::set(
                &mut wanted,
                &["spec", field],
                template.pointer(&format!("/spec/{field}")).cloned().unwrap_or_default(),
            );
        }
        for field in ["labels", "annotations"] {
            let entries =
                template.pointer(&format!("/metadata/{field}")).and_then(Value::as_object).cloned().unwrap_or_default();
            json::map(&mut wanted, &["metadata", field])
                .extend(entries.into_iter().filter(|(key, _)| key != annotations::SLOT));
        }
        json::set(&mut wanted, &["metadata", "labels", labels::SET_NAME], label_value(meta::name(set)));
        if let Some(deployment) = meta::label(set, labels::DEPLOYMENT_NAME) {
            json::set(&mut wanted, &["metadata", "labels", labels::DEPLOYMENT_NAME], deployment);
        }
    }
    merge_patch::diff(&before, &wanted).map(|merge| Action::Patch {
        target: Target::of(machine),
        merge,
        resource_version: None,
        subresource: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_place_fields_follow_the_template_and_others_do_not() {
        let set = json!({"metadata": {"name": "ms"}, "spec": {"template": {"metadata": {"labels": {"a": "2"}, "annotations": {"n": "1"}},
            "spec": {"version": "v2", "minReadySeconds": 5, "deletion": {"nodeDrainTimeoutSeconds": 60}}}}});
        let machine = json!({"metadata": {"name": "m", "labels": {"a": "1", "mine": "x"}}, "spec": {"version": "v1", "readinessGates": [{"conditionType": "G"}], "deletion": {"nodeDeletionTimeoutSeconds": 10}}});
        let merge = |machine: &Value| match patch(machine, &set) {
            Some(Action::Patch { merge, .. }) => Some(merge),
            _ => None,
        };
        assert_eq!(
            merge(&machine),
            Some(
                json!({"metadata": {"labels": {"a": "2", "cluster.x-k8s.io/set-name": "ms"}, "annotations": {"n": "1"}},
                "spec": {"minReadySeconds": 5, "readinessGates": null, "deletion": {"nodeDrainTimeoutSeconds": 60}}})
            )
        );
        let mut going = machine;
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(merge(&going), Some(json!({"spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}}})));
        let done = json!({"metadata": {"name": "m", "labels": {"a": "2", "cluster.x-k8s.io/set-name": "ms"}, "annotations": {"n": "1"}}, "spec": {"minReadySeconds": 5, "deletion": {"nodeDrainTimeoutSeconds": 60}}});
        assert_eq!(merge(&done), None);
    }
}

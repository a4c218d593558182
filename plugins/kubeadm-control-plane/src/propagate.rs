//! What changes on machines without making other ones: labels, annotations, and some fields of Machines. Pure.

use capwasm_object::json;
use capwasm_sdk::object;
use serde_json::{Map, Value, json};

use crate::clone::identity;
use crate::machine::Machine;
use crate::names;
use crate::plane::{Cluster, ControlPlane};

/// Labels and annotations that the template asks for, and a record of which they are, so that they can be taken back.
pub fn metadata(plane: &ControlPlane, cluster: &Cluster) -> Value {
    let map = |name: &str| match json::at(&plane.template, &format!("/metadata/{name}")) {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    let (mut labels, mut annotations) = (map("labels"), map("annotations"));
    let record: Vec<String> = labels
        .keys()
        .map(|key| format!("label:{key}"))
        .chain(annotations.keys().map(|key| format!("annotation:{key}")))
        .collect();
    if !record.is_empty() {
        annotations.insert(names::PROPAGATED.to_owned(), json!(record.join(",")));
    }
    labels.extend(identity(plane, cluster));
    json!({"labels": labels, "annotations": annotations})
}

/// Fields of a Machine that change without making another one. What is absent here is taken out there, except for the
/// time that a Node's deletion may take, which core has a default for.
pub fn spec(plane: &ControlPlane, external_etcd: bool) -> Value {
    let at = |pointer: &str| json::at(&plane.template, pointer).cloned().unwrap_or_default();
    let mut deletion = json!({
        "nodeDrainTimeoutSeconds": at("/spec/deletion/nodeDrainTimeoutSeconds"),
        "nodeVolumeDetachTimeoutSeconds": at("/spec/deletion/nodeVolumeDetachTimeoutSeconds"),
    });
    if let Some(seconds) = json::at(&plane.template, "/spec/deletion/nodeDeletionTimeoutSeconds") {
        deletion["nodeDeletionTimeoutSeconds"] = seconds.clone();
    }
    let mut wanted = json!({"readinessGates": gates(plane, external_etcd), "taints": at("/spec/taints")});
    if deletion.as_object().is_some_and(|fields| fields.values().any(|value| !value.is_null())) {
        wanted["deletion"] = deletion;
    }
    wanted
}

/// The conditions that this provider sets count for a Machine's readiness; then come those that the user adds.
fn gates(plane: &ControlPlane, external_etcd: bool) -> Vec<Value> {
    let own = std::iter::once(names::NODE_LABELS_AND_TAINTS_SET)
        .chain(names::health_conditions(!external_etcd))
        .map(|name| json!({"conditionType": name}));
    let users =
        json::at(&plane.template, "/spec/readinessGates").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut gates: Vec<Value> = Vec::new();
    for gate in own.chain(users) {
        if !gates.iter().any(|known| known["conditionType"] == gate["conditionType"]) {
            gates.push(gate);
        }
    }
    gates
}

/// What changes in place, for all machines of a control plane.
pub struct Wanted {
    metadata: Value,
    spec: Value,
}

impl Wanted {
    /// From the machine template of the control plane.
    pub fn of(plane: &ControlPlane, cluster: &Cluster, external_etcd: bool) -> Wanted {
        Wanted { metadata: metadata(plane, cluster), spec: spec(plane, external_etcd) }
    }

    /// The merge patch that brings a Machine up to date in place; none when it is.
    pub fn machine_patch(&self, machine: &Machine) -> Option<Value> {
        let mut wanted = with_removals(&self.metadata, &machine.stored);
        if !machine.has_hook() {
            object::merge(&mut wanted, &json!({"annotations": {names::CLEANUP_HOOK: ""}}));
        }
        // A merge patch with a null would be dropped by merging it into the patch.
        let mut spec = self.spec.clone();
        if let (Some(known), None) = (json::at(&machine.stored, "/spec/deletion"), spec.get("deletion")) {
            let mut fields = Map::new();
            for field in ["nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds"] {
                if known.get(field).is_some() {
                    fields.insert(field.to_owned(), Value::Null);
                }
            }
            if !fields.is_empty() {
                spec["deletion"] = Value::Object(fields);
            }
        }
        difference(&machine.stored, [("metadata", wanted), ("spec", spec)])
    }

    /// The merge patch that brings labels and annotations of a KubeadmConfig or an infrastructure machine up to date; none
    /// when they are.
    pub fn metadata_patch(&self, object: &Value) -> Option<Value> {
        difference(object, [("metadata", with_removals(&self.metadata, object))])
    }
}

/// Adds a null for everything that came from the template before and is not in it any more.
fn with_removals(wanted: &Value, object: &Value) -> Value {
    let mut patch = wanted.clone();
    let record = object::annotation(object, names::PROPAGATED).unwrap_or_default();
    for entry in record.split(',') {
        let (map, key) = match entry.split_once(':') {
            Some(("label", key)) => ("labels", key),
            Some(("annotation", key)) => ("annotations", key),
            _ => continue,
        };
        if wanted[map].get(key).is_none() {
            patch[map][key] = Value::Null;
        }
    }
    if !record.is_empty() && wanted["annotations"].get(names::PROPAGATED).is_none() {
        patch["annotations"][names::PROPAGATED] = Value::Null;
    }
    patch
}

/// The merge patch of these fields, when it would change something.
fn difference<const N: usize>(object: &Value, patch: [(&str, Value); N]) -> Option<Value> {
    let patch = Value::Object(patch.map(|(field, value)| (field.to_owned(), value)).into_iter().collect());
    changes(Some(object), &patch).then_some(patch)
}

/// Whether a merge patch would change a value. A map that stays empty is no change.
fn changes(value: Option<&Value>, patch: &Value) -> bool {
    match (value, patch) {
        (known, Value::Null) => known.is_some(),
        (None, Value::Object(fields)) => fields.values().any(|field| changes(None, field)),
        (Some(Value::Object(known)), Value::Object(fields)) => {
            fields.iter().any(|(name, field)| changes(known.get(name), field))
        }
        (known, wanted) => known != Some(wanted),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::clone::{self, NewMachine};

    fn plane(template: Value) -> ControlPlane {
        let object = json!({"metadata": {"name": "cp"}, "spec": {"version": "v1.36.0", "machineTemplate": template}});
        ControlPlane::read(&object).unwrap()
    }

    fn new(plane: &ControlPlane) -> Value {
        let new = NewMachine { name: "m".into(), slot: 0, failure_domain: None };
        let mut machine = clone::machine(plane, &Cluster::default(), false, &new);
        // As an API server stores it.
        crate::config::prune(&mut machine);
        machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = json!("");
        machine
    }

    fn patch(plane: &ControlPlane, machine: &Value) -> Option<Value> {
        Wanted::of(plane, &Cluster::default(), false).machine_patch(&Machine::read(machine.clone()))
    }

    #[test]
    fn only_what_differs_is_patched_in_place() {
        let before = plane(json!({
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"deletion": {"nodeDrainTimeoutSeconds": 5}, "taints": [{"key": "t", "effect": "NoSchedule", "propagation": "Always"}]},
        }));
        let mut machine = new(&before);
        assert_eq!(patch(&before, &machine), None, "a new Machine is as it should be");
        object::merge(
            &mut machine,
            &json!({"metadata": {"labels": {"others": "stay"}}, "spec": {"deletion": {"nodeDeletionTimeoutSeconds": 10}}}),
        );
        assert_eq!(patch(&before, &machine), None, "what others set stays");

        let after =
            plane(json!({"metadata": {"labels": {"e": "f"}}, "spec": {"deletion": {"nodeDeletionTimeoutSeconds": 3}}}));
        let change = patch(&after, &machine).unwrap();
        object::merge(&mut machine, &change);
        assert_eq!(machine["metadata"]["labels"].get("a"), None, "taken out of the template");
        assert_eq!(
            (&machine["metadata"]["labels"]["e"], &machine["metadata"]["labels"]["others"]),
            (&json!("f"), &json!("stay"))
        );
        assert_eq!(machine["metadata"]["annotations"].get("c"), None);
        assert_eq!(machine["spec"]["deletion"], json!({"nodeDeletionTimeoutSeconds": 3}));
        assert_eq!(machine["spec"].get("taints"), None);
        assert_eq!(patch(&after, &machine), None, "once is enough");

        let bare = plane(json!({}));
        let change = patch(&bare, &machine).unwrap();
        object::merge(&mut machine, &change);
        assert_eq!(machine["metadata"]["annotations"].get(names::PROPAGATED), None);
        assert_eq!(patch(&bare, &machine), None);
    }

    #[test]
    fn our_own_conditions_gate_readiness_and_come_first() {
        let plane = plane(
            json!({"spec": {"readinessGates": [{"conditionType": "Mine"}, {"conditionType": "EtcdPodHealthy"}]}}),
        );
        let gates = |external| -> Vec<String> {
            super::gates(&plane, external)
                .iter()
                .map(|gate| gate["conditionType"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            gates(false),
            [
                "NodeKubeadmLabelsAndTaintsSet",
                "APIServerPodHealthy",
                "ControllerManagerPodHealthy",
                "SchedulerPodHealthy",
                "EtcdPodHealthy",
                "EtcdMemberHealthy",
                "Mine"
            ]
        );
        assert_eq!(
            gates(true),
            [
                "NodeKubeadmLabelsAndTaintsSet",
                "APIServerPodHealthy",
                "ControllerManagerPodHealthy",
                "SchedulerPodHealthy",
                "Mine",
                "EtcdPodHealthy"
            ]
        );
    }

    #[test]
    fn a_machine_without_our_hook_gets_it() {
        let plane = plane(json!({}));
        let mut machine = new(&plane);
        machine["metadata"]["annotations"].as_object_mut().unwrap().remove(names::CLEANUP_HOOK);
        assert_eq!(patch(&plane, &machine).unwrap()["metadata"]["annotations"][names::CLEANUP_HOOK], "");
    }
}

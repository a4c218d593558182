//! Machines of a pool whose provider shows its members: the infrastructure exists first, and the Machine refers to it.

use std::sync::Arc;

use capwasm_api::names::{CORE_API_VERSION, finalizers, label_value, labels};
use capwasm_object::{json, merge_patch, meta, owners};
use capwasm_reconcile::{Action, Operation, Target};
use serde_json::{Map, Value, json};

use super::decide::Decision;
use crate::ownership;
use crate::remediation::{self, Limits};

/// Creates a Machine for each member, updates them by the pool's template, and deletes those that failed a health
/// check.
pub(super) fn align(decision: &mut Decision<'_>, members: &[Arc<Value>]) {
    let observed = decision.observed;
    for member in members {
        let of_member = |machine: &&Arc<Value>| {
            json::text(machine, "/spec/infrastructureRef/name") == Some(meta::name(member))
                && json::text(machine, "/spec/infrastructureRef/kind") == Some(meta::kind(member))
        };
        match observed.machines.iter().find(of_member) {
            Some(machine) => update(decision, machine, member),
            None if meta::is_deleting(member) => {}
            None => {
                let machine = machine(decision, member);
                let key = format!("create Machine {}", meta::name(&machine));
                decision.plan.operations.push(Operation::management(key, Action::Create(machine)));
            }
        }
    }
    // The provider makes another member for one whose Machine goes.
    let operations = remediation::operations(&observed.machines, &Limits::default());
    decision.plan.operations.extend(operations);
}

/// Kubelet version of the member's Node, which becomes the version of its Machine.
fn version<'a>(decision: &Decision<'a>, member: &Value) -> Option<&'a str> {
    let id = json::text(member, "/spec/providerID")?;
    let node = decision.observed.seen()?.iter().find(|node| json::text(node, "/spec/providerID") == Some(id))?;
    json::text(node, "/status/nodeInfo/kubeletVersion")
}

fn metadata(decision: &Decision<'_>) -> (Map<String, Value>, Map<String, Value>) {
    let observed = decision.observed;
    let map = |field: &str| -> Map<String, Value> {
        let found = observed.object.pointer(&format!("/spec/template/metadata/{field}")).and_then(Value::as_object);
        found.cloned().unwrap_or_default()
    };
    let mut labels = map("labels");
    labels.insert(labels::POOL_NAME.to_owned(), label_value(&observed.pool.metadata.name).into());
    labels.insert(labels::CLUSTER_NAME.to_owned(), observed.pool.spec.cluster_name.as_str().into());
    (labels, map("annotations"))
}

fn machine(decision: &Decision<'_>, member: &Value) -> Value {
    let observed = decision.observed;
    let (labels, annotations) = metadata(decision);
    let mut spec = json!({
        "clusterName": observed.pool.spec.cluster_name,
        // The pool has the data, for all of them.
        "bootstrap": {"dataSecretName": ""},
        "infrastructureRef": {"apiGroup": meta::group(member), "kind": meta::kind(member), "name": meta::name(member)},
    });
    json::set(&mut spec, &["version"], version(decision, member));
    for field in ["deletion", "minReadySeconds", "readinessGates"] {
        let value = observed.object.pointer(&format!("/spec/template/spec/{field}")).cloned().unwrap_or_default();
        json::set(&mut spec, &[field], value);
    }
    let mut machine = json!({
        "apiVersion": CORE_API_VERSION,
        "kind": "Machine",
        "metadata": {
            "name": meta::name(member),
            "namespace": observed.pool.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "finalizers": [finalizers::MACHINE],
            "ownerReferences": [owners::reference_to(&observed.object, true)],
        },
        "spec": spec,
    });
    capwasm_api::defaults::default(&mut machine, None);
    machine
}

fn update(decision: &mut Decision<'_>, machine: &Value, member: &Value) {
    if meta::is_deleting(machine) {
        return;
    }
    let (labels, annotations) = metadata(decision);
    let mut wanted = machine.clone();
    json::map(&mut wanted, &["metadata", "labels"]).extend(labels);
    if !annotations.is_empty() {
        json::map(&mut wanted, &["metadata", "annotations"]).extend(annotations);
    }
    if let Some(version) = version(decision, member) {
        json::set(&mut wanted, &["spec", "version"], version);
    }
    if let (true, Some(cluster)) = (ownership::is_stray(machine), &decision.observed.cluster) {
        // Which it took for its owner meanwhile.
        owners::remove(&mut wanted, |uid| uid == meta::uid(cluster));
    }
    owners::add(&mut wanted, &owners::reference_to(&decision.observed.object, true));
    if let Some(merge) = merge_patch::diff(machine, &wanted) {
        // Only a list can be overwritten by what is older.
        let seen =
            merge.pointer("/metadata/ownerReferences").and_then(|_| json::text(machine, "/metadata/resourceVersion"));
        let resource_version = seen.map(str::to_owned);
        let action = Action::Patch { target: Target::of(machine), merge, resource_version, subresource: None };
        decision.plan.operations.push(Operation::management(format!("update Machine {}", meta::name(machine)), action));
    }
}

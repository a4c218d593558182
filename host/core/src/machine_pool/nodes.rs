//! Nodes of a MachinePool, found by provider IDs.

use std::sync::Arc;
use std::time::Duration;

use capwasm_api::conditions::{Condition, Status};
use capwasm_api::kinds::NodeReference;
use capwasm_api::names::{UNINITIALIZED_TAINT, annotations};
use capwasm_object::{json, merge_patch, meta};
use capwasm_reconcile::{Action, Operation, Target};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::decide::Decision;

/// Nodes with these provider IDs, in the same order.
pub(super) fn of<'a>(nodes: &'a [Arc<Value>], provider_ids: &[String]) -> Vec<&'a Value> {
    let with = |id: &String| nodes.iter().find(|node| json::text(node, "/spec/providerID") == Some(id));
    provider_ids.iter().filter(|id| !id.is_empty()).filter_map(with).map(AsRef::as_ref).collect()
}

pub(super) fn references(nodes: &[&Value]) -> Vec<NodeReference> {
    let reference = |node: &&Value| NodeReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: meta::name(node).to_owned(),
        uid: meta::uid(node).to_owned(),
    };
    nodes.iter().map(reference).collect()
}

/// Number of ready Nodes, of available Nodes, and when the next becomes available.
pub(super) fn count(nodes: &[&Value], min_ready: Duration, now: Timestamp) -> (usize, usize, Option<Duration>) {
    let (mut ready, mut available, mut next) = (0, 0, None);
    for node in nodes {
        let list = json::items(node, "/status/conditions");
        let entry = list.iter().find(|entry| json::text(entry, "/type") == Some("Ready"));
        let Some(one) = entry.and_then(Condition::from_value).filter(|one| one.status == Status::True) else {
            continue;
        };
        ready += 1;
        let since = one.since().unwrap_or(now);
        let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        match min_ready.checked_sub(passed).filter(|left| !left.is_zero()) {
            None => available += 1,
            Some(left) => next = Some(next.map_or(left, |next: Duration| next.min(left))),
        }
    }
    (ready, available, next)
}

/// Annotates a Node as the pool's and removes the uninitialized taint; for pools without Machines.
pub(super) fn mark(decision: &mut Decision<'_>, node: &Value) {
    let pool = &decision.observed.pool;
    let mut wanted = json!({
        "metadata": {"annotations": node.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({}))},
        "spec": {"taints": node.pointer("/spec/taints").cloned().unwrap_or_else(|| json!([]))},
    });
    let before = wanted.clone();
    for (key, value) in [
        (annotations::NODE_CLUSTER_NAME, pool.spec.cluster_name.as_str()),
        (annotations::NODE_CLUSTER_NAMESPACE, pool.metadata.namespace.as_str()),
        (annotations::NODE_OWNER_KIND, "MachinePool"),
        (annotations::NODE_OWNER_NAME, pool.metadata.name.as_str()),
    ] {
        json::set(&mut wanted, &["metadata", "annotations", key], value);
    }
    if let Some(taints) = wanted.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
        taints.retain(|taint| json::text(taint, "/key") != Some(UNINITIALIZED_TAINT));
    }
    if let Some(merge) = merge_patch::diff(&before, &wanted) {
        let action = Action::Patch {
            target: target(meta::name(node)),
            merge,
            resource_version: json::text(node, "/metadata/resourceVersion").map(str::to_owned),
            subresource: None,
        };
        workload(decision, format!("mark Node {}", meta::name(node)), action);
    }
}

/// Deletes Nodes of the pool whose machines are gone.
pub(super) fn retire(decision: &mut Decision<'_>, nodes: &[Arc<Value>], provider_ids: &[String]) {
    for node in nodes {
        let was = decision.observed.pool.status.node_refs.iter().any(|reference| reference.name == meta::name(node));
        let gone = json::text(node, "/spec/providerID").is_some_and(|id| !provider_ids.iter().any(|one| one == id));
        if was && gone && !meta::is_deleting(node) {
            delete(decision, node);
        }
    }
}

pub(super) fn delete(decision: &mut Decision<'_>, node: &Value) {
    let uid = json::text(node, "/metadata/uid").map(str::to_owned);
    let action = Action::Delete { target: target(meta::name(node)), uid, propagation: None };
    workload(decision, format!("delete Node {}", meta::name(node)), action);
}

fn workload(decision: &mut Decision<'_>, key: String, action: Action) {
    let cluster = decision.observed.cluster_id();
    decision.plan.operations.push(Operation::workload(key, &cluster, action));
}

fn target(name: &str) -> Target {
    Target { api_version: "v1".to_owned(), kind: "Node".to_owned(), namespace: String::new(), name: name.to_owned() }
}

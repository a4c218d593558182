//! Synchronises a Machine and its Node.

use std::collections::BTreeMap;

use capwasm_api::kinds::{Machine, NodeInfo};
use capwasm_api::names::{OUTDATED_REVISION_TAINT, UNINITIALIZED_TAINT, annotations, labels};
use capwasm_object::{json, merge_patch, meta};
use capwasm_reconcile::{Action, Target};
use serde::Deserialize;
use serde_json::{Value, json};

/// `status.nodeInfo` of the Machine; `None` when the Node reports none.
pub(super) fn info(node: &Value) -> Option<NodeInfo> {
    NodeInfo::deserialize(node.pointer("/status/nodeInfo")?).ok()
}

/// Further traits that the Node shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits {
    /// Its infrastructure may disappear at any time, as spot instances do.
    pub(super) interruptible: bool,
    /// A newer revision of its deployment exists, so new Pods should prefer other Nodes.
    pub(super) outdated: bool,
}

/// The patch that gives the Node the Machine's labels and annotations, and removes the uninitialized taint. `None` when
/// nothing differs. Guarded by resourceVersion, since it may write the list of taints.
pub(super) fn synchronise(node: &Value, machine: &Machine, traits: Traits) -> Option<Action> {
    let mut wanted = json!({
        "metadata": {
            "labels": node.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
            "annotations": node.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({})),
        },
        "spec": {"taints": node.pointer("/spec/taints").cloned().unwrap_or_else(|| json!([]))},
    });
    let before = wanted.clone();

    let ours: BTreeMap<&str, &str> = pairs(&machine.metadata.labels, is_synced_label);
    take_back(&mut wanted, "labels", node, annotations::NODE_LABELS_FROM_MACHINE, &ours);
    put(&mut wanted, "labels", &ours);
    if traits.interruptible {
        put(&mut wanted, "labels", &BTreeMap::from([(labels::INTERRUPTIBLE, "")]));
    }
    let notes: BTreeMap<&str, &str> =
        pairs(&machine.metadata.annotations, |key| in_domain(key, "node.cluster.x-k8s.io"));
    take_back(&mut wanted, "annotations", node, annotations::NODE_ANNOTATIONS_FROM_MACHINE, &notes);
    put(&mut wanted, "annotations", &notes);

    let (label_keys, note_keys) = (joined(&ours), joined(&notes));
    let mut fixed = BTreeMap::from([
        (annotations::NODE_CLUSTER_NAME, machine.spec.cluster_name.as_str()),
        (annotations::NODE_CLUSTER_NAMESPACE, machine.metadata.namespace.as_str()),
        (annotations::NODE_MACHINE, machine.metadata.name.as_str()),
        (annotations::NODE_LABELS_FROM_MACHINE, label_keys.as_str()),
        (annotations::NODE_ANNOTATIONS_FROM_MACHINE, note_keys.as_str()),
    ]);
    if let Some(owner) = machine.metadata.controller() {
        fixed.insert(annotations::NODE_OWNER_KIND, &owner.kind);
        fixed.insert(annotations::NODE_OWNER_NAME, &owner.name);
    }
    put(&mut wanted, "annotations", &fixed);
    if let Some(taints) = wanted.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
        taints.retain(|taint| json::text(taint, "/key") != Some(UNINITIALIZED_TAINT));
        let is_marked = |taint: &Value| json::text(taint, "/key") == Some(OUTDATED_REVISION_TAINT);
        if !traits.outdated {
            taints.retain(|taint| !is_marked(taint));
        } else if !taints.iter().any(is_marked) {
            taints.push(json!({"key": OUTDATED_REVISION_TAINT, "effect": "PreferNoSchedule"}));
        }
    }

    merge_patch::diff(&before, &wanted).map(|merge| Action::Patch {
        target: Target {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            namespace: String::new(),
            name: meta::name(node).to_owned(),
        },
        merge,
        resource_version: json::text(node, "/metadata/resourceVersion").map(str::to_owned),
        subresource: None,
    })
}

/// Whether Cluster API copies a label to Nodes: only those of certain domains.
fn is_synced_label(key: &str) -> bool {
    key.split_once('/').is_some_and(|(prefix, _)| prefix == "node-role.kubernetes.io")
        || in_domain(key, "node-restriction.kubernetes.io")
        || in_domain(key, "node.cluster.x-k8s.io")
}

/// Whether a key's prefix is the domain or a subdomain.
fn in_domain(key: &str, domain: &str) -> bool {
    key.split_once('/').is_some_and(|(prefix, _)| {
        prefix == domain || prefix.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    })
}

fn pairs(map: &BTreeMap<String, String>, wanted: impl Fn(&str) -> bool) -> BTreeMap<&str, &str> {
    map.iter().filter(|(key, _)| wanted(key)).map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn joined(map: &BTreeMap<&str, &str>) -> String {
    map.keys().copied().collect::<Vec<_>>().join(",")
}

fn put(wanted: &mut Value, field: &str, entries: &BTreeMap<&str, &str>) {
    let map = json::map(wanted, &["metadata", field]);
    for (key, value) in entries {
        map.insert((*key).to_owned(), (*value).into());
    }
}

/// Removes what an earlier synchronisation set and the Machine no longer has.
fn take_back(wanted: &mut Value, field: &str, node: &Value, tracked_by: &str, still: &BTreeMap<&str, &str>) {
    let map = json::map(wanted, &["metadata", field]);
    for key in meta::annotation(node, tracked_by).unwrap_or_default().split(',').filter(|key| !still.contains_key(key))
    {
        map.remove(key);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn machine(labels: Value) -> Machine {
        capwasm_api::kinds::view(&json!({"metadata": {"name": "m", "namespace": "ns", "labels": labels, "annotations": {"node.cluster.x-k8s.io/note": "n", "other": "o"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms", "uid": "u", "controller": true}]}, "spec": {"clusterName": "c"}})).unwrap()
    }

    fn merge(node: &Value, machine: &Machine) -> Option<Value> {
        synchronise(node, machine, Traits::default()).map(|action| match action {
            Action::Patch { merge, resource_version, .. } => {
                assert_eq!(resource_version.as_deref(), Some("9"));
                merge
            }
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn reserved_labels_go_to_the_node_once_and_are_taken_back() {
        let node = json!({"metadata": {"name": "n", "resourceVersion": "9", "labels": {"kubernetes.io/os": "linux"}}, "spec": {"taints": [
            {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}, {"key": "mine", "effect": "NoExecute"}]}});
        let first = merge(&node, &machine(json!({"node-role.kubernetes.io/worker": "", "node.cluster.x-k8s.io/a": "1", "x.node-restriction.kubernetes.io/b": "2", "app": "no"}))).unwrap();
        assert_eq!(
            first["metadata"]["labels"],
            json!({"node-role.kubernetes.io/worker": "", "node.cluster.x-k8s.io/a": "1", "x.node-restriction.kubernetes.io/b": "2"})
        );
        assert_eq!(
            first["metadata"]["annotations"],
            json!({
            "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/cluster-namespace": "ns", "cluster.x-k8s.io/machine": "m",
            "cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "ms", "node.cluster.x-k8s.io/note": "n",
            "cluster.x-k8s.io/labels-from-machine": "node-role.kubernetes.io/worker,node.cluster.x-k8s.io/a,x.node-restriction.kubernetes.io/b",
            "cluster.x-k8s.io/annotations-from-machine": "node.cluster.x-k8s.io/note"})
        );
        assert_eq!(first["spec"]["taints"], json!([{"key": "mine", "effect": "NoExecute"}]));

        let mut synced = node;
        synced["metadata"]["annotations"] = first["metadata"]["annotations"].clone();
        synced["metadata"]["labels"] = json!({"kubernetes.io/os": "linux", "node.cluster.x-k8s.io/a": "1", "node.cluster.x-k8s.io/foreign": "stays"});
        synced["metadata"]["annotations"]["cluster.x-k8s.io/labels-from-machine"] = json!("node.cluster.x-k8s.io/a");
        synced["spec"]["taints"] = first["spec"]["taints"].clone();
        assert_eq!(
            merge(&synced, &machine(json!({"node.cluster.x-k8s.io/a": "1"}))),
            None,
            "nothing is written when nothing differs"
        );
        let back = merge(&synced, &machine(json!({}))).unwrap();
        assert_eq!(
            back,
            json!({"metadata": {"labels": {"node.cluster.x-k8s.io/a": null}, "annotations": {"cluster.x-k8s.io/labels-from-machine": ""}}})
        );
    }

    #[test]
    fn nodes_of_an_old_revision_are_tainted_until_they_are_not() {
        let taints = |taints: Value, traits: Traits| {
            let node = json!({"metadata": {"name": "n"}, "spec": {"taints": taints}});
            match synchronise(&node, &machine(json!({})), traits) {
                Some(Action::Patch { merge, .. }) => merge.pointer("/spec/taints").cloned(),
                _ => None,
            }
        };
        let outdated = Traits { outdated: true, ..Traits::default() };
        let marked = json!([{"key": "node.cluster.x-k8s.io/outdated-revision", "effect": "PreferNoSchedule"}]);
        assert_eq!(taints(json!([]), outdated), Some(marked.clone()));
        assert_eq!(taints(marked.clone(), outdated), None);
        assert_eq!(taints(marked, Traits::default()), Some(json!([])));
    }

    #[test]
    fn node_info_has_every_required_field_and_no_other() {
        let info = info(&json!({"status": {"nodeInfo": {"kubeletVersion": "v1.36.0", "new": "x"}}}));
        let info = serde_json::to_value(info).unwrap();
        assert_eq!(info["kubeletVersion"], "v1.36.0");
        assert_eq!(info.as_object().unwrap().len(), 10);
        assert_eq!(super::info(&json!({})), None);
    }
}

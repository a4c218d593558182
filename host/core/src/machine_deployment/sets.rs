//! MachineSets of a MachineDeployment: which one is the new one, and its content.

use std::collections::HashSet;
use std::sync::Arc;

use capwasm_api::kinds::{MachineDeployment, Metadata};
use capwasm_api::names::{CORE_API_VERSION, annotations, child_name, label_value, labels, suffix};
use capwasm_object::{json, meta, owners};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::observe::{Observed, Set};
use crate::up_to_date;

/// Annotations of a deployment that sets do not get.
const NOT_COPIED: [&str; 7] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "cluster.x-k8s.io/conversion-data",
    annotations::REVISION,
    annotations::DESIRED_REPLICAS,
    annotations::MAX_REPLICAS,
    annotations::PAUSED,
    capwasm_api::conversion::OLD_DATA_ANNOTATION,
];
/// Fields of the machine template's spec that sets take over without a rollout.
const IN_PLACE: [&str; 4] = ["minReadySeconds", "readinessGates", "deletion", "taints"];

/// The set with the deployment's template, and the others, oldest first. Of several new sets, the one with most
/// replicas.
pub(super) fn split(observed: &Observed) -> (Option<&Set>, Vec<&Set>) {
    let wanted = &observed.deployment.spec.template.spec;
    let fits = |set: &&Set| {
        !set.typed.metadata.is_deleting()
            && up_to_date::differences(&set.typed.spec.template.spec, wanted).is_empty()
            && is_recent(&observed.deployment, set, observed.now)
    };
    let mut sets: Vec<&Set> = observed.sets.iter().collect();
    sets.sort_by(|a, b| {
        a.typed
            .metadata
            .creation_timestamp
            .cmp(&b.typed.metadata.creation_timestamp)
            .then_with(|| revision(a).cmp(&revision(b)))
    });
    let new = sets.iter().copied().filter(fits).max_by_key(|set| (set.typed.spec.replicas, revision(set)));
    let old =
        sets.into_iter().filter(|set| new.is_none_or(|new| new.typed.metadata.uid != set.typed.metadata.uid)).collect();
    (new, old)
}

/// Whether the set satisfies `rollout.after`: once that is past, only sets created since then do.
fn is_recent(deployment: &MachineDeployment, set: &Set, now: Timestamp) -> bool {
    let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
    match (
        time(&deployment.spec.rollout.after).filter(|after| *after <= now),
        time(&set.typed.metadata.creation_timestamp),
    ) {
        (Some(after), Some(created)) => created >= after,
        _ => true,
    }
}

/// Revision of a set; 0 without one.
pub(super) fn revision(set: &Set) -> u64 {
    set.typed.metadata.annotations.get(annotations::REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The highest revision ever used: recorded on the deployment, so that no name is used twice.
pub(super) fn highest_revision(observed: &Observed) -> u64 {
    observed.sets.iter().map(revision).fold(recorded_revision(&observed.object), u64::max)
}

fn recorded_revision(deployment: &Value) -> u64 {
    meta::annotation(deployment, annotations::REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// How many of the latest revisions a set is looked for by name; older ones have been deleted long since.
const LOOKED_FOR: usize = 16;

/// Names of sets of the latest revisions that are not among those found by owner and label: a set that lost both still has
/// its name. The next revision's too: it may have been made by a pass that could not record it.
pub(super) fn unseen_names(object: &Value, deployment: &MachineDeployment, found: &[Arc<Value>]) -> Vec<String> {
    let seen: HashSet<&str> = found.iter().map(|set| meta::name(set)).collect();
    let newest = recorded_revision(object).saturating_add(1);
    let names = (1..=newest).rev().take(LOOKED_FOR).map(|revision| name(&deployment.metadata, revision));
    names.filter(|name| !seen.contains(name.as_str())).collect()
}

/// Name of the set of a revision.
fn name(deployment: &Metadata, revision: u64) -> String {
    child_name(&deployment.name, &deployment.uid, &slot(revision))
}

fn slot(revision: u64) -> String {
    format!("revision-{revision}")
}

/// A MachineSet for the present template.
pub(super) fn create(
    desired: &Value,
    deployment: &MachineDeployment,
    revision: u64,
    replicas: i64,
    surge: i64,
) -> Value {
    let metadata = &deployment.metadata;
    let hash = format!("{}-{}", suffix(&metadata.uid, &template_text(desired)), suffix(&metadata.uid, &slot(revision)));
    let mut set = json!({
        "apiVersion": CORE_API_VERSION,
        "kind": "MachineSet",
        "metadata": {
            "name": name(metadata, revision),
            "namespace": metadata.namespace,
            "finalizers": [capwasm_api::names::finalizers::MACHINE_SET],
            "labels": {labels::TEMPLATE_HASH: hash},
            "annotations": {annotations::REVISION: revision.to_string()},
            "ownerReferences": [owners::reference_to(desired, true)],
        },
        "spec": {
            "clusterName": deployment.spec.cluster_name,
            "selector": desired.pointer("/spec/selector").cloned().unwrap_or_else(|| json!({})),
            "template": desired.pointer("/spec/template").cloned().unwrap_or_else(|| json!({})),
        },
    });
    json::set(&mut set, &["spec", "selector", "matchLabels", labels::TEMPLATE_HASH], hash);
    follow(&mut set, desired, deployment);
    scale(&mut set, deployment, replicas, surge);
    set
}

/// Copies what needs no rollout from the deployment.
pub(super) fn follow(set: &mut Value, desired: &Value, deployment: &MachineDeployment) {
    // A selector never changes, and labels can be lost.
    let selected = set.pointer("/spec/selector/matchLabels").and_then(|labels| labels.get(labels::TEMPLATE_HASH));
    let hash = selected.and_then(Value::as_str).or_else(|| meta::label(set, labels::TEMPLATE_HASH));
    let hash = hash.unwrap_or_default().to_owned();
    let map = |pointer: &str| desired.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut of_machines = map("/spec/template/metadata/labels");
    of_machines.insert(labels::DEPLOYMENT_NAME.to_owned(), label_value(&deployment.metadata.name).into());
    of_machines.insert(labels::CLUSTER_NAME.to_owned(), deployment.spec.cluster_name.as_str().into());
    of_machines.insert(labels::TEMPLATE_HASH.to_owned(), hash.into());
    json::map(set, &["metadata", "labels"]).extend(of_machines.clone());
    json::set(set, &["spec", "template", "metadata", "labels"], of_machines);
    let notes = map("/spec/template/metadata/annotations");
    json::set(
        set,
        &["spec", "template", "metadata", "annotations"],
        if notes.is_empty() { Value::Null } else { notes.into() },
    );
    let notes: Map<String, Value> =
        map("/metadata/annotations").into_iter().filter(|(key, _)| !NOT_COPIED.contains(&key.as_str())).collect();
    json::map(set, &["metadata", "annotations"]).extend(notes);
    for field in IN_PLACE {
        let value = desired.pointer(&format!("/spec/template/spec/{field}")).cloned().unwrap_or_default();
        json::set(set, &["spec", "template", "spec", field], value);
    }
    for field in ["deletion", "machineNaming"] {
        json::set(set, &["spec", field], desired.pointer(&format!("/spec/{field}")).cloned().unwrap_or_default());
    }
}

/// Sets replicas, and the annotations for the wanted and the largest number.
pub(super) fn scale(set: &mut Value, deployment: &MachineDeployment, replicas: i64, surge: i64) {
    let wanted = i64::from(deployment.spec.replicas.unwrap_or(1));
    json::set(set, &["spec", "replicas"], replicas);
    json::set(set, &["metadata", "annotations", annotations::DESIRED_REPLICAS], wanted.to_string());
    json::set(set, &["metadata", "annotations", annotations::MAX_REPLICAS], (wanted + surge).to_string());
}

/// The fields that make a rollout necessary, as text.
fn template_text(desired: &Value) -> String {
    let mut spec = desired.pointer("/spec/template/spec").cloned().unwrap_or_default();
    for field in IN_PLACE {
        json::set(&mut spec, &[field], Value::Null);
    }
    spec.to_string()
}

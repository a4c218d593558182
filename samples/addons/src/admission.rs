//! What the schemas cannot say.

use std::collections::BTreeSet;

use capwasm_sdk::{Problem, object};
use serde_json::{Value, json};

use crate::kinds::{CLUSTER_LABEL, CatalogSpec, SetSpec};

/// An Addon that names no Cluster is for the one that its label names. The label itself is not a provider's to set: it says whose
/// workload cluster its calls reach.
pub fn default(mut object: Value) -> Value {
    if object::kind(&object) == "Addon"
        && object::text(&object, "/spec/clusterName").is_empty()
        && let Some(cluster) = object::label(&object, CLUSTER_LABEL).map(str::to_owned)
    {
        object::merge(&mut object, &json!({"spec": {"clusterName": cluster}}));
    }
    object
}

/// Refuses what could never work, and warns of what hardly will.
pub fn validate(object: &Value, old: Option<&Value>) -> Result<Vec<String>, Problem> {
    match object::kind(object) {
        "AddonCatalog" => catalog(&object::spec(object)?),
        "AddonSet" => set(&object::spec(object)?),
        "Addon" => addon(object, old),
        _ => Ok(Vec::new()),
    }
}

fn catalog(spec: &CatalogSpec) -> Result<Vec<String>, Problem> {
    let mut names = BTreeSet::new();
    match spec.addons.iter().find(|entry| !names.insert(&entry.name)) {
        Some(twice) => Err(Problem::invalid("DuplicateAddon", format!("spec.addons: {} is there twice", twice.name))),
        None => Ok(Vec::new()),
    }
}

fn set(spec: &SetSpec) -> Result<Vec<String>, Problem> {
    let warning = "spec.clusterSelector: without labels it selects no Cluster";
    Ok(if spec.cluster_selector.match_labels.is_empty() { vec![warning.to_owned()] } else { Vec::new() })
}

fn addon(object: &Value, old: Option<&Value>) -> Result<Vec<String>, Problem> {
    let cluster = |object: &Value| object::text(object, "/spec/clusterName").to_owned();
    if object::label(object, CLUSTER_LABEL) != Some(&cluster(object)) {
        let message = format!("metadata.labels: {CLUSTER_LABEL} has to be spec.clusterName, {}", cluster(object));
        return Err(Problem::invalid("WrongLabel", message));
    }
    match old {
        Some(old) if cluster(old) != cluster(object) => {
            Err(Problem::invalid("ClusterImmutable", "spec.clusterName: may not change; make another Addon"))
        }
        _ => Ok(Vec::new()),
    }
}

//! The three objects of a new machine, all of one name: first the Machine, then its KubeadmConfig and its infrastructure
//! machine, which belong to it from their first moment.
//!
//! The name derives from the control plane's uid and the machine's slot, so that a repeated pass meets what it made before.

use capwasm_api::names::{CORE_API_VERSION, annotations, child_name, label_value, labels, next_slot, suffix};
use capwasm_object::json;
use capwasm_sdk::{Problem, object};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::config::{self, Entry};
use crate::machine::Machine;
use crate::names;
use crate::plane::{Cluster, ControlPlane, TemplateRef};
use crate::propagate;

/// The first slot that no machine ever had.
pub fn slot(plane: &ControlPlane, machines: &[Machine]) -> u64 {
    let used = machines.iter().filter_map(|machine| object::annotation(&machine.stored, annotations::SLOT));
    next_slot(plane.next_slot.as_deref(), used)
}

/// In how many of the latest slots a machine is looked for by name; older ones are gone long since.
const LOOKED_FOR: usize = 32;

/// Names of machines of the latest slots that are not among `found`, the next one's as well: a machine that lost its labels, or
/// was made by a pass that could not record it, still has its name.
pub fn unseen_names(plane: &ControlPlane, cluster: &str, found: &[Machine]) -> Vec<String> {
    let cluster = Cluster { name: cluster.to_owned(), ..Cluster::default() };
    let names = (0..=slot(plane, found)).rev().take(LOOKED_FOR).filter_map(|slot| name(plane, &cluster, slot).ok());
    names.filter(|name| !found.iter().any(|machine| machine.name == *name)).collect()
}

/// Whether this control plane made the machine, whoever owns it now: its label says so, or its name.
pub fn made(plane: &ControlPlane, cluster: &str, machine: &Machine) -> bool {
    let cluster = Cluster { name: cluster.to_owned(), ..Cluster::default() };
    let slot = object::annotation(&machine.stored, annotations::SLOT).and_then(|slot| slot.parse().ok());
    object::label(&machine.stored, labels::CONTROL_PLANE_NAME) == Some(label_value(&plane.name).as_str())
        || slot.is_some_and(|slot| name(plane, &cluster, slot).is_ok_and(|name| name == machine.name))
}

/// The name of a slot's machine.
pub fn name(plane: &ControlPlane, cluster: &Cluster, slot: u64) -> Result<String, Problem> {
    let slot = slot.to_string();
    if plane.naming.is_empty() {
        return Ok(child_name(&plane.name, &plane.uid, &slot));
    }
    let mut name = String::new();
    let mut rest = plane.naming.as_str();
    while let Some((text, action)) = rest.split_once("{{") {
        let (action, tail) = action.split_once("}}").unwrap_or((action, ""));
        name.push_str(text);
        name.push_str(&match action.trim() {
            ".cluster.name" => cluster.name.clone(),
            ".kubeadmControlPlane.name" => plane.name.clone(),
            ".random" => suffix(&plane.uid, &slot),
            other => {
                return Err(Problem::invalid(
                    "InvalidMachineNaming",
                    format!("spec.machineNaming.template does not know {{{{ {other} }}}}"),
                ));
            }
        });
        rest = tail;
    }
    name.push_str(rest);
    if name.len() > 63 || !name.contains(&suffix(&plane.uid, &slot)) {
        return Err(Problem::invalid(
            "InvalidMachineNaming",
            format!(
                "spec.machineNaming.template makes the name {name}; it must contain {{{{ .random }}}} and stay within 63 characters"
            ),
        ));
    }
    Ok(name)
}

/// A machine to make: Machine, KubeadmConfig and infrastructure machine have one name.
#[derive(Clone, Debug)]
pub struct NewMachine {
    /// Name of all three objects.
    pub name: String,
    /// What the name derives from.
    pub slot: u64,
    /// The failure domain that it is made in; none leaves it to the infrastructure.
    pub failure_domain: Option<String>,
}

/// The Machine that ties the others together.
pub fn machine(plane: &ControlPlane, cluster: &Cluster, external_etcd: bool, new: &NewMachine) -> Value {
    let reference = TemplateRef::of(plane);
    let mut metadata = metadata(plane, cluster, &new.name, &plane.owner());
    let mut own = json!({annotations::SLOT: new.slot.to_string(), names::CLEANUP_HOOK: ""});
    if let Some(remediation) = &plane.remediating {
        own[names::REMEDIATION_FOR] = json!(remediation);
    }
    object::merge(&mut metadata, &json!({"annotations": own}));
    let mut spec = json!({
        "clusterName": cluster.name,
        "version": plane.version,
        "bootstrap": {"configRef": {"apiGroup": names::BOOTSTRAP_GROUP, "kind": "KubeadmConfig", "name": new.name}},
        "infrastructureRef": {"apiGroup": reference.group, "kind": reference.machine_kind(), "name": new.name},
    });
    if let Some(domain) = &new.failure_domain {
        spec["failureDomain"] = json!(domain);
    }
    object::merge(&mut spec, &propagate::spec(plane, external_etcd));
    json!({"apiVersion": CORE_API_VERSION, "kind": "Machine", "metadata": metadata, "spec": spec})
}

/// The KubeadmConfig of a Machine.
pub fn config(plane: &ControlPlane, cluster: &Cluster, machine: &Machine, entry: Entry) -> Value {
    let name = object::text(&machine.stored, "/spec/bootstrap/configRef/name");
    let spec = config::spec(&plane.config, entry, &machine.version);
    let mut config = json!({
        "apiVersion": names::BOOTSTRAP_API_VERSION,
        "kind": "KubeadmConfig",
        "metadata": metadata(plane, cluster, name, &owner(machine)),
    });
    // An empty spec is not a valid one.
    if !spec.is_empty() {
        config["spec"] = Value::Object(spec);
    }
    config
}

/// The infrastructure machine of a Machine: a clone of the template.
pub fn infrastructure(plane: &ControlPlane, cluster: &Cluster, machine: &Machine, template: &Value) -> Value {
    let reference = TemplateRef::of(plane);
    let at = |pointer: &str| match json::at(template, pointer) {
        Some(Value::Object(map)) => Value::Object(map.clone()),
        _ => json!({}),
    };
    let name = object::text(&machine.stored, "/spec/infrastructureRef/name");
    let mut merged = json!({
        "labels": at("/spec/template/metadata/labels"), "annotations": at("/spec/template/metadata/annotations"),
    });
    object::merge(&mut merged, &metadata(plane, cluster, name, &owner(machine)));
    let record = json!({"annotations": {
        annotations::CLONED_FROM_NAME: reference.name,
        annotations::CLONED_FROM_GROUP_KIND: reference.group_kind(),
        names::TEMPLATE_HASH: template_hash(template),
    }});
    object::merge(&mut merged, &record);
    let mut clone = json!({
        "apiVersion": object::text(template, "/apiVersion"),
        "kind": reference.machine_kind(),
        "metadata": merged,
    });
    if let Some(spec @ Value::Object(_)) = json::at(template, "/spec/template/spec") {
        clone["spec"] = spec.clone();
    }
    clone
}

/// Tells what a template says now from what it said when it was cloned.
pub fn template_hash(template: &Value) -> String {
    let spec = json::at(template, "/spec/template/spec").cloned().unwrap_or_default();
    let digest = Sha256::digest(spec.to_string());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What is wrong with a template that cannot be cloned.
pub fn check_template(template: &Value) -> Result<(), Problem> {
    let kind = object::text(template, "/kind");
    if !kind.ends_with("Template") || kind == "Template" {
        return Err(Problem::invalid(
            "InvalidTemplate",
            format!("the kind {kind} of infrastructureRef does not end in Template"),
        ));
    }
    match json::at(template, "/spec/template") {
        Some(Value::Object(_)) => Ok(()),
        _ => {
            Err(Problem::invalid("InvalidTemplate", format!("{kind} {} has no spec.template", object::name(template))))
        }
    }
}

/// Labels that core and users find a control plane's machines by.
pub fn identity(plane: &ControlPlane, cluster: &Cluster) -> Map<String, Value> {
    [
        (labels::CLUSTER_NAME, cluster.name.clone()),
        (labels::CONTROL_PLANE, String::new()),
        (labels::CONTROL_PLANE_NAME, label_value(&plane.name)),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::String(value)))
    .collect()
}

/// The Machine as the controller of what is made for it.
fn owner(machine: &Machine) -> Value {
    json!({
        "apiVersion": CORE_API_VERSION, "kind": "Machine", "name": machine.name, "uid": machine.uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn metadata(plane: &ControlPlane, cluster: &Cluster, name: &str, owner: &Value) -> Value {
    let wanted = propagate::metadata(plane, cluster);
    let mut metadata = json!({
        "name": name,
        "namespace": plane.namespace,
        "labels": wanted["labels"],
        "ownerReferences": [owner],
    });
    if wanted["annotations"].as_object().is_some_and(|annotations| !annotations.is_empty()) {
        metadata["annotations"] = wanted["annotations"].clone();
    }
    metadata
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn names_follow_the_template_and_must_stay_unique() {
        let cluster = Cluster { name: "c".into(), ..Cluster::default() };
        let random = suffix("u", "3");
        for (template, expected) in [
            ("", Ok(format!("cp-{random}"))),
            ("{{ .cluster.name }}-{{.kubeadmControlPlane.name}}-x-{{ .random }}", Ok(format!("c-cp-x-{random}"))),
            ("{{ .cluster.name }}", Err(())),
            ("{{ .other }}-{{ .random }}", Err(())),
            ("{{ .random", Ok(random.clone())),
        ] {
            let plane = ControlPlane {
                name: "cp".into(),
                uid: "u".into(),
                naming: template.to_owned(),
                ..ControlPlane::default()
            };
            assert_eq!(name(&plane, &cluster, 3).map_err(|_| ()), expected, "{template}");
        }
    }

    #[test]
    fn the_hash_of_a_template_follows_its_content_alone() {
        let template =
            |name: &str, size: u32| json!({"metadata": {"name": name}, "spec": {"template": {"spec": {"size": size}}}});
        assert_eq!(template_hash(&template("a", 1)), template_hash(&template("b", 1)));
        assert_ne!(template_hash(&template("a", 1)), template_hash(&template("a", 2)));
        assert_eq!(template_hash(&template("a", 1)).len(), 16);
    }
}

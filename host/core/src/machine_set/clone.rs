//! Creates Machines and clones of templates.

use capwasm_api::kinds::{ContractReference, MachineSet};
use capwasm_api::names::{CORE_API_VERSION, annotations, finalizers, label_value, labels};
use capwasm_object::{json, meta, owners};
use serde_json::{Map, Value, json};

use crate::external::External;

/// Why a template cannot be cloned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    /// The template does not exist.
    #[error("{kind} {name} does not exist")]
    Missing {
        /// Such as `DockerMachineTemplate`.
        kind: String,
        name: String,
    },
    /// The template's kind is not served; the message.
    #[error("{0}")]
    Unserved(String),
    /// The kind does not end in `Template`, or there is no `spec.template.spec`.
    #[error("{kind} {name} is not a template")]
    NotATemplate {
        /// Such as `DockerMachine`.
        kind: String,
        name: String,
    },
}

/// The template, if it exists.
pub(super) fn template<'a>(external: &'a External<()>, reference: &ContractReference) -> Result<&'a Value, Unusable> {
    match external {
        External::Found { object, .. } => Ok(object),
        External::Missing => Err(Unusable::Missing { kind: reference.kind.clone(), name: reference.name.clone() }),
        External::NotInstalled(message) | External::Unserved(message) => Err(Unusable::Unserved(message.clone())),
    }
}

/// A clone of `template` for a Machine, controlled by it and with its name.
pub(super) fn clone(template: &Value, machine: &Value) -> Result<Value, Unusable> {
    let wrong =
        || Unusable::NotATemplate { kind: meta::kind(template).to_owned(), name: meta::name(template).to_owned() };
    let kind = meta::kind(template).strip_suffix("Template").ok_or_else(wrong)?;
    let spec =
        template.pointer("/spec/template/spec").filter(|spec| spec.as_object().is_some_and(|spec| !spec.is_empty()));
    let mut labels = map(template, "/spec/template/metadata/labels");
    labels.extend(map(machine, "/metadata/labels"));
    let mut notes = map(template, "/spec/template/metadata/annotations");
    notes.extend(map(machine, "/metadata/annotations"));
    notes.remove(annotations::SLOT);
    notes.insert(annotations::CLONED_FROM_NAME.to_owned(), meta::name(template).into());
    notes.insert(
        annotations::CLONED_FROM_GROUP_KIND.to_owned(),
        format!("{}.{}", meta::kind(template), meta::group(template)).into(),
    );
    let mut clone = json!({
        "apiVersion": json::text(template, "/apiVersion").unwrap_or_default(),
        "kind": kind,
        "metadata": {
            "name": meta::name(machine),
            "namespace": meta::namespace(machine),
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [owners::reference_to(machine, true)],
        },
    });
    // Kinds whose every field is optional take no spec, or one with something in it.
    if let Some(spec) = spec {
        clone["spec"] = spec.clone();
    }
    Ok(clone)
}

/// A Machine without references. Finalizer, owner and labels are set on creation, which saves a write.
pub(super) fn machine(object: &Value, set: &MachineSet, name: &str, slot: &str) -> Value {
    let mut spec = object.pointer("/spec/template/spec").cloned().unwrap_or_else(|| json!({}));
    json::set(&mut spec, &["clusterName"], set.spec.cluster_name.as_str());
    let mut labels = map(object, "/spec/template/metadata/labels");
    labels.insert(labels::CLUSTER_NAME.to_owned(), set.spec.cluster_name.as_str().into());
    labels.insert(labels::SET_NAME.to_owned(), label_value(&set.metadata.name).into());
    if let Some(deployment) = set.metadata.labels.get(labels::DEPLOYMENT_NAME) {
        labels.insert(labels::DEPLOYMENT_NAME.to_owned(), deployment.as_str().into());
    }
    let mut notes = map(object, "/spec/template/metadata/annotations");
    notes.insert(annotations::SLOT.to_owned(), slot.into());
    let mut machine = json!({
        "apiVersion": CORE_API_VERSION,
        "kind": "Machine",
        "metadata": {
            "name": name,
            "namespace": set.metadata.namespace,
            "labels": labels,
            "annotations": notes,
            "finalizers": [finalizers::MACHINE],
            "ownerReferences": [owners::reference_to(object, true)],
        },
        "spec": spec,
    });
    capwasm_api::defaults::default(&mut machine, None);
    machine
}

pub(super) fn reference(object: &Value) -> Value {
    json!({"apiGroup": meta::group(object), "kind": meta::kind(object), "name": meta::name(object)})
}

fn map(object: &Value, pointer: &str) -> Map<String, Value> {
    object.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

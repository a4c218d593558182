//! The three objects of a new machine: KubeadmConfig, infrastructure machine, Machine, all of one name.
//!
//! The name derives from the control plane's uid and the machine's slot, so that a repeated pass meets what it made before.

use capwasm_api::names::{CORE_API_VERSION, annotations, child_name, label_value, labels, next_slot, suffix};
use capwasm_sdk::{Problem, object};
use serde_json::{Map, Value, json};

use crate::observe::{Cluster, ControlPlane, Machine, TemplateRef};

const BOOTSTRAP_GROUP: &str = "bootstrap.cluster.x-k8s.io";

/// The first slot that no machine ever had.
pub fn slot(plane: &ControlPlane, machines: &[Machine]) -> u64 {
    let used = machines.iter().filter_map(|machine| object::annotation(&machine.object, annotations::SLOT));
    next_slot(plane.next_slot.as_deref(), used)
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

/// A machine to make.
#[derive(Clone, Debug)]
pub struct NewMachine<'a> {
    /// Whose.
    pub plane: &'a ControlPlane,
    /// Of which cluster.
    pub cluster: &'a Cluster,
    /// The infrastructure template, as it was read.
    pub template: &'a Value,
    /// Name of all three.
    pub name: String,
    /// What the name derives from.
    pub slot: u64,
    /// It runs `kubeadm init`.
    pub first: bool,
    /// Where to.
    pub failure_domain: Option<String>,
}

impl NewMachine<'_> {
    /// The KubeadmConfig: the control plane's, without the part for the other way to begin.
    pub fn config(&self) -> Value {
        let mut spec = self.plane.config.clone();
        spec.remove(if self.first { "joinConfiguration" } else { "initConfiguration" });
        let mut config = json!({
            "apiVersion": format!("{BOOTSTRAP_GROUP}/v1beta2"),
            "kind": "KubeadmConfig",
            "metadata": self.metadata(json!({}), json!({})),
        });
        // An empty spec is not a valid one.
        if !spec.is_empty() {
            config["spec"] = Value::Object(spec);
        }
        config
    }

    /// The infrastructure machine: a clone of the template.
    pub fn infrastructure(&self) -> Value {
        let reference = TemplateRef::of(self.plane);
        let at = |pointer: &str| self.template.pointer(pointer).cloned().unwrap_or_default();
        let mut annotations = at("/spec/template/metadata/annotations");
        object::merge(
            &mut annotations,
            &json!({
                annotations::CLONED_FROM_NAME: reference.name,
                annotations::CLONED_FROM_GROUP_KIND: reference.group_kind(),
            }),
        );
        let mut clone = json!({
            "apiVersion": object::text(self.template, "/apiVersion"),
            "kind": infrastructure_kind(&reference),
            "metadata": self.metadata(at("/spec/template/metadata/labels"), annotations),
        });
        if let Some(spec @ Value::Object(_)) = self.template.pointer("/spec/template/spec") {
            clone["spec"] = spec.clone();
        }
        clone
    }

    /// The Machine that ties them together.
    pub fn machine(&self) -> Value {
        let reference = TemplateRef::of(self.plane);
        let mut metadata = self.metadata(json!({}), json!({annotations::SLOT: self.slot.to_string()}));
        metadata["ownerReferences"] = json!([self.plane.owner(true)]);
        let mut spec = json!({
            "clusterName": self.cluster.name,
            "version": self.plane.version,
            "bootstrap": {"configRef": {"apiGroup": BOOTSTRAP_GROUP, "kind": "KubeadmConfig", "name": self.name}},
            "infrastructureRef": {"apiGroup": reference.group, "kind": infrastructure_kind(&reference), "name": self.name},
        });
        if let Some(domain) = &self.failure_domain {
            spec["failureDomain"] = json!(domain);
        }
        object::merge(&mut spec, &in_place_spec(self.plane));
        json!({"apiVersion": CORE_API_VERSION, "kind": "Machine", "metadata": metadata, "spec": spec})
    }

    /// Of a clone; it stays the control plane's until its Machine takes over.
    fn metadata(&self, own_labels: Value, own_annotations: Value) -> Value {
        let (mut labels, mut annotations) = (own_labels, own_annotations);
        let wanted = in_place_metadata(self.plane);
        object::merge(&mut labels, &wanted["labels"]);
        object::merge(&mut annotations, &wanted["annotations"]);
        object::merge(&mut labels, &identity(self.plane, self.cluster));
        let mut metadata = json!({
            "name": self.name,
            "namespace": self.plane.namespace,
            "labels": labels,
            "ownerReferences": [self.plane.owner(false)],
        });
        if annotations.as_object().is_some_and(|annotations| !annotations.is_empty()) {
            metadata["annotations"] = annotations;
        }
        metadata
    }
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
    match template.pointer("/spec/template") {
        Some(Value::Object(_)) => Ok(()),
        _ => {
            Err(Problem::invalid("InvalidTemplate", format!("{kind} {} has no spec.template", object::name(template))))
        }
    }
}

fn infrastructure_kind(reference: &TemplateRef) -> &str {
    reference.kind.strip_suffix("Template").unwrap_or(&reference.kind)
}

fn identity(plane: &ControlPlane, cluster: &Cluster) -> Value {
    json!({
        labels::CLUSTER_NAME: cluster.name,
        labels::CONTROL_PLANE: "",
        labels::CONTROL_PLANE_NAME: label_value(&plane.name),
    })
}

/// Labels and annotations that the template asks for.
fn in_place_metadata(plane: &ControlPlane) -> Value {
    let map = |name: &str| match plane.template.pointer(&format!("/metadata/{name}")) {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    json!({"labels": map("labels"), "annotations": map("annotations")})
}

/// Fields of a Machine that change without making another one.
fn in_place_spec(plane: &ControlPlane) -> Value {
    let fields = ["deletion", "readinessGates", "taints"];
    let found = fields
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), plane.template.pointer(&format!("/spec/{name}"))?.clone())));
    Value::Object(found.filter(|(_, value)| !value.is_null()).collect())
}

/// The merge patch that brings a Machine up to what may change in place; none when it is.
pub fn in_place_patch(plane: &ControlPlane, cluster: &Cluster, machine: &Machine) -> Option<Value> {
    let mut metadata = in_place_metadata(plane);
    object::merge(&mut metadata["labels"], &identity(plane, cluster));
    let wanted = json!({"metadata": metadata, "spec": in_place_spec(plane)});
    let mut merged = machine.object.clone();
    object::merge(&mut merged, &wanted);
    // Merging into an object without annotations leaves an empty map, which says nothing.
    let same = |pointer: &str| {
        let filled =
            |value: Option<&Value>| value.filter(|value| value.as_object().is_none_or(|map| !map.is_empty())).cloned();
        filled(merged.pointer(pointer)) == filled(machine.object.pointer(pointer))
    };
    (!["/metadata/labels", "/metadata/annotations", "/spec"].into_iter().all(same)).then_some(wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn plane(value: Value) -> ControlPlane {
        let mut object = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "metadata": {"name": "cp", "namespace": "default", "uid": "u"}, "spec": {"version": "v1.36.0"}});
        object::merge(&mut object, &json!({"spec": value}));
        ControlPlane::read(&object).unwrap()
    }

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
            let plane = plane(json!({"machineNaming": {"template": template}}));
            assert_eq!(name(&plane, &cluster, 3).map_err(|_| ()), expected, "{template}");
        }
    }

    #[test]
    fn only_what_differs_is_patched_in_place() {
        let plane = plane(
            json!({"machineTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 5}}}}),
        );
        let cluster = Cluster { name: "c".into(), ..Cluster::default() };
        let new = NewMachine {
            plane: &plane,
            cluster: &cluster,
            template: &json!({}),
            name: "m".into(),
            slot: 0,
            first: true,
            failure_domain: None,
        };
        let mut object = new.machine();
        assert_eq!(
            in_place_patch(&plane, &cluster, &Machine::read(object.clone())),
            None,
            "a new Machine is as it should be"
        );
        object::merge(
            &mut object,
            &json!({"metadata": {"labels": {"others": "stay"}}, "spec": {"deletion": {"nodeDeletionTimeoutSeconds": 10}}}),
        );
        assert_eq!(in_place_patch(&plane, &cluster, &Machine::read(object.clone())), None, "what others set stays");
        object::merge(&mut object, &json!({"spec": {"deletion": {"nodeDrainTimeoutSeconds": 6}}}));
        let patch = in_place_patch(&plane, &cluster, &Machine::read(object)).unwrap();
        assert_eq!(patch["spec"], json!({"deletion": {"nodeDrainTimeoutSeconds": 5}}));
        assert_eq!(patch["metadata"]["labels"]["a"], "b");
    }
}

//! What the host writes into a kind of each role (contract version v1beta2), so that authors declare only what is their own.

use capwasm_contract::descriptor::Role;
use serde_json::{Value, json};

use super::overlaid;

/// The author's `spec` with the contract's fields of the role.
pub fn spec(role: Role, own: &Value) -> Value {
    let text = || json!({"type": "string"});
    let properties = match role {
        Role::InfrastructureCluster => json!({"controlPlaneEndpoint": endpoint()}),
        Role::InfrastructureMachine => json!({"providerID": text(), "failureDomain": text()}),
        Role::InfrastructureMachinePool => json!({"providerIDList": {"type": "array", "items": text()}}),
        Role::ControlPlane => {
            json!({"replicas": count(), "version": text(), "controlPlaneEndpoint": endpoint()})
        }
        Role::Bootstrap | Role::Controller | Role::Template => json!({}),
    };
    overlaid(json!({"type": "object", "properties": properties}), own)
}

/// `spec.template` around a machine's spec.
pub fn template(spec: &Value) -> Value {
    let texts = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let metadata = json!({"type": "object", "properties": {"labels": texts(), "annotations": texts()}});
    let template = json!({"type": "object", "properties": {"metadata": metadata, "spec": spec}});
    json!({"type": "object", "required": ["template"], "properties": {"template": template}})
}

/// The author's `status` with the contract's fields; `None` for templates that have none. No field of it is required: the host
/// writes its own before the author has anything to say.
pub fn status(role: Role, own: Option<&Value>) -> Option<Value> {
    if role == Role::Template && own.is_none() {
        return None;
    }
    let text = || json!({"type": "string"});
    let initialization =
        |flag: &str| json!({"type": "object", "minProperties": 1, "properties": {flag: {"type": "boolean"}}});
    let mut properties = match role {
        Role::InfrastructureCluster => {
            json!({"initialization": initialization("provisioned"), "failureDomains": failure_domains()})
        }
        Role::InfrastructureMachine => json!({
            "initialization": initialization("provisioned"), "failureDomain": text(), "addresses": addresses(),
        }),
        Role::InfrastructureMachinePool => {
            json!({"initialization": initialization("provisioned"), "replicas": count()})
        }
        Role::Bootstrap => json!({"initialization": initialization("dataSecretCreated"), "dataSecretName": text()}),
        Role::ControlPlane => json!({
            "initialization": initialization("controlPlaneInitialized"), "version": text(), "selector": text(),
            "replicas": count(), "readyReplicas": count(), "availableReplicas": count(), "upToDateReplicas": count(),
        }),
        Role::Controller | Role::Template => json!({}),
    };
    if role != Role::Template {
        properties["conditions"] = conditions();
        properties["observedGeneration"] = json!({"type": "integer", "format": "int64"});
    }
    let host = json!({"type": "object", "properties": properties});
    let mut status = own.map_or_else(|| host.clone(), |own| overlaid(host.clone(), own));
    if let Some(fields) = status.as_object_mut() {
        fields.remove("required");
    }
    Some(status)
}

/// `status` for all, and `scale` for control planes.
pub fn subresources(role: Role) -> Value {
    match role {
        Role::ControlPlane => json!({"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }}),
        _ => json!({"status": {}}),
    }
}

/// `Ready` (of control planes `Available`) and the age; none for templates.
pub fn columns(role: Role) -> Vec<Value> {
    if role == Role::Template {
        return Vec::new();
    }
    let condition = if role == Role::ControlPlane { "Available" } else { "Ready" };
    vec![
        json!({"name": condition, "type": "string", "jsonPath": format!(".status.conditions[?(@.type==\"{condition}\")].status")}),
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
    ]
}

fn count() -> Value {
    json!({"type": "integer", "format": "int32"})
}

fn endpoint() -> Value {
    let port = json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535});
    json!({"type": "object", "properties": {"host": {"type": "string"}, "port": port}})
}

fn failure_domains() -> Value {
    json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "controlPlane": {"type": "boolean"},
            "attributes": {"type": "object", "additionalProperties": {"type": "string"}},
        }},
    })
}

fn addresses() -> Value {
    json!({"type": "array", "items": {
        "type": "object", "required": ["type", "address"],
        "properties": {"type": {"type": "string"}, "address": {"type": "string"}},
    }})
}

/// Schema of a list of `metav1.Condition`.
fn conditions() -> Value {
    json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["lastTransitionTime", "message", "reason", "status", "type"], "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"},
            "message": {"type": "string"},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64"},
        }},
    })
}

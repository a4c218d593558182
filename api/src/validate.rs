//! Upstream's validating webhooks: rules about consistency and immutability that neither schema nor CEL can express.

use capwasm_object::{json, meta, selector};
use serde_json::Value;

use crate::names::CORE_GROUP;

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Violation {
    /// Path of the field.
    pub field: &'static str,
    /// The problem with the field.
    pub message: String,
}

fn violation(field: &'static str, message: impl Into<String>) -> Violation {
    Violation { field, message: message.into() }
}

/// Violations by an object of a core kind, after defaulting. `old` is the stored object on updates.
pub fn validate(object: &Value, old: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    if meta::group(object) != CORE_GROUP {
        return found;
    }
    let kind = meta::kind(object);
    if kind != "Cluster"
        && kind != "ClusterClass"
        && kind != "MachineDrainRule"
        && changed(object, old, "/spec/clusterName")
    {
        found.push(violation("spec.clusterName", "cannot be changed"));
    }
    match kind {
        "Cluster" => cluster(object, old, &mut found),
        "Machine" => bootstrap(object, "/spec", "spec.bootstrap", &mut found),
        "MachineSet" | "MachineDeployment" => set(object, &mut found),
        "MachinePool" => bootstrap(object, "/spec/template/spec", "spec.template.spec.bootstrap", &mut found),
        "MachineHealthCheck" => health_check(object, &mut found),
        _ => {}
    }
    found
}

fn changed(object: &Value, old: Option<&Value>, pointer: &str) -> bool {
    old.is_some_and(|old| old.pointer(pointer) != object.pointer(pointer))
}

fn cluster(object: &Value, old: Option<&Value>, found: &mut Vec<Violation>) {
    let has = |object: &Value, pointer: &str| object.pointer(pointer).is_some_and(|value| !value.is_null());
    if !["/spec/infrastructureRef", "/spec/controlPlaneRef", "/spec/topology"]
        .iter()
        .any(|pointer| has(object, pointer))
    {
        found.push(violation("spec", "needs at least one of infrastructureRef, controlPlaneRef and topology"));
    }
    if old.is_some_and(|old| has(old, "/spec/topology") && !has(object, "/spec/topology")) {
        found.push(violation("spec.topology", "cannot be removed"));
    }
    for (field, pointer) in [
        ("spec.clusterNetwork.pods.cidrBlocks", "/spec/clusterNetwork/pods/cidrBlocks"),
        ("spec.clusterNetwork.services.cidrBlocks", "/spec/clusterNetwork/services/cidrBlocks"),
    ] {
        for block in json::items(object, pointer).iter().filter_map(Value::as_str).filter(|block| !is_cidr(block)) {
            found.push(violation(field, format!("{block} is not in CIDR notation")));
        }
    }
}

fn is_cidr(block: &str) -> bool {
    let Some((address, prefix)) = block.split_once('/') else {
        return false;
    };
    match (address.parse::<std::net::IpAddr>(), prefix.parse::<u8>()) {
        (Ok(address), Ok(prefix)) => prefix <= if address.is_ipv4() { 32 } else { 128 },
        _ => false,
    }
}

fn bootstrap(object: &Value, spec: &str, field: &'static str, found: &mut Vec<Violation>) {
    let config = object.pointer(&format!("{spec}/bootstrap/configRef")).is_some_and(|value| !value.is_null());
    // An empty name is one: Machines of a pool say so that the pool has the data.
    let data = object.pointer(&format!("{spec}/bootstrap/dataSecretName")).is_some_and(Value::is_string);
    if !config && !data {
        found.push(violation(field, "needs configRef or dataSecretName"));
    }
}

fn set(object: &Value, found: &mut Vec<Violation>) {
    let selector = object.pointer("/spec/selector").unwrap_or(&Value::Null);
    if !selector::selects(selector, object.pointer("/spec/template/metadata/labels")) {
        found.push(violation("spec.template.metadata.labels", "must match spec.selector"));
    }
    if json::text(object, "/spec/machineNaming/template").is_some_and(|template| !has_random(template)) {
        found.push(violation("spec.machineNaming.template", "must contain {{ .random }}"));
    }
    bootstrap(object, "/spec/template/spec", "spec.template.spec.bootstrap", found);
    let zero = |name: &str| {
        let value = object.pointer(&format!("/spec/rollout/strategy/rollingUpdate/{name}"));
        value.is_some_and(|value| value.as_i64() == Some(0) || matches!(value.as_str(), Some("0" | "0%")))
    };
    if zero("maxSurge") && zero("maxUnavailable") {
        found.push(violation("spec.rollout.strategy.rollingUpdate", "maxSurge and maxUnavailable cannot both be 0"));
    }
}

fn has_random(template: &str) -> bool {
    template.split("{{").skip(1).any(|part| part.split("}}").next().is_some_and(|inner| inner.trim() == ".random"))
}

fn health_check(object: &Value, found: &mut Vec<Violation>) {
    if object.pointer("/spec/selector").is_none_or(selector::is_empty) {
        found.push(violation("spec.selector", "cannot be empty"));
    }
    if json::number(object, "/spec/checks/nodeStartupTimeoutSeconds")
        .is_some_and(|seconds| seconds != 0 && seconds < 30)
    {
        found.push(violation("spec.checks.nodeStartupTimeoutSeconds", "must be 0 or at least 30"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(kind: &str, spec: Value, old: Option<Value>) -> Vec<&'static str> {
        let whole = |spec| json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec});
        validate(&whole(spec), old.map(whole).as_ref()).into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn each_rule_names_its_field() {
        let boot = json!({"dataSecretName": "s"});
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"bootstrap": boot}});
        let selector = json!({"matchLabels": {"a": "b"}});
        let reference = json!({"apiGroup": "g", "kind": "K", "name": "n"});
        for (what, kind, spec, old, expected) in [
            ("a cluster of nothing", "Cluster", json!({}), None, vec!["spec"]),
            (
                "a good cluster",
                "Cluster",
                json!({"infrastructureRef": reference, "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/8", "fd00::/64"]}}}),
                None,
                vec![],
            ),
            (
                "a bad range",
                "Cluster",
                json!({"infrastructureRef": reference, "clusterNetwork": {"services": {"cidrBlocks": ["10.0.0.0/33"]}}}),
                None,
                vec!["spec.clusterNetwork.services.cidrBlocks"],
            ),
            (
                "topology removed",
                "Cluster",
                json!({"infrastructureRef": reference}),
                Some(json!({"topology": {}})),
                vec!["spec.topology"],
            ),
            ("a machine without bootstrap", "Machine", json!({"clusterName": "c"}), None, vec!["spec.bootstrap"]),
            (
                "another cluster",
                "Machine",
                json!({"clusterName": "c", "bootstrap": boot}),
                Some(json!({"clusterName": "d"})),
                vec!["spec.clusterName"],
            ),
            (
                "a good set",
                "MachineSet",
                json!({"selector": selector, "template": template, "machineNaming": {"template": "x-{{.random}}"}}),
                None,
                vec![],
            ),
            (
                "labels that do not match",
                "MachineSet",
                json!({"selector": {"matchLabels": {"a": "c"}}, "template": template}),
                None,
                vec!["spec.template.metadata.labels"],
            ),
            (
                "names that repeat",
                "MachineSet",
                json!({"selector": selector, "template": template, "machineNaming": {"template": "x"}}),
                None,
                vec!["spec.machineNaming.template"],
            ),
            (
                "no way to roll",
                "MachineDeployment",
                json!({"selector": selector, "template": template, "rollout": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}}}),
                None,
                vec!["spec.rollout.strategy.rollingUpdate"],
            ),
            (
                "a health check of everything, at once",
                "MachineHealthCheck",
                json!({"selector": {}, "checks": {"nodeStartupTimeoutSeconds": 5}}),
                None,
                vec!["spec.selector", "spec.checks.nodeStartupTimeoutSeconds"],
            ),
        ] {
            assert_eq!(fields(kind, spec, old), expected, "{what}");
        }
    }
}

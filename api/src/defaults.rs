//! Upstream's mutating webhooks as a pure function: defaults that a schema cannot express.
//!
//! Applied at admission by an embedded API server; elsewhere core works on a defaulted copy, and persists it with its
//! next
//! write. Idempotent.

use capwasm_object::{json, meta, selector};
use serde_json::{Value, json};

use crate::names::{CORE_GROUP, annotations, label_value, labels};

/// Default of `nodeDeletionTimeoutSeconds`.
const NODE_DELETION_TIMEOUT: i64 = 10;
/// Default of `nodeStartupTimeoutSeconds`.
const NODE_STARTUP_TIMEOUT: i64 = 600;

/// Defaults an object of a core kind; others are unchanged. `old` is the stored object on updates.
pub fn default(object: &mut Value, old: Option<&Value>) {
    if meta::group(object) != CORE_GROUP {
        return;
    }
    // Filling in would hide the mistake; the schema refuses it.
    if MAPS.iter().any(|pointer| object.pointer(pointer).is_some_and(|value| !value.is_object() && !value.is_null())) {
        return;
    }
    match meta::kind(object) {
        "Cluster" => prefix_version(object, &["spec", "topology", "version"]),
        "Machine" => machine(object),
        "MachineSet" => machine_set(object, old),
        "MachineDeployment" => machine_deployment(object, old),
        "MachinePool" => machine_pool(object, old),
        "MachineHealthCheck" => machine_health_check(object),
        _ => {}
    }
}

/// Maps in which defaults are set.
const MAPS: [&str; 16] = [
    "/metadata/labels",
    "/spec",
    "/spec/checks",
    "/spec/deletion",
    "/spec/remediation",
    "/spec/remediation/triggerIf",
    "/spec/rollout",
    "/spec/rollout/strategy",
    "/spec/rollout/strategy/rollingUpdate",
    "/spec/selector",
    "/spec/selector/matchLabels",
    "/spec/template",
    "/spec/template/metadata",
    "/spec/template/metadata/labels",
    "/spec/template/spec",
    "/spec/template/spec/deletion",
];

fn machine(object: &mut Value) {
    label_cluster(object, &["metadata", "labels"]);
    prefix_version(object, &["spec", "version"]);
    absent(object, &["spec", "deletion", "nodeDeletionTimeoutSeconds"], NODE_DELETION_TIMEOUT);
}

fn machine_set(object: &mut Value, old: Option<&Value>) {
    label_cluster(object, &["metadata", "labels"]);
    replicas(object, old);
    select_own(object, labels::SET_NAME);
    prefix_version(object, &["spec", "template", "spec", "version"]);
}

fn machine_deployment(object: &mut Value, old: Option<&Value>) {
    label_cluster(object, &["metadata", "labels"]);
    replicas(object, old);
    absent(object, &["spec", "rollout", "strategy", "type"], "RollingUpdate");
    if json::text(object, "/spec/rollout/strategy/type") == Some("RollingUpdate") {
        absent(object, &["spec", "rollout", "strategy", "rollingUpdate", "maxSurge"], 1);
        absent(object, &["spec", "rollout", "strategy", "rollingUpdate", "maxUnavailable"], 0);
    }
    select_own(object, labels::DEPLOYMENT_NAME);
    label_cluster(object, &["spec", "selector", "matchLabels"]);
    label_cluster(object, &["spec", "template", "metadata", "labels"]);
    prefix_version(object, &["spec", "template", "spec", "version"]);
}

fn machine_pool(object: &mut Value, old: Option<&Value>) {
    label_cluster(object, &["metadata", "labels"]);
    replicas(object, old);
    prefix_version(object, &["spec", "template", "spec", "version"]);
    absent(object, &["spec", "template", "spec", "deletion", "nodeDeletionTimeoutSeconds"], NODE_DELETION_TIMEOUT);
}

fn machine_health_check(object: &mut Value) {
    label_cluster(object, &["metadata", "labels"]);
    absent(object, &["spec", "checks", "nodeStartupTimeoutSeconds"], NODE_STARTUP_TIMEOUT);
    let trigger = "/spec/remediation/triggerIf";
    if json::text(object, &format!("{trigger}/unhealthyInRange")).is_none() {
        absent(object, &["spec", "remediation", "triggerIf", "unhealthyLessThanOrEqualTo"], "100%");
    }
}

/// Sets a missing value.
fn absent(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    if object.pointer(&pointer(path)).is_none_or(Value::is_null) {
        json::set(object, path, value);
    }
}

fn pointer(path: &[&str]) -> String {
    path.iter().map(|key| format!("/{key}")).collect()
}

/// Copies `spec.clusterName` to the cluster label in the map at `path`.
fn label_cluster(object: &mut Value, path: &[&str]) {
    let Some(cluster) = json::text(object, "/spec/clusterName").map(str::to_owned) else {
        return;
    };
    let map = json::map(object, path);
    if map.get(labels::CLUSTER_NAME).and_then(Value::as_str) != Some(&cluster) {
        map.insert(labels::CLUSTER_NAME.to_owned(), cluster.into());
    }
}

/// Makes an empty selector select a label with the object's name, which is added to the template.
fn select_own(object: &mut Value, key: &str) {
    let empty = object.pointer("/spec/selector").is_none_or(selector::is_empty);
    if empty && !meta::name(object).is_empty() {
        let name = label_value(meta::name(object));
        json::map(object, &["spec", "selector", "matchLabels"]).insert(key.to_owned(), name.clone().into());
        json::map(object, &["spec", "template", "metadata", "labels"]).insert(key.to_owned(), name.into());
    }
}

/// Adds the prefix `v` to a version.
fn prefix_version(object: &mut Value, path: &[&str]) {
    if let Some(version) = json::text(object, &pointer(path)).filter(|version| !version.starts_with('v')) {
        let version = format!("v{version}");
        json::set(object, path, version);
    }
}

/// Defaults replicas to 1, or to the present number within the autoscaler's limits, so that an apply without replicas
/// does not undo its work.
fn replicas(object: &mut Value, old: Option<&Value>) {
    // What is no number is left for the schema to refuse.
    if object.pointer("/spec/replicas").is_some_and(|replicas| !replicas.is_null()) {
        return;
    }
    let limit = |key| meta::annotation(object, key).and_then(|text| text.parse::<i64>().ok());
    let replicas = match (limit(annotations::AUTOSCALER_MIN), limit(annotations::AUTOSCALER_MAX)) {
        (Some(min), Some(max)) if min <= max => {
            old.and_then(|old| json::number(old, "/spec/replicas")).unwrap_or(min).clamp(min, max)
        }
        _ => 1,
    };
    json::set(object, &["spec", "replicas"], json!(replicas));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, metadata: Value, spec: Value) -> Value {
        let mut object =
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec});
        default(&mut object, None);
        let once = object.clone();
        default(&mut object, Some(&once));
        assert_eq!(object, once, "defaulting twice changes nothing");
        object
    }

    #[test]
    fn an_empty_selector_of_a_deployment_selects_its_own_machines() {
        let object = of(
            "MachineDeployment",
            json!({"name": "md-0"}),
            json!({"clusterName": "c", "selector": {}, "template": {"spec": {"version": "1.36.0"}}}),
        );
        let own = json!({"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md-0"});
        assert_eq!(object["spec"]["selector"]["matchLabels"], own);
        assert_eq!(object["spec"]["template"]["metadata"]["labels"], own);
        assert_eq!(object["spec"]["template"]["spec"]["version"], "v1.36.0");
        assert_eq!(
            object["spec"]["rollout"]["strategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        );
        assert_eq!(object["spec"]["replicas"], 1);
        assert_eq!(object["metadata"]["labels"], json!({"cluster.x-k8s.io/cluster-name": "c"}));
    }

    #[test]
    fn a_given_selector_and_strategy_are_kept() {
        let object = of(
            "MachineDeployment",
            json!({"name": "md-0"}),
            json!({"clusterName": "c", "replicas": 0, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}}, "rollout": {"strategy": {"type": "OnDelete"}}}),
        );
        assert_eq!(object["spec"]["selector"]["matchLabels"], json!({"a": "b", "cluster.x-k8s.io/cluster-name": "c"}));
        assert_eq!(object["spec"]["rollout"], json!({"strategy": {"type": "OnDelete"}}));
        assert_eq!(object["spec"]["replicas"], 0);
    }

    #[test]
    fn a_null_selector_of_a_set_selects_by_set_name() {
        let object = of("MachineSet", json!({"name": "ms"}), json!({"clusterName": "c", "selector": null}));
        assert_eq!(object["spec"]["selector"]["matchLabels"], json!({"cluster.x-k8s.io/set-name": "ms"}));
    }

    #[test]
    fn a_machine_gets_its_label_version_prefix_and_deletion_timeout() {
        let object = of("Machine", json!({"name": "m"}), json!({"clusterName": "c", "version": "1.2.3"}));
        assert_eq!(
            object["spec"],
            json!({"clusterName": "c", "version": "v1.2.3", "deletion": {"nodeDeletionTimeoutSeconds": 10}})
        );
        let zero = of(
            "Machine",
            json!({"name": "m"}),
            json!({"clusterName": "c", "deletion": {"nodeDeletionTimeoutSeconds": 0}}),
        );
        assert_eq!(zero["spec"]["deletion"]["nodeDeletionTimeoutSeconds"], 0);
    }

    #[test]
    fn values_of_a_wrong_type_are_left_to_be_refused() {
        let object = of("MachineSet", json!({"name": "a"}), json!({"clusterName": "c", "replicas": "two"}));
        assert_eq!(object["spec"]["replicas"], "two");
        for (field, wrong) in [("selector", json!(["a"])), ("template", json!("a"))] {
            let spec = json!({"clusterName": "c", field: wrong});
            assert_eq!(of("MachineDeployment", json!({"name": "a"}), spec.clone())["spec"], spec, "{field}");
        }
    }

    #[test]
    fn replicas_stay_within_the_autoscalers_limits() {
        let annotations = json!({annotations::AUTOSCALER_MIN: "2", annotations::AUTOSCALER_MAX: "5"});
        for (what, old, expected) in
            [("new", None, 2), ("below", Some(1), 2), ("within", Some(4), 4), ("above", Some(9), 5)]
        {
            let mut object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "metadata": {"name": "m", "annotations": annotations}, "spec": {}});
            let old = old.map(|replicas| json!({"spec": {"replicas": replicas}}));
            default(&mut object, old.as_ref());
            assert_eq!(object["spec"]["replicas"], expected, "{what}");
        }
    }

    #[test]
    fn other_kinds_stay_as_they_are() {
        let mut object = json!({"apiVersion": "other/v1", "kind": "Machine", "spec": {"clusterName": "c"}});
        let before = object.clone();
        default(&mut object, None);
        assert_eq!(object, before);
    }

    #[test]
    fn a_health_check_acts_on_any_number_unless_told_otherwise() {
        let object = of("MachineHealthCheck", json!({"name": "m"}), json!({"clusterName": "c"}));
        assert_eq!(object["spec"]["checks"]["nodeStartupTimeoutSeconds"], 600);
        assert_eq!(object["spec"]["remediation"]["triggerIf"]["unhealthyLessThanOrEqualTo"], "100%");
        let ranged = of(
            "MachineHealthCheck",
            json!({"name": "m"}),
            json!({"clusterName": "c", "remediation": {"triggerIf": {"unhealthyInRange": "[1-2]"}}}),
        );
        assert_eq!(ranged["spec"]["remediation"]["triggerIf"], json!({"unhealthyInRange": "[1-2]"}));
    }
}

//! The KubeadmConfig of a machine: what it says when it is made, and whether it still says what the control plane wants.
//! Pure.

use capwasm_object::version::Version;
use serde_json::{Map, Value, json};

/// kubeadm's feature gate with which kubelets talk to their own API server; a gate from 1.31 until it became the rule.
pub const LOCAL_MODE: &str = "ControlPlaneKubeletLocalMode";

/// Whether a machine makes the cluster or joins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `kubeadm init`.
    Init,
    /// `kubeadm join`.
    Join,
}

/// The spec of a new KubeadmConfig: the control plane's, without the part for the other way to begin.
pub fn spec(wanted: &Map<String, Value>, entry: Entry, version: &str) -> Map<String, Value> {
    let mut spec = wanted.clone();
    match entry {
        Entry::Init => {
            spec.remove("joinConfiguration");
        }
        Entry::Join => {
            spec.remove("initConfiguration");
            // Tells a joining machine's configuration from the first one's.
            let join = spec.entry("joinConfiguration").or_insert_with(|| json!({}));
            if let Some(join) = join.as_object_mut() {
                join.entry("controlPlane").or_insert_with(|| json!({}));
            }
        }
    }
    if has_local_mode_gate(version) {
        let configuration = spec.entry("clusterConfiguration").or_insert_with(|| json!({}));
        if let Some(configuration) = configuration.as_object_mut() {
            default_gate(configuration);
        }
    }
    spec
}

/// Whether this version's kubeadm has the gate.
pub fn has_local_mode_gate(version: &str) -> bool {
    Version::parse(version).is_some_and(|version| version.is_at_least(1, 31) && !version.is_at_least(1, 36))
}

/// Switches the gate on unless the user decided.
pub fn default_gate(configuration: &mut Map<String, Value>) {
    let gates = configuration.entry("featureGates").or_insert_with(|| json!({}));
    if let Some(gates) = gates.as_object_mut() {
        gates.entry(LOCAL_MODE).or_insert(json!(true));
    }
}

/// The parts of `spec` in which a machine's KubeadmConfig says something else than the control plane.
pub fn differences(wanted: &Map<String, Value>, config: &Value, version: &str) -> Vec<String> {
    let none = Map::new();
    let known = config.get("spec").and_then(Value::as_object).unwrap_or(&none);
    let entry = entry_of(known);
    // What is the same word for word need not be looked into; mostly that is nearly all.
    let keys: std::collections::BTreeSet<&String> = wanted.keys().chain(known.keys()).collect();
    let keys: Vec<&String> = keys.into_iter().filter(|key| wanted.get(*key) != known.get(*key)).collect();
    let part = |of: &Map<String, Value>| {
        let part = keys.iter().filter_map(|key| Some(((*key).clone(), of.get(*key)?.clone()))).collect();
        comparable(part, entry, version)
    };
    let (wanted, known) = (part(wanted), part(known));
    let differing = keys.into_iter().filter(|key| wanted.get(*key) != known.get(*key));
    differing.map(|key| format!("spec.{key}")).collect()
}

fn entry_of(spec: &Map<String, Value>) -> Entry {
    if spec.get("joinConfiguration").is_some_and(Value::is_object) { Entry::Join } else { Entry::Init }
}

/// A spec without what makes no difference to a machine: defaults, what other controllers fill in, and what is changed in
/// the running cluster instead.
fn comparable(mut spec: Map<String, Value>, entry: Entry, version: &str) -> Map<String, Value> {
    spec.remove(if entry == Entry::Join { "initConfiguration" } else { "joinConfiguration" });
    if spec.get("format").is_some_and(|format| format == "cloud-config") {
        spec.remove("format");
    }
    if let Some(Value::Object(configuration)) = spec.get_mut("clusterConfiguration") {
        // The bootstrap provider fills in the endpoint; CoreDNS is changed in the cluster.
        configuration.remove("controlPlaneEndpoint");
        configuration.remove("dns");
        if let Some(Value::Object(gates)) = configuration.get_mut("featureGates")
            && has_local_mode_gate(version)
            && gates.get(LOCAL_MODE) == Some(&json!(true))
        {
            gates.remove(LOCAL_MODE);
        }
    }
    for part in ["initConfiguration", "joinConfiguration"] {
        let Some(Value::Object(part)) = spec.get_mut(part) else { continue };
        // How a machine found the cluster says nothing about what it is.
        part.remove("discovery");
        if let Some(Value::Object(registration)) = part.get_mut("nodeRegistration")
            && registration.get("imagePullPolicy").is_some_and(|policy| policy == "IfNotPresent")
        {
            registration.remove("imagePullPolicy");
        }
    }
    let mut spec = Value::Object(spec);
    prune(&mut spec);
    match spec {
        Value::Object(spec) => spec,
        _ => Map::new(),
    }
}

/// Takes out what is as good as absent. An empty list of taints is not: it says that there are none.
pub fn prune(value: &mut Value) {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            map.retain(|key, value| !empty(value) || (key == "taints" && value.is_array()));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_new_machine_gets_the_part_for_its_way_to_begin() {
        let wanted = map(json!({
            "initConfiguration": {"skipPhases": ["a"]}, "joinConfiguration": {"skipPhases": ["b"]},
            "clusterConfiguration": {"featureGates": {"X": true}},
        }));
        let gated = json!({"featureGates": {"X": true, "ControlPlaneKubeletLocalMode": true}});
        for (what, entry, version, expected) in [
            (
                "init",
                Entry::Init,
                "v1.36.0",
                json!({"initConfiguration": {"skipPhases": ["a"]}, "clusterConfiguration": {"featureGates": {"X": true}}}),
            ),
            (
                "join",
                Entry::Join,
                "v1.36.0",
                json!({"joinConfiguration": {"skipPhases": ["b"], "controlPlane": {}}, "clusterConfiguration": {"featureGates": {"X": true}}}),
            ),
            (
                "with the gate",
                Entry::Init,
                "v1.35.1",
                json!({"initConfiguration": {"skipPhases": ["a"]}, "clusterConfiguration": gated}),
            ),
        ] {
            let spec = spec(&wanted, entry, version);
            assert_eq!(Value::Object(spec.clone()), expected, "{what}");
            let config = json!({"spec": spec});
            assert_eq!(differences(&wanted, &config, version), [""; 0], "{what}: it is as it was made");
        }
    }

    #[test]
    fn only_what_makes_a_difference_to_a_machine_is_a_difference() {
        for (what, wanted, known, expected) in [
            ("nothing", json!({}), json!({}), vec![]),
            ("a default spelled out", json!({"format": "cloud-config"}), json!({}), vec![]),
            ("another format", json!({"format": "ignition"}), json!({}), vec!["spec.format"]),
            (
                "discovery filled in",
                json!({}),
                json!({"joinConfiguration": {"controlPlane": {}, "discovery": {"bootstrapToken": {"token": "x"}}}}),
                vec![],
            ),
            (
                "the endpoint filled in",
                json!({"clusterConfiguration": {"apiServer": {"certSANs": ["a"]}}}),
                json!({"clusterConfiguration": {"apiServer": {"certSANs": ["a"]}, "controlPlaneEndpoint": "x:1"}}),
                vec![],
            ),
            ("DNS", json!({"clusterConfiguration": {"dns": {"imageTag": "v1"}}}), json!({}), vec![]),
            (
                "an argument",
                json!({"clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "v", "value": "5"}]}}}),
                json!({}),
                vec!["spec.clusterConfiguration"],
            ),
            (
                "the part for the other way to begin",
                json!({"initConfiguration": {"skipPhases": ["x"]}}),
                json!({"joinConfiguration": {"controlPlane": {}}}),
                vec![],
            ),
            (
                "how it joins",
                json!({"joinConfiguration": {"skipPhases": ["x"]}}),
                json!({"joinConfiguration": {"controlPlane": {}}}),
                vec!["spec.joinConfiguration"],
            ),
            (
                "no taints instead of the default",
                json!({"joinConfiguration": {"nodeRegistration": {"taints": []}}}),
                json!({"joinConfiguration": {"controlPlane": {}}}),
                vec!["spec.joinConfiguration"],
            ),
            (
                "a default pull policy",
                json!({"initConfiguration": {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}}}),
                json!({}),
                vec![],
            ),
            (
                "files and commands",
                json!({"files": [{"path": "/a"}], "preKubeadmCommands": []}),
                json!({"postKubeadmCommands": ["x"]}),
                vec!["spec.files", "spec.postKubeadmCommands"],
            ),
            (
                "null and empty maps",
                json!({"clusterConfiguration": {"etcd": null, "scheduler": {}}}),
                json!({}),
                vec![],
            ),
        ] {
            assert_eq!(differences(&map(wanted), &json!({"spec": known}), "v1.36.0"), expected, "{what}");
        }
    }
}

//! The ClusterConfiguration that kubeadm keeps for joining machines: read, brought up to date, compared. Pure.

use capwasm_object::version::Version;
use serde_json::{Map, Value, json};

use crate::config::{LOCAL_MODE, default_gate, has_local_mode_gate, prune};
use crate::plane::ControlPlane;
use capwasm_yaml::{Yaml, read};

/// The first minor version of Kubernetes 1 whose kubeadm reads v1beta4.
const FIRST_V1BETA4: u64 = 31;

/// Parses a document that has to be one mapping.
pub fn read(text: &str) -> Result<Map<String, Value>, String> {
    match read::only(text)?.as_ref().map(value) {
        Some(Value::Object(map)) => Ok(map),
        _ => Err("ClusterConfiguration is not a mapping".to_owned()),
    }
}

/// Types as YAML's core schema has them.
fn value(node: &Yaml) -> Value {
    match node {
        node if node.is_null() => Value::Null,
        Yaml::Scalar { text, plain: true, .. } => match text.as_str() {
            "true" => json!(true),
            "false" => json!(false),
            text => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
        },
        Yaml::Scalar { text, .. } => json!(text),
        Yaml::List(items) => items.iter().map(value).collect(),
        Yaml::Map(fields) => Value::Object(fields.iter().map(|(key, node)| (key.clone(), value(node))).collect()),
    }
}

/// Whether two documents say the same.
pub fn same(known: &Map<String, Value>, wanted: &Value) -> bool {
    let (mut known, mut wanted) = (Value::Object(known.clone()), wanted.clone());
    prune(&mut known);
    prune(&mut wanted);
    known == wanted
}

/// The document with what the control plane asks for. Fields that it says nothing about stay.
pub fn update(known: &Map<String, Value>, plane: &ControlPlane, version: &Version) -> Value {
    let mut document = known.clone();
    let lists = version.is_at_least(1, FIRST_V1BETA4);
    convert_arguments(&mut document, lists);
    document
        .insert("apiVersion".into(), json!(if lists { "kubeadm.k8s.io/v1beta4" } else { "kubeadm.k8s.io/v1beta3" }));
    document.insert("kind".into(), json!("ClusterConfiguration"));
    document.insert("kubernetesVersion".into(), json!(plane.version));
    let mut wanted = plane.cluster_configuration();
    if has_local_mode_gate(&plane.version) {
        default_gate(&mut wanted);
    } else if let Some(Value::Object(gates)) = document.get_mut("featureGates") {
        // A kubeadm that does not know a gate refuses the whole document.
        gates.remove(LOCAL_MODE);
    }
    if wanted.is_empty() {
        return Value::Object(document);
    }
    convert_arguments(&mut wanted, lists);
    let mut set = |key: &str, value: Option<Value>| match value {
        Some(value) => {
            document.insert(key.to_owned(), value);
        }
        None => {
            document.remove(key);
        }
    };
    for part in ["apiServer", "controllerManager", "scheduler", "featureGates"] {
        set(part, wanted.get(part).cloned());
    }
    let days = |key: &str| {
        wanted
            .get(&format!("{key}Days"))
            .and_then(Value::as_i64)
            .map(|days| json!(format!("{}h", days.saturating_mul(24))))
    };
    for key in ["certificateValidityPeriod", "caCertificateValidityPeriod"] {
        if lists && let Some(period) = days(key) {
            set(key, Some(period));
        }
    }
    for key in ["imageRepository", "encryptionAlgorithm", "dns"] {
        if let Some(value) = wanted.get(key) {
            set(key, Some(value.clone()));
        }
    }
    etcd(&mut document, &wanted);
    Value::Object(document)
}

/// Where etcd runs cannot change; how it runs can. A folder that is not named stays the one that it is.
fn etcd(document: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    let part = |name: &str| wanted.get("etcd").and_then(|etcd| etcd.get(name)).and_then(Value::as_object).cloned();
    if let Some(external) = part("external") {
        document.insert("etcd".into(), json!({"external": external}));
        return;
    }
    let known = document.get("etcd").and_then(|etcd| etcd.get("local")).and_then(Value::as_object).cloned();
    let mut local = part("local").unwrap_or_default();
    if let Some(folder) = known.and_then(|known| known.get("dataDir").cloned()) {
        local.entry("dataDir").or_insert(folder);
    }
    if !local.is_empty() {
        document.insert("etcd".into(), json!({"local": local}));
    }
}

/// v1beta4 has a list of names and values where v1beta3 has a map.
fn convert_arguments(document: &mut Map<String, Value>, lists: bool) {
    let convert = |part: Option<&mut Value>| {
        let Some(part) = part.and_then(Value::as_object_mut) else { return };
        if !lists {
            part.remove("extraEnvs");
        }
        let Some(arguments) = part.get_mut("extraArgs") else { return };
        *arguments = match (&*arguments, lists) {
            (Value::Object(map), true) => {
                map.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
            }
            (Value::Array(items), false) => Value::Object(
                items
                    .iter()
                    .filter_map(|item| Some((item["name"].as_str()?.to_owned(), item["value"].clone())))
                    .collect(),
            ),
            (same, _) => same.clone(),
        };
    };
    for part in ["apiServer", "controllerManager", "scheduler"] {
        convert(document.get_mut(part));
    }
    convert(document.get_mut("etcd").and_then(|etcd| etcd.get_mut("local")));
    // v1beta4 has no place for it here.
    if lists && let Some(Value::Object(server)) = document.get_mut("apiServer") {
        server.remove("timeoutForControlPlane");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    const KNOWN: &str = "apiServer:
  extraArgs:
    v: '2'
  timeoutForControlPlane: 4m0s
apiVersion: kubeadm.k8s.io/v1beta3
certificatesDir: /etc/kubernetes/pki
clusterName: c
controlPlaneEndpoint: 172.18.0.3:6443
controllerManager: {}
dns: {}
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.36.0
networking:
  podSubnet: 10.0.0.0/16
scheduler: {}
";

    fn updated(known: &str, version: &str, configuration: Value) -> Value {
        let plane = ControlPlane::read(
            &json!({"spec": {"version": version, "kubeadmConfigSpec": {"clusterConfiguration": configuration}}}),
        )
        .unwrap();
        update(&read(known).unwrap(), &plane, &Version::parse(version).unwrap())
    }

    #[test]
    fn the_version_and_what_is_asked_for_change_and_the_rest_stays() {
        let new = updated(
            KNOWN,
            "v1.37.0",
            json!({
                "apiServer": {"certSANs": ["a"], "extraArgs": [{"name": "v", "value": "5"}]},
                "imageRepository": "r.example.org", "certificateValidityPeriodDays": 30, "etcd": {"local": {"imageTag": "3.6.0"}},
            }),
        );
        assert_eq!(
            new,
            json!({
                "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": "v1.37.0",
                "apiServer": {"certSANs": ["a"], "extraArgs": [{"name": "v", "value": "5"}]},
                "certificatesDir": "/etc/kubernetes/pki", "clusterName": "c", "controlPlaneEndpoint": "172.18.0.3:6443", "dns": {},
                "etcd": {"local": {"imageTag": "3.6.0", "dataDir": "/var/lib/etcd"}}, "imageRepository": "r.example.org",
                "certificateValidityPeriod": "720h", "networking": {"podSubnet": "10.0.0.0/16"},
            })
        );
        let written = capwasm_yaml::write::document(&new);
        assert!(same(&read(&written).unwrap(), &new), "what is written reads back: {written}");
    }

    #[test]
    fn without_a_configuration_only_version_and_form_change() {
        let new = updated(KNOWN, "v1.37.0", Value::Null);
        assert_eq!(new["apiServer"], json!({"extraArgs": [{"name": "v", "value": "2"}]}));
        assert_eq!(new["kubernetesVersion"], "v1.37.0");
        let old = updated(
            KNOWN,
            "v1.30.0",
            json!({"scheduler": {"extraArgs": [{"name": "v", "value": "1"}], "extraEnvs": []}}),
        );
        assert_eq!(
            (&old["apiVersion"], &old["scheduler"]),
            (&json!("kubeadm.k8s.io/v1beta3"), &json!({"extraArgs": {"v": "1"}}))
        );
    }

    #[test]
    fn the_gate_of_local_kubelets_comes_with_1_31_and_goes_with_1_36() {
        let gate = |document: &Value| document["featureGates"].get("ControlPlaneKubeletLocalMode").cloned();
        let with = updated(KNOWN, "v1.35.0", Value::Null);
        assert_eq!(gate(&with), Some(json!(true)));
        let without = updated(&capwasm_yaml::write::document(&with), "v1.36.0", Value::Null);
        assert_eq!(gate(&without), None);
        let users = updated(KNOWN, "v1.35.0", json!({"featureGates": {"ControlPlaneKubeletLocalMode": false}}));
        assert_eq!(gate(&users), Some(json!(false)));
    }

    #[test]
    fn an_updated_document_needs_no_second_update() {
        for configuration in [
            Value::Null,
            json!({"apiServer": {"certSANs": ["a"]}}),
            json!({"etcd": {"external": {"endpoints": ["e"]}}}),
        ] {
            let once = updated(KNOWN, "v1.35.0", configuration.clone());
            let twice = updated(&capwasm_yaml::write::document(&once), "v1.35.0", configuration);
            assert!(same(once.as_object().unwrap(), &twice), "{once} {twice}");
        }
        assert!(read("- a").is_err() && read("a: [").is_err());
    }
}

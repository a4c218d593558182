//! kubeadm's configuration documents, `kubeadm.k8s.io/v1beta4`.
//!
//! The fields of a KubeadmConfig pass through, except where Cluster API spells them its own way: durations as
//! `…Seconds` and `…Days`, the kubeconfig inside of `discovery.file`. What belongs to the Cluster or the Machine (name,
//! networking, endpoint, version) is filled in from there.

use capwasm_api::names::UNINITIALIZED_TAINT;
use capwasm_sdk::Problem;
use serde_json::{Map, Value, json};

use crate::config::{Cluster, ConfigSpec};
use crate::yaml;

/// kubeadm's own `certificatesDir`.
pub const CERTIFICATES_DIR: &str = "/etc/kubernetes/pki";

const API_VERSION: &str = "kubeadm.k8s.io/v1beta4";
/// The first minor version of Kubernetes 1 whose kubeadm reads it.
const FIRST_MINOR: u64 = 31;

/// `invalid` for a Kubernetes version whose kubeadm does not read v1beta4. Without a version kubeadm takes its own.
pub fn check_version(version: &str) -> Result<(), Problem> {
    if version.is_empty() {
        return Ok(());
    }
    let mut parts = version.trim_start_matches('v').split('.').map(|part| part.parse::<u64>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) >= (1, FIRST_MINOR) => Ok(()),
        (Some(_), Some(_)) => Err(Problem::invalid(
            "UnsupportedKubernetesVersion",
            format!(
                "Kubernetes {version} is too old: its kubeadm does not read {API_VERSION}; use v1.{FIRST_MINOR}.0 or newer"
            ),
        )),
        _ => Err(Problem::invalid(
            "InvalidKubernetesVersion",
            format!("spec.version of the Machine is not a version: {version}"),
        )),
    }
}

/// Where the machine's certificates go.
pub fn certificates_dir(spec: &ConfigSpec) -> &str {
    match spec.cluster_configuration.get("certificatesDir").and_then(Value::as_str) {
        None | Some("") => CERTIFICATES_DIR,
        Some(dir) => dir,
    }
}

/// ClusterConfiguration and InitConfiguration, as one file of two documents.
pub fn init(spec: &ConfigSpec, cluster: &Cluster, version: &str) -> String {
    let mut configuration = spec.cluster_configuration.clone();
    configuration.insert("clusterName".into(), json!(cluster.name));
    if !version.is_empty() {
        configuration.insert("kubernetesVersion".into(), json!(version));
    }
    if !cluster.networking.is_empty() {
        configuration.insert("networking".into(), Value::Object(cluster.networking.clone()));
    }
    if let Some(endpoint) = &cluster.endpoint {
        configuration.entry("controlPlaneEndpoint").or_insert_with(|| json!(endpoint));
    }
    days_to_duration(&mut configuration, "caCertificateValidityPeriod");
    days_to_duration(&mut configuration, "certificateValidityPeriod");

    let mut init = spec.init_configuration.clone();
    if let Some(Value::Array(tokens)) = init.get_mut("bootstrapTokens") {
        for token in tokens.iter_mut().filter_map(Value::as_object_mut) {
            seconds_to_durations(token);
        }
    }
    timeouts(&mut init);
    format!("---\n{}---\n{}", document("ClusterConfiguration", configuration), document("InitConfiguration", init))
}

/// Whether a joining machine becomes a worker or a member of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// Runs workloads.
    Worker,
    /// Runs an API server.
    ControlPlane,
}

/// JoinConfiguration with a complete `discovery`.
pub fn join(spec: &ConfigSpec, discovery: &Map<String, Value>, member: Member) -> String {
    let mut join = spec.join_configuration.clone();
    let mut discovery = discovery.clone();
    if let Some(Value::Object(file)) = discovery.get_mut("file") {
        file.remove("kubeConfig");
    }
    join.insert("discovery".into(), Value::Object(discovery));
    timeouts(&mut join);
    match member {
        Member::ControlPlane => {
            join.entry("controlPlane").or_insert_with(|| json!({}));
        }
        Member::Worker => {
            join.remove("controlPlane");
            add_uninitialized_taint(&mut join);
        }
    }
    format!("---\n{}", document("JoinConfiguration", join))
}

/// Core takes this taint away once the Node has the Machine's labels, so that nothing is scheduled before.
fn add_uninitialized_taint(join: &mut Map<String, Value>) {
    let registration = join.entry("nodeRegistration").or_insert_with(|| json!({}));
    let Some(registration) = registration.as_object_mut() else {
        return;
    };
    if let Value::Array(taints) = registration.entry("taints").or_insert_with(|| json!([]))
        && !taints.iter().any(|taint| taint["key"] == UNINITIALIZED_TAINT)
    {
        taints.push(json!({"key": UNINITIALIZED_TAINT, "effect": "NoSchedule"}));
    }
}

fn document(kind: &str, mut fields: Map<String, Value>) -> String {
    fields.insert("apiVersion".into(), json!(API_VERSION));
    fields.insert("kind".into(), json!(kind));
    yaml::document(&Value::Object(fields))
}

fn timeouts(configuration: &mut Map<String, Value>) {
    if let Some(Value::Object(timeouts)) = configuration.get_mut("timeouts") {
        seconds_to_durations(timeouts);
    }
}

/// `ttlSeconds: 60` becomes `ttl: 60s`, a duration as Go reads it.
fn seconds_to_durations(fields: &mut Map<String, Value>) {
    let seconds: Vec<_> = fields
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), key.strip_suffix("Seconds")?.to_owned(), value.as_i64()?)))
        .collect();
    for (old, new, value) in seconds {
        fields.remove(&old);
        fields.insert(new, json!(format!("{value}s")));
    }
}

/// `certificateValidityPeriodDays: 30` becomes `certificateValidityPeriod: 720h`.
fn days_to_duration(fields: &mut Map<String, Value>, name: &str) {
    if let Some(days) = fields.remove(&format!("{name}Days")).as_ref().and_then(Value::as_i64) {
        fields.insert(name.to_owned(), json!(format!("{}h", days.saturating_mul(24))));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn spec(value: Value) -> ConfigSpec {
        serde_json::from_value(value).unwrap()
    }

    fn documents(text: &str) -> Vec<Value> {
        text.split("---\n").skip(1).map(|part| serde_saphyr::from_str(part).unwrap()).collect()
    }

    #[test]
    fn cluster_api_durations_become_kubeadm_durations_and_the_rest_passes_through() {
        let spec = spec(json!({
            "clusterConfiguration": {
                "certificateValidityPeriodDays": 30, "caCertificateValidityPeriodDays": 60,
                "encryptionAlgorithm": "ECDSA-P256",
                "apiServer": {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}],
                              "extraEnvs": [{"name": "A", "value": "b"}], "certSANs": ["localhost"]},
                "etcd": {"local": {"dataDir": "/data", "serverCertSANs": ["x"]}},
                "featureGates": {"NodeLocalCRISocket": true}, "dns": {"imageTag": "v1"},
                "controlPlaneEndpoint": "api.example.org:6443",
            },
            "initConfiguration": {
                "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttlSeconds": 60}],
                "timeouts": {"kubeletHealthCheckSeconds": 90, "etcdAPICallSeconds": 5},
                "nodeRegistration": {"taints": [], "imagePullSerial": false},
                "localAPIEndpoint": {"bindPort": 6444}, "skipPhases": ["addon/kube-proxy"],
                "patches": {"directory": "/p"},
            },
        }));
        let cluster = Cluster { name: "c".into(), endpoint: Some("10.0.0.1:6443".into()), ..Cluster::default() };
        let documents = documents(&init(&spec, &cluster, "v1.36.0"));
        assert_eq!(
            documents[0],
            json!({
                "apiVersion": API_VERSION, "kind": "ClusterConfiguration", "clusterName": "c", "kubernetesVersion": "v1.36.0",
                "certificateValidityPeriod": "720h", "caCertificateValidityPeriod": "1440h", "encryptionAlgorithm": "ECDSA-P256",
                "apiServer": {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}],
                              "extraEnvs": [{"name": "A", "value": "b"}], "certSANs": ["localhost"]},
                "etcd": {"local": {"dataDir": "/data", "serverCertSANs": ["x"]}},
                "featureGates": {"NodeLocalCRISocket": true}, "dns": {"imageTag": "v1"},
                "controlPlaneEndpoint": "api.example.org:6443",
            })
        );
        assert_eq!(
            documents[1],
            json!({
                "apiVersion": API_VERSION, "kind": "InitConfiguration",
                "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttl": "60s"}],
                "timeouts": {"kubeletHealthCheck": "90s", "etcdAPICall": "5s"},
                "nodeRegistration": {"taints": [], "imagePullSerial": false},
                "localAPIEndpoint": {"bindPort": 6444}, "skipPhases": ["addon/kube-proxy"], "patches": {"directory": "/p"},
            })
        );
    }

    #[test]
    fn only_workers_get_the_uninitialized_taint_and_only_once() {
        let taint = json!({"key": UNINITIALIZED_TAINT, "effect": "NoSchedule"});
        let own = json!({"key": "a", "effect": "NoExecute"});
        for (what, join_configuration, member, expected) in [
            ("a worker without taints", json!({}), Member::Worker, json!([taint])),
            (
                "a worker with its own",
                json!({"nodeRegistration": {"taints": [own]}}),
                Member::Worker,
                json!([own, taint]),
            ),
            ("a worker that has it", json!({"nodeRegistration": {"taints": [taint]}}), Member::Worker, json!([taint])),
            ("a control plane machine", json!({"nodeRegistration": {}}), Member::ControlPlane, Value::Null),
            ("no taints wanted", json!({"nodeRegistration": {"taints": []}}), Member::ControlPlane, json!([])),
        ] {
            let spec = spec(json!({"joinConfiguration": join_configuration}));
            let document = &documents(&join(&spec, &Map::new(), member))[0];
            let taints = document.pointer("/nodeRegistration/taints").cloned().unwrap_or_default();
            assert_eq!(taints, expected, "{what}");
            assert_eq!(document.get("controlPlane").is_some(), member == Member::ControlPlane, "{what}");
        }
    }

    #[test]
    fn versions_that_do_not_read_v1beta4_are_refused() {
        for (version, fine) in [
            ("", true),
            ("v1.31.0", true),
            ("1.36.0-rc.1", true),
            ("v2.0.0", true),
            ("v1.30.9", false),
            ("latest", false),
        ] {
            assert_eq!(check_version(version).is_ok(), fine, "{version:?}");
        }
    }
}

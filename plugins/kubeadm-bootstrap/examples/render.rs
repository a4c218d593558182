//! Writes the kubeadm configuration of many specs, to be judged by the real `kubeadm config validate`:
//!
//!     cargo run -p kubeadm-bootstrap --example render -- DIR
//!
//! writes `DIR/<case>.<kubernetes version>.yaml` for every case that the version can have, and prints what it refuses.
//! A case is named `init-…`, `join-…` or `cp-join-…`.

use std::path::Path;
use std::process::ExitCode;

use kubeadm_bootstrap::config::{Cluster, ConfigSpec};
use kubeadm_bootstrap::kubeadm::{self, Member};
use kubeadm_bootstrap::version::Version;
use serde_json::{Map, Value, json};

const VERSIONS: [&str; 15] = [
    "v1.22.17", "v1.23.17", "v1.24.17", "v1.25.16", "v1.26.15", "v1.27.16", "v1.28.15", "v1.29.15", "v1.30.14",
    "v1.31.14", "v1.32.11", "v1.33.7", "v1.34.3", "v1.35.0", "v1.36.0",
];

/// 14 November 2023.
const NOW_MS: u64 = 1_700_000_000_000;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: render DIR");
        return ExitCode::FAILURE;
    };
    match write_all(Path::new(&folder)) {
        Ok((written, refused)) => {
            println!("{written} files written, {refused} refused");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("unable to write to {folder}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(folder: &Path) -> std::io::Result<(usize, usize)> {
    std::fs::create_dir_all(folder)?;
    let (mut written, mut refused) = (0, 0);
    for version in VERSIONS {
        for (name, text) in documents(version) {
            match text {
                Ok(text) => {
                    std::fs::write(folder.join(format!("{name}.{version}.yaml")), text)?;
                    written += 1;
                }
                Err(problem) => {
                    println!("refused {name}.{version}: {problem}");
                    refused += 1;
                }
            }
        }
    }
    Ok((written, refused))
}

/// Every case of one version.
fn documents(version: &str) -> Vec<(String, Result<String, String>)> {
    let cluster = cluster();
    let mut made = Vec::new();
    let mut case = |name: String, spec: Value, render: &dyn Fn(&ConfigSpec, &Version) -> Result<String, String>| {
        let spec: Result<ConfigSpec, _> = serde_json::from_value(spec);
        let text = match (spec, Version::parse(version)) {
            (Ok(spec), Ok(version)) => render(&spec, &version),
            (Err(error), _) => Err(error.to_string()),
            (_, Err(problem)) => Err(problem.to_string()),
        };
        made.push((name, text));
    };
    let init = |spec: &ConfigSpec, version: &Version| {
        kubeadm::init(spec, &cluster, version, NOW_MS).map_err(|problem| problem.to_string())
    };
    let join = |member: Member| {
        move |spec: &ConfigSpec, version: &Version| {
            let discovery = discovery(spec);
            kubeadm::join(spec, &discovery, member, version).map_err(|problem| problem.to_string())
        }
    };
    let everything = |parts: &[(&str, Value)], older: bool| {
        let mut all = json!({});
        for (name, part) in parts {
            // External etcd excludes a local one, and older versions lack some fields.
            if *name != "etcd-external" && !(older && NEWER.contains(name)) {
                deep_merge(&mut all, part.clone());
            }
        }
        all
    };
    let older = ["v1.2", "v1.30"].iter().any(|start| version.starts_with(start));

    case("init-nothing".into(), json!({}), &init);
    for (name, part) in cluster_parts() {
        case(format!("init-cluster-{name}"), json!({"clusterConfiguration": part}), &init);
    }
    for (name, part) in init_parts() {
        case(format!("init-{name}"), json!({"initConfiguration": part}), &init);
    }
    let all = json!({
        "clusterConfiguration": everything(&cluster_parts(), older),
        "initConfiguration": everything(&init_parts(), older),
    });
    case("init-everything".into(), all, &init);

    for (prefix, member) in [("join", Member::Worker), ("cp-join", Member::ControlPlane)] {
        case(format!("{prefix}-nothing"), json!({}), &join(member));
        let mut parts = join_parts();
        if member == Member::ControlPlane {
            parts.push((
                "endpoint",
                json!({"controlPlane": {"localAPIEndpoint": {"advertiseAddress": "10.0.0.6", "bindPort": 6444}}}),
            ));
        }
        for (name, part) in &parts {
            case(format!("{prefix}-{name}"), json!({"joinConfiguration": part}), &join(member));
        }
        parts.retain(|(name, _)| !name.starts_with("discovery-"));
        case(format!("{prefix}-everything"), json!({"joinConfiguration": everything(&parts, older)}), &join(member));
    }
    made
}

/// Cases that only newer versions can have.
const NEWER: [&str; 14] = [
    "envs-api-server",
    "envs-controller-manager",
    "envs-scheduler",
    "envs-etcd",
    "validity",
    "algorithm-ecdsa-p256",
    "algorithm-ecdsa-p384",
    "algorithm-rsa-3072",
    "algorithm-rsa-4096",
    "timeouts",
    "pull-parallel",
    "timeout-kubelet",
    "timeout-discovery",
    "timeouts-all",
];

fn cluster() -> Cluster {
    let object = json!({
        "metadata": {"name": "quick", "namespace": "default"},
        "spec": {
            "clusterNetwork": {"services": {"cidrBlocks": ["10.128.0.0/12"]}, "pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
            "controlPlaneEndpoint": {"host": "172.18.0.3", "port": 6443},
        },
    });
    Cluster::read(&object)
}

/// What the user gave, or what the provider fills in.
fn discovery(spec: &ConfigSpec) -> Map<String, Value> {
    let given = spec.join_configuration.get("discovery").and_then(Value::as_object).cloned().unwrap_or_default();
    let hash = format!("sha256:{}", "0123456789abcdef".repeat(4));
    capwasm_kubeadm::discovery::complete(&given, "172.18.0.3:6443", Some(&hash), || "abcdef.0123456789abcdef".into())
}

fn deep_merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                deep_merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn volumes() -> Value {
    json!([{"name": "files", "hostPath": "/etc/files", "mountPath": "/files", "readOnly": true, "pathType": "DirectoryOrCreate"}])
}

fn envs() -> Value {
    json!([{"name": "PLAIN", "value": "x"}, {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}])
}

fn arguments(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

fn cluster_parts() -> Vec<(&'static str, Value)> {
    let component = |name: &str, field: &str, value: Value| json!({ name: { field: value } });
    let algorithm = |name: &str| json!({ "encryptionAlgorithm": name });
    vec![
        ("endpoint", json!({"controlPlaneEndpoint": "api.example.org:6443"})),
        ("sans", component("apiServer", "certSANs", json!(["localhost", "127.0.0.1", "*.example.org"]))),
        (
            "args-api-server",
            component(
                "apiServer",
                "extraArgs",
                arguments(&[("v", "2"), ("profiling", "false"), ("audit-log-path", "-")]),
            ),
        ),
        (
            "args-controller-manager",
            component(
                "controllerManager",
                "extraArgs",
                arguments(&[("bind-address", "0.0.0.0"), ("terminated-pod-gc-threshold", "100")]),
            ),
        ),
        ("args-scheduler", component("scheduler", "extraArgs", arguments(&[("bind-address", "0.0.0.0")]))),
        ("volumes-api-server", component("apiServer", "extraVolumes", volumes())),
        ("volumes-controller-manager", component("controllerManager", "extraVolumes", volumes())),
        ("volumes-scheduler", component("scheduler", "extraVolumes", volumes())),
        ("envs-api-server", component("apiServer", "extraEnvs", envs())),
        ("envs-controller-manager", component("controllerManager", "extraEnvs", envs())),
        ("envs-scheduler", component("scheduler", "extraEnvs", envs())),
        ("envs-etcd", json!({"etcd": {"local": {"extraEnvs": envs()}}})),
        (
            "etcd-local",
            json!({"etcd": {"local": {"dataDir": "/var/lib/data", "imageRepository": "registry.example.org/etcd", "imageTag": "3.5.21-0",
                "extraArgs": arguments(&[("quota-backend-bytes", "8589934592")]), "serverCertSANs": ["etcd.example.org"], "peerCertSANs": ["10.0.0.9"]}}}),
        ),
        (
            "etcd-external",
            json!({"etcd": {"external": {"endpoints": ["https://10.0.0.1:2379", "https://10.0.0.2:2379"], "caFile": "/etc/etcd/ca.crt",
                "certFile": "/etc/etcd/client.crt", "keyFile": "/etc/etcd/client.key"}}}),
        ),
        ("dns", json!({"dns": {"imageRepository": "registry.example.org/coredns", "imageTag": "v1.11.3"}})),
        ("repository", json!({"imageRepository": "registry.example.org/k8s"})),
        ("gates", json!({"featureGates": {}})),
        ("directory", json!({"certificatesDir": "/etc/kubernetes/certificates"})),
        ("ca-validity", json!({"caCertificateValidityPeriodDays": 3650})),
        ("validity", json!({"certificateValidityPeriodDays": 90})),
        ("algorithm-rsa-2048", algorithm("RSA-2048")),
        ("algorithm-rsa-3072", algorithm("RSA-3072")),
        ("algorithm-rsa-4096", algorithm("RSA-4096")),
        ("algorithm-ecdsa-p384", algorithm("ECDSA-P384")),
        // The last one is what the case with everything has.
        ("algorithm-ecdsa-p256", algorithm("ECDSA-P256")),
    ]
}

fn registrations() -> Vec<(&'static str, Value)> {
    let registration = |field: &str, value: Value| json!({"nodeRegistration": { field: value }});
    vec![
        ("name", registration("name", json!("node-1"))),
        ("socket", registration("criSocket", json!("unix:///run/containerd/containerd.sock"))),
        ("taints-none", registration("taints", json!([]))),
        ("taints", registration("taints", json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]))),
        (
            "args-kubelet",
            registration("kubeletExtraArgs", arguments(&[("node-labels", "a=b"), ("cloud-provider", "external")])),
        ),
        ("ignored-errors", registration("ignorePreflightErrors", json!(["Swap", "NumCPU"]))),
        ("pull-policy", registration("imagePullPolicy", json!("IfNotPresent"))),
        ("pull-serial", registration("imagePullSerial", json!(true))),
        ("pull-parallel", registration("imagePullSerial", json!(false))),
        ("patches", json!({"patches": {"directory": "/etc/kubernetes/patches"}})),
        ("skip-phases", json!({"skipPhases": ["preflight"]})),
    ]
}

fn timeouts(seconds: i64) -> Value {
    json!({"timeouts": {
        "controlPlaneComponentHealthCheckSeconds": seconds, "kubeletHealthCheckSeconds": seconds, "kubernetesAPICallSeconds": seconds,
        "etcdAPICallSeconds": seconds, "tlsBootstrapSeconds": seconds, "discoverySeconds": seconds,
    }})
}

fn init_parts() -> Vec<(&'static str, Value)> {
    let mut parts = registrations();
    parts.extend([
        ("endpoint", json!({"localAPIEndpoint": {"advertiseAddress": "10.0.0.5", "bindPort": 6444}})),
        (
            "tokens",
            json!({"bootstrapTokens": [
                {"token": "abcdef.0123456789abcdef", "ttlSeconds": 3600, "description": "d", "usages": ["signing", "authentication"],
                 "groups": ["system:bootstrappers:kubeadm:default-node-token"]},
                {"token": "fedcba.0123456789abcdef", "expires": "2036-01-01T00:00:00Z"},
                {"token": "bcdefa.0123456789abcdef", "ttlSeconds": 0},
            ]}),
        ),
        ("timeout-control-plane", json!({"timeouts": {"controlPlaneComponentHealthCheckSeconds": 300}})),
        ("timeout-kubelet", json!({"timeouts": {"kubeletHealthCheckSeconds": 120}})),
        ("timeouts-all", timeouts(180)),
    ]);
    parts
}

fn join_parts() -> Vec<(&'static str, Value)> {
    let hash = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let mut parts = registrations();
    parts.extend([
        ("ca", json!({"caCertPath": "/etc/kubernetes/pki/ca.crt"})),
        ("discovery-unsafe", json!({"discovery": {"bootstrapToken": {"unsafeSkipCAVerification": true}}})),
        (
            "discovery-token",
            json!({"discovery": {"bootstrapToken": {"token": "fedcba.0123456789abcdef", "apiServerEndpoint": "api.example.org:6443", "caCertHashes": [hash]}}}),
        ),
        ("discovery-tls-token", json!({"discovery": {"tlsBootstrapToken": "fedcba.0123456789abcdef"}})),
        (
            "discovery-file",
            // kubeadm looks whether the file is there, so that it must be one that every machine has.
            json!({"discovery": {"file": {"kubeConfigPath": "/etc/passwd", "kubeConfig": {"user": {"exec": {"command": "/usr/bin/login"}}}}}}),
        ),
        ("timeout-control-plane", json!({"timeouts": {"controlPlaneComponentHealthCheckSeconds": 300}})),
        ("timeout-bootstrap", json!({"timeouts": {"tlsBootstrapSeconds": 300}})),
        ("timeout-discovery", json!({"timeouts": {"discoverySeconds": 300}})),
        ("timeouts-all", timeouts(180)),
    ]);
    parts
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;

/// 14 November 2023, 22:13:20.
const NOW_MS: u64 = 1_700_000_000_000;

fn spec(value: Value) -> ConfigSpec {
    serde_json::from_value(value).unwrap()
}

fn documents(text: &str) -> Vec<Value> {
    text.split("---\n").skip(1).map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn cluster() -> Cluster {
    let networking = json!({"dnsDomain": "d", "podSubnet": "10.0.0.0/8", "serviceSubnet": "10.1.0.0/16"});
    Cluster {
        name: "c".into(),
        endpoint: Some("10.0.0.1:6443".into()),
        networking: networking.as_object().cloned().unwrap(),
        ..Cluster::default()
    }
}

#[test]
fn every_field_reaches_v1beta4_with_durations_as_kubeadm_spells_them() {
    let spec = spec(json!({
        "clusterConfiguration": {
            "certificateValidityPeriodDays": 30, "caCertificateValidityPeriodDays": 60, "encryptionAlgorithm": "ECDSA-P256",
            "apiServer": {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}],
                          "extraVolumes": [{"name": "n", "hostPath": "/h", "mountPath": "/m", "readOnly": true, "pathType": "File"}],
                          "extraEnvs": [{"name": "A", "value": "b"}], "certSANs": ["localhost"]},
            "etcd": {"local": {"dataDir": "/data", "serverCertSANs": ["x"], "extraEnvs": [{"name": "E", "value": ""}]}},
            "featureGates": {"NodeLocalCRISocket": true}, "dns": {"imageTag": "v1"},
            "controlPlaneEndpoint": "api.example.org:6443", "certificatesDir": "/pki", "imageRepository": "r",
        },
        "initConfiguration": {
            "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttlSeconds": 0, "usages": ["signing"], "groups": ["g"], "description": "d"}],
            "timeouts": {"kubeletHealthCheckSeconds": 90, "etcdAPICallSeconds": 5, "controlPlaneComponentHealthCheckSeconds": 60},
            "nodeRegistration": {"taints": [], "imagePullSerial": false, "imagePullPolicy": "Never", "ignorePreflightErrors": ["all"]},
            "localAPIEndpoint": {"bindPort": 6444}, "skipPhases": ["addon/kube-proxy"], "patches": {"directory": "/p"},
        },
    }));
    let documents = documents(&init(&spec, &cluster(), &version("v1.36.0"), NOW_MS).unwrap());
    assert_eq!(
        documents[0],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "clusterName": "c", "kubernetesVersion": "v1.36.0",
            "certificateValidityPeriod": "720h", "caCertificateValidityPeriod": "1440h", "encryptionAlgorithm": "ECDSA-P256",
            "apiServer": {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}],
                          "extraVolumes": [{"name": "n", "hostPath": "/h", "mountPath": "/m", "readOnly": true, "pathType": "File"}],
                          "extraEnvs": [{"name": "A", "value": "b"}], "certSANs": ["localhost"]},
            "etcd": {"local": {"dataDir": "/data", "serverCertSANs": ["x"], "extraEnvs": [{"name": "E", "value": ""}]}},
            "featureGates": {"NodeLocalCRISocket": true}, "dns": {"imageTag": "v1"},
            "controlPlaneEndpoint": "api.example.org:6443", "certificatesDir": "/pki", "imageRepository": "r",
            "networking": {"dnsDomain": "d", "podSubnet": "10.0.0.0/8", "serviceSubnet": "10.1.0.0/16"},
        })
    );
    assert_eq!(
        documents[1],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
            "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttl": "0s", "usages": ["signing"], "groups": ["g"], "description": "d"}],
            "timeouts": {"kubeletHealthCheck": "90s", "etcdAPICall": "5s", "controlPlaneComponentHealthCheck": "60s"},
            "nodeRegistration": {"taints": [], "imagePullSerial": false, "imagePullPolicy": "Never", "ignorePreflightErrors": ["all"]},
            "localAPIEndpoint": {"bindPort": 6444}, "skipPhases": ["addon/kube-proxy"], "patches": {"directory": "/p"},
        })
    );
}

#[test]
fn v1beta3_has_arguments_as_maps_and_its_timeouts_elsewhere() {
    let spec = spec(json!({
        "clusterConfiguration": {
            "caCertificateValidityPeriodDays": 60, "encryptionAlgorithm": "RSA-2048",
            "apiServer": {"extraArgs": [{"name": "v", "value": "2"}, {"name": "empty", "value": ""}], "certSANs": ["localhost"]},
            "scheduler": {"extraVolumes": [{"name": "n", "hostPath": "/h", "mountPath": "/m"}]},
            "etcd": {"local": {"extraArgs": [{"name": "quota", "value": "1"}]}},
        },
        "initConfiguration": {
            "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttlSeconds": 60}],
            "timeouts": {"controlPlaneComponentHealthCheckSeconds": 300},
            "nodeRegistration": {"kubeletExtraArgs": [{"name": "a", "value": "b"}], "imagePullSerial": true, "taints": []},
            "patches": {"directory": "/p"},
        },
        "joinConfiguration": {
            "nodeRegistration": {"kubeletExtraArgs": [{"name": "c", "value": "d"}]},
            "timeouts": {"controlPlaneComponentHealthCheckSeconds": 300, "tlsBootstrapSeconds": 90},
            "caCertPath": "/ca", "skipPhases": ["preflight"],
        },
    }));
    let version = version("v1.30.4");
    let written = documents(&init(&spec, &cluster(), &version, NOW_MS).unwrap());
    assert_eq!(
        written[0],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "ClusterConfiguration", "clusterName": "c", "kubernetesVersion": "v1.30.4",
            "apiServer": {"extraArgs": {"v": "2", "empty": ""}, "certSANs": ["localhost"], "timeoutForControlPlane": "300s"},
            "scheduler": {"extraVolumes": [{"name": "n", "hostPath": "/h", "mountPath": "/m"}]},
            "etcd": {"local": {"extraArgs": {"quota": "1"}}}, "controlPlaneEndpoint": "10.0.0.1:6443",
            "networking": {"dnsDomain": "d", "podSubnet": "10.0.0.0/8", "serviceSubnet": "10.1.0.0/16"},
        })
    );
    assert_eq!(
        written[1],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "InitConfiguration",
            "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttl": "60s"}],
            "nodeRegistration": {"kubeletExtraArgs": {"a": "b"}, "taints": []}, "patches": {"directory": "/p"},
        })
    );
    let discovery = json!({"bootstrapToken": {"token": "t"}});
    let joined = documents(&join(&spec, discovery.as_object().unwrap(), Member::ControlPlane, &version).unwrap());
    assert_eq!(
        joined[0],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "JoinConfiguration", "controlPlane": {},
            "nodeRegistration": {"kubeletExtraArgs": {"c": "d"}}, "caCertPath": "/ca", "skipPhases": ["preflight"],
            "discovery": {"bootstrapToken": {"token": "t"}, "timeout": "90s"},
        })
    );
}

#[test]
fn what_a_version_lacks_is_refused_with_the_name_of_the_field() {
    let env = json!([{"name": "A", "value": "b"}]);
    let twice = json!([{"name": "v", "value": "1"}, {"name": "v", "value": "2"}]);
    for (at, part, field, too_old, first) in [
        ("apiServer.extraEnvs", "clusterConfiguration", json!({"apiServer": {"extraEnvs": env}}), "v1.30.0", "v1.31.0"),
        ("scheduler.extraEnvs", "clusterConfiguration", json!({"scheduler": {"extraEnvs": env}}), "v1.22.0", "v1.31.0"),
        (
            "etcd.local.extraEnvs",
            "clusterConfiguration",
            json!({"etcd": {"local": {"extraEnvs": env}}}),
            "v1.30.0",
            "v1.31.0",
        ),
        ("extraArgs", "clusterConfiguration", json!({"controllerManager": {"extraArgs": twice}}), "v1.30.0", "v1.31.0"),
        (
            "certificateValidityPeriodDays",
            "clusterConfiguration",
            json!({"certificateValidityPeriodDays": 9}),
            "v1.30.0",
            "v1.31.0",
        ),
        (
            "encryptionAlgorithm",
            "clusterConfiguration",
            json!({"encryptionAlgorithm": "ECDSA-P256"}),
            "v1.30.0",
            "v1.31.0",
        ),
        ("ECDSA-P384", "clusterConfiguration", json!({"encryptionAlgorithm": "ECDSA-P384"}), "v1.33.9", "v1.34.0"),
        (
            "imagePullSerial",
            "initConfiguration",
            json!({"nodeRegistration": {"imagePullSerial": false}}),
            "v1.30.0",
            "v1.31.0",
        ),
        (
            "timeouts.kubeletHealthCheckSeconds",
            "initConfiguration",
            json!({"timeouts": {"kubeletHealthCheckSeconds": 1}}),
            "v1.30.0",
            "v1.31.0",
        ),
    ] {
        let spec = spec(json!({ part: field }));
        let problem = init(&spec, &cluster(), &version(too_old), NOW_MS).unwrap_err();
        assert_eq!(problem.reason, "UnsupportedByKubernetesVersion", "{at}");
        assert!(problem.message.contains(at) && problem.message.contains(too_old), "{at}: {}", problem.message);
        assert!(init(&spec, &cluster(), &version(first), NOW_MS).is_ok(), "{at}");
    }
    for (at, field) in [
        ("timeouts.discoverySeconds", json!({"timeouts": {"discoverySeconds": 1}})),
        ("imagePullSerial", json!({"nodeRegistration": {"imagePullSerial": false}})),
    ] {
        let spec = spec(json!({"joinConfiguration": field}));
        let problem = join(&spec, &Map::new(), Member::Worker, &version("v1.29.0")).unwrap_err();
        assert!(problem.message.contains(at), "{at}: {}", problem.message);
        assert!(join(&spec, &Map::new(), Member::Worker, &version("")).is_ok(), "{at}");
    }
}

#[test]
fn only_workers_get_the_uninitialized_taint_and_only_once() {
    let taint = json!({"key": UNINITIALIZED_TAINT, "effect": "NoSchedule"});
    let own = json!({"key": "a", "effect": "NoExecute"});
    for (what, join_configuration, member, expected) in [
        ("a worker without taints", json!({}), Member::Worker, json!([taint])),
        ("a worker with its own", json!({"nodeRegistration": {"taints": [own]}}), Member::Worker, json!([own, taint])),
        ("a worker that wants none", json!({"nodeRegistration": {"taints": []}}), Member::Worker, json!([taint])),
        ("a worker that has it", json!({"nodeRegistration": {"taints": [taint]}}), Member::Worker, json!([taint])),
        ("a control plane machine", json!({"nodeRegistration": {}}), Member::ControlPlane, Value::Null),
        ("no taints wanted", json!({"nodeRegistration": {"taints": []}}), Member::ControlPlane, json!([])),
    ] {
        let spec = spec(json!({"joinConfiguration": join_configuration}));
        for text in ["v1.30.0", "v1.31.0"] {
            let document = &documents(&join(&spec, &Map::new(), member, &version(text)).unwrap())[0];
            let taints = document.pointer("/nodeRegistration/taints").cloned().unwrap_or_default();
            assert_eq!(taints, expected, "{what}");
            assert_eq!(document.get("controlPlane").is_some(), member == Member::ControlPlane, "{what}");
        }
    }
}

#[test]
fn a_token_ends_at_a_time_or_after_a_time() {
    let of = |token: Value| {
        let spec = spec(json!({"initConfiguration": {"bootstrapTokens": [token]}}));
        init(&spec, &cluster(), &version("v1.36.0"), NOW_MS)
    };
    let expires = "2023-11-14T23:13:20Z";
    let written = documents(&of(json!({"token": "t", "expires": expires})).unwrap());
    assert_eq!(written[1]["bootstrapTokens"], json!([{"token": "t", "ttl": "3600s"}]));
    for (what, token) in [
        ("both", json!({"token": "t", "expires": expires, "ttlSeconds": 5})),
        ("no time", json!({"token": "t", "expires": "soon"})),
        ("expired", json!({"token": "t", "expires": "2023-11-14T22:13:20Z"})),
    ] {
        assert_eq!(of(token).unwrap_err().reason, "InvalidConfiguration", "{what}");
    }
}

#[test]
fn a_worker_with_a_control_plane_part_is_the_users_mistake() {
    let spec = spec(json!({"joinConfiguration": {"controlPlane": {}}}));
    assert_eq!(join(&spec, &Map::new(), Member::Worker, &version("")).unwrap_err().reason, "InvalidConfiguration");
}

//! What the data of each kind of machine holds.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{Place, Provider, object};
use kubeadm_bootstrap::KubeadmBootstrap;
use serde_json::{Value, json};

use crate::world::{Cut, World, cluster, config, content, documents, machine, paths, read, without_provider};

/// R3: the data of a KubeadmConfig, made without contacting the machine.
#[test]
fn the_first_control_plane_machine_gets_the_certificates_and_initializes() {
    let spec = json!({
        "clusterConfiguration": {"apiServer": {"certSANs": ["localhost"]}},
        "initConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data.local_hostname }}", "kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}},
        "preKubeadmCommands": ["hostname \"{{ ds.meta_data.hostname }}\"", "echo first\necho second\n"],
        "postKubeadmCommands": ["echo done"],
        "files": [{"path": "/etc/motd", "content": "welcome to {{ .controlPlane.version }}\n", "permissions": "0644", "contentFormat": "Template"}],
        "verbosity": 5,
    });
    let mut world = World::new(config(spec), machine("m0", true), cluster(false)).with_certificates();
    let data = read(&world.until_data());
    let pki = |name: &str| format!("/etc/kubernetes/pki/{name}");
    let mut expected: Vec<(String, &str)> = ["ca", "etcd/ca", "front-proxy-ca"]
        .iter()
        .flat_map(|name| [(pki(&format!("{name}.crt")), "0640"), (pki(&format!("{name}.key")), "0600")])
        .collect();
    expected.extend([(pki("sa.pub"), "0640"), (pki("sa.key"), "0600"), ("/etc/motd".into(), "0644")]);
    expected.extend([("/run/kubeadm/kubeadm.yaml".into(), "0640"), ("/run/cluster-api/placeholder".into(), "0640")]);
    let expected: Vec<_> = expected.iter().map(|(path, mode)| (path.as_str(), *mode)).collect();
    assert_eq!(paths(&data), expected);
    assert!(content(&data, &pki("etcd/ca.key")).contains("PRIVATE KEY-----\netcd\n"));
    assert_eq!(content(&data, "/etc/motd"), "welcome to v1.36.0\n");
    assert_eq!(
        data["runcmd"],
        json!([
            "hostname \"{{ ds.meta_data.hostname }}\"",
            "echo first\necho second\n",
            "kubeadm init --config /run/kubeadm/kubeadm.yaml --v 5 && echo success > /run/cluster-api/bootstrap-success.complete",
            "echo done"
        ])
    );
    let documents = documents(content(&data, "/run/kubeadm/kubeadm.yaml"));
    assert_eq!(
        documents[0],
        json!({
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "clusterName": "quick", "kubernetesVersion": "v1.36.0",
            "apiServer": {"certSANs": ["localhost"]}, "controlPlaneEndpoint": "172.18.0.3:6443",
            "networking": {"dnsDomain": "cluster.local", "podSubnet": "192.168.0.0/16,fd00::/48", "serviceSubnet": "10.128.0.0/12"},
        })
    );
    assert_eq!(
        documents[1]["nodeRegistration"]["kubeletExtraArgs"],
        json!([{"name": "eviction-hard", "value": "nodefs.available<0%"}])
    );
    for condition in ["DataSecretAvailable", "CertificatesAvailable"] {
        assert!(object::is_true(&world.config, condition), "{condition}");
        let old = world.config.pointer("/status/deprecated/v1beta1/conditions").and_then(Value::as_array).unwrap();
        assert!(old.iter().any(|it| it["type"] == condition && it["status"] == "True"), "{old:?}");
    }
    assert_eq!(world.config["status"]["observedGeneration"], 2);
    let before = world.config.clone();
    assert!(world.pass(Cut::Nothing).is_none(), "once the data is there it stays as it is");
    assert_eq!(world.config, before, "nothing is written when nothing differs");
}

/// R6a: who is not the first joins.
#[test]
fn a_further_control_plane_machine_joins_with_the_certificates_in_one_pass() {
    let spec = json!({
        "joinConfiguration": {"nodeRegistration": {"name": "cp"}, "timeouts": {"discoverySeconds": 60}},
        "clusterConfiguration": {"certificatesDir": "/pki/"},
    });
    let mut world = World::new(config(spec), machine("m1", true), cluster(true)).with_certificates();
    let data = read(&world.pass(Cut::Nothing).expect("data at once"));
    assert!(paths(&data).contains(&("/pki/etcd/ca.key", "0600")));
    let documents = documents(content(&data, "/run/kubeadm/kubeadm-join-config.yaml"));
    let token = world.config.pointer("/spec/joinConfiguration/discovery/bootstrapToken").unwrap();
    assert_eq!(
        documents,
        [json!({
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration", "controlPlane": {}, "discovery": {"bootstrapToken": token},
            "nodeRegistration": {"name": "cp"}, "timeouts": {"discovery": "60s"},
        })]
    );
    assert_eq!(token["apiServerEndpoint"], "172.18.0.3:6443");
    assert!(token["caCertHashes"][0].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn a_worker_joins_in_one_pass_with_a_token_in_its_cluster() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    let data = read(&world.pass(Cut::Nothing).expect("data at once"));
    assert_eq!(paths(&data).len(), 2, "a worker gets no certificates");
    let documents = documents(content(&data, "/run/kubeadm/kubeadm-join-config.yaml"));
    assert_eq!(
        documents[0]["nodeRegistration"]["taints"],
        json!([{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}])
    );
    let secrets = world.objects(Place::Workload, "Secret");
    assert_eq!(secrets.len(), 1);
    let token = object::text(&world.config, "/spec/joinConfiguration/discovery/bootstrapToken/token");
    assert_eq!(documents[0]["discovery"]["bootstrapToken"]["token"], token);
    assert_eq!(object::name(&secrets[0]), format!("bootstrap-token-{}", &token[..6]));
    assert_eq!(secrets[0]["type"], "bootstrap.kubernetes.io/token");
    assert_eq!(secrets[0]["data"]["expiration"], STANDARD.encode("2023-11-14T22:28:20Z"), "15 minutes after the call");
}

/// A machine of an older Kubernetes gets the older kubeadm API.
#[test]
fn the_kubeadm_api_follows_the_machines_version() {
    for (version, api) in [("v1.30.2", "kubeadm.k8s.io/v1beta3"), ("v1.31.0", "kubeadm.k8s.io/v1beta4")] {
        let mut old = machine("w0", false);
        old["spec"]["version"] = json!(version);
        let mut world = World::new(config(json!({})), old, cluster(true)).with_certificates();
        let data = read(&world.until_data());
        assert_eq!(documents(content(&data, "/run/kubeadm/kubeadm-join-config.yaml"))[0]["apiVersion"], api);
    }
}

#[test]
fn an_ignition_machine_gets_the_same_steps_as_ignition() {
    let spec = json!({"format": "ignition", "preKubeadmCommands": ["pre"], "joinConfiguration": {"nodeRegistration": {"name": "n"}}});
    let mut world = World::new(config(spec), machine("w0", false), cluster(true)).with_certificates();
    let data: Value = serde_json::from_str(&world.until_data()).unwrap();
    assert_eq!(data["ignition"]["version"], "2.3.0");
    let file = |path: &str| {
        let files = data["storage"]["files"].as_array().unwrap();
        let source = object::text(files.iter().find(|file| file["path"] == path).unwrap(), "/contents/source");
        String::from_utf8(STANDARD.decode(source.strip_prefix("data:;base64,").unwrap()).unwrap()).unwrap()
    };
    assert!(file("/etc/kubeadm.sh").contains("\npre\nkubeadm join --config /etc/kubeadm.yml \n"));
    assert_eq!(documents(&file("/etc/kubeadm.yml"))[0]["kind"], "JoinConfiguration");
}

/// After a move or a restore without status: the machine keeps the data that it has.
#[test]
fn a_lost_status_is_written_again_from_the_machines_secret() {
    let mut restored = machine("w0", false);
    object::merge(&mut restored, &json!({"spec": {"bootstrap": {"dataSecretName": "c"}}}));
    let mut world = World::new(config(json!({})), restored, cluster(true));
    assert_eq!(world.call().0.unwrap_err().reason, "SecretNotFound");
    world.host = std::mem::take(&mut world.host).secret("c", "value", "the data").secret("c", "format", "ignition");
    let (result, outcome) = world.call();
    let data = result.unwrap().unwrap();
    assert_eq!((data.format, data.value.as_slice()), (capwasm_sdk::Format::Ignition, b"the data".as_slice()));
    assert!(outcome.operations.is_empty() && outcome.own.is_empty(), "no token is drawn");
}

/// Clusters whose machines nobody manages get their certificates and their kubeconfig from here.
#[test]
fn a_stand_alone_machine_makes_the_certificates_and_the_kubeconfig() {
    let spec =
        json!({"clusterConfiguration": {"encryptionAlgorithm": "RSA-3072", "caCertificateValidityPeriodDays": 30}});
    let mut world = World::new(config(spec), machine("m0", true), without_provider(cluster(false)));
    world.until_data();
    let secrets = world.objects(Place::Management, "Secret");
    let mut names: Vec<_> = secrets.iter().map(object::name).collect();
    names.sort_unstable();
    assert_eq!(names, ["quick-ca", "quick-etcd", "quick-kubeconfig", "quick-proxy", "quick-sa"]);
    let ca = secrets.iter().find(|secret| object::name(secret) == "quick-ca").unwrap();
    let pem = String::from_utf8(STANDARD.decode(object::text(ca, "/data/tls.crt")).unwrap()).unwrap();
    assert!(
        pem.contains("Rsa3072") && pem.contains(&format!("not-after-ms: {}", 1_700_000_000_000_u64 + 30 * 86_400_000)),
        "{pem}"
    );
    for secret in &secrets {
        assert_eq!(
            (secret["type"].as_str(), object::text(secret, "/metadata/ownerReferences/0/kind")),
            (Some("cluster.x-k8s.io/secret"), "Cluster")
        );
    }
    let (result, outcome) = world.call();
    assert_eq!(result.unwrap(), None);
    assert!(
        outcome.operations.is_empty() && outcome.wake_after.is_some(),
        "the kubeconfig is looked at before it ends"
    );
}

#[test]
fn the_description_is_the_same_every_time_and_names_what_is_served() {
    let descriptor = KubeadmBootstrap::describe();
    assert_eq!(descriptor, KubeadmBootstrap::describe());
    let kinds: Vec<_> = descriptor
        .kinds
        .iter()
        .map(|kind| (kind.kind.as_str(), kind.version.as_str(), kind.finalizers.len()))
        .collect();
    assert_eq!(kinds, [("KubeadmConfig", "v1beta2", 0), ("KubeadmConfigTemplate", "v1beta2", 0)]);
}

//! The provider as its host calls it: pass after pass on a test host, with the data it ends in read as cloud-init or
//! Ignition reads them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::test::{self, TestHost, write_back};
use capwasm_sdk::{BootstrapData, Fault, ObjectRef, Outcome, Place, Problem, Provider, object};
use kubeadm_bootstrap::KubeadmBootstrap;
use serde_json::{Value, json};

/// How much of a pass's outcome takes effect before the host dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    /// All of it.
    Nothing,
    /// Nothing at all.
    Everything,
    /// Only what is written into the object.
    Operations,
    /// The object and the first operation, but not the data Secret.
    Data,
}

struct World {
    host: TestHost,
    config: Value,
}

impl World {
    fn new(config: Value, machine: Value, cluster: Value) -> World {
        let host = TestHost::new()
            .related("machine", machine.clone())
            .related("cluster", cluster)
            .object(Place::Management, machine);
        World { host, config }
    }

    fn with_certificates(mut self) -> World {
        for name in ["ca", "etcd", "proxy", "sa"] {
            let certificate = format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n");
            let key = format!("-----BEGIN PRIVATE KEY-----\n{name}\n-----END PRIVATE KEY-----\n");
            self.host = self.host.secret(&format!("quick-{name}"), "tls.crt", certificate).secret(
                &format!("quick-{name}"),
                "tls.key",
                key,
            );
        }
        self
    }

    fn call(&self) -> (Result<Option<BootstrapData>, Problem>, Outcome) {
        test::generate::<KubeadmBootstrap>(&self.host, &self.config)
    }

    /// One pass, of which `cut` is lost; the data, when it was stored.
    fn pass(&mut self, cut: Cut) -> Option<String> {
        let (result, mut outcome) = self.call();
        if cut == Cut::Everything {
            return None;
        }
        write_back(&outcome, &mut self.config);
        match cut {
            Cut::Operations => outcome.operations.clear(),
            Cut::Data => outcome.operations.truncate(1),
            Cut::Nothing | Cut::Everything => {}
        }
        self.host.carry_out(&outcome);
        self.publish_secrets();
        let data = result.ok().flatten().filter(|_| cut == Cut::Nothing)?;
        object::merge(
            &mut self.config,
            &json!({"status": {"dataSecretName": "c", "initialization": {"dataSecretCreated": true}}}),
        );
        Some(String::from_utf8(data.value).unwrap())
    }

    /// What was created becomes readable as a live Secret.
    fn publish_secrets(&mut self) {
        for secret in self.objects(Place::Management, "Secret") {
            for (key, value) in secret["data"].as_object().unwrap() {
                let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
                self.host = std::mem::take(&mut self.host).secret(object::name(&secret), key, bytes);
            }
        }
    }

    fn objects(&self, place: Place, kind: &str) -> Vec<Value> {
        self.host.objects(place).into_iter().filter(|object| object["kind"] == kind).collect()
    }

    fn until_data(&mut self) -> String {
        (0..8).find_map(|_| self.pass(Cut::Nothing)).expect("data after a few passes")
    }
}

fn config(spec: Value) -> Value {
    let api_version = "bootstrap.cluster.x-k8s.io/v1beta2";
    json!({"apiVersion": api_version, "kind": "KubeadmConfig", "metadata": {"name": "c", "namespace": "default", "uid": "config-uid", "generation": 2}, "spec": spec})
}

fn machine(name: &str, control_plane: bool) -> Value {
    let labels = if control_plane { json!({"cluster.x-k8s.io/control-plane": ""}) } else { json!({}) };
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "labels": labels},
        "spec": {"clusterName": "quick", "version": "v1.36.0"},
    })
}

fn cluster(initialized: bool) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "quick", "namespace": "default", "uid": "cluster-uid"},
        "spec": {
            "clusterNetwork": {"services": {"cidrBlocks": ["10.128.0.0/12"]}, "pods": {"cidrBlocks": ["192.168.0.0/16", "fd00::/48"]}, "serviceDomain": "cluster.local"},
            "controlPlaneEndpoint": {"host": "172.18.0.3", "port": 6443},
            "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "quick"},
        },
        "status": {"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": initialized}},
    })
}

/// A cluster that no provider runs the control plane of.
fn without_provider(mut cluster: Value) -> Value {
    object::merge(&mut cluster, &json!({"spec": {"controlPlaneRef": null}}));
    cluster
}

/// Cloud-config as cloud-init reads it.
fn read(data: &str) -> Value {
    assert!(data.starts_with("## template: jinja\n#cloud-config\n"));
    serde_saphyr::from_str(data).unwrap()
}

/// Paths and modes of the files that are written.
fn paths(data: &Value) -> Vec<(&str, &str)> {
    let files = data["write_files"].as_array().unwrap();
    files.iter().map(|file| (object::text(file, "/path"), object::text(file, "/permissions"))).collect()
}

fn content<'a>(data: &'a Value, path: &str) -> &'a str {
    let files = data["write_files"].as_array().unwrap();
    object::text(files.iter().find(|file| file["path"] == path).unwrap(), "/content")
}

/// The YAML documents in a file.
fn documents(text: &str) -> Vec<Value> {
    text.split("---\n").skip(1).map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

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

fn pool(replicas: u64, nodes: u64, data_secret: Option<&str>) -> Value {
    let refs: Vec<_> = (0..nodes).map(|n| json!({"name": format!("n{n}")})).collect();
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"replicas": replicas, "template": {"spec": {"version": "v1.36.0", "bootstrap": {"dataSecretName": data_secret}}}},
        "status": {"nodeRefs": refs},
    })
}

/// The token of a pool is prolonged until all its machines have joined, and then replaced at half of its life, and the
/// data with it.
#[test]
fn a_pools_data_follows_its_token() {
    let mut world = World::new(config(json!({})), json!({}), cluster(true)).with_certificates();
    world.host.set_related("machine", Vec::new());
    world.host.set_related("machine-pool", vec![pool(2, 0, None)]);
    let store = |world: &mut World, data: &str| {
        world.host = std::mem::take(&mut world.host).secret("c", "value", data);
    };
    let token_of = |world: &World| {
        object::text(&world.config, "/spec/joinConfiguration/discovery/bootstrapToken/token").to_owned()
    };
    let first = world.pass(Cut::Nothing).expect("data at once");
    let old = token_of(&world);
    assert!(first.contains(&old) && first.contains("uninitialized"));
    assert_eq!(world.pass(Cut::Nothing).as_deref(), Some(first.as_str()), "a Secret that is not there is written anew");
    store(&mut world, &first);
    assert_eq!(world.pass(Cut::Nothing), None, "the data stays while nothing changed");

    world.host.set_now_ms(1_700_000_300_000);
    assert_eq!(world.pass(Cut::Nothing), None);
    assert_eq!(token_of(&world), old, "a token that is waited on is prolonged");
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T22:33:20Z")
    );

    world.host.set_related("machine-pool", vec![pool(2, 2, Some("c"))]);
    assert_eq!(world.pass(Cut::Nothing), None, "all have joined, and more than half of the life is left");
    assert_eq!(token_of(&world), old);
    world.host.set_now_ms(1_700_000_300_000 + 8 * 60_000);
    // The first try is lost after the token was written, before the workload cluster and the Secret heard of it.
    world.pass(Cut::Operations);
    let new = token_of(&world);
    assert_ne!(new, old);
    let second = world.pass(Cut::Nothing).expect("new data");
    let new = if second.contains(&new) { new } else { token_of(&world) };
    assert!(second.contains(&new) && !second.contains(&old));
    assert!(world.objects(Place::Workload, "Secret").iter().any(|secret| object::name(secret).ends_with(&new[..6])));
    store(&mut world, &second);
    assert_eq!(world.pass(Cut::Nothing), None, "and it rests again");
    assert!(world.call().1.wake_after.is_some(), "until it is looked at again");
}

#[test]
fn the_token_of_a_pool_stays_good_when_its_spec_no_longer_makes_data() {
    let mut world = World::new(config(json!({})), json!({}), cluster(true)).with_certificates();
    world.host.set_related("machine", Vec::new());
    world.host.set_related("machine-pool", vec![pool(2, 0, None)]);
    world.pass(Cut::Nothing).expect("data at once");
    object::merge(&mut world.config, &json!({"spec": {"files": [{"path": "/a"}, {"path": "/a"}]}}));
    world.host.set_now_ms(1_700_000_300_000);
    assert_eq!(world.pass(Cut::Nothing), None);
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T22:33:20Z")
    );
}

#[test]
fn the_token_of_a_pool_that_replaces_its_machines_is_prolonged() {
    let mut world = World::new(config(json!({})), json!({}), cluster(true)).with_certificates();
    world.host.set_related("machine", Vec::new());
    world.host.set_related("machine-pool", vec![pool(2, 0, None)]);
    world.pass(Cut::Nothing).expect("data at once");
    let mut replacing = pool(2, 2, Some("c"));
    object::merge(&mut replacing, &json!({"status": {"replicas": 4}}));
    world.host.set_related("machine-pool", vec![replacing]);
    world.host.set_now_ms(1_700_000_000_000 + 10 * 60_000);
    world.pass(Cut::Nothing);
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T22:38:20Z"),
        "those that are new join with it"
    );
}

/// A token that the cluster's cleaner took before the machine joined is made again, the same one.
#[test]
fn a_token_that_vanished_is_made_again() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.pass(Cut::Nothing).expect("data at once");
    let secret = world.objects(Place::Workload, "Secret").remove(0);
    world
        .host
        .remove(Place::Workload, &ObjectRef::new("v1", "Secret", object::name(&secret)).in_namespace("kube-system"));
    assert_eq!(world.pass(Cut::Nothing), None, "the data stays");
    let again = world.objects(Place::Workload, "Secret");
    assert_eq!((again.len(), &again[0]["data"]["token-secret"]), (1, &secret["data"]["token-secret"]));
}

#[test]
fn the_life_of_tokens_is_the_providers_configuration() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.host = std::mem::take(&mut world.host).configuration(json!({"bootstrapTokenTTLSeconds": 3600}));
    let (_, outcome) = world.call();
    assert_eq!(outcome.wake_after, Some(std::time::Duration::from_secs(1200)));
    world.until_data();
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T23:13:20Z")
    );
    world.host = std::mem::take(&mut world.host).configuration(json!({"bootstrapTokenTTLSeconds": "1h"}));
    let fresh = World { host: std::mem::take(&mut world.host), config: config(json!({})) };
    assert_eq!(fresh.call().0.unwrap_err().reason, "InvalidProviderConfiguration");
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

/// R3: one lock, one token and one set of key pairs, wherever a pass is lost.
#[test]
fn a_pass_that_is_lost_at_any_point_leads_to_the_same_end() {
    type Case = (&'static str, fn() -> World);
    let cases: [Case; 3] = [
        ("init with a provider", || {
            World::new(config(json!({})), machine("m0", true), cluster(false)).with_certificates()
        }),
        ("init without a provider", || {
            World::new(config(json!({})), machine("m0", true), without_provider(cluster(false)))
        }),
        ("join", || World::new(config(json!({})), machine("m1", true), cluster(true)).with_certificates()),
    ];
    for (what, make) in cases {
        for lost in 0..5 {
            for cut in [Cut::Everything, Cut::Operations, Cut::Data] {
                let mut world = make();
                let data = (0..12)
                    .find_map(|pass| world.pass(if pass == lost { cut } else { Cut::Nothing }))
                    .unwrap_or_else(|| panic!("{what}: no data after pass {lost} was lost ({cut:?})"));
                let locks = world.objects(Place::Management, "ConfigMap");
                let tokens = world.objects(Place::Workload, "Secret");
                if what == "join" {
                    assert_eq!((locks.len(), tokens.len()), (0, 1), "{what} {lost} {cut:?}");
                    assert!(data.contains(object::text(
                        &world.config,
                        "/spec/joinConfiguration/discovery/bootstrapToken/token"
                    )));
                } else {
                    assert_eq!((locks.len(), tokens.len()), (1, 0), "{what} {lost} {cut:?}");
                }
                if what == "init without a provider" {
                    let secrets = world.objects(Place::Management, "Secret");
                    assert_eq!(secrets.len(), 5, "{what} {lost} {cut:?}");
                    for secret in secrets.iter().filter(|secret| object::name(secret) != "quick-kubeconfig") {
                        let key = STANDARD.decode(object::text(secret, "/data/tls.key")).unwrap();
                        let key = String::from_utf8(key).unwrap();
                        assert!(
                            data.contains(key.lines().nth(1).unwrap_or(key.trim())),
                            "{what}: the data has the stored key"
                        );
                    }
                }
            }
        }
    }
}

/// R6a: one machine initializes.
#[test]
fn of_two_control_plane_machines_only_the_holder_of_the_lock_initializes() {
    let mut first = World::new(config(json!({})), machine("m0", true), cluster(false)).with_certificates();
    assert_eq!(first.pass(Cut::Nothing), None, "the lock is created, not yet held");
    let lock = first.objects(Place::Management, "ConfigMap").remove(0);
    let mut second = World::new(config(json!({})), machine("m1", true), cluster(false)).with_certificates();
    second.host.put(Place::Management, lock.clone());
    second.host.put(Place::Management, machine("m0", true));
    for _ in 0..3 {
        assert_eq!(second.pass(Cut::Nothing), None);
    }
    assert_eq!(second.call().0.unwrap_err().reason, "InitLockHeld");
    assert_eq!(object::text(&lock, "/data/lock-information"), r#"{"machineName":"m0"}"#);
    assert_eq!(lock["metadata"]["ownerReferences"][0]["kind"], "Cluster");
    assert!(first.pass(Cut::Nothing).is_some());

    let mut survivor = World::new(config(json!({})), machine("m1", true), cluster(false)).with_certificates();
    survivor.host.put(Place::Management, lock);
    assert!(survivor.until_data().contains("kubeadm init"), "the lock of a vanished Machine is cleared and taken");
    let locks = survivor.objects(Place::Management, "ConfigMap");
    assert_eq!(object::text(&locks[0], "/data/lock-information"), r#"{"machineName":"m1"}"#);
}

#[test]
fn joining_clears_the_init_lock() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.host.put(Place::Management, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "quick-lock", "namespace": "default", "uid": "l"}, "data": {}}));
    world.until_data();
    assert!(world.objects(Place::Management, "ConfigMap").is_empty());
}

#[test]
fn a_token_is_prolonged_until_the_machine_has_a_node() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.until_data();
    world.host.set_now_ms(1_700_000_300_000);
    let (result, outcome) = world.call();
    assert_eq!(result.unwrap(), None, "the data stays as it is");
    assert!(outcome.wake_after.is_some() && outcome.operations.len() == 1);
    world.pass(Cut::Nothing);
    let expiration = &world.objects(Place::Workload, "Secret")[0]["data"]["expiration"];
    assert_eq!(*expiration, STANDARD.encode("2023-11-14T22:33:20Z"));

    world.host.set_workload_down(true);
    let (result, outcome) = world.call();
    assert_eq!(result.unwrap(), None, "data that was handed out stays handed out");
    assert!(outcome.conditions.iter().all(|condition| condition.status == Some(true)) && outcome.wake_after.is_some());
    world.host.set_workload_down(false);

    let mut joined = machine("w0", false);
    object::merge(&mut joined, &json!({"status": {"nodeRef": {"name": "w0"}}}));
    world.host.set_related("machine", vec![joined]);
    let (result, outcome) = world.call();
    assert_eq!((result.unwrap(), outcome.wake_after, outcome.operations.len()), (None, None, 0));
}

/// A Secret that is there but empty is not made anew: that would be another cluster's.
#[test]
fn an_empty_certificate_is_a_clear_error() {
    for (what, control_plane, initialized) in
        [("the first", true, false), ("a further", true, true), ("a worker", false, true)]
    {
        let mut world =
            World::new(config(json!({})), machine("m", control_plane), without_provider(cluster(initialized)))
                .with_certificates();
        world.host = std::mem::take(&mut world.host).secret("quick-ca", "tls.crt", "");
        let problem = (0..3).find_map(|_| {
            let (result, _) = world.call();
            world.pass(Cut::Nothing);
            result.err().filter(|problem| problem.fault == Fault::Invalid)
        });
        let problem = problem.unwrap_or_else(|| panic!("{what}: no error"));
        assert_eq!(problem.reason, "CertificateEmpty", "{what}");
        assert!(problem.message.contains("quick-ca"), "{what}: {}", problem.message);
        let condition = object::condition(&world.config, "CertificatesAvailable").unwrap();
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("Unknown"), &json!("InternalError")),
            "{what}"
        );
        assert!(world.objects(Place::Management, "Secret").is_empty(), "{what}");
    }
}

#[test]
fn what_is_not_there_yet_is_waited_for() {
    let mut no_endpoint = cluster(true);
    object::merge(&mut no_endpoint, &json!({"spec": {"controlPlaneEndpoint": null}}));
    let mut down = World::new(
        config(
            json!({"joinConfiguration": {"discovery": {"bootstrapToken": {"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "e:1", "caCertHashes": ["h"]}}}}),
        ),
        machine("w", false),
        cluster(true),
    );
    down.host.set_workload_down(true);
    let mut alone = World::new(config(json!({})), machine("w", false), cluster(true));
    alone.host.set_related("machine", vec![]);
    let held = World::new(config(json!({})), machine("m", true), cluster(false));
    let lock = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "quick-lock", "namespace": "default"}, "data": {"lock-information": "{\"machineName\":\"m\"}"}});
    held.host.put(Place::Management, lock);
    for (what, world, reason) in [
        ("no Machine", alone, "WaitingForMachine"),
        (
            "a worker before initialization",
            World::new(config(json!({})), machine("w", false), cluster(false)),
            "WaitingForControlPlaneInitialized",
        ),
        (
            "no endpoint",
            World::new(config(json!({})), machine("w", false), no_endpoint).with_certificates(),
            "WaitingForEndpoint",
        ),
        ("no CA", World::new(config(json!({})), machine("w", false), cluster(true)), "WaitingForCertificates"),
        ("no certificates", held, "WaitingForCertificates"),
        ("no workload API", down, "NotConnected"),
    ] {
        let (result, outcome) = world.call();
        let problem = result.unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, reason), "{what}");
        assert!(outcome.operations.is_empty(), "{what}");
        let condition = outcome.condition_named("DataSecretAvailable").unwrap();
        assert_eq!((condition.status, condition.reason.as_str()), (Some(false), "NotAvailable"), "{what}");
    }
}

#[test]
fn malformed_objects_are_refused_with_the_place_of_the_mistake() {
    for (what, spec, machine, reason, part) in [
        ("a format of another's", json!({"format": "talos"}), machine("m", true), "InvalidConfiguration", "talos"),
        (
            "a field that the version lacks",
            json!({"initConfiguration": {"nodeRegistration": {"imagePullSerial": false}}}),
            {
                let mut m = machine("m", true);
                m["spec"]["version"] = json!("v1.30.0");
                m
            },
            "UnsupportedByKubernetesVersion",
            "imagePullSerial",
        ),
        ("files of the wrong shape", json!({"files": "x"}), machine("m", true), "InvalidConfiguration", "spec"),
        ("a file that is a number", json!({"files": [1]}), machine("m", true), "InvalidConfiguration", "spec"),
        (
            "commands that are numbers",
            json!({"preKubeadmCommands": [1]}),
            machine("m", true),
            "InvalidConfiguration",
            "spec",
        ),
        ("a spec that is a list", json!(["x"]), machine("m", true), "InvalidConfiguration", "spec"),
        (
            "an old version",
            json!({}),
            {
                let mut m = machine("m", true);
                m["spec"]["version"] = json!("v1.21.0");
                m
            },
            "UnsupportedKubernetesVersion",
            "v1.21.0",
        ),
        (
            "no version at all",
            json!({}),
            {
                let mut m = machine("m", true);
                m["spec"]["version"] = json!("newest");
                m
            },
            "InvalidKubernetesVersion",
            "newest",
        ),
    ] {
        let (result, outcome) = World::new(config(spec), machine, cluster(false)).call();
        let problem = result.unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Invalid, reason), "{what}");
        assert!(problem.message.contains(part), "{what}: {}", problem.message);
        assert!(outcome.operations.is_empty(), "{what}");
    }
    for object in [
        json!(null),
        json!({}),
        json!({"spec": null, "status": 3, "metadata": []}),
        json!({"spec": {"files": null, "clusterConfiguration": null}}),
    ] {
        let world = World::new(object, machine("m", true), cluster(false));
        assert_eq!(world.call().0.unwrap_err().fault, Fault::Waiting, "the lock is asked for");
    }
    let hollow = World::new(
        config(json!({})),
        json!({}),
        json!({"spec": {"clusterNetwork": {"pods": 1}, "controlPlaneEndpoint": []}}),
    );
    assert!(hollow.call().0.is_err());
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

//! The provider as its host calls it: pass after pass on a test host, with the data it ends in held against golden files
//! (`UPDATE_GOLDEN=1` writes them anew).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::test::{self, TestHost, write_back};
use capwasm_sdk::{BootstrapData, Fault, Outcome, Place, Problem, Provider, object};
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
    json!({"apiVersion": api_version, "kind": "KubeadmConfig", "metadata": {"name": "c", "namespace": "default", "uid": "config-uid"}, "spec": spec})
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

fn golden(name: &str, data: &str) {
    let path = format!("{}/tests/golden/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, data).unwrap();
    }
    assert_eq!(
        data,
        std::fs::read_to_string(&path).unwrap(),
        "{path} differs; look at it, then run with UPDATE_GOLDEN=1"
    );
    serde_saphyr::from_str::<Value>(data).unwrap();
}

/// R3: the data of a KubeadmConfig, made without contacting the machine.
#[test]
fn the_first_control_plane_machine_gets_the_golden_init_data() {
    let spec = json!({
        "clusterConfiguration": {"apiServer": {"certSANs": ["localhost", "127.0.0.1", "0.0.0.0", "host.docker.internal"]}},
        "initConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data.local_hostname }}", "kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}},
        "preKubeadmCommands": ["hostname \"{{ ds.meta_data.hostname }}\"", "echo first\necho second\n"],
        "postKubeadmCommands": ["echo done"],
        "files": [{"path": "/etc/motd", "content": "welcome\n", "permissions": "0644"}],
        "verbosity": 5,
    });
    let mut world = World::new(config(spec), machine("m0", true), cluster(false)).with_certificates();
    golden("init", &world.until_data());
    assert!(
        object::is_true(&world.config, "DataSecretAvailable")
            && object::is_true(&world.config, "CertificatesAvailable")
    );
    assert!(world.call().0.unwrap().is_none(), "once the data is there it stays as it is");
}

/// R6a: who is not the first joins.
#[test]
fn a_further_control_plane_machine_gets_the_golden_join_data() {
    let spec = json!({"joinConfiguration": {"nodeRegistration": {"name": "cp"}, "timeouts": {"discoverySeconds": 60}}, "clusterConfiguration": {"etcd": {"local": {}}}});
    let mut world = World::new(config(spec), machine("m1", true), cluster(true)).with_certificates();
    golden("control-plane-join", &world.until_data());
}

#[test]
fn a_worker_gets_the_golden_join_data_and_a_token_in_its_cluster() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    golden("worker-join", &world.until_data());
    let secrets = world.objects(Place::Workload, "Secret");
    assert_eq!(secrets.len(), 1);
    let token = object::text(&world.config, "/spec/joinConfiguration/discovery/bootstrapToken/token");
    assert_eq!(object::name(&secrets[0]), format!("bootstrap-token-{}", &token[..6]));
    assert_eq!(secrets[0]["type"], "bootstrap.kubernetes.io/token");
    assert_eq!(secrets[0]["data"]["expiration"], STANDARD.encode("2023-11-14T22:28:20Z"), "15 minutes after the call");
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
                    assert_eq!(secrets.len(), 4, "{what} {lost} {cut:?}");
                    for secret in secrets {
                        let key = STANDARD.decode(object::text(&secret, "/data/tls.key")).unwrap();
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
    assert!(outcome.conditions.is_empty() && outcome.wake_after.is_some());
    world.host.set_workload_down(false);

    let mut joined = machine("w0", false);
    object::merge(&mut joined, &json!({"status": {"nodeRef": {"name": "w0"}}}));
    world.host.set_related("machine", vec![joined]);
    let (result, outcome) = world.call();
    assert_eq!((result.unwrap(), outcome.wake_after, outcome.operations.len()), (None, None, 0));
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
        ("ignition", json!({"format": "ignition"}), machine("m", true), "UnsupportedFormat", "ignition"),
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
                m["spec"]["version"] = json!("v1.28.0");
                m
            },
            "UnsupportedKubernetesVersion",
            "v1.28.0",
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

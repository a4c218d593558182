//! The provider as its host calls it, pass after pass on a test host, with the parts of the core played by the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::test::{self, TestHost, write_back};
use capwasm_sdk::{ControlPlaneAnswer, Fault, ObjectRef, Operation, Outcome, Place, Problem, Provider, object};
use kubeadm_control_plane::KubeadmControlPlane;
use serde_json::{Value, json};

struct World {
    host: TestHost,
    plane: Value,
}

impl World {
    /// A cluster whose infrastructure and endpoint are there.
    fn new(spec: Value) -> World {
        World::of(spec, cluster())
    }

    fn of(spec: Value, cluster: Value) -> World {
        let mut plane = json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "quick-cp", "namespace": "default", "uid": "plane-uid", "labels": {"cluster.x-k8s.io/cluster-name": "quick"}},
            "spec": {
                "replicas": 1, "version": "v1.36.0",
                "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachineTemplate", "name": "tmpl"}}},
            },
        });
        object::merge(&mut plane, &json!({"spec": spec}));
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DockerMachineTemplate",
            "metadata": {"name": "tmpl", "namespace": "default", "uid": "tmpl-uid"},
            "spec": {"template": {"metadata": {"labels": {"from": "template"}}, "spec": {"customImage": "x"}}},
        });
        World { host: TestHost::new().related("cluster", cluster).object(Place::Management, template), plane }
    }

    fn call(&self) -> (Result<ControlPlaneAnswer, Problem>, Outcome) {
        test::reconcile::<KubeadmControlPlane>(&self.host, &self.plane)
    }

    /// One pass of which only the first `operations` take effect.
    fn pass_cut(&mut self, operations: usize) -> Result<ControlPlaneAnswer, Problem> {
        let (result, mut outcome) = self.call();
        write_back(&outcome, &mut self.plane);
        outcome.operations.truncate(operations);
        self.host.carry_out(&outcome);
        for secret in self.objects("Secret") {
            for (key, value) in secret["data"].as_object().unwrap() {
                let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
                self.host = std::mem::take(&mut self.host).secret(object::name(&secret), key, bytes);
            }
        }
        if result.as_ref().is_ok_and(|answer| answer.initialized) {
            object::merge(&mut self.plane, &json!({"status": {"initialization": {"controlPlaneInitialized": true}}}));
        }
        result
    }

    fn pass(&mut self) -> Result<ControlPlaneAnswer, Problem> {
        self.pass_cut(usize::MAX)
    }

    fn objects(&self, kind: &str) -> Vec<Value> {
        self.host.objects(Place::Management).into_iter().filter(|object| object["kind"] == kind).collect()
    }

    fn names(&self, kind: &str) -> BTreeSet<String> {
        self.objects(kind).iter().map(|object| object::name(object).to_owned()).collect()
    }

    /// What core and the other providers do: every machine gets a Node, the first one initializes.
    fn machines_join(&mut self) {
        let ready = json!([{"type": "Ready", "status": "True"}, {"type": "Available", "status": "True"}]);
        for mut machine in self.objects("Machine") {
            if object::text(&machine, "/status/nodeRef/name").is_empty() {
                let name = object::name(&machine).to_owned();
                object::merge(&mut machine, &json!({"status": {"nodeRef": {"name": name}, "conditions": ready}}));
                self.host.put(Place::Management, machine);
            }
            self.host.put(Place::Workload, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeadm-config", "namespace": "kube-system"}}));
        }
    }

    /// Passes until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..30 {
            let before = (self.host.objects(Place::Management), self.plane.clone());
            let _ = self.pass();
            self.machines_join();
            if before == (self.host.objects(Place::Management), self.plane.clone()) {
                return;
            }
        }
        panic!("no end in 30 passes");
    }
}

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "quick", "namespace": "default", "uid": "cluster-uid"},
        "spec": {"controlPlaneEndpoint": {"host": "172.18.0.3", "port": 6443}},
        "status": {
            "initialization": {"infrastructureProvisioned": true},
            "failureDomains": [
                {"name": "fd1", "controlPlane": true}, {"name": "fd2", "controlPlane": true}, {"name": "fd3", "controlPlane": true},
                {"name": "fd4", "controlPlane": false},
            ],
        },
    })
}

fn condition(plane: &Value, name: &str) -> (String, String) {
    let found = object::condition(plane, name).unwrap_or_else(|| panic!("no condition {name}"));
    (object::text(found, "/status").to_owned(), object::text(found, "/reason").to_owned())
}

#[test]
fn one_machine_is_made_initialized_and_reported() {
    let mut world = World::new(json!({
        "kubeadmConfigSpec": {"clusterConfiguration": {"apiServer": {"certSANs": ["localhost"]}}, "joinConfiguration": {"nodeRegistration": {"name": "x"}}},
        "machineTemplate": {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}, "spec": {"deletion": {"nodeDrainTimeoutSeconds": 5}, "readinessGates": [{"conditionType": "Gate"}]}},
    }));
    assert_eq!(world.pass().unwrap_err().reason, "WaitingForCertificates");
    assert_eq!(
        world.names("Secret"),
        BTreeSet::from(["quick-ca", "quick-etcd", "quick-proxy", "quick-sa"].map(String::from))
    );
    assert!(world.names("Machine").is_empty(), "certificates are read back before anything uses them");
    let answer = world.pass().unwrap();
    assert!(!answer.initialized);
    let name = world.names("Machine").pop_first().unwrap();
    assert!(name.starts_with("quick-cp-"));

    let machine = &world.objects("Machine")[0];
    assert_eq!(
        machine["spec"],
        json!({
            "clusterName": "quick", "version": "v1.36.0", "failureDomain": "fd1",
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachine", "name": name},
            "deletion": {"nodeDrainTimeoutSeconds": 5}, "readinessGates": [{"conditionType": "Gate"}],
        })
    );
    assert_eq!(
        machine["metadata"]["labels"],
        json!({"team": "a", "cluster.x-k8s.io/cluster-name": "quick", "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/control-plane-name": "quick-cp"})
    );
    assert_eq!(
        machine["metadata"]["ownerReferences"],
        json!([{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "quick-cp", "uid": "plane-uid", "controller": true, "blockOwnerDeletion": true}])
    );
    let config = &world.objects("KubeadmConfig")[0];
    assert_eq!(
        config["spec"],
        json!({"clusterConfiguration": {"apiServer": {"certSANs": ["localhost"]}}}),
        "the first machine does not join"
    );
    assert_eq!(config["metadata"]["ownerReferences"][0].get("controller"), None, "its Machine will control it");
    let infrastructure = &world.objects("DockerMachine")[0];
    assert_eq!((object::name(infrastructure), &infrastructure["spec"]), (name.as_str(), &json!({"customImage": "x"})));
    assert_eq!(infrastructure["metadata"]["labels"]["from"], "template");
    assert_eq!(
        infrastructure["metadata"]["annotations"],
        json!({"note": "b", "cluster.x-k8s.io/cloned-from-name": "tmpl", "cluster.x-k8s.io/cloned-from-groupkind": "DockerMachineTemplate.infrastructure.cluster.x-k8s.io"})
    );
    let template = &world.objects("DockerMachineTemplate")[0];
    assert_eq!(template["metadata"]["ownerReferences"][0]["uid"], "cluster-uid", "the template goes with the Cluster");
    for secret in world.objects("Secret") {
        assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
        assert_eq!(secret["metadata"]["labels"], json!({"cluster.x-k8s.io/cluster-name": "quick"}));
        assert_eq!(secret["metadata"]["ownerReferences"][0]["controller"], true);
    }

    world.settle();
    let answer = world.pass().unwrap();
    assert_eq!(
        answer,
        ControlPlaneAnswer {
            initialized: true,
            endpoint: None,
            version: Some("v1.36.0".into()),
            replicas: 1,
            ready: 1,
            available: 1,
            up_to_date: 1,
            selector: "cluster.x-k8s.io/cluster-name=quick,cluster.x-k8s.io/control-plane".into(),
        }
    );
    for (name, status, reason) in [
        ("Available", "True", "Available"),
        ("Initialized", "True", "Initialized"),
        ("CertificatesAvailable", "True", "Available"),
        ("MachinesReady", "True", "Ready"),
        ("MachinesUpToDate", "True", "UpToDate"),
        ("RollingOut", "False", "NotRollingOut"),
        ("ScalingUp", "False", "NotScalingUp"),
        ("ScalingDown", "False", "NotScalingDown"),
        ("Remediating", "False", "NotRemediating"),
        ("Deleting", "False", "NotDeleting"),
    ] {
        assert_eq!(condition(&world.plane, name), (status.into(), reason.into()), "{name}");
    }
    assert_eq!(world.plane["status"]["versions"], json!([{"version": "v1.36.0", "replicas": 1}]));
    assert!(object::is_true(&world.objects("Machine")[0], "UpToDate"));
    let (_, outcome) = world.call();
    assert!(
        outcome.operations.is_empty() && outcome.own.is_empty(),
        "nothing is written when nothing differs: {outcome:?}"
    );
}

/// R6a: the first initializes, the others join once it has.
#[test]
fn three_machines_come_one_after_the_other_and_spread_over_failure_domains() {
    let mut world = World::new(json!({
        "replicas": 3,
        "kubeadmConfigSpec": {"initConfiguration": {"skipPhases": ["x"]}, "joinConfiguration": {"nodeRegistration": {"name": "x"}}, "clusterConfiguration": {"etcd": {"local": {}}}},
    }));
    let mut seen = 0;
    for _ in 0..12 {
        let _ = world.pass();
        let there = world.names("Machine").len();
        assert!(there <= seen + 1, "at most one at a time");
        if there > seen {
            let _ = world.pass();
            assert_eq!(world.names("Machine").len(), there, "the next waits until this one has joined");
        }
        seen = there;
        world.machines_join();
    }
    assert_eq!(seen, 3);
    let domains: BTreeSet<_> = world
        .objects("Machine")
        .iter()
        .map(|machine| object::text(machine, "/spec/failureDomain").to_owned())
        .collect();
    assert_eq!(domains, BTreeSet::from(["fd1", "fd2", "fd3"].map(String::from)));
    let (init, join): (Vec<_>, Vec<_>) = world
        .objects("KubeadmConfig")
        .into_iter()
        .partition(|config| config["spec"].get("initConfiguration").is_some());
    assert_eq!((init.len(), join.len()), (1, 2));
    assert!(join.iter().all(|config| config["spec"].get("joinConfiguration").is_some()
        && config["spec"].get("clusterConfiguration").is_some()));
    assert_eq!(world.plane["metadata"]["annotations"]["capwasm.dev/next-slot"], "3");
}

#[test]
fn a_pass_that_is_lost_at_any_point_leads_to_the_same_three_machines() {
    for lost in 0..10 {
        for kept in 0..6 {
            let mut world = World::new(json!({"replicas": 3}));
            for _ in 0..lost {
                let _ = world.pass();
                world.machines_join();
            }
            let before = world.plane.clone();
            let _ = world.pass_cut(kept);
            // Status is written last, so that it is lost as well.
            world.plane = before;
            world.settle();
            let machines = world.names("Machine");
            assert_eq!(machines.len(), 3, "pass {lost} cut after {kept} operations");
            assert_eq!(machines, world.names("KubeadmConfig"), "pass {lost} cut after {kept} operations");
            assert_eq!(machines, world.names("DockerMachine"), "pass {lost} cut after {kept} operations");
            assert_eq!(world.names("Secret").len(), 5);
        }
    }
}

/// R6b, R8: the kubeconfig that others read is signed by the cluster's own CA.
#[test]
fn a_key_pair_that_is_there_is_never_replaced() {
    let mut world = World::new(json!({}));
    world.host = std::mem::take(&mut world.host)
        .secret("quick-ca", "tls.crt", "-----BEGIN CERTIFICATE-----\nmine\nnot-after-ms: 1\n")
        .secret("quick-ca", "tls.key", "mine");
    world.settle();
    assert_eq!(
        world.names("Secret"),
        BTreeSet::from(["quick-etcd", "quick-kubeconfig", "quick-proxy", "quick-sa"].map(String::from))
    );
    let kubeconfig = STANDARD
        .decode(object::text(
            world.objects("Secret").iter().find(|it| object::name(it) == "quick-kubeconfig").unwrap(),
            "/data/value",
        ))
        .unwrap();
    let kubeconfig: Value = serde_saphyr::from_str(std::str::from_utf8(&kubeconfig).unwrap()).unwrap();
    let field =
        |pointer: &str| String::from_utf8(STANDARD.decode(object::text(&kubeconfig, pointer)).unwrap()).unwrap();
    assert!(field("/clusters/0/cluster/certificate-authority-data").contains("mine"), "the user's CA signs");
    assert!(field("/users/0/user/client-certificate-data").contains("CN=kubernetes-admin O=system:masters"));
    assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], "https://172.18.0.3:6443");

    // Between two passes another one was first: what it wrote counts.
    let mut raced = World::new(json!({}));
    let (_, outcome) = raced.call();
    raced.pass().unwrap_err();
    let first = raced.objects("Secret");
    raced.host.carry_out(&outcome);
    assert_eq!(raced.objects("Secret"), first);
}

#[test]
fn certificates_that_vanish_from_a_running_cluster_need_a_person() {
    let mut world = World::new(json!({}));
    world.settle();
    let running = World { host: TestHost::new().related("cluster", cluster()), plane: world.plane.clone() };
    for object in world.host.objects(Place::Management) {
        running.host.put(Place::Management, object);
    }
    let (result, outcome) = running.call();
    let problem = result.unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "CertificatesLost"));
    assert!(!outcome.operations.iter().any(|operation| matches!(operation, Operation::Create { .. })));
}

#[test]
fn the_kubeconfig_is_renewed_half_a_year_before_its_end() {
    let mut world = World::new(json!({}));
    world.settle();
    let value = |world: &World| {
        world.objects("Secret").iter().find(|it| object::name(it) == "quick-kubeconfig").unwrap()["data"]["value"]
            .clone()
    };
    let first = value(&world);
    world.host.set_now_ms(1_700_000_000_000 + 180 * 86_400_000);
    world.settle();
    assert_eq!(value(&world), first);
    world.host.set_now_ms(1_700_000_000_000 + 190 * 86_400_000);
    world.settle();
    assert_ne!(value(&world), first);
}

#[test]
fn machines_are_taken_away_one_at_a_time_and_never_with_their_etcd_member() {
    let mut world = World::new(json!({"replicas": 3}));
    world.settle();
    world.plane["spec"]["replicas"] = json!(1);
    world.host.put(Place::Workload, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "etcd-a", "namespace": "kube-system", "labels": {"component": "etcd", "tier": "control-plane"}}}));
    world.settle();
    assert_eq!(world.names("Machine").len(), 3, "etcd would lose its quorum");
    assert_eq!(condition(&world.plane, "ScalingDown"), ("True".into(), "ScalingDown".into()));
    world.host.remove(Place::Workload, &ObjectRef::new("v1", "Pod", "etcd-a").in_namespace("kube-system"));
    world.pass().unwrap();
    assert_eq!(world.names("Machine").len(), 2);
    world.settle();
    assert_eq!(world.names("Machine").len(), 1);
    assert_eq!(condition(&world.plane, "ScalingDown"), ("False".into(), "NotScalingDown".into()));
    world.plane["spec"]["replicas"] = json!(3);
    world.settle();
    assert_eq!(world.plane["metadata"]["annotations"]["capwasm.dev/next-slot"], "5", "no name is given out twice");
}

#[test]
fn a_change_of_version_is_told_on_machines_and_control_plane() {
    let mut world = World::new(json!({}));
    world.settle();
    world.plane["spec"]["version"] = json!("v1.37.0");
    world.settle();
    assert_eq!(condition(&world.plane, "MachinesUpToDate"), ("False".into(), "NotUpToDate".into()));
    assert_eq!(condition(&world.plane, "RollingOut"), ("True".into(), "RollingOut".into()));
    assert!(!object::is_true(&world.objects("Machine")[0], "UpToDate"));
    assert_eq!(world.pass().unwrap().up_to_date, 0);
}

#[test]
fn what_is_not_there_yet_is_waited_for() {
    let without = |patch: Value| {
        let mut cluster = cluster();
        object::merge(&mut cluster, &patch);
        cluster
    };
    let mut alone = World::new(json!({}));
    alone.host.set_related("cluster", vec![]);
    let no_template = World::new(json!({"machineTemplate": {"spec": {"infrastructureRef": {"name": "other"}}}}));
    for (what, mut world, reason) in [
        ("no Cluster", alone, "WaitingForCluster"),
        (
            "no infrastructure",
            World::of(json!({}), without(json!({"status": null}))),
            "WaitingForClusterInfrastructureReady",
        ),
        ("no endpoint", World::of(json!({}), without(json!({"spec": null}))), "WaitingForEndpoint"),
        ("no template", no_template, "TemplateNotFound"),
    ] {
        let _ = world.pass();
        let problem = world.pass().unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, reason), "{what}");
        assert!(world.names("Machine").is_empty(), "{what}");
    }
    let mut unreachable = World::new(json!({}));
    let _ = (unreachable.pass(), unreachable.pass());
    unreachable.host.set_workload_down(true);
    assert!(!unreachable.pass().unwrap().initialized, "an API that cannot be reached yet is no problem");
}

#[test]
fn initialization_is_told_and_what_runs_stays_available_when_the_next_wish_is_a_mistake() {
    let mut world = World::new(json!({}));
    let _ = (world.pass(), world.pass());
    world.machines_join();
    world.plane["spec"]["replicas"] = json!(2);
    for _ in 0..2 {
        assert!(world.pass().unwrap().initialized);
        assert_eq!(condition(&world.plane, "Available").0, "True");
        assert_eq!(condition(&world.plane, "ScalingUp"), ("True".into(), "ScalingUp".into()));
    }
    let (_, outcome) = world.call();
    assert_eq!((outcome.events[0].warning, outcome.events[0].reason.as_str()), (true, "InvalidReplicas"));

    // A problem that is nobody's mistake waits one pass for what latches.
    let mut lost = World::new(json!({"replicas": 3}));
    let _ = (lost.pass(), lost.pass());
    lost.machines_join();
    lost.host.remove(
        Place::Management,
        &ObjectRef::new("infrastructure.cluster.x-k8s.io/v1beta2", "DockerMachineTemplate", "tmpl"),
    );
    assert!(lost.pass().unwrap().initialized);
    assert_eq!(lost.pass().unwrap_err().reason, "TemplateNotFound");
}

#[test]
fn absent_replicas_become_one_and_versions_get_their_v() {
    let mut world = World::new(json!({"replicas": null, "version": "1.36.0"}));
    world.settle();
    assert_eq!(world.plane["spec"]["replicas"], 1);
    assert_eq!(world.objects("Machine")[0]["spec"]["version"], "v1.36.0");
    assert_eq!(world.pass().unwrap().up_to_date, 1);
}

#[test]
fn a_complete_control_plane_reads_one_secret_per_pass() {
    let mut world = World::new(json!({}));
    world.settle();
    let secrets = |world: &World| world.host.reads().iter().filter(|read| read.what.starts_with("secret")).count();
    let before = secrets(&world);
    world.call().0.unwrap();
    assert_eq!(secrets(&world) - before, 1);
}

#[test]
fn malformed_objects_are_refused() {
    for (what, spec) in [
        ("replicas as text", json!({"replicas": "three"})),
        ("negative replicas", json!({"replicas": -1})),
        ("no replicas", json!({"replicas": 0})),
        ("a configuration that is a list", json!({"kubeadmConfigSpec": []})),
        ("no template", json!({"machineTemplate": {"spec": null}})),
        ("a naming that repeats names", json!({"machineNaming": {"template": "cp"}})),
    ] {
        let mut world = World::new(spec);
        let _ = world.pass();
        assert_eq!(world.pass().unwrap_err().fault, Fault::Invalid, "{what}");
        assert!(world.names("Machine").is_empty(), "{what}");
    }
    for plane in [json!(null), json!({}), json!({"spec": 1, "status": [], "metadata": "x"})] {
        let world = World {
            host: TestHost::new().related("cluster", json!({"metadata": 1, "status": {"failureDomains": {}}})),
            plane,
        };
        assert!(world.call().0.is_err());
    }
}

#[test]
fn deletion_waits_for_the_workers_then_takes_all_machines() {
    let mut world = World::new(json!({"replicas": 3}));
    world.settle();
    let worker = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "worker", "namespace": "default", "uid": "w", "labels": {"cluster.x-k8s.io/cluster-name": "quick"}},
    });
    world.host.put(Place::Management, worker);
    let delete = |world: &mut World| {
        let (result, outcome) = test::delete::<KubeadmControlPlane>(&world.host, &world.plane);
        write_back(&outcome, &mut world.plane);
        world.host.carry_out(&outcome);
        result.unwrap()
    };
    assert!(!delete(&mut world));
    assert_eq!(condition(&world.plane, "Deleting"), ("True".into(), "WaitingForWorkersDeletion".into()));
    assert_eq!(world.names("Machine").len(), 4);
    world.host.remove(Place::Management, &ObjectRef::new("cluster.x-k8s.io/v1beta2", "Machine", "worker"));
    assert!(!delete(&mut world), "asked for, not gone");
    assert_eq!(condition(&world.plane, "Deleting"), ("True".into(), "WaitingForMachineDeletion".into()));
    assert!(delete(&mut world));
    assert_eq!(world.plane["status"]["replicas"], 0);
}

#[test]
fn the_description_is_the_same_every_time_and_names_what_is_served() {
    let descriptor = KubeadmControlPlane::describe();
    assert_eq!(descriptor, KubeadmControlPlane::describe());
    let kinds: Vec<_> = descriptor
        .kinds
        .iter()
        .map(|kind| (kind.kind.as_str(), kind.version.as_str(), kind.finalizers.len()))
        .collect();
    assert_eq!(kinds, [("KubeadmControlPlane", "v1beta2", 1), ("KubeadmControlPlaneTemplate", "v1beta2", 0)]);
}

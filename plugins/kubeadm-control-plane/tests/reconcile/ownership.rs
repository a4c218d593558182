//! Certificates, kubeconfig, etcd of others, machines of others.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::test::TestHost;
use capwasm_sdk::{Fault, ObjectRef, Operation, Place, object};
use serde_json::{Value, json};

use crate::world::{World, cluster, condition};

fn kubeconfig(world: &World) -> Value {
    let secret = world.objects("Secret").into_iter().find(|it| object::name(it) == "quick-kubeconfig").unwrap();
    let text = STANDARD.decode(object::text(&secret, "/data/value")).unwrap();
    serde_saphyr::from_str(std::str::from_utf8(&text).unwrap()).unwrap()
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
    let kubeconfig = kubeconfig(&world);
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
    let world = World::running(json!({}));
    let mut running = World::new(json!({"replicas": 3}));
    running.plane = world.plane.clone();
    running.plane["spec"]["replicas"] = json!(3);
    running.host = TestHost::new().related("cluster", cluster());
    for object in world.host.objects(Place::Management) {
        running.host.put(Place::Management, object);
    }
    for object in world.host.objects(Place::Workload) {
        running.host.put(Place::Workload, object);
    }
    running.host.set_etcd(world.host.etcd());
    let (result, outcome) = running.call();
    let problem = result.unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "CertificatesLost"));
    assert!(!outcome.operations.iter().any(|operation| matches!(operation, Operation::Create { .. })));
    assert_eq!(outcome.condition_named("CertificatesAvailable").unwrap().status, Some(false));
}

#[test]
fn the_kubeconfig_is_renewed_before_its_end_and_when_the_endpoint_moves() {
    let mut world = World::running(json!({}));
    let first = kubeconfig(&world);
    world.clock += 180 * 86_400_000;
    world.settle();
    assert_eq!(kubeconfig(&world), first);
    world.clock += 10 * 86_400_000;
    world.settle();
    let second = kubeconfig(&world);
    assert_ne!(second, first);
    let mut moved = cluster();
    moved["spec"]["controlPlaneEndpoint"]["host"] = json!("10.0.0.9");
    world.host.set_related("cluster", vec![moved]);
    world.settle();
    assert_eq!(kubeconfig(&world)["clusters"][0]["cluster"]["server"], "https://10.0.0.9:6443");
}

#[test]
fn an_etcd_elsewhere_is_the_users_with_its_certificates() {
    let external = json!({"replicas": 2, "kubeadmConfigSpec": {"clusterConfiguration": {"etcd": {"external": {"endpoints": ["https://e:2379"]}}}}});
    let mut world = World::new(external);
    world.pass().unwrap_err();
    assert_eq!(world.names("Secret"), BTreeSet::from(["quick-ca", "quick-proxy", "quick-sa"].map(String::from)));
    assert_eq!(world.pass().unwrap_err().reason, "WaitingForCertificates", "only the user has the rest");
    world.host = std::mem::take(&mut world.host)
        .secret("quick-etcd", "tls.crt", "-----BEGIN CERTIFICATE-----\nnot-after-ms: 1\n")
        .secret("quick-apiserver-etcd-client", "tls.crt", "-----BEGIN CERTIFICATE-----\nnot-after-ms: 1\n")
        .secret("quick-apiserver-etcd-client", "tls.key", "k");
    world.settle();
    assert_eq!(world.names("Machine").len(), 2, "an even number is fine");
    assert_eq!(condition(&world.plane, "Available").0, "True");
    assert!(object::condition(&world.plane, "EtcdClusterHealthy").is_none(), "whoever runs it may say so");
    let machine = &world.objects("Machine")[0];
    assert!(
        object::condition(machine, "EtcdMemberHealthy").is_none()
            && object::condition(machine, "EtcdPodHealthy").is_none()
    );
    assert!(!machine["spec"]["readinessGates"].to_string().contains("Etcd"));
    world.plane["spec"]["version"] = json!("v1.37.0");
    world.settle();
    assert_eq!(world.plane["status"]["versions"], json!([{"version": "v1.37.0", "replicas": 2}]));
    world.plane["spec"]["replicas"] = json!(1);
    world.settle();
    assert_eq!(world.names("Machine").len(), 1);
    assert_eq!(world.host.etcd_calls(), [""; 0]);
    assert!(!world.host.reads().iter().any(|read| read.what == "etcd members"));
}

/// A machine that stands alone, as a person made it, with the Secrets that its configuration made.
fn standing_alone(version: &str) -> World {
    let mut world = World::new(json!({}));
    let config = json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
        "metadata": {"name": "m0", "namespace": "default", "uid": "config-uid"}, "spec": {"initConfiguration": {}},
    });
    let machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {
            "name": "m0", "namespace": "default", "uid": "machine-uid", "resourceVersion": "4", "creationTimestamp": world.time(),
            "labels": {"cluster.x-k8s.io/cluster-name": "quick", "cluster.x-k8s.io/control-plane": ""},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "quick", "uid": "cluster-uid"}],
        },
        "spec": {
            "clusterName": "quick", "version": version, "providerID": "docker:////m0",
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m0"}, "dataSecretName": "m0"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachine", "name": "m0"},
        },
        "status": {"nodeRef": {"name": "m0"}, "nodeInfo": {"kubeletVersion": version}, "initialization": {"infrastructureProvisioned": true},
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Available", "status": "True"}]},
    });
    for object in [config, machine] {
        world.host.put(Place::Management, object);
    }
    for (name, owner) in [
        ("quick-ca", "config-uid"),
        ("quick-etcd", "config-uid"),
        ("quick-proxy", "config-uid"),
        ("quick-sa", "somebody"),
    ] {
        world.host = std::mem::take(&mut world.host)
            .secret(name, "tls.crt", "-----BEGIN CERTIFICATE-----\nnot-after-ms: 1\n")
            .secret(name, "tls.key", "k");
        world.host.put(Place::Management, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default", "resourceVersion": "1", "ownerReferences": [{"uid": owner}]}}));
    }
    world.kubeadm("m0", version);
    world
}

#[test]
fn machines_that_stand_alone_are_taken_over_with_their_secrets() {
    let mut world = standing_alone("v1.36.0");
    world.plane["spec"]["replicas"] = json!(3);
    world.settle();
    let machine = world.machine("m0");
    assert_eq!(machine["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    assert_eq!(machine["metadata"]["ownerReferences"][0]["uid"], "plane-uid");
    assert_eq!(machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane-name"], "quick-cp");
    for secret in world.objects("Secret") {
        let expected = if object::name(&secret) == "quick-sa" { "somebody" } else { "plane-uid" };
        assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], expected, "{}", object::name(&secret));
    }
    assert_eq!(world.names("Machine").len(), 3, "others join it");
    assert_eq!(world.members(), world.names("Machine"));
    assert_eq!(condition(&world.plane, "Available").0, "True");
}

#[test]
fn machines_that_do_not_fit_are_left_alone_and_it_is_said() {
    let mut far = standing_alone("v1.33.0");
    let (result, outcome) = far.call();
    assert_eq!(result.unwrap_err().reason, "AdoptionFailed");
    assert_eq!(outcome.events[0].reason, "AdoptionFailed");
    for _ in 0..3 {
        far.round();
    }
    assert_eq!(far.names("Machine").len(), 1);
    assert_eq!(far.machine("m0")["metadata"]["ownerReferences"][0]["uid"], "cluster-uid");

    let foreign = standing_alone("v1.36.0");
    foreign.patch_machine("m0", &json!({"spec": {"bootstrap": {"configRef": null}}}));
    assert_eq!(foreign.call().0.unwrap_err().reason, "AdoptionFailed");

    let mut going = standing_alone("v1.36.0");
    going.delete_machine("m0");
    let (_, outcome) = going.call();
    assert!(!outcome.operations.iter().any(|operation| matches!(operation, Operation::Patch { target, .. } if *target == ObjectRef::new("cluster.x-k8s.io/v1beta2", "Machine", "m0"))));
    going.pass().unwrap();
}

/// What may be taken away from a Machine, as upstream's end-to-end tests do.
const STRIPPED: [&[&str]; 3] = [&["ownerReferences"], &["labels"], &["ownerReferences", "labels"]];

fn strip(world: &World, name: &str, fields: &[&str]) {
    let mut machine = world.machine(name);
    for field in fields {
        machine["metadata"].as_object_mut().unwrap().remove(*field);
    }
    if fields.contains(&"ownerReferences") {
        // As core does for a Machine that seems to stand alone.
        let cluster =
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "quick", "uid": "cluster-uid"});
        machine["metadata"]["ownerReferences"] = json!([cluster]);
    }
    world.host.put(Place::Management, machine);
}

#[test]
fn a_machine_that_lost_its_owner_or_its_labels_is_taken_back_and_counts_meanwhile() {
    for replicas in [1, 3] {
        for fields in STRIPPED {
            let mut world = World::running(json!({"replicas": replicas}));
            let before = world.objects("Machine");
            let names: Vec<String> = before.iter().map(|machine| object::name(machine).to_owned()).collect();
            for name in &names {
                strip(&world, name, fields);
            }
            for _ in 0..8 {
                world.pass().unwrap();
                assert_eq!(world.plane["status"]["replicas"], replicas, "{fields:?}");
                assert_eq!(condition(&world.plane, "Available").0, "True", "{fields:?}");
            }
            world.settle();
            for (before, now) in before.iter().zip(world.objects("Machine")) {
                assert_eq!(before["metadata"]["labels"], now["metadata"]["labels"], "{fields:?}");
                assert_eq!(before["metadata"]["ownerReferences"], now["metadata"]["ownerReferences"], "{fields:?}");
            }
            assert_eq!(world.by_age().len(), names.len(), "{fields:?}");
        }
    }
}

/// While the Machine is only a name: its configuration and its infrastructure come with the next pass.
#[test]
fn a_machine_that_is_stripped_as_soon_as_it_is_made_is_equipped_all_the_same() {
    for fields in STRIPPED {
        let mut world = World::new(json!({}));
        while world.objects("Machine").is_empty() {
            let _ = world.pass();
        }
        let name = world.names("Machine").pop_first().unwrap();
        strip(&world, &name, fields);
        world.settle();
        assert_eq!(Vec::from_iter(world.names("Machine")), [name], "{fields:?}");
        assert_eq!(condition(&world.plane, "Available").0, "True", "{fields:?}");
    }
}

#[test]
fn machines_of_another_controller_are_never_taken() {
    for fields in STRIPPED {
        let mut world = World::running(json!({}));
        let name = world.names("Machine").pop_first().unwrap();
        strip(&world, &name, fields);
        let foreign = json!([{"apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "o", "controller": true}]);
        world.patch_machine(&name, &json!({"metadata": {"ownerReferences": foreign}}));
        let _ = world.pass();
        assert_eq!(world.machine(&name)["metadata"]["ownerReferences"], foreign, "{fields:?}");
        assert_eq!(world.plane["status"]["replicas"], 0, "{fields:?}");
    }
}

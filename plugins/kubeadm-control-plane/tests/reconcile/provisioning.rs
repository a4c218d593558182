//! From nothing to a control plane, and what is refused on the way.

use std::collections::BTreeSet;

use capwasm_sdk::test::TestHost;
use capwasm_sdk::{ControlPlaneAnswer, Fault, Host, ObjectRef, Operation, Place, Provider, object};
use kubeadm_control_plane::KubeadmControlPlane;
use serde_json::{Value, json};

use crate::world::{HOOK, World, cluster, condition};

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
    assert!(!world.pass().unwrap().initialized);
    let name = world.names("Machine").pop_first().unwrap();
    assert!(name.starts_with("quick-cp-"));
    assert!(
        world.names("KubeadmConfig").is_empty() && world.names("DockerMachine").is_empty(),
        "the Machine comes first"
    );

    let machine = &world.objects("Machine")[0];
    let gates: Vec<&str> = machine["spec"]["readinessGates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gate| gate["conditionType"].as_str().unwrap())
        .collect();
    assert_eq!(
        gates,
        [
            "NodeKubeadmLabelsAndTaintsSet",
            "APIServerPodHealthy",
            "ControllerManagerPodHealthy",
            "SchedulerPodHealthy",
            "EtcdPodHealthy",
            "EtcdMemberHealthy",
            "Gate"
        ]
    );
    let mut spec = machine["spec"].clone();
    spec.as_object_mut().unwrap().remove("readinessGates");
    assert_eq!(
        spec,
        json!({
            "clusterName": "quick", "version": "v1.36.0", "failureDomain": "fd1",
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachine", "name": name},
            "deletion": {"nodeDrainTimeoutSeconds": 5},
        })
    );
    assert_eq!(
        machine["metadata"]["labels"],
        json!({"team": "a", "cluster.x-k8s.io/cluster-name": "quick", "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/control-plane-name": "quick-cp"})
    );
    assert_eq!(machine["metadata"]["annotations"][HOOK], "");
    assert_eq!(
        machine["metadata"]["ownerReferences"],
        json!([{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "quick-cp", "uid": "plane-uid", "controller": true, "blockOwnerDeletion": true}])
    );

    world.pass().unwrap();
    let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": object::uid(machine), "controller": true, "blockOwnerDeletion": true}]);
    let config = &world.objects("KubeadmConfig")[0];
    assert_eq!(
        config["spec"],
        json!({"clusterConfiguration": {"apiServer": {"certSANs": ["localhost"]}}}),
        "the first machine does not join"
    );
    let infrastructure = &world.objects("DockerMachine")[0];
    for part in [config, infrastructure] {
        assert_eq!(part["metadata"]["ownerReferences"], owner, "nobody has to take it over");
        assert_eq!(part["metadata"]["labels"]["cluster.x-k8s.io/control-plane-name"], "quick-cp");
        assert_eq!(
            (&part["metadata"]["labels"]["team"], &part["metadata"]["annotations"]["note"]),
            (&json!("a"), &json!("b"))
        );
    }
    assert_eq!((object::name(infrastructure), &infrastructure["spec"]), (name.as_str(), &json!({"customImage": "x"})));
    assert_eq!(infrastructure["metadata"]["labels"]["from"], "template");
    assert_eq!(infrastructure["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"], "tmpl");
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
        ("EtcdClusterHealthy", "True", "Healthy"),
        ("ControlPlaneComponentsHealthy", "True", "Healthy"),
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
    let machine = &world.objects("Machine")[0];
    for (name, reason) in [
        ("APIServerPodHealthy", "Running"),
        ("ControllerManagerPodHealthy", "Running"),
        ("SchedulerPodHealthy", "Running"),
        ("EtcdPodHealthy", "Running"),
        ("EtcdMemberHealthy", "Healthy"),
        ("NodeKubeadmLabelsAndTaintsSet", "Set"),
        ("UpToDate", "UpToDate"),
    ] {
        assert_eq!(condition(machine, name), ("True".into(), reason.into()), "{name}");
    }
    assert_eq!(world.plane["status"]["versions"], json!([{"version": "v1.36.0", "replicas": 1}]));
    let expiry =
        &world.objects("KubeadmConfig")[0]["metadata"]["annotations"]["machine.cluster.x-k8s.io/certificates-expiry"];
    assert!(expiry.as_str().unwrap().starts_with("2024-11-13T"), "{expiry}");
    let (_, outcome) = world.call();
    assert!(
        outcome.operations.is_empty() && outcome.own.is_empty() && outcome.events.is_empty(),
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
    for _ in 0..30 {
        let _ = world.pass();
        let there = world.names("Machine").len();
        assert!(there <= seen + 1, "at most one at a time");
        if there > seen {
            let _ = (world.pass(), world.pass());
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
    assert!(join.iter().all(|config| config["spec"]["joinConfiguration"].get("controlPlane").is_some()
        && config["spec"].get("clusterConfiguration").is_some()));
    assert_eq!(world.plane["metadata"]["annotations"]["capwasm.dev/next-slot"], "3");
}

/// What a joining machine's KubeadmConfig says from its first moment needs no second write.
#[test]
fn a_joining_machine_knows_from_the_start_how_it_is_let_in() {
    let discovery = |given: Value| {
        let mut world = World::running(json!({"kubeadmConfigSpec": {"joinConfiguration": {"discovery": given}}}));
        let first = world.names("KubeadmConfig");
        world.plane["spec"]["replicas"] = json!(3);
        while world.names("Machine").len() == first.len() {
            let _ = world.pass();
        }
        let _ = world.pass();
        let configs = world.objects("KubeadmConfig");
        let new = configs.into_iter().find(|config| !first.contains(object::name(config))).unwrap();
        new["spec"]["joinConfiguration"].get("discovery").cloned()
    };
    let made = discovery(json!({})).unwrap()["bootstrapToken"].clone();
    assert_eq!(made["apiServerEndpoint"], "172.18.0.3:6443");
    assert!(object::text(&made, "/caCertHashes/0").starts_with("sha256:"), "{made}");
    let (id, secret) = object::text(&made, "/token").split_once('.').unwrap();
    assert_eq!((id.len(), secret.len()), (6, 16), "{made}");

    let own = discovery(json!({"bootstrapToken": {"token": "mine"}})).unwrap();
    assert_eq!(
        (&own["bootstrapToken"]["token"], &own["bootstrapToken"]["caCertHashes"]),
        (&json!("mine"), &made["caCertHashes"])
    );
    let file = json!({"file": {"kubeConfigPath": "/k"}});
    assert_eq!(discovery(file.clone()), Some(file), "it needs no token");
}

#[test]
fn the_next_machine_waits_for_every_component_and_for_etcd() {
    let mut world = World::new(json!({"replicas": 3}));
    while world.names("Node").is_empty() && world.host.etcd().is_none() {
        world.round();
    }
    let name = world.by_age().remove(0);
    world.kill_members(&[&name]);
    for _ in 0..5 {
        let _ = world.pass();
    }
    assert_eq!(world.names("Machine").len(), 1);
    let said = object::condition(&world.plane, "ScalingUp").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("waiting for etcd cluster to become healthy"), "{said}");
    let (_, outcome) = world.call();
    assert!(outcome.wake_after.is_some_and(|after| after.as_secs() <= 15), "nothing else tells when etcd is well");
}

#[test]
fn a_pass_that_is_lost_at_any_point_leads_to_the_same_three_machines() {
    for lost in 0..12 {
        for kept in 0..6 {
            let mut world = World::new(json!({"replicas": 3}));
            for _ in 0..lost {
                world.round();
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
    assert_eq!(condition(&unreachable.plane, "EtcdClusterHealthy"), ("Unknown".into(), "InspectionFailed".into()));
}

#[test]
fn initialization_is_told_and_what_runs_stays_available_when_the_next_wish_is_a_mistake() {
    let mut world = World::running(json!({}));
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
    while lost.host.etcd().is_none() {
        let _ = lost.pass();
        lost.machines_join();
    }
    lost.host.remove(
        Place::Management,
        &ObjectRef::new("infrastructure.cluster.x-k8s.io/v1beta2", "DockerMachineTemplate", "tmpl"),
    );
    assert!(lost.pass().unwrap().initialized);
    assert_eq!(lost.pass().unwrap_err().reason, "TemplateNotFound");
    let said = object::condition(&lost.plane, "ScalingUp").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("DockerMachineTemplate does not exist"), "{said}");
}

#[test]
fn absent_replicas_become_one_and_versions_get_their_v() {
    let mut world = World::running(json!({"replicas": null, "version": "1.36.0"}));
    assert_eq!(world.plane["spec"]["replicas"], 1);
    assert_eq!(world.objects("Machine")[0]["spec"]["version"], "v1.36.0");
    assert_eq!(world.pass().unwrap().up_to_date, 1);
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
        ("no version", json!({"version": "newest"})),
        ("a surge of two", json!({"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}})),
    ] {
        let mut world = World::new(spec);
        let _ = world.pass();
        assert_eq!(world.pass().unwrap_err().fault, Fault::Invalid, "{what}");
        assert!(world.names("Machine").is_empty(), "{what}");
    }
    for plane in [json!(null), json!({}), json!({"spec": 1, "status": [], "metadata": "x"})] {
        let mut world = World::new(json!({}));
        world.host = TestHost::new().related("cluster", json!({"metadata": 1, "status": {"failureDomains": {}}}));
        world.plane = plane;
        assert!(world.call().0.is_err());
    }
}

#[test]
fn a_machine_whose_template_vanishes_gets_its_other_part_and_the_rest_later() {
    let mut world = World::new(json!({}));
    let _ = (world.pass(), world.pass());
    let template = world.objects("DockerMachineTemplate").remove(0);
    world.host.remove(
        Place::Management,
        &ObjectRef::new("infrastructure.cluster.x-k8s.io/v1beta2", "DockerMachineTemplate", "tmpl"),
    );
    let _ = world.pass();
    assert_eq!((world.names("KubeadmConfig").len(), world.names("DockerMachine").len()), (1, 0));
    world.host.put(Place::Management, template);
    world.settle();
    assert_eq!(world.names("DockerMachine"), world.names("Machine"));
}

#[test]
fn a_complete_control_plane_reads_two_secrets_per_pass() {
    let world = World::running(json!({}));
    let secrets = |world: &World| world.host.reads().iter().filter(|read| read.what.starts_with("secret")).count();
    let before = secrets(&world);
    world.call().0.unwrap();
    assert_eq!(secrets(&world) - before, 2, "the kubeconfig, and the authority that it must trust");
}

#[test]
fn labels_and_timeouts_change_in_place() {
    let mut world = World::running(json!({"machineTemplate": {"metadata": {"labels": {"old": "1"}}}}));
    let name = world.by_age().remove(0);
    world.plane["spec"]["machineTemplate"] = json!({
        "metadata": {"labels": {"new": "2"}},
        "spec": {"infrastructureRef": world.plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"], "deletion": {"nodeDrainTimeoutSeconds": 9}, "taints": [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}]},
    });
    world.settle();
    assert_eq!(world.by_age(), [name], "nothing was replaced");
    for kind in ["Machine", "KubeadmConfig", "DockerMachine"] {
        let labels = world.objects(kind)[0]["metadata"]["labels"].clone();
        assert_eq!((labels.get("old"), &labels["new"]), (None, &json!("2")), "{kind}");
    }
    assert_eq!(world.objects("Machine")[0]["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 9);
    assert_eq!(world.objects("Machine")[0]["spec"]["taints"][0]["key"], "a");
}

#[test]
fn nothing_is_created_before_it_is_known_whether_the_old_one_is_gone() {
    let mut world = World::running(json!({}));
    world.host.set_workload_down(true);
    let (_, outcome) = world.call();
    assert!(!outcome.operations.iter().any(|operation| matches!(operation, Operation::Create { .. })));
    assert!(Host::etcd_members(&world.host).is_err());
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
    assert!(descriptor.wants.etcd && descriptor.wants.pki);
}

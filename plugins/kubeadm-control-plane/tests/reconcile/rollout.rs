//! Machines come, go and are replaced.

use capwasm_sdk::{Operation, Place, object};
use serde_json::{Value, json};

use crate::world::{World, condition, template};

/// Members of etcd are those of the machines, one for each.
fn members_match(world: &World) {
    assert_eq!(world.members(), world.names("Machine"));
}

#[test]
fn one_three_five_three_one() {
    let mut world = World::running(json!({}));
    for replicas in [3usize, 5, 3, 1] {
        world.plane["spec"]["replicas"] = json!(replicas);
        let mut before = world.names("Machine").len();
        world.settle_watched(|world| {
            let there = world.names("Machine").len();
            assert!(there.abs_diff(before) <= 1, "one at a time");
            assert!(world.host.etcd().unwrap().iter().filter(|member| member.leader).count() == 1);
            before = there;
        });
        assert_eq!(world.names("Machine").len(), replicas);
        members_match(&world);
        assert_eq!(condition(&world.plane, "ScalingUp").0, "False");
        assert_eq!(condition(&world.plane, "ScalingDown").0, "False");
    }
    assert_eq!(world.plane["metadata"]["annotations"]["capwasm.dev/next-slot"], "5", "no name is given out twice");
    world.plane["spec"]["replicas"] = json!(3);
    world.settle();
    assert_eq!(world.plane["metadata"]["annotations"]["capwasm.dev/next-slot"], "7");
}

/// Every machine is replaced, and never fewer or more are there than allowed.
fn upgrade(spec: Value, least: usize, most: usize) -> World {
    let mut world = World::running(spec);
    let old = world.names("Machine");
    let replicas = old.len();
    world.plane["spec"]["version"] = json!("v1.37.0");
    let mut rolled = false;
    world.settle_watched(|world| {
        let there = world.names("Machine").len();
        assert!((least..=most).contains(&there), "{there} machines");
        if world.names("Machine").iter().any(|name| !old.contains(name)) {
            let text = world.workload("v1", "ConfigMap", "kubeadm-config")["data"]["ClusterConfiguration"].to_string();
            assert!(text.contains("v1.37.0"), "kubeadm's configuration comes first: {text}");
        }
        let outdated = world.names("Machine").iter().any(|name| old.contains(name));
        let image =
            &world.workload("apps/v1", "DaemonSet", "kube-proxy")["spec"]["template"]["spec"]["containers"][0]["image"];
        assert!(!outdated || image == "registry.k8s.io/kube-proxy:v1.36.0", "kube-proxy comes last");
        rolled |= condition(&world.plane, "RollingOut").0 == "True";
    });
    assert!(rolled);
    assert!(world.names("Machine").is_disjoint(&old));
    assert_eq!(world.names("Machine").len(), replicas);
    members_match(&world);
    assert_eq!(condition(&world.plane, "RollingOut").0, "False");
    assert_eq!(condition(&world.plane, "MachinesUpToDate"), ("True".into(), "UpToDate".into()));
    assert_eq!(world.plane["status"]["versions"], json!([{"version": "v1.37.0", "replicas": replicas}]));
    let image =
        &world.workload("apps/v1", "DaemonSet", "kube-proxy")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.k8s.io/kube-proxy:v1.37.0");
    world
}

#[test]
fn an_upgrade_replaces_each_machine_with_one_more_at_most() {
    upgrade(json!({"replicas": 3}), 3, 4);
    upgrade(json!({"replicas": 1}), 1, 2);
}

#[test]
fn an_upgrade_without_surge_has_one_fewer_at_most() {
    upgrade(
        json!({"replicas": 3, "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}}}),
        2,
        3,
    );
}

#[test]
fn permissions_that_an_older_kubeadm_did_not_give_are_given_before_an_upgrade() {
    let mut world = World::running(json!({}));
    world.plane["spec"]["version"] = json!("v1.37.0");
    let (_, outcome) = world.call();
    let keys: Vec<&str> = outcome
        .operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Create { key, .. } | Operation::Patch { key, .. } => Some(key.as_str()),
            _ => None,
        })
        .collect();
    let at = |key: &str| keys.iter().position(|known| *known == key).unwrap_or_else(|| panic!("no {key} in {keys:?}"));
    assert!(
        at("ClusterRoleBinding kubeadm:cluster-admins") < at("kubeadm-config")
            && at("kubeadm-config") < at("create-machine")
    );
}

#[test]
fn kube_proxy_and_core_dns_are_left_alone_on_request_and_core_dns_never_goes_back() {
    let configuration = json!({"clusterConfiguration": {"dns": {"imageTag": "v1.12.0"}}});
    let mut world = World::running(json!({"kubeadmConfigSpec": configuration}));
    let image = |world: &World| {
        world.workload("apps/v1", "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(image(&world), "registry.k8s.io/coredns/coredns:v1.12.0");
    world.plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["dns"]["imageTag"] = json!("v1.11.0");
    world.settle();
    let (_, outcome) = world.call();
    assert_eq!(outcome.events[0].reason, "CoreDNSNotUpdated");
    assert_eq!(image(&world), "registry.k8s.io/coredns/coredns:v1.12.0");
    world.plane["spec"]["version"] = json!("v1.37.0");
    for name in ["skip-coredns", "skip-kube-proxy"] {
        world.plane["metadata"]["annotations"][format!("controlplane.cluster.x-k8s.io/{name}")] = json!("");
    }
    world.settle();
    let proxy =
        &world.workload("apps/v1", "DaemonSet", "kube-proxy")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(proxy, "registry.k8s.io/kube-proxy:v1.36.0");
    assert!(world.call().1.events.is_empty());
}

#[test]
fn another_template_other_content_and_another_configuration_roll_out_and_nothing_else_does() {
    let mut world = World::running(json!({"replicas": 3}));
    let mut rolls = |change: &dyn Fn(&mut World)| {
        let before = world.names("Machine");
        change(&mut world);
        world.settle();
        let after = world.names("Machine");
        assert_eq!(after.len(), 3);
        if before == after {
            "nothing"
        } else if before.is_disjoint(&after) {
            "all"
        } else {
            "some"
        }
    };
    assert_eq!(rolls(&|_| {}), "nothing");
    assert_eq!(
        rolls(&|world| {
            world.host.put(Place::Management, template("other"));
            world.plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"] = json!("other");
        }),
        "all"
    );
    assert_eq!(
        rolls(&|world| {
            let mut template =
                world.objects("DockerMachineTemplate").into_iter().find(|it| object::name(it) == "other").unwrap();
            template["spec"]["template"]["spec"]["customImage"] = json!("y");
            world.host.put(Place::Management, template);
        }),
        "all"
    );
    assert_eq!(
        rolls(&|world| world.plane["spec"]["kubeadmConfigSpec"] = json!({"files": [{"path": "/a", "content": "b"}]})),
        "all"
    );
    assert_eq!(rolls(&|world| world.plane["spec"]["kubeadmConfigSpec"]["format"] = json!("cloud-config")), "nothing");
    assert_eq!(rolls(&|world| world.plane["spec"]["rollout"] = json!({"after": world.time()})), "all");
    assert_eq!(
        rolls(&|world| world.plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"] =
            json!({"dns": {"imageTag": "v1.12.0"}})),
        "nothing"
    );
}

#[test]
fn machines_whose_certificates_end_soon_are_replaced_in_time() {
    let mut world = World::running(json!({"replicas": 3, "rollout": {"before": {"certificatesExpiryDays": 30}}}));
    let core = |world: &World| {
        for config in world.objects("KubeadmConfig") {
            let expiry = object::annotation(&config, "machine.cluster.x-k8s.io/certificates-expiry");
            if let Some(expiry) = expiry {
                world.patch_machine(object::name(&config), &json!({"status": {"certificatesExpiryDate": expiry}}));
            }
        }
    };
    core(&world);
    let old = world.names("Machine");
    let (_, outcome) = world.call();
    let after = outcome.wake_after.unwrap().as_secs() / 86_400;
    assert!((150..=335).contains(&after), "woken by the kubeconfig or by the certificates: {after}");
    world.clock += 330 * 86_400_000;
    world.settle();
    assert_eq!(world.names("Machine"), old);
    world.clock += 10 * 86_400_000;
    for _ in 0..40 {
        world.round();
        core(&world);
    }
    assert!(world.names("Machine").is_disjoint(&old));
    assert_eq!(world.names("Machine").len(), 3);
}

#[test]
fn two_minor_versions_at_once_are_refused_and_said() {
    let mut world = World::running(json!({}));
    let old = world.names("Machine");
    world.plane["spec"]["version"] = json!("v1.38.0");
    world.settle();
    assert_eq!(world.names("Machine"), old);
    assert_eq!(condition(&world.plane, "RollingOut").0, "True");
    let said = object::condition(&world.plane, "RollingOut").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("one minor version at a time"), "{said}");
    assert_eq!(condition(&world.plane, "Available").0, "True");
    assert!(!object::is_true(&world.objects("Machine")[0], "UpToDate"));
}

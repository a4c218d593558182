//! Control planes of several machines on the simulator: made, upgraded, scaled, repaired and deleted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use capwasm_sim_service::faults::{Client as Faults, Fault, NodeFault};
use capwasm_tests::history::{History, control_planes};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{CONTROL_PLANE_LABEL, Objects, condition, is, is_control_plane, name_of, text};
use capwasm_tests::sample::{Sample, VERSION};
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

const NEWER: &str = "v1.35.0";
const KCP: &str = "KubeadmControlPlane";

/// A cluster on the shared simulator.
struct Cluster {
    management: &'static Management,
    objects: Objects,
    sample: Sample,
    plane: String,
}

impl Cluster {
    async fn new(name: &str, control_planes: usize, workers: usize) -> Cluster {
        let management = Management::shared();
        let objects = management.objects(name).await;
        let sample = Sample::new(name, control_planes, workers);
        Cluster { management, objects, sample, plane: format!("{name}-control-plane") }
    }

    async fn provisioned(name: &str, control_planes: usize, workers: usize) -> Cluster {
        let cluster = Cluster::new(name, control_planes, workers).await;
        cluster.sample.create(&cluster.objects).await;
        cluster.sample.provisioned(&cluster.objects).await;
        cluster
    }

    async fn change(&self, patch: Value) {
        self.objects.merge(KCP, &self.plane, patch).await;
    }

    /// Control-plane Machines, sorted by name.
    async fn machines(&self) -> Vec<Value> {
        let mut machines = self.objects.list("Machine").await;
        machines.retain(is_control_plane);
        machines
    }

    async fn names(&self) -> BTreeSet<String> {
        self.machines().await.iter().map(|machine| name_of(machine).to_owned()).collect()
    }

    /// Waits until there are just so many control-plane Machines, all of a version, with every condition as it should be.
    async fn settled(&self, replicas: usize, version: &str) -> Value {
        wait::until(&format!("{} settles at {replicas} of {version}", self.plane), async || {
            let plane = self.objects.get(KCP, &self.plane).await;
            let machines = self.machines().await;
            let right = machines.len() == replicas
                && machines.iter().all(|machine| text(machine, "/spec/version") == version && is(machine, "Available"))
                && plane["status"]["replicas"] == replicas
                && plane["status"]["upToDateReplicas"] == replicas
                && plane["status"]["availableReplicas"] == replicas
                && [
                    "Available",
                    "EtcdClusterHealthy",
                    "ControlPlaneComponentsHealthy",
                    "MachinesReady",
                    "MachinesUpToDate",
                ]
                .iter()
                .all(|name| is(&plane, name));
            if right { Ok(plane) } else { Err(format!("{} Machines, {}", machines.len(), plane["status"])) }
        })
        .await
    }

    /// A client of the workload cluster.
    async fn workload(&self) -> kube::Client {
        self.objects.workload(&self.sample.name).await
    }

    async fn nodes(&self) -> Vec<Node> {
        let nodes: Api<Node> = Api::all(self.workload().await);
        nodes.list(&ListParams::default()).await.expect("the workload API answers").items
    }

    fn faults(&self) -> Faults {
        Faults::unix(self.management.data_dir().join("sim.sock"))
    }

    /// A health check of the control-plane Machines that gives up on a Node after a second.
    async fn check_health(&self) {
        let name = &self.sample.name;
        self.objects
            .create(&json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
                "metadata": {"name": "control-plane", "namespace": name},
                "spec": {
                    "clusterName": name,
                    "selector": {"matchLabels": {CONTROL_PLANE_LABEL: ""}},
                    "checks": {
                        "nodeStartupTimeoutSeconds": 60,
                        "unhealthyNodeConditions": [
                            {"type": "Ready", "status": "Unknown", "timeoutSeconds": 1},
                            {"type": "Ready", "status": "False", "timeoutSeconds": 1},
                        ],
                    },
                },
            }))
            .await;
    }

    /// Deletes the cluster; neither objects nor containers are left of it.
    async fn delete(self) {
        self.sample.delete(&self.objects).await;
        assert_eq!(self.objects.names("Machine").await, Vec::<String>::new());
        assert_eq!(self.management.engine().containers(&self.sample.name).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn three_machines_are_made_one_after_the_other_and_all_is_healthy() {
    let cluster = Cluster::new("three", 3, 1).await;
    let history = History::record(&cluster.objects).await;
    cluster.sample.create(&cluster.objects).await;
    cluster.sample.provisioned(&cluster.objects).await;
    cluster.settled(3, VERSION).await;
    let versions = history.so_far();
    let planes = versions.iter().filter(|version| version.kind == "Machine" && is_control_plane(&version.object));
    let mut without_node = BTreeSet::new();
    for version in planes {
        if text(&version.object, "/status/nodeRef/name").is_empty() {
            without_node.insert(name_of(&version.object));
        } else {
            without_node.remove(name_of(&version.object));
        }
        assert!(without_node.len() <= 1, "{without_node:?} at once");
    }
    for machine in cluster.machines().await {
        for name in [
            "APIServerPodHealthy",
            "ControllerManagerPodHealthy",
            "SchedulerPodHealthy",
            "EtcdPodHealthy",
            "EtcdMemberHealthy",
        ] {
            assert_eq!(condition(&machine, name).0, "True", "{name}: {:?}", condition(&machine, name));
        }
    }
    cluster.delete().await;
}

#[tokio::test]
async fn an_upgrade_replaces_control_plane_machines_one_by_one_with_a_surge_of_one_and_then_workers() {
    let cluster = Cluster::provisioned("surge", 3, 1).await;
    cluster.settled(3, VERSION).await;
    let before = cluster.names().await;
    let history = History::record(&cluster.objects).await;
    cluster.change(json!({"spec": {"version": NEWER}})).await;
    cluster.settled(3, NEWER).await;
    assert!(cluster.names().await.is_disjoint(&before));
    let counts = control_planes(before, &history.so_far());
    assert!(counts.iter().all(|count| (3..=4).contains(count)), "{counts:?}");
    let pools = "MachineDeployment";
    cluster.objects.merge(pools, "surge-md-0", json!({"spec": {"template": {"spec": {"version": NEWER}}}})).await;
    wait::until("every Node runs the newer version", async || {
        let versions: Vec<String> = cluster
            .nodes()
            .await
            .into_iter()
            // One that has only just registered says nothing of itself yet.
            .map(|node| {
                node.status.and_then(|status| status.node_info).map_or_else(String::new, |info| info.kubelet_version)
            })
            .collect();
        if versions == [NEWER; 4] { Ok(()) } else { Err(format!("{versions:?}")) }
    })
    .await;
    assert_eq!(cluster.workload().await.apiserver_version().await.unwrap().git_version, NEWER);
    cluster.delete().await;
}

#[tokio::test]
async fn an_upgrade_without_surge_never_has_more_machines_than_replicas() {
    let mut cluster = Cluster::new("nosurge", 3, 0).await;
    cluster.sample.document(KCP)["spec"]["rollout"] =
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}});
    cluster.sample.create(&cluster.objects).await;
    cluster.settled(3, VERSION).await;
    let (before, history) = (cluster.names().await, History::record(&cluster.objects).await);
    cluster.change(json!({"spec": {"version": NEWER}})).await;
    cluster.settled(3, NEWER).await;
    let counts = control_planes(before, &history.so_far());
    assert!(counts.iter().all(|count| (2..=3).contains(count)), "{counts:?}");
    cluster.delete().await;
}

#[tokio::test]
async fn a_control_plane_scales_from_one_to_three_to_five_and_back() {
    let cluster = Cluster::provisioned("scale", 1, 0).await;
    for replicas in [3, 5, 3, 1] {
        cluster.change(json!({"spec": {"replicas": replicas}})).await;
        cluster.settled(replicas, VERSION).await;
        assert_eq!(cluster.nodes().await.len(), replicas);
    }
    cluster.delete().await;
}

#[tokio::test]
async fn a_lost_member_is_replaced_and_a_lost_quorum_is_only_told() {
    let cluster = Cluster::provisioned("lost", 3, 0).await;
    cluster.settled(3, VERSION).await;
    cluster.check_health().await;
    let before = cluster.names().await;
    let victim = before.first().unwrap().clone();
    cluster.faults().inject(&Fault::node(&victim, NodeFault::Silent)).await.expect("the fault is taken");
    wait::until("the lost machine is replaced", async || {
        let names = cluster.names().await;
        if names.contains(&victim) || names.len() != 3 { Err(format!("{names:?}")) } else { Ok(()) }
    })
    .await;
    cluster.settled(3, VERSION).await;

    let names = cluster.names().await;
    for name in names.iter().take(2) {
        cluster.faults().inject(&Fault::node(name, NodeFault::EtcdLost)).await.expect("the fault is taken");
        cluster.faults().inject(&Fault::node(name, NodeFault::Silent)).await.expect("the fault is taken");
    }
    wait::until("the loss is told", async || {
        let plane = cluster.objects.get(KCP, &cluster.plane).await;
        if is(&plane, "Available") { Err(plane["status"]["conditions"].to_string()) } else { Ok(()) }
    })
    .await;
    let remaining = async || cluster.names().await;
    assert_eq!(wait::unchanged("who is there without a quorum", Duration::from_secs(4), remaining).await, names);
    cluster.faults().lift_all().await.ok();
    cluster.delete().await;
}

#[tokio::test]
async fn deleting_in_the_midst_of_creation_scaling_and_a_rollout_leaves_nothing() {
    let cluster = Cluster::new("midst", 3, 2).await;
    cluster.sample.create(&cluster.objects).await;
    wait::until("the first machines are there", async || match cluster.objects.names("Machine").await {
        names if names.len() >= 2 => Ok(()),
        names => Err(format!("{names:?}")),
    })
    .await;
    cluster.delete().await;
    for (name, patch) in
        [("midst-scale", json!({"spec": {"replicas": 5}})), ("midst-rollout", json!({"spec": {"version": NEWER}}))]
    {
        let cluster = Cluster::provisioned(name, 3, 1).await;
        cluster.settled(3, VERSION).await;
        cluster.change(patch).await;
        wait::until("a fourth machine is there", async || match cluster.names().await {
            names if names.len() > 3 => Ok(()),
            names => Err(format!("{names:?}")),
        })
        .await;
        cluster.delete().await;
    }
}

/// Kinds of a cluster's objects from which something is taken away.
const STRIPPED: [&str; 11] = [
    "Cluster",
    "MachineDeployment",
    "MachineSet",
    "Machine",
    "KubeadmControlPlane",
    "KubeadmConfig",
    "KubeadmConfigTemplate",
    "DockerCluster",
    "DockerMachine",
    "DockerMachineTemplate",
    "Secret",
];

/// Upstream's end-to-end tests do the same, one kind after the other.
#[tokio::test]
async fn owners_labels_and_finalizers_that_are_taken_from_everything_come_back_and_nothing_is_left_at_the_end() {
    let cluster = Cluster::provisioned("stripped", 1, 2).await;
    cluster.settled(1, VERSION).await;
    let objects = &cluster.objects;
    let all = async || {
        let mut all = BTreeMap::new();
        for kind in STRIPPED {
            let found = objects.list(kind).await;
            all.extend(found.into_iter().map(|object| ((kind, name_of(&object).to_owned()), object)));
        }
        all
    };
    let before = all().await;
    assert!(before.keys().filter(|(kind, _)| *kind == "Secret").count() >= 8, "{:?}", before.keys());
    for (kind, name) in before.keys() {
        let nothing = json!({"ownerReferences": null, "labels": null, "finalizers": null});
        objects.merge(kind, name, json!({"metadata": nothing})).await;
    }
    for config in before.keys().filter(|(kind, _)| *kind == "KubeadmConfig") {
        let edited = Patch::Merge(json!({"status": {"dataSecretName": "stripped-ca"}}));
        objects.api("KubeadmConfig").patch_status(&config.1, &PatchParams::default(), &edited).await.expect("a status");
    }
    wait::until("all is as it was", async || {
        let now = all().await;
        let wrong: Vec<String> = before
            .iter()
            .flat_map(|(key, before)| match now.get(key) {
                Some(now) => lost(before, now).into_iter().map(|what| format!("{key:?}: {what}")).collect(),
                None => vec![format!("{key:?} is gone")],
            })
            .chain(now.keys().filter(|key| !before.contains_key(*key)).map(|key| format!("{key:?} is new")))
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    })
    .await;
    cluster.settled(1, VERSION).await;
    assert_eq!(objects.names("Machine").await.len(), 3);
    let objects = cluster.objects.clone();
    cluster.delete().await;
    wait::until("nothing is left", async || {
        let mut left = Vec::new();
        for kind in STRIPPED {
            left.extend(objects.names(kind).await.into_iter().map(|name| format!("{kind} {name}")));
        }
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await;
}

/// What an object had before and has no more.
fn lost(before: &Value, now: &Value) -> Vec<String> {
    let owners = |object: &Value| -> BTreeSet<String> {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.iter().map(|owner| format!("{} {} {}", owner["kind"], owner["uid"], owner["controller"])).collect()
    };
    let mut lost = Vec::new();
    if text(before, "/metadata/uid") != text(now, "/metadata/uid") {
        lost.push("it is another one".to_owned());
    }
    if owners(before) != owners(now) {
        lost.push(format!("owned by {:?}, before by {:?}", owners(now), owners(before)));
    }
    if before["metadata"]["finalizers"] != now["metadata"]["finalizers"] {
        lost.push(format!("finalizers {}", now["metadata"]["finalizers"]));
    }
    if before["status"]["dataSecretName"] != now["status"]["dataSecretName"] {
        lost.push(format!("dataSecretName {}", now["status"]["dataSecretName"]));
    }
    let of_core = text(before, "/apiVersion").starts_with("cluster.x-k8s.io/");
    for (label, value) in before["metadata"]["labels"].as_object().into_iter().flatten() {
        if now["metadata"]["labels"].get(label) != Some(value) && (of_core || label == "cluster.x-k8s.io/cluster-name")
        {
            lost.push(format!("no label {label}"));
        }
    }
    lost
}

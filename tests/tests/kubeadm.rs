//! The real kubeadm as judge of what the providers write: `kubeadm config validate` of the oldest and newest versions, and real
//! control planes that it makes of our bootstrap data: they grow and shrink, are upgraded, and lose a machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use capwasm_etcd::{Client as Etcd, Credentials};
use capwasm_sim_service::docker::Docker;
use capwasm_tests::engine::Engine;
use capwasm_tests::folder::Folder;
use capwasm_tests::history::{History, control_planes};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{CONTROL_PLANE_LABEL, Objects, condition, is, is_control_plane, name_of, text};
use capwasm_tests::real::{self, NEWER, OLDER, Release};
use capwasm_tests::sample::Sample;
use capwasm_tests::{binary, skip, wait};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};

const KCP: &str = "KubeadmControlPlane";
/// One real cluster at a time is enough for a small machine.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Removes the containers of a cluster when it is dropped, however the test ends.
struct Containers {
    cluster: &'static str,
}

impl Drop for Containers {
    fn drop(&mut self) {
        let listed = Command::new("docker")
            .args(["ps", "--all", "--quiet", "--filter"])
            .arg(format!("label=io.x-k8s.kind.cluster={}", self.cluster))
            .output();
        for container in String::from_utf8_lossy(&listed.map(|out| out.stdout).unwrap_or_default()).lines() {
            let _ = Command::new("docker").args(["rm", "--force", "--volumes", container]).output();
        }
    }
}

/// A cluster in containers whose control plane is real.
struct Cluster {
    objects: Objects,
    sample: Sample,
    plane: String,
    engine: Engine,
    // Dropped in this order: whoever makes containers ends before they are removed.
    _management: Management,
    _containers: Containers,
    _alone: MutexGuard<'static, ()>,
}

impl Cluster {
    /// A cluster of the first of the releases, with an image of each. Images are chosen by version alone. None where it cannot
    /// be made; `test` is told to be skipped then.
    async fn provisioned(
        test: &str,
        name: &'static str,
        releases: &[&Release],
        (control_planes, workers): (usize, usize),
        change: impl FnOnce(&mut Sample),
    ) -> Option<Cluster> {
        if !skip::docker(test) {
            return None;
        }
        let alone = ALONE.lock().await;
        let docker = Docker::unix(skip::DOCKER_SOCKET);
        for release in releases {
            if !release.load(&docker, test).await {
                return None;
            }
        }
        let version = releases.first()?.version;
        let management = Management::start_on_docker(version);
        let objects = management.objects(name).await;
        let image = format!("{}:{{version}}", real::REPOSITORY);
        let provider = json!({"spec": {"configuration": {"images": {"node": image}}}});
        let generation =
            objects.merge("WasmProvider", "docker-infra", provider).await["metadata"]["generation"].clone();
        objects
            .until("WasmProvider", "docker-infra", "it has its images", |provider| {
                provider["status"]["observedGeneration"] == generation && is(provider, "Ready")
            })
            .await;
        let mut sample = Sample::of(version, name, control_planes, workers);
        change(&mut sample);
        let cluster = Cluster {
            plane: format!("{name}-control-plane"),
            engine: Engine::on(Path::new(skip::DOCKER_SOCKET)),
            _containers: Containers { cluster: name },
            _management: management,
            _alone: alone,
            objects,
            sample,
        };
        cluster.sample.create(&cluster.objects).await;
        cluster.sample.provisioned(&cluster.objects).await;
        cluster.settled(control_planes, version).await;
        Some(cluster)
    }

    async fn change(&self, patch: Value) {
        self.objects.merge(KCP, &self.plane, patch).await;
    }

    /// Names of the control-plane Machines, which are those of their Nodes, containers and members of etcd.
    async fn names(&self) -> BTreeSet<String> {
        let mut machines = self.objects.list("Machine").await;
        machines.retain(is_control_plane);
        machines.iter().map(|machine| name_of(machine).to_owned()).collect()
    }

    /// Waits until there are just so many control-plane Machines, all of a version, and all is well.
    async fn settled(&self, replicas: usize, version: &str) -> BTreeSet<String> {
        let conditions =
            ["Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "MachinesReady", "MachinesUpToDate"];
        wait::until(&format!("{} settles at {replicas} of {version}", self.plane), async || {
            let plane = self.objects.get(KCP, &self.plane).await;
            let mut machines = self.objects.list("Machine").await;
            machines.retain(is_control_plane);
            let right = machines.len() == replicas
                && machines.iter().all(|machine| text(machine, "/spec/version") == version && is(machine, "Available"))
                && plane["status"]["replicas"] == replicas
                && plane["status"]["upToDateReplicas"] == replicas
                && plane["status"]["availableReplicas"] == replicas
                && conditions.iter().all(|name| is(&plane, name));
            if right { Ok(()) } else { Err(format!("{} Machines, {}", machines.len(), plane["status"])) }
        })
        .await;
        self.names().await
    }

    /// The workload cluster's client.
    async fn workload(&self) -> kube::Client {
        self.objects.workload(&self.sample.name).await
    }

    /// Names of the Nodes that have the label of a control plane.
    async fn control_plane_nodes(&self) -> BTreeSet<String> {
        let nodes: Api<Node> = Api::all(self.workload().await);
        let of_control_plane = ListParams::default().labels("node-role.kubernetes.io/control-plane");
        let nodes = nodes.list(&of_control_plane).await.unwrap().items;
        nodes.into_iter().map(|node| node.metadata.name.unwrap()).collect()
    }

    /// What kubeadm keeps in the cluster about it.
    async fn cluster_configuration(&self) -> Value {
        let config: Api<ConfigMap> = Api::namespaced(self.workload().await, "kube-system");
        let config = config.get("kubeadm-config").await.unwrap().data.unwrap();
        serde_saphyr::from_str(&config["ClusterConfiguration"]).unwrap()
    }

    /// A connection to the etcd of a machine, with the client certificate that kubeadm made there.
    async fn etcd(&self, machine: &str) -> Etcd {
        let file = async |name: &str| {
            let archive = self.engine.archive(machine, &format!("/etc/kubernetes/pki/etcd/{name}")).await;
            let mut archive = tar::Archive::new(archive.as_slice());
            let mut content = String::new();
            archive.entries().unwrap().next().expect(name).unwrap().read_to_string(&mut content).unwrap();
            content
        };
        let (certificate, key) = (file("healthcheck-client.crt").await, file("healthcheck-client.key").await);
        let credentials = Credentials::new(&file("ca.crt").await, &certificate, &key).unwrap();
        let networks = self.engine.inspect(machine).await["NetworkSettings"]["Networks"].clone();
        let network = networks.as_object().unwrap().values().next().unwrap();
        let stream = TcpStream::connect((text(network, "/IPAddress"), 2379)).await.unwrap();
        Etcd::connect(stream, machine, &credentials).await.unwrap()
    }

    /// Names of the members that have a vote, as a majority agrees on.
    async fn members(&self, asked: &str) -> BTreeSet<String> {
        let members = self.etcd(asked).await.member_list(true).await.unwrap().members;
        members.into_iter().filter(|member| !member.is_learner).map(|member| member.name).collect()
    }

    /// Deletes the cluster; no container is left of it.
    async fn delete(self) {
        self.sample.delete(&self.objects).await;
        assert_eq!(self.objects.names("Machine").await, Vec::<String>::new());
        assert_eq!(self.engine.containers(&self.sample.name).await, Vec::<String>::new());
    }
}

/// Every combination of fields that the bootstrap provider's example renders is read by the kubeadm of its version.
#[test]
fn the_real_kubeadm_accepts_every_configuration_that_the_bootstrap_provider_writes() {
    let test = "the_real_kubeadm_accepts_every_configuration_that_the_bootstrap_provider_writes";
    let folder = Folder::new();
    let documents = folder.join("documents");
    binary::example("kubeadm-bootstrap", "render", &[documents.to_str().unwrap()]);
    let mut refused = Vec::new();
    for version in ["v1.30", "v1.31", "v1.35", "v1.36"] {
        let Some(kubeadm) = real::kubeadm(version, test) else { return };
        let of_version = |name: &str| name.ends_with(".yaml") && name.contains(&format!(".{version}."));
        let mut judged = 0;
        for entry in std::fs::read_dir(&documents).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if !of_version(&name) {
                continue;
            }
            judged += 1;
            let answer =
                Command::new(&kubeadm).args(["config", "validate", "--config"]).arg(entry.path()).output().unwrap();
            if !answer.status.success() {
                refused.push(format!("{name}: {}", String::from_utf8_lossy(&answer.stderr)));
            }
        }
        assert!(judged >= 60, "only {judged} documents of {version}");
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    // It does judge: what kubeadm does not know is refused.
    let wrong = documents.join("wrong.yaml");
    std::fs::write(
        &wrong,
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration:\n  nome: x\n",
    )
    .unwrap();
    let kubeadm = real::kubeadm("v1.36", test).unwrap();
    assert!(
        !Command::new(kubeadm).args(["config", "validate", "--config"]).arg(&wrong).output().unwrap().status.success()
    );
}

#[tokio::test]
async fn the_real_kubeadm_makes_a_real_control_plane_of_our_bootstrap_data_which_grows_and_shrinks() {
    let test = "the_real_kubeadm_makes_a_real_control_plane_of_our_bootstrap_data_which_grows_and_shrinks";
    let custom_image = |sample: &mut Sample| {
        for document in sample.documents.iter_mut().filter(|document| document["kind"] == "DockerMachineTemplate") {
            document["spec"]["template"]["spec"] = json!({"customImage": NEWER.image()});
        }
    };
    let Some(cluster) = Cluster::provisioned(test, "real", &[&NEWER], (1, 1), custom_image).await else { return };

    // A real API server of the wanted version answers, and kubeadm has written what the control plane rests on.
    let client = cluster.workload().await;
    assert_eq!(client.apiserver_version().await.unwrap().git_version, NEWER.version);
    let config = cluster.cluster_configuration().await;
    assert_eq!(text(&config, "/clusterName"), "real");
    assert_eq!(text(&config, "/kubernetesVersion"), NEWER.version);
    assert_eq!(text(&config, "/networking/podSubnet"), "192.168.0.0/16");
    let info: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-public");
    let info = info.get("cluster-info").await.unwrap().data.unwrap();
    assert!(info.keys().any(|key| key.starts_with("jws-kubeconfig-")), "signed with our token: {info:?}");
    let nodes: Api<Node> = Api::all(client);
    let all = nodes.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 2);
    for node in &all {
        let spec = node.spec.clone().unwrap();
        assert_eq!(spec.provider_id.unwrap(), format!("docker:////{}", node.metadata.name.clone().unwrap()));
        let taints: Vec<String> = spec.taints.unwrap_or_default().into_iter().map(|taint| taint.key).collect();
        assert!(!taints.contains(&"node.cluster.x-k8s.io/uninitialized".to_owned()), "{taints:?}");
    }

    // Real members of etcd join one after the other, and leave again.
    for replicas in [3, 1] {
        cluster.change(json!({"spec": {"replicas": replicas}})).await;
        let names = cluster.settled(replicas, NEWER.version).await;
        assert_eq!(cluster.control_plane_nodes().await, names);
        assert_eq!(cluster.members(names.first().unwrap()).await, names);
    }
    for machine in cluster.objects.list("Machine").await.iter().filter(|machine| is_control_plane(machine)) {
        for name in [
            "APIServerPodHealthy",
            "ControllerManagerPodHealthy",
            "SchedulerPodHealthy",
            "EtcdPodHealthy",
            "EtcdMemberHealthy",
        ] {
            assert_eq!(condition(machine, name).0, "True", "{name}: {:?}", condition(machine, name));
        }
    }
    cluster.delete().await;
}

#[tokio::test]
async fn a_real_control_plane_goes_to_the_next_version_one_machine_after_the_other_and_its_worker_follows() {
    let test = "a_real_control_plane_goes_to_the_next_version_one_machine_after_the_other_and_its_worker_follows";
    let releases = [&OLDER, &NEWER];
    let Some(cluster) = Cluster::provisioned(test, "upgraded", &releases, (3, 1), |_| ()).await else { return };
    let older = cluster.names().await;
    assert_eq!(cluster.workload().await.apiserver_version().await.unwrap().git_version, OLDER.version);
    assert_eq!(text(&cluster.cluster_configuration().await, "/kubernetesVersion"), OLDER.version);

    let history = History::record(&cluster.objects).await;
    cluster.change(json!({"spec": {"version": NEWER.version}})).await;
    for replaced in 1..=3 {
        let what = format!("{replaced} machines of the newer version");
        let up_to_date = |plane: &Value| plane["status"]["upToDateReplicas"] == replaced;
        cluster.objects.until(KCP, &cluster.plane, &what, up_to_date).await;
    }
    let newer = cluster.settled(3, NEWER.version).await;
    assert!(newer.is_disjoint(&older), "every machine was replaced: {newer:?}");
    let counts = control_planes(older, &history.so_far());
    assert!(counts.iter().all(|count| (3..=4).contains(count)), "at most one more: {counts:?}");
    let worker = json!({"spec": {"template": {"spec": {"version": NEWER.version}}}});
    cluster.objects.merge("MachineDeployment", "upgraded-md-0", worker).await;

    let client = cluster.workload().await;
    let nodes: Api<Node> = Api::all(client.clone());
    wait::until("every Node runs the newer version", async || {
        let nodes = nodes.list(&ListParams::default()).await.unwrap().items;
        let version = |node: Node| node.status.unwrap().node_info.unwrap().kubelet_version;
        let versions: Vec<String> = nodes.into_iter().map(version).collect();
        if versions == [NEWER.version; 4] { Ok(()) } else { Err(format!("{versions:?}")) }
    })
    .await;
    assert_eq!(client.apiserver_version().await.unwrap().git_version, NEWER.version);
    assert_eq!(cluster.control_plane_nodes().await, newer);
    assert_eq!(cluster.members(newer.first().unwrap()).await, newer);

    // What later joins and upgrades rest on is of the newer version, too.
    let config = cluster.cluster_configuration().await;
    assert_eq!(text(&config, "/kubernetesVersion"), NEWER.version);
    assert_eq!(config.pointer("/featureGates/ControlPlaneKubeletLocalMode"), None, "a gate that kubeadm has lost");
    let proxy: Api<DaemonSet> = Api::namespaced(client, "kube-system");
    wait::until("kube-proxy follows", async || {
        let proxy = proxy.get("kube-proxy").await.unwrap().spec.template.spec.unwrap();
        let image = proxy.containers[0].image.clone().unwrap_or_default();
        if image.ends_with(&format!("/kube-proxy:{}", NEWER.version)) { Ok(()) } else { Err(image) }
    })
    .await;
    cluster.delete().await;
}

#[tokio::test]
async fn the_machine_that_leads_etcd_is_lost_for_good_and_replaced() {
    let test = "the_machine_that_leads_etcd_is_lost_for_good_and_replaced";
    // Kubernetes gives a silent node up after 50 seconds unless it is told otherwise.
    let impatient = |sample: &mut Sample| {
        sample.document(KCP)["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["controllerManager"] = json!({"extraArgs": [
            {"name": "node-monitor-period", "value": "1s"},
            {"name": "node-monitor-grace-period", "value": "20s"},
        ]});
    };
    let Some(cluster) = Cluster::provisioned(test, "bereft", &[&OLDER], (3, 0), impatient).await else { return };
    let check = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": {"name": "control-plane", "namespace": "bereft"},
        "spec": {
            "clusterName": "bereft",
            "selector": {"matchLabels": {CONTROL_PLANE_LABEL: ""}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 1}]},
        },
    });
    cluster.objects.create(&check).await;
    let before = cluster.names().await;
    let etcd = cluster.etcd(before.first().unwrap()).await;
    let leader = etcd.status().await.unwrap().leader;
    let members = etcd.member_list(true).await.unwrap().members;
    let lost = members.into_iter().find(|member| member.id == leader).unwrap().name;
    assert!(before.contains(&lost));

    cluster.engine.remove(&lost).await;
    wait::until("the lost machine is replaced", async || match cluster.names().await {
        names if names.contains(&lost) || names.len() != 3 => Err(format!("{names:?} without {lost}")),
        _ => Ok(()),
    })
    .await;
    let after = cluster.settled(3, OLDER.version).await;
    assert_eq!(before.difference(&after).collect::<Vec<_>>(), [&lost], "nobody else was replaced");
    assert_eq!(cluster.members(after.first().unwrap()).await, after);
    assert_eq!(cluster.control_plane_nodes().await, after);
    let plane = cluster.objects.get(KCP, &cluster.plane).await;
    assert_eq!(text(&plane, "/status/lastRemediation/machine"), lost);
    cluster.delete().await;
}

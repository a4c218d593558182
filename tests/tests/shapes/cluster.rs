//! A cluster in a namespace of its own on the shared simulator, and what tests ask of it.

use std::collections::BTreeSet;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_sim_service::faults::{Client as Faults, Fault, NodeFault};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, is, name_of, text};
use capwasm_tests::sample::Sample;
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

pub const NEWER: &str = "v1.35.0";

/// Machines of another patch version may join without an upgrade of the control plane.
pub const PATCHED: &str = "v1.34.1";

pub const KCP: &str = "KubeadmControlPlane";
pub const POOL: &str = "MachineDeployment";
pub const CORE: &str = "cluster.x-k8s.io/v1beta2";
pub const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
pub const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

/// A cluster on the shared simulator, and what its user has made besides its manifests.
pub struct Cluster {
    pub management: &'static Management,
    pub objects: Objects,
    pub sample: Sample,
    pub plane: String,
    users: Vec<String>,
    pub external_etcd: bool,
}

impl Cluster {
    pub async fn new(name: &str, control_planes: usize, workers: usize) -> Cluster {
        let management = Management::shared();
        let objects = management.objects(name).await;
        let sample = Sample::new(name, control_planes, workers);
        let plane = format!("{name}-control-plane");
        Cluster { management, objects, sample, plane, users: Vec::new(), external_etcd: false }
    }

    /// The control plane's KubeadmConfigSpec, to be changed before it is created.
    pub fn config(&mut self) -> &mut Value {
        &mut self.sample.document(KCP)["spec"]["kubeadmConfigSpec"]
    }

    pub async fn create(&self) {
        self.sample.create(&self.objects).await;
    }

    pub async fn provisioned(&self) {
        self.create().await;
        self.sample.provisioned(&self.objects).await;
    }

    /// A Secret that is the user's: it stays when the cluster goes.
    pub async fn secret(&mut self, name: &str, kind: &str, data: &[(&str, &str)]) -> Value {
        let data: serde_json::Map<String, Value> =
            data.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect();
        self.users.push(format!("Secret/{name}"));
        let metadata = json!({"name": name, "namespace": self.sample.name});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data});
        self.objects.create(&secret).await
    }

    pub async fn change(&self, patch: Value) {
        self.objects.merge(KCP, &self.plane, patch).await;
    }

    pub async fn machines(&self, control_plane: bool) -> Vec<Value> {
        let mut machines = self.objects.list("Machine").await;
        machines.retain(|machine| is_control_plane(machine) == control_plane);
        machines
    }

    pub async fn names(&self, control_plane: bool) -> BTreeSet<String> {
        self.machines(control_plane).await.iter().map(|machine| name_of(machine).to_owned()).collect()
    }

    /// Waits until there are just so many control-plane Machines of a version, and all is well.
    pub async fn settled(&self, replicas: usize, version: &str) -> BTreeSet<String> {
        wait::until(&format!("{} settles at {replicas} of {version}", self.plane), async || {
            let plane = self.objects.get(KCP, &self.plane).await;
            let machines = self.machines(true).await;
            let is_well = |name: &&str| is(&plane, name) || (self.external_etcd && *name == "EtcdClusterHealthy");
            let conditions = ["Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "MachinesReady"];
            let right = machines.len() == replicas
                && machines.iter().all(|machine| text(machine, "/spec/version") == version && is(machine, "Available"))
                && plane["status"]["upToDateReplicas"] == replicas
                && plane["status"]["observedGeneration"] == plane["metadata"]["generation"]
                && conditions.iter().all(is_well);
            if right { Ok(()) } else { Err(format!("{} Machines, {}", machines.len(), plane["status"])) }
        })
        .await;
        self.names(true).await
    }

    /// Waits until there are just so many workers, all of a version, available, and Nodes.
    pub async fn pool_settled(&self, replicas: usize, version: &str) -> BTreeSet<String> {
        let nodes: Api<Node> = Api::all(self.workload().await);
        wait::until(&format!("{} workers of {version}", replicas), async || {
            let machines = self.machines(false).await;
            let well = machines.iter().filter(|machine| is(machine, "Available")).count();
            let nodes = nodes.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let is_right = |node: &&Node| {
                let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
                let labels = node.metadata.labels.clone().unwrap_or_default();
                !labels.contains_key("node-role.kubernetes.io/control-plane")
                    && info.is_some_and(|info| info.kubelet_version == version)
            };
            let right = nodes.items.iter().filter(is_right).count();
            if (machines.len(), well, right, nodes.items.len()) == (replicas, replicas, replicas, replicas + 1) {
                return Ok(machines.iter().map(|machine| name_of(machine).to_owned()).collect());
            }
            Err(format!("{} Machines, {well} available, {right} Nodes of {}", machines.len(), nodes.items.len()))
        })
        .await
    }

    pub async fn workload(&self) -> kube::Client {
        self.objects.workload(&self.sample.name).await
    }

    /// A file of a container: content, mode and owner.
    pub async fn file(&self, container: &str, path: &str) -> (String, u32, u64) {
        let archive = self.management.engine().archive(container, path).await;
        let mut archive = tar::Archive::new(archive.as_slice());
        let entry = archive.entries().unwrap().next();
        let mut entry = entry.unwrap_or_else(|| panic!("{path} is not in {container}")).unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        (content, entry.header().mode().unwrap() & 0o7777, entry.header().uid().unwrap())
    }

    pub async fn inject(&self, container: &str, fault: NodeFault) {
        let faults = Faults::unix(self.management.data_dir().join("sim.sock"));
        faults.inject(&Fault::node(container, fault)).await.expect("the fault is taken");
    }

    /// A MachineHealthCheck of the Machines with a label.
    pub async fn check_health(&self, label: &str, value: &str, checks: Value) {
        let name = &self.sample.name;
        self.objects
            .create(&json!({
                "apiVersion": CORE, "kind": "MachineHealthCheck", "metadata": {"name": "check", "namespace": name},
                "spec": {"clusterName": name, "selector": {"matchLabels": {label: value}}, "checks": checks},
            }))
            .await;
    }

    /// Deletes the cluster: neither containers nor objects are left of it, but those of its user.
    pub async fn delete(self) {
        self.sample.delete(&self.objects).await;
        assert_eq!(self.management.engine().containers(&self.sample.name).await, Vec::<String>::new());
        wait::until(&format!("nothing is left of {}", self.sample.name), async || {
            let all = self.objects.versions().await.into_iter().map(|(object, _)| object);
            let left: Vec<String> = all.filter(|object| !self.users.contains(object)).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        for object in &self.users {
            let (kind, name) = object.split_once('/').unwrap();
            assert!(self.objects.find(kind, name).await.is_some(), "{object} was the user's");
            self.objects.delete(kind, name).await;
        }
    }
}

pub fn is_control_plane(machine: &Value) -> bool {
    machine["metadata"]["labels"].get(CONTROL_PLANE_LABEL).is_some()
}

/// The time so many days from now, RFC 3339 in UTC.
pub fn in_days(days: i64) -> String {
    let now = Timestamp::now() + SignedDuration::from_hours(24 * days);
    format!("{}Z", now.strftime("%Y-%m-%dT%H:%M:%S"))
}

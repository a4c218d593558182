//! The recorded cluster, which the tests of a whole provisioning share.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use capwasm_tests::history::{self, History, Version};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{name_of, owner, text};
use capwasm_tests::sample::{Sample, is_provisioned};
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use serde_json::Value;

pub const CLUSTER: &str = "path";
pub const CONTROL_PLANE: &str = "path-control-plane";
pub const WORKERS: &str = "path-md-0";

/// How long something has to stay as it is to count as steady.
pub const STEADY: Duration = Duration::from_secs(4);

pub type Versions = Vec<(String, String)>;

/// What was seen of the recorded cluster.
pub struct Run {
    pub versions: Vec<Version>,
    /// Revision of the first version of the Cluster: before that, the DockerCluster had no owner.
    pub cluster_created: u64,
    /// Passes of DockerClusters while there was only one without owner, at two moments.
    pub ownerless_passes: (u64, u64),
    pub containers: Vec<String>,
    /// When each container was made, as the engine says.
    pub created: Vec<(String, String)>,
    /// What the engine holds of each machine's kubeadm configuration.
    pub kubeadm_files: Vec<(String, Vec<u8>)>,
    pub events: Vec<(String, String, u64)>,
    pub steady: (Versions, Versions),
    pub nodes: Vec<Node>,
}

/// Provisions the recorded cluster, once for all tests.
pub fn run() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        let provisioned = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(provision()));
        provisioned.join().expect("the recorded cluster is provisioned")
    })
}

async fn provision() -> Run {
    let management = Management::shared();
    let objects = management.objects(CLUSTER).await;
    let history = History::record(&objects).await;
    let mut sample = Sample::new(CLUSTER, 1, 2);
    for infrastructure in sample.take("DockerCluster") {
        objects.create(&infrastructure).await;
    }
    let passes =
        || management.metric("controller_runtime_reconcile_total{controller=\"dockercluster\",result=\"success\"}");
    wait::until(
        "the ownerless DockerCluster was looked at",
        async || if passes() > 0 { Ok(()) } else { Err(String::new()) },
    )
    .await;
    let before = passes();
    wait::unchanged("an ownerless DockerCluster", STEADY / 2, async || objects.versions().await).await;
    let ownerless_passes = (before, passes());

    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let engine = management.engine();
    let containers = engine.containers(CLUSTER).await;
    let (mut created, mut kubeadm_files) = (Vec::new(), Vec::new());
    for container in &containers {
        created.push((container.clone(), text(&engine.inspect(container).await, "/Created").to_owned()));
        let mut files = engine.archive(container, "/run/kubeadm/kubeadm.yaml").await;
        files.extend(engine.archive(container, "/run/kubeadm/kubeadm-join-config.yaml").await);
        kubeadm_files.push((container.clone(), files));
    }
    let versions = history.complete(&objects).await;
    let nodes: Api<Node> = Api::all(objects.workload(CLUSTER).await);
    let nodes = nodes.list(&ListParams::default()).await.expect("the workload API answers over TLS").items;
    // The nodes' heartbeats and the last conditions that follow from them settle first: a change that nobody hurries for waits a second,
    // and the status that it makes another one.
    let first = wait::until("nothing is written any more", async || {
        let before = objects.versions().await;
        tokio::time::sleep(STEADY * 3 / 4).await;
        if before == objects.versions().await { Ok(before) } else { Err("something was written".to_owned()) }
    })
    .await;
    tokio::time::sleep(STEADY).await;
    let steady = (first, objects.versions().await);
    let cluster_created = history::of(&versions, "Cluster", CLUSTER)[0].revision;
    let events = objects.events("Cluster", CLUSTER).await;
    Run { versions, cluster_created, ownerless_passes, containers, created, kubeadm_files, events, steady, nodes }
}

impl Run {
    pub fn first(&self, kind: &str, name: &str, is: impl Fn(&Value) -> bool) -> &Version {
        history::first(&self.versions, kind, name, is)
    }

    pub fn last(&self, kind: &str, name: &str) -> &Value {
        &history::of(&self.versions, kind, name)
            .last()
            .unwrap_or_else(|| panic!("there never was {kind} {name}"))
            .object
    }

    /// The objects of a kind, each in its last version.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        let names: BTreeSet<&str> =
            self.versions.iter().filter(|seen| seen.kind == kind).map(|seen| name_of(&seen.object)).collect();
        names.into_iter().map(|name| self.last(kind, name)).collect()
    }

    pub fn machines_of_workers(&self) -> Vec<&Value> {
        self.all("Machine").into_iter().filter(|machine| owner(machine, "MachineSet").is_some()).collect()
    }

    pub fn infrastructure_provisioned(&self) -> u64 {
        self.first("DockerCluster", CLUSTER, is_provisioned).revision
    }
}

pub fn endpoint(object: &Value) -> Option<(String, i64)> {
    let endpoint = object.pointer("/spec/controlPlaneEndpoint")?;
    let (host, port) = (text(endpoint, "/host"), endpoint["port"].as_i64()?);
    (!host.is_empty() && port > 0).then(|| (host.to_owned(), port))
}

pub fn has_finalizer(object: &Value) -> bool {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty())
}

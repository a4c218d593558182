//! Connections, from the first that is wanted to the last reader.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use capwasm_reconcile::{
    Action, ClusterId, Manager, ManagerOptions, Metrics, Operation, Pass, Plan, ReconcileError, Reconciler, Selector,
    Workloads, cache::node_kind,
};
use capwasm_remote::{
    NotConnected, Remote, Workload,
    connector::{ConnectError, Connector},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{CLUSTERS, WorkloadServer, World, id, send, until};

fn because(reason: &'static str) -> impl Fn(&Result<(Workload, usize), NotConnected>) -> bool {
    move |result| matches!(result, Err(error) if error.reason == reason)
}

fn with_nodes(count: usize) -> impl Fn(&Result<(Workload, usize), NotConnected>) -> bool {
    move |result| matches!(result, Ok((_, nodes)) if *nodes == count)
}

/// Every step is seen by a reader that looks only when it is woken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_are_woken_by_connection_nodes_rotation_and_loss() {
    let world = World::start().await;
    let (first, second) = (WorkloadServer::start("first").await, WorkloadServer::start("second").await);
    world.passes_until("no Cluster", because("ClusterGone")).await;
    world.add_cluster().await;
    world.passes_until("no kubeconfig", because("KubeconfigMissing")).await;
    assert!(world.remote.cache(&id()).await.is_err());
    world.set_kubeconfig("users: [{name: u, user: {exec: {command: id}}}]").await;
    world.passes_until("a kubeconfig that runs programs", because("KubeconfigInvalid")).await;
    world.set_kubeconfig(&first.kubeconfig).await;
    world.passes_until("connected", with_nodes(0)).await;
    assert_eq!(world.remote.count(), (1, 1));
    first.add_node("n1").await;
    world.passes_until("a node", with_nodes(1)).await;
    let (workload, _) = world.pass().await.unwrap();
    let kind = workload.cache().kind("", "ConfigMap").await.unwrap();
    assert!(workload.cache().get(&kind, "default", "absent").await.unwrap().is_none());
    assert_eq!(workload.cache().watch_count(), 1, "only nodes are watched");
    let probed = workload.last_probe();
    until("another probe", || async { workload.last_probe() > probed }).await;
    assert_eq!(first.connections.load(Ordering::SeqCst), 1, "watch, reads and probes share one connection");
    world.set_kubeconfig(&second.kubeconfig).await;
    world.passes_until("the other server has no nodes", with_nodes(0)).await;
    second.stop.cancel();
    second.server.shutdown().await;
    world
        .passes_until(
            "lost",
            |result| matches!(result, Err(error) if error.last_probe.is_some() && error.reason != "Connecting"),
        )
        .await;
    world.set_kubeconfig(&first.kubeconfig).await;
    world.passes_until("back on the first", with_nodes(1)).await;
    first.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_ends_with_its_cluster_or_its_last_reader() {
    let world = World::start().await;
    let server = WorkloadServer::start("w").await;
    world.add_cluster().await;
    world.set_kubeconfig(&server.kubeconfig).await;
    world.passes_until("connected", with_nodes(0)).await;
    send(&world.client, "DELETE", &format!("{CLUSTERS}/c"), None).await.unwrap();
    world.passes_until("gone", because("ClusterGone")).await;
    assert_eq!(world.remote.count(), (0, 1));
    world.add_cluster().await;
    world.passes_until("connected again", with_nodes(0)).await;
    world.interests.unregister(world.reader);
    until("freed", || async { world.remote.count() == (0, 0) }).await;
    until("nothing is read for it", || async { world.interests.is_empty() }).await;
    server.stop.cancel();
}

/// Creates a ConfigMap in the workload cluster of each Cluster.
struct Installer(Remote);

#[async_trait::async_trait]
impl Reconciler for Installer {
    fn name(&self) -> &str {
        "installer"
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let cluster = ClusterId::new(&pass.key.namespace, &pass.key.name);
        let mut desired = Value::clone(&pass.object);
        let mut plan = Plan::nothing();
        match self.0.connect(pass.view, &cluster).await {
            Ok(workload) => {
                let nodes = workload.view(pass.view).list(&node_kind(), None, &Selector::everything()).await?;
                desired["spec"]["nodes"] = json!(nodes.len());
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"namespace": "kube-system", "name": "installed"}});
                plan.operations.push(Operation::workload("install", &cluster, Action::Create(object)));
            }
            Err(error) => desired["spec"]["why"] = json!(error.reason),
        }
        Ok(Plan { desired: Some(desired), ..plan })
    }
}

/// Plans write to workload clusters through the same connection, and nodes wake the keys that listed them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_reach_the_workload_cluster() {
    let world = World::start().await;
    let server = WorkloadServer::start("w").await;
    let manager = Manager::new(
        world.cache.clone(),
        world.interests.clone(),
        Arc::new(world.remote.clone()),
        Arc::new(Metrics::unregistered()),
        ManagerOptions::default(),
    );
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (manager, stop) = (manager.clone(), stop.clone());
        async move { manager.run(stop).await }
    });
    let clusters = world.cache.kind("cluster.x-k8s.io", "Cluster").await.unwrap();
    manager.add(clusters, Arc::new(Installer(world.remote.clone())), 2);
    world.add_cluster().await;
    let spec = |field: &'static str| {
        let client = world.client.clone();
        async move { send(&client, "GET", &format!("{CLUSTERS}/c"), None).await.unwrap()["spec"][field].clone() }
    };
    until("no kubeconfig", || async { spec("why").await == "KubeconfigMissing" }).await;
    world.set_kubeconfig(&server.kubeconfig).await;
    until("connected", || async { spec("nodes").await == 0 }).await;
    let installed = "/api/v1/namespaces/kube-system/configmaps/installed";
    until("installed", || async { send(&server.client, "GET", installed, None).await.is_ok() }).await;
    server.add_node("n").await;
    until("the node is seen", || async { spec("nodes").await == 1 }).await;
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(10), running).await.expect("drained").unwrap();
    server.stop.cancel();
}

/// Load balancer of API servers: each connection leads to the next server, any of which can lose its etcd.
struct Balancer {
    servers: Vec<(kube::Client, Arc<AtomicBool>)>,
    connections: AtomicUsize,
}

impl Balancer {
    fn new(servers: &[&WorkloadServer]) -> Arc<Self> {
        let servers = servers.iter().map(|server| (server.client.clone(), Arc::default())).collect();
        Arc::new(Self { servers, connections: AtomicUsize::new(0) })
    }

    fn set_unready(&self, server: usize, unready: bool) {
        self.servers[server].1.store(unready, Ordering::SeqCst);
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Connector for Balancer {
    async fn connect(&self, _: &ClusterId, _: &[u8]) -> Result<kube::Client, ConnectError> {
        let turn = self.connections.fetch_add(1, Ordering::SeqCst);
        let (client, unready) = self.servers[turn % self.servers.len()].clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (client, unready) = (client.clone(), unready.clone());
            async move {
                if request.uri().path() == "/readyz" && unready.load(Ordering::SeqCst) {
                    let body = kube::client::Body::from(b"[-]etcd failed".to_vec());
                    return Ok(http::Response::builder().status(500).body(body).unwrap());
                }
                client.send(request).await
            }
        });
        Ok(kube::Client::new(service, "default"))
    }
}

/// Two API servers of one cluster: `n1` is known to the first only, so that it is seen which one is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_to_an_api_server_that_is_not_ready_makes_place_for_one_that_is() {
    let (first, second) = (WorkloadServer::start("first").await, WorkloadServer::start("second").await);
    first.add_node("n1").await;
    let balancer = Balancer::new(&[&first, &second]);
    let world = World::with(balancer.clone()).await;
    world.add_cluster().await;
    world.set_kubeconfig("any").await;
    world.passes_until("connected to the first", with_nodes(1)).await;
    balancer.set_unready(0, true);
    world.passes_until("connected to the second", with_nodes(0)).await;
    let (workload, _) = world.pass().await.unwrap();
    let (probed, connections) = (workload.last_probe(), balancer.connections());
    until("more probes", || async { workload.last_probe() > probed }).await;
    assert_eq!(balancer.connections(), connections, "it is ready, and nothing better is looked for");
    balancer.set_unready(0, false);
    balancer.set_unready(1, true);
    world.passes_until("back on the first", with_nodes(1)).await;
    first.stop.cancel();
    second.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_api_server_is_kept_although_it_is_not_ready() {
    let server = WorkloadServer::start("sole").await;
    let balancer = Balancer::new(&[&server]);
    balancer.set_unready(0, true);
    let world = World::with(balancer.clone()).await;
    world.add_cluster().await;
    world.set_kubeconfig("any").await;
    world.passes_until("connected", with_nodes(0)).await;
    let (workload, _) = world.pass().await.unwrap();
    let connections = balancer.connections();
    until("a better one was looked for, in vain", || async { balancer.connections() >= connections + 3 }).await;
    let probed = workload.last_probe();
    until("it is probed", || async { workload.last_probe() > probed }).await;
    assert_eq!(world.remote.count(), (1, 1));
    server.add_node("n1").await;
    world.passes_until("it is read", with_nodes(1)).await;
    server.stop.cancel();
}

//! Failures on request, of nodes and of the engine's own API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_sim_engine::SimOptions;
use capwasm_sim_engine::testing::*;
use capwasm_sim_node::testing::*;
use capwasm_sim_service::faults::{CallFault, Client, Fault, Faults, NodeFault};
use http::Method;
use serde_json::{Value, json};

async fn start(directory: &std::path::Path) -> (Sim, Faults, Client) {
    let socket = directory.join("docker.sock");
    let mut options = SimOptions::new(&socket, directory.join("data"));
    options.node_grace = Duration::from_millis(300);
    let faults = options.faults.clone();
    let sim = Sim::run(options).await;
    prepare(&sim.docker).await;
    (sim, faults, Client::unix(socket))
}

async fn node_ready(client: &kube::Client, name: &str) -> String {
    get(client, &format!("/api/v1/nodes/{name}")).await.map(|node| condition(&node, "Ready")).unwrap_or_default()
}

async fn pod_ready(client: &kube::Client, name: &str) -> String {
    let found = get(client, &format!("/api/v1/namespaces/kube-system/pods/{name}")).await;
    found.map(|pod| condition(&pod, "Ready")).unwrap_or_default()
}

#[tokio::test]
async fn nodes_fail_and_recover_as_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (sim, faults, client) = start(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let admin = certificates.admin(&endpoint);

    // A component that is not healthy; over the socket.
    let scheduler = || pod_ready(&admin, "kube-scheduler-c-cp-1");
    let id = client.inject(&Fault::node("c-cp-1", NodeFault::Unhealthy("kube-scheduler".into()))).await.unwrap();
    assert_eq!(client.list().await.unwrap().len(), 1);
    until("the scheduler fails", scheduler, |ready| ready == "False").await;
    client.lift(&id).await.unwrap();
    assert!(client.lift(&id).await.is_err());
    until("the scheduler recovers", scheduler, |ready| ready == "True").await;

    // A node that says that it is not ready, and one that says nothing; in process.
    let own = || node_ready(&admin, "c-cp-1");
    let id = faults.inject(Fault::node("c-cp-1", NodeFault::NotReady));
    until("the node is not ready", own, |ready| ready == "False").await;
    faults.lift(&id);
    until("the node is ready", own, |ready| ready == "True").await;
    let id = faults.inject(Fault::node("c-cp-1", NodeFault::Silent));
    until("the node is unknown", own, |ready| ready == "Unknown").await;
    faults.lift(&id);
    until("the node speaks", own, |ready| ready == "True").await;
    let taints =
        || async { get(&admin, "/api/v1/nodes/c-cp-1").await.unwrap()["spec"]["taints"].as_array().unwrap().len() };
    until("only the taint of its role is left", taints, |taints| *taints == 1).await;

    // The API server dies and comes back.
    let id = faults.inject(Fault::node("c-cp-1", NodeFault::Unhealthy("kube-apiserver".into())));
    let version = || get(&admin, "/version");
    let _ = until("the API server is gone", version, Result::is_err).await;
    faults.lift(&id);
    let _ = until("the API server is back", version, Result::is_ok).await;
    sim.stop().await;
}

#[tokio::test]
async fn bootstraps_hang_fail_and_take_their_time() {
    let directory = tempfile::tempdir().unwrap();
    let (sim, faults, _) = start(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;

    // By the container's label, as a provider sets it.
    let body = json!({
        "Image": format!("kindest/node:{VERSION}"), "Hostname": "w-1", "HostConfig": { "NetworkMode": "kind" },
        "Labels": { "capwasm.dev/simulate": "slow-start=5..20, fail-bootstrap" },
    });
    call(docker, Method::POST, "/containers/create?name=w-1", body).await;
    capwasm_sim_node::testing::start(docker, "w-1").await;
    let (code, output) = join_worker(docker, "w-1", &endpoint, &certificates).await;
    assert_eq!(code, 1);
    assert!(output.contains("simulated failure"), "{output}");

    node(docker, "w-2", VERSION).await;
    let id = faults.inject(Fault::node("w-2", NodeFault::NeverJoin));
    let config = join_config(&endpoint, TOKEN, &certificates.hash(), false);
    put(docker, "w-2", &[("/run/kubeadm/kubeadm-join-config.yaml", &config)]).await;
    let exec = begin(docker, "w-2", "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml").await;
    let found = call(docker, Method::GET, "/containers/w-2/json", Value::Null).await;
    assert_eq!(found["ExecIDs"], json!([exec]));
    faults.lift(&id);
    assert_eq!(finished(docker, &exec).await, 0);
    assert_eq!(call(docker, Method::GET, "/containers/w-2/json", Value::Null).await["ExecIDs"], Value::Null);
    sim.stop().await;
}

#[tokio::test]
async fn a_node_that_is_silent_from_its_start_on_becomes_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let (sim, _, _) = start(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let body = json!({
        "Image": format!("kindest/node:{VERSION}"), "Hostname": "w-1", "HostConfig": { "NetworkMode": "kind" },
        "Labels": { "capwasm.dev/simulate": "silent" },
    });
    call(docker, Method::POST, "/containers/create?name=w-1", body).await;
    capwasm_sim_node::testing::start(docker, "w-1").await;
    let (code, output) = join_worker(docker, "w-1", &endpoint, &certificates).await;
    assert_eq!(code, 0, "{output}");
    let admin = certificates.admin(&endpoint);
    until("the node is unknown", || node_ready(&admin, "w-1"), |ready| ready == "Unknown").await;
    sim.stop().await;
}

#[tokio::test]
async fn a_member_of_etcd_that_lost_its_data_does_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let (sim, faults, _) = start(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let first = address(docker, "c-cp-1").await;
    add_control_planes(docker, &["c-cp-2", "c-cp-3"], &endpoint, &certificates).await;
    let admin = certificates.admin(&format!("{first}:6443"));
    let etcd = || pod_ready(&admin, "etcd-c-cp-3");
    until("the member is well", etcd, |ready| ready == "True").await;
    let id = faults.inject(Fault::node("c-cp-3", NodeFault::EtcdLost));
    until("the member is not well", etcd, |ready| ready == "False").await;
    until("nor is its API server", || pod_ready(&admin, "kube-apiserver-c-cp-3"), |ready| ready == "False").await;
    faults.lift(&id);
    call(docker, Method::POST, "/containers/c-cp-3/restart", Value::Null).await;
    until("the node is back", || node_ready(&admin, "c-cp-3"), |ready| ready == "True").await;
    assert_eq!(etcd().await, "False");
    sim.stop().await;
}

#[tokio::test]
async fn calls_of_the_engine_go_wrong_as_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (sim, faults, client) = start(directory.path()).await;
    let docker = &sim.docker;
    let volume = json!({ "Name": "v", "Labels": { "a": "b" } });
    let fault =
        CallFault { method: "POST".into(), path: "/volumes/create".into(), count: Some(2), ..CallFault::status(503) };
    client.inject(&Fault::Call(fault)).await.unwrap();
    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.push(code(docker, Method::POST, "/volumes/create", volume.clone()).await);
    }
    assert_eq!(codes, [503, 503, 201]);

    // An answer that is lost, of a call that took effect.
    faults.inject(Fault::Call(CallFault {
        method: "DELETE".into(),
        takes_effect: true,
        count: Some(1),
        ..CallFault::status(0)
    }));
    assert!(docker.send(Method::DELETE, "/v1.41/volumes/v", "", "").await.is_err());
    assert_eq!(code(docker, Method::GET, "/volumes/v", Value::Null).await, 404);

    faults.inject(Fault::Call(CallFault { path: "/info".into(), share: Some(0.5), ..CallFault::status(500) }));
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(code(docker, Method::GET, "/info", Value::Null).await);
    }
    assert_eq!(codes, [200, 500, 200, 500]);
    client.lift_all().await.unwrap();
    assert_eq!(code(docker, Method::GET, "/info", Value::Null).await, 200);
    assert_eq!(code(docker, Method::POST, "/../capwasm/faults", json!({ "nonsense": 1 })).await, 404);
    let (status, _) =
        docker.send(Method::POST, "/capwasm/faults", "application/json", r#"{"nonsense":1}"#).await.unwrap();
    assert_eq!(status, 400);
    sim.stop().await;
}

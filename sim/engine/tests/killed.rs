//! An engine that is killed at any moment and started again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use capwasm_sim_engine::SimOptions;
use capwasm_sim_node::testing::*;
use capwasm_sim_service::docker::Docker;
use http::Method;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const DIRECTORY: &str = "CAPWASM_SIM_TEST_DIRECTORY";

/// Not a test by itself: the engine as a process of its own, when the test below starts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let options = SimOptions::new(Path::new(&directory).join("docker.sock"), Path::new(&directory).join("data"));
    capwasm_sim_engine::run(options, CancellationToken::new()).await.unwrap();
}

async fn spawn(directory: &Path, docker: &Docker) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "engine_process", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while docker.json(Method::GET, "/_ping", &Value::Null).await.is_err() {
        assert!(Instant::now() < deadline, "the engine did not come up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_comes_back_with_running_containers_and_finishes_interrupted_execs() {
    let directory = tempfile::tempdir().unwrap();
    let docker = Docker::unix(directory.path().join("docker.sock"));
    let child = spawn(directory.path(), &docker).await;
    prepare(&docker).await;
    let certificates = Certificates::generate();
    let endpoint = cluster(&docker, "c", &certificates).await;
    create(&docker, "c-w-1", &format!("kindest/node:{VERSION}")).await;
    start(&docker, "c-w-1").await;
    put(
        &docker,
        "c-w-1",
        &[("/run/kubeadm/kubeadm-join-config.yaml", &join_config(&endpoint, TOKEN, &certificates.hash(), false))],
    )
    .await;
    let step = "mkdir /once || exit 9\nsleep 1\nmkdir -p /run/cluster-api\nkubeadm join --config /run/kubeadm/kubeadm-join-config.yaml";
    let exec = begin(&docker, "c-w-1", step).await;
    kill(child);

    let child = spawn(directory.path(), &docker).await;
    assert_eq!(finished(&docker, &exec).await, 0, "an interrupted exec runs again as if it had not begun");
    let admin = certificates.admin(&endpoint);
    let nodes = get(&admin, "/api/v1/nodes").await.unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 2);
    kill(child);

    let child = spawn(directory.path(), &docker).await;
    let running = call(&docker, Method::GET, "/containers/json", Value::Null).await;
    assert_eq!(running.as_array().unwrap().len(), 3);
    let nodes = get(&certificates.admin(&endpoint), "/api/v1/nodes").await.unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 2);
    kill(child);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubeadm_ends_well_whenever_the_engine_is_killed_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let docker = Docker::unix(directory.path().join("docker.sock"));
    let mut child = spawn(directory.path(), &docker).await;
    prepare(&docker).await;
    // Moments of an init or a join, which take a few hundred milliseconds; not waits for something.
    for milliseconds in [5, 40, 90, 160, 300] {
        let certificates = Certificates::generate();
        let node = format!("cp-{milliseconds}");
        create(&docker, &node, &format!("kindest/node:{VERSION}")).await;
        let endpoint = format!("{}:6443", start(&docker, &node).await);
        put(&docker, &node, &certificates.with("/run/kubeadm/kubeadm.yaml", &init_config(&endpoint, &node))).await;
        let exec = begin(&docker, &node, "kubeadm init --config /run/kubeadm/kubeadm.yaml >/tmp/log 2>&1").await;
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        kill(child);
        child = spawn(directory.path(), &docker).await;
        let code = finished(&docker, &exec).await;
        assert_eq!(code, 0, "init, killed after {milliseconds} ms: {}", read(&docker, &node, "/tmp/log").await);

        let worker = format!("w-{milliseconds}");
        create(&docker, &worker, &format!("kindest/node:{VERSION}")).await;
        start(&docker, &worker).await;
        let config = join_config(&endpoint, TOKEN, &certificates.hash(), false);
        put(&docker, &worker, &[("/run/kubeadm/kubeadm-join-config.yaml", &config)]).await;
        let exec =
            begin(&docker, &worker, "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml >/tmp/log 2>&1").await;
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        kill(child);
        child = spawn(directory.path(), &docker).await;
        let code = finished(&docker, &exec).await;
        assert_eq!(code, 0, "join, killed after {milliseconds} ms: {}", read(&docker, &worker, "/tmp/log").await);
        let nodes = get(&certificates.admin(&endpoint), "/api/v1/nodes").await.unwrap();
        assert_eq!(nodes["items"].as_array().unwrap().len(), 2);

        // A second member of etcd that is lost halfway must not take the majority along.
        let second = format!("second-{milliseconds}");
        create(&docker, &second, &format!("kindest/node:{VERSION}")).await;
        start(&docker, &second).await;
        let config = join_config(&endpoint, TOKEN, &certificates.hash(), true);
        put(&docker, &second, &certificates.with("/run/kubeadm/kubeadm-join-config.yaml", &config)).await;
        let exec =
            begin(&docker, &second, "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml >/tmp/log 2>&1").await;
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        kill(child);
        child = spawn(directory.path(), &docker).await;
        let code = finished(&docker, &exec).await;
        assert_eq!(code, 0, "second, killed after {milliseconds} ms: {}", read(&docker, &second, "/tmp/log").await);
        let nodes = get(&certificates.admin(&endpoint), "/api/v1/nodes").await.unwrap();
        assert_eq!(nodes["items"].as_array().unwrap().len(), 3);
    }
    kill(child);
}

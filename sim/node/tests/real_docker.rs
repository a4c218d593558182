//! `capwasm-node` inside containers of a real Docker engine, without a registry.
//!
//! Needs an engine on the unix socket of `DOCKER_HOST` (or the usual one) whose bridge networks this machine reaches; says
//! loudly that it was skipped when there is none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::time::Duration;

use capwasm_sim_node::image::{Flavour, load};
use capwasm_sim_node::testing::*;
use capwasm_sim_service::docker::Docker;
use capwasm_test_support::skip;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

const TAG: &str = "v1.34.0-test";

async fn engine() -> Option<Docker> {
    let host = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
    let docker = Docker::unix(host.strip_prefix("unix://")?);
    docker.json(Method::GET, "/version", &Value::Null).await.is_ok().then_some(docker)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_forms_in_containers_of_a_real_docker_engine() {
    const TEST: &str = "a_cluster_forms_in_containers_of_a_real_docker_engine";
    if std::env::var_os("DOCKER_HOST").is_none() && !skip::docker(TEST) {
        return;
    }
    let Some(docker) = engine().await else {
        return skip::skip(TEST, "no Docker engine answers at DOCKER_HOST");
    };
    let binary = Path::new(env!("CARGO_BIN_EXE_capwasm-node"));
    load(&docker, binary, "capwasm/node", TAG, Flavour::Node(VERSION)).await.unwrap();
    load(&docker, binary, "capwasm/haproxy", TAG, Flavour::Balancer).await.unwrap();
    let made_network = code(&docker, Method::GET, "/networks/kind", Value::Null).await == 404;
    if made_network {
        call(&docker, Method::POST, "/networks/create", json!({ "Name": "kind", "CheckDuplicate": true })).await;
    }
    let name = format!("capwasm-test-{}", std::process::id());
    let containers = ["lb", "cp-1", "w-1", "w-2"].map(|part| format!("{name}-{part}"));
    let outcome = tokio::spawn({
        let (docker, name) = (docker.clone(), name.clone());
        async move { form(&docker, &name).await }
    })
    .await;
    if outcome.is_err() {
        for container in &containers {
            let logs = docker
                .send(Method::GET, &format!("/v1.41/containers/{container}/logs?stdout=1&stderr=1"), "", Vec::new())
                .await;
            println!(
                "{container}: {}",
                logs.map(|(_, log)| String::from_utf8_lossy(&log).into_owned()).unwrap_or_default()
            );
        }
    }
    for container in &containers {
        code(&docker, Method::DELETE, &format!("/containers/{container}?force=1&v=1"), Value::Null).await;
    }
    for repository in ["node", "haproxy"] {
        code(&docker, Method::DELETE, &format!("/images/capwasm/{repository}:{TAG}"), Value::Null).await;
    }
    if made_network {
        code(&docker, Method::DELETE, "/networks/kind", Value::Null).await;
    }
    outcome.unwrap();
}

async fn form(docker: &Docker, name: &str) {
    let certificates = Certificates::generate();
    let images = Images { node: format!("capwasm/node:{TAG}"), balancer: format!("capwasm/haproxy:{TAG}") };
    let endpoint = cluster_of(docker, name, &certificates, &images).await;
    let worker = format!("{name}-w-1");
    create(docker, &worker, &images.node).await;
    start(docker, &worker).await;
    put(
        docker,
        &worker,
        &[("/run/kubeadm/kubeadm-join-config.yaml", &join_config(&endpoint, TOKEN, &certificates.hash(), false))],
    )
    .await;
    let (code, output) = sh(docker, &worker, &format!("mkdir -p /run/cluster-api\n{JOIN}")).await;
    assert_eq!(code, 0, "{output}");

    let admin = certificates.admin(&endpoint);
    let nodes = get(&admin, "/api/v1/nodes").await.unwrap();
    let nodes = nodes["items"].as_array().unwrap();
    assert_eq!(nodes.len(), 2);
    for node in nodes {
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], VERSION);
        assert_eq!(node["metadata"]["labels"]["capwasm.dev/simulated"], "true");
    }

    // The static pods of the control-plane node are shown by its process 1.
    let pods = "/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane";
    until(
        "the static pods are ready",
        || get(&admin, pods),
        |pods| {
            pods.as_ref().is_ok_and(|pods| {
                let pods = pods["items"].as_array().unwrap();
                pods.len() == 4 && pods.iter().all(|pod| condition(pod, "Ready") == "True")
            })
        },
    )
    .await
    .unwrap();

    // A node that is to fail does, by its environment.
    let failing = format!("{name}-w-2");
    let body = json!({ "Image": images.node, "Hostname": failing, "HostConfig": { "NetworkMode": "kind" }, "Env": ["CAPWASM_SIMULATE=fail-bootstrap"] });
    call(docker, Method::POST, &format!("/containers/create?name={failing}"), body).await;
    start(docker, &failing).await;
    let (code, output) = sh(docker, &failing, "kubeadm join --config /none").await;
    assert_eq!(code, 1);
    assert!(output.contains("simulated failure"), "{output}");

    // Process 1 of the worker renews its lease over TLS with the certificate that it got.
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{worker}");
    let first = get(&admin, &lease).await.unwrap()["spec"]["renewTime"].clone();
    let deadline = Instant::now() + Duration::from_secs(30);
    while get(&admin, &lease).await.unwrap()["spec"]["renewTime"] == first {
        assert!(Instant::now() < deadline, "no heartbeat");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    // A container that goes without a word is noticed.
    call(docker, Method::POST, &format!("/containers/{worker}/kill?signal=KILL"), Value::Null).await;
    let deadline = Instant::now() + Duration::from_secs(90);
    while condition(&get(&admin, &format!("/api/v1/nodes/{worker}")).await.unwrap(), "Ready") != "Unknown" {
        assert!(Instant::now() < deadline, "the killed node is not noticed");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    // The control plane comes back with its data.
    let node = format!("{name}-cp-1");
    call(docker, Method::POST, &format!("/containers/{node}/stop?t=5"), Value::Null).await;
    let before = start(docker, &node).await;
    put(
        docker,
        &format!("{name}-lb"),
        &[("/usr/local/etc/haproxy/haproxy.cfg", &balancer_config(&[(&node, &before)]))],
    )
    .await;
    call(docker, Method::POST, &format!("/containers/{name}-lb/kill?signal=HUP"), Value::Null).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    while get(&certificates.admin(&endpoint), "/api/v1/nodes").await.is_err() {
        assert!(Instant::now() < deadline, "the API server does not come back");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

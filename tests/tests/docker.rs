//! The whole path on a real Docker engine, with simulated nodes in real containers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;

use capwasm_tests::engine::Engine;
use capwasm_tests::folder::Folder;
use capwasm_tests::{binary, skip};

#[tokio::test]
async fn a_quick_start_on_docker_provisions_a_cluster_and_leaves_no_container() {
    if !skip::docker("a_quick_start_on_docker_provisions_a_cluster_and_leaves_no_container") {
        return;
    }
    let folder = Folder::new();
    let data = folder.join("data");
    let cluster = format!("test-{}", std::process::id());
    let output = binary::run(&[
        "quickstart",
        &cluster,
        "--engine",
        "docker",
        "--simulated-nodes",
        "v1.34.0",
        "--kubernetes-version",
        "v1.34.0",
        "--provider-dir",
        binary::provider_dir().to_str().unwrap(),
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    let engine = Engine::on(Path::new(skip::DOCKER_SOCKET));
    let left = engine.containers(&cluster).await;
    // Docker outlives a failed test; its containers must not.
    for container in &left {
        engine.remove(container).await;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("SIMULATED nodes in Docker containers"), "the user is told plainly: {said}");
    assert_eq!(said.matches("─Machine/").count(), 3, "a tree with every machine: {said}");
    assert_eq!(left, Vec::<String>::new(), "{said}");
}

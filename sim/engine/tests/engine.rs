//! The Docker Engine API of the simulated engine, and what survives a restart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::os::unix::fs::PermissionsExt;

use capwasm_sim_engine::testing::*;
use capwasm_sim_engine::{SimError, SimOptions};
use capwasm_sim_node::testing::*;
use http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn the_engine_says_that_it_is_simulated_and_refuses_as_docker_does() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::start(directory.path()).await;
    let docker = &sim.docker;
    let mode = std::fs::metadata(directory.path().join("docker.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for path in ["/version", "/info"] {
        assert!(
            call(docker, Method::GET, path, Value::Null).await.to_string().contains("capwasm simulated engine"),
            "{path}"
        );
    }
    let pull = |image: &str| format!("/images/create?fromImage={image}&tag=v1");
    assert_eq!(code(docker, Method::POST, &pull("nginx"), Value::Null).await, 404);
    prepare(docker).await;
    let image = format!("kindest/node:{VERSION}");
    assert_eq!(code(docker, Method::GET, "/images/kindest/node:v9.9.9/json", Value::Null).await, 404);
    assert_eq!(code(docker, Method::GET, &format!("/images/{image}/json"), Value::Null).await, 200);
    assert_eq!(code(docker, Method::POST, "/networks/create", json!({ "Name": "kind" })).await, 409);

    let rows = [
        (
            Method::POST,
            "/containers/create?name=aa",
            json!({ "Image": image, "HostConfig": { "NetworkMode": "kind" } }),
            201,
        ),
        (Method::POST, "/containers/create?name=aa", json!({ "Image": image }), 409),
        (Method::POST, "/containers/create?name=bb", json!({ "Image": "kindest/node:none" }), 404),
        (Method::POST, "/containers/create?name=%2Fb%2Fc", json!({ "Image": image }), 400),
        (Method::POST, "/containers/aa/exec", json!({ "Cmd": ["true"] }), 409),
        (Method::POST, "/containers/aa/kill", Value::Null, 409),
        (Method::POST, "/containers/aa/start", Value::Null, 204),
        (Method::POST, "/containers/aa/start", Value::Null, 304),
        (Method::POST, "/containers/none/start", Value::Null, 404),
        (Method::GET, "/containers/aa/archive?path=/none", Value::Null, 404),
        (Method::PUT, "/containers/aa/archive?path=/none", Value::Null, 404),
        (Method::DELETE, "/networks/kind", Value::Null, 403),
        (Method::DELETE, "/containers/aa", Value::Null, 409),
        (Method::POST, "/containers/aa/stop", Value::Null, 204),
        (Method::POST, "/containers/aa/stop", Value::Null, 304),
        (Method::DELETE, "/containers/aa?force=1&v=1", Value::Null, 204),
        (Method::DELETE, "/containers/aa?force=1&v=1", Value::Null, 404),
        (Method::DELETE, "/networks/kind", Value::Null, 204),
        (Method::GET, "/nonsense", Value::Null, 404),
    ];
    for (method, path, body, expected) in rows {
        assert_eq!(code(docker, method.clone(), path, body).await, expected, "{method} {path}");
    }
    sim.stop().await;
}

#[tokio::test]
async fn a_load_balancer_without_configuration_ends_with_a_line_in_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    create(&sim.docker, "lb", "kindest/haproxy:v20230606-42a2262b").await;
    call(&sim.docker, Method::POST, "/containers/lb/start", Value::Null).await;
    let found = call(&sim.docker, Method::GET, "/containers/lb/json", Value::Null).await;
    assert_eq!((&found["State"]["Running"], &found["State"]["ExitCode"]), (&json!(false), &json!(1)));
    let (_, log) = sim
        .docker
        .send(Method::GET, "/v1.41/containers/lb/logs?stdout=1&stderr=1&tail=5", "", Vec::new())
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&log).contains("Could not open configuration file"));
    sim.stop().await;
}

#[tokio::test]
async fn lists_are_filtered_by_label_and_name() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    for name in ["one", "one-more"] {
        create(&sim.docker, name, &format!("kindest/node:{VERSION}")).await;
    }
    let names = |filters: &str| {
        format!(
            "/containers/json?all=1&filters={}",
            filters.replace('"', "%22").replace('{', "%7B").replace('}', "%7D")
        )
    };
    let rows = [
        (r#"{"name":["^/one$"]}"#, 1),
        (r#"{"label":["capwasm.dev/uid=one-more"]}"#, 1),
        (r#"{"status":["running"]}"#, 0),
        (r#"{"name":["one"]}"#, 2),
    ];
    for (filters, expected) in rows {
        let found = call(&sim.docker, Method::GET, &names(filters), Value::Null).await;
        assert_eq!(found.as_array().unwrap().len(), expected, "{filters}");
    }
    sim.stop().await;
}

#[tokio::test]
async fn an_engine_comes_back_with_its_clusters_and_a_second_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::start(directory.path()).await;
    let second = SimOptions::new(directory.path().join("other.sock"), directory.path().join("data"));
    let refused = capwasm_sim_engine::run(second, CancellationToken::new()).await.unwrap_err();
    assert!(matches!(refused, SimError::InUse(_)), "{refused}");
    prepare(&sim.docker).await;
    let certificates = Certificates::generate();
    let endpoint = cluster(&sim.docker, "c", &certificates).await;
    let before = address(&sim.docker, "c-cp-1").await;
    let exec = begin(&sim.docker, "c-cp-1", "mkdir /once || exit 9\nsleep 1\ntest -d /once").await;
    sim.stop().await;

    let sim = Sim::start(directory.path()).await;
    assert_eq!(finished(&sim.docker, &exec).await, 0, "an exec that was broken off runs again");
    assert_eq!(address(&sim.docker, "c-cp-1").await, before);
    assert_eq!(read(&sim.docker, "c-cp-1", "/run/cluster-api/bootstrap-success.complete").await, "success\n");
    let node = get(&certificates.admin(&endpoint), "/api/v1/nodes/c-cp-1").await.unwrap();
    assert_eq!(node["spec"]["providerID"], "docker:////c-cp-1");

    // A stopped control plane answers nobody; started again it is as before.
    call(&sim.docker, Method::POST, "/containers/c-cp-1/stop", Value::Null).await;
    assert!(get(&certificates.admin(&format!("{before}:6443")), "/api/v1/nodes").await.is_err());
    assert_eq!(start(&sim.docker, "c-cp-1").await, before);
    let nodes = get(&certificates.admin(&endpoint), "/api/v1/nodes").await.unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1);
    sim.stop().await;
}

#[tokio::test]
async fn a_removed_container_ends_its_execs_and_leaves_nothing_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    create(&sim.docker, "gone", &format!("kindest/node:{VERSION}")).await;
    let first = start(&sim.docker, "gone").await;
    let exec = begin(&sim.docker, "gone", "echo x > /tmp/x; sleep 3600").await;
    call(&sim.docker, Method::POST, "/containers/gone/kill", Value::Null).await;
    assert_eq!(finished(&sim.docker, &exec).await, 137);
    call(&sim.docker, Method::POST, "/containers/gone/start", Value::Null).await;
    assert_eq!(read(&sim.docker, "gone", "/tmp/x").await, "x\n");
    begin(&sim.docker, "gone", "echo y > /tmp/y; sleep 3600").await;
    call(&sim.docker, Method::DELETE, "/containers/gone?force=1", Value::Null).await;
    assert_eq!(code(&sim.docker, Method::GET, &format!("/exec/{exec}/json"), Value::Null).await, 404);
    sim.stop().await;

    let sim = Sim::start(directory.path()).await;
    let all = call(&sim.docker, Method::GET, "/containers/json?all=1", Value::Null).await;
    assert_eq!(all, json!([]));
    create(&sim.docker, "again", &format!("kindest/node:{VERSION}")).await;
    assert_eq!(start(&sim.docker, "again").await, first, "addresses are used again");
    sim.stop().await;
}

#[tokio::test]
async fn a_creation_whose_client_goes_meanwhile_is_done_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let body =
        json!({ "Image": format!("kindest/node:{VERSION}"), "HostConfig": { "NetworkMode": "kind" } }).to_string();
    for number in 0..10 {
        let name = format!("gone-{number}");
        let path = format!("/v1.41/containers/create?name={name}");
        let request = format!("POST {path} HTTP/1.1\r\nhost: docker\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut client = UnixStream::connect(directory.path().join("docker.sock")).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        drop(client);
        // Whether it came so far or not: the name belongs to a container that can be found.
        let made = docker.send(Method::POST, &path, "application/json", body.clone()).await.unwrap().0;
        assert!(made == 201 || made == 409, "{made}");
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        while code(docker, Method::GET, &format!("/containers/{name}/json"), Value::Null).await != 200 {
            assert!(tokio::time::Instant::now() < deadline, "{name} is taken by a container that does not exist");
            tokio::task::yield_now().await;
        }
    }
    sim.stop().await;
}

#[tokio::test]
async fn volumes_networks_ports_and_images_are_what_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    for (name, label) in [("one", "a"), ("two", "b")] {
        call(docker, Method::POST, "/volumes/create", json!({ "Name": name, "Labels": { "of": label } })).await;
    }
    let list = call(docker, Method::GET, "/volumes?filters=%7B%22label%22%3A%5B%22of%3Db%22%5D%7D", Value::Null).await;
    assert_eq!(list["Volumes"].as_array().unwrap().len(), 1);
    assert_eq!(list["Volumes"][0]["Name"], "two");

    let network = json!({ "Name": "six", "EnableIPv6": true, "Labels": { "capwasm.dev/network": "six" } });
    call(docker, Method::POST, "/networks/create", network).await;
    let found = call(
        docker,
        Method::GET,
        "/networks?filters=%7B%22label%22%3A%5B%22capwasm.dev%2Fnetwork%22%5D%7D",
        Value::Null,
    )
    .await;
    assert_eq!((found.as_array().unwrap().len(), &found[0]["EnableIPv6"]), (1, &json!(true)));
    let body = json!({
        "Image": "kindest/haproxy:v20230606-42a2262b",
        "HostConfig": {
            "NetworkMode": "six", "Binds": ["one:/data"], "PortBindings": { "6443/tcp": [{ "HostIp": "127.0.0.1", "HostPort": "5443" }] },
        },
    });
    call(docker, Method::POST, "/containers/create?name=balancer", body).await;
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap();
    let config = format!("frontend f\n  bind :::6443\n  default_backend b\nbackend b\n  server s {target} weight 3\n");
    put(docker, "balancer", &[("/usr/local/etc/haproxy/haproxy.cfg", &config)]).await;
    call(docker, Method::POST, "/containers/balancer/start", Value::Null).await;
    let found = call(docker, Method::GET, "/containers/balancer/json", Value::Null).await;
    let settings = &found["NetworkSettings"];
    assert_eq!(settings["Ports"], json!({ "6443/tcp": [{ "HostIp": "127.0.0.1", "HostPort": "5443" }] }));
    let address = settings["Networks"]["six"]["GlobalIPv6Address"].as_str().unwrap();
    let connected = tokio::net::TcpStream::connect((address, 6443)).await;
    assert!(connected.is_ok() && server.accept().await.is_ok(), "{address}: {connected:?}");
    assert_eq!(code(docker, Method::DELETE, "/volumes/one", Value::Null).await, 409);
    assert_eq!(code(docker, Method::DELETE, "/volumes/two", Value::Null).await, 204);

    let (status, archive) =
        docker.send(Method::GET, &format!("/v1.41/images/kindest/node:{VERSION}/get"), "", "").await.unwrap();
    assert_eq!(status, 200);
    let names: Vec<String> = tar::Archive::new(&archive[..])
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names[0], "manifest.json");
    assert_eq!(code(docker, Method::GET, "/images/none:1/get", Value::Null).await, 404);

    // Volumes are durable.
    sim.stop().await;
    let sim = Sim::start(directory.path()).await;
    assert_eq!(code(&sim.docker, Method::GET, "/volumes/one", Value::Null).await, 200);
    sim.stop().await;
}

/// What trials leave behind ends with their folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_whose_data_directory_is_gone_ends() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::start(directory.path()).await;
    std::fs::remove_dir_all(directory.path().join("data")).unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), sim.ended()).await;
    ended.expect("nobody has to stop it");
    assert!(!directory.path().join("docker.sock").exists());
}

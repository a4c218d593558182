//! Killed at any moment and started again: the same end state, with nothing made twice and nothing left over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_tests::engine::Engine;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, flag, name_of, text};
use capwasm_tests::sample::{Sample, is_provisioned};
use capwasm_tests::seed::seed;
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;

/// A moment in the life of a cluster of 1 + 2 machines.
#[derive(Clone, Copy, Debug)]
enum Moment {
    LoadBalancerMade,
    InfrastructureProvisioned,
    MachineMade,
    StepStarted,
    Initialized,
    WorkerMade,
    WorkerJoined,
    DeletionStarted,
    WorkerGone,
    WorkersGone,
    ControlPlaneGone,
}

impl Moment {
    const OF_LIFE: [Moment; 7] = [
        Moment::LoadBalancerMade,
        Moment::InfrastructureProvisioned,
        Moment::MachineMade,
        Moment::StepStarted,
        Moment::Initialized,
        Moment::WorkerMade,
        Moment::WorkerJoined,
    ];
    const OF_DEATH: [Moment; 4] =
        [Moment::DeletionStarted, Moment::WorkerGone, Moment::WorkersGone, Moment::ControlPlaneGone];

    /// Waits until it is there, or past.
    async fn reached(self, name: &str, objects: &Objects, engine: &Engine) {
        wait::until(&format!("{name}: {self:?}"), async || {
            let containers = engine.containers(name).await;
            let there = match self {
                Moment::LoadBalancerMade => !containers.is_empty(),
                Moment::InfrastructureProvisioned => is_provisioned(&objects.get("DockerCluster", name).await),
                Moment::MachineMade => containers.len() > 1,
                Moment::StepStarted => match containers.iter().find(|container| container.contains("control-plane")) {
                    Some(container) => !engine.archive(container, "/capwasm/steps/0.started").await.is_empty(),
                    None => false,
                },
                Moment::Initialized => {
                    initialized(&objects.get("KubeadmControlPlane", &format!("{name}-control-plane")).await)
                }
                Moment::WorkerMade => containers.len() > 2,
                Moment::WorkerJoined => running(objects).await > 1,
                Moment::DeletionStarted => match objects.find("Cluster", name).await {
                    Some(cluster) => !text(&cluster, "/metadata/deletionTimestamp").is_empty(),
                    None => true,
                },
                Moment::WorkerGone => containers.len() < 4,
                Moment::WorkersGone => containers.len() < 3,
                Moment::ControlPlaneGone => containers.len() < 2,
            };
            if there { Ok(()) } else { Err(format!("{containers:?}")) }
        })
        .await;
    }
}

fn initialized(object: &Value) -> bool {
    flag(object, "/status/initialization/controlPlaneInitialized")
}

async fn running(objects: &Objects) -> usize {
    objects.list("Machine").await.iter().filter(|machine| text(machine, "/status/phase") == "Running").count()
}

/// Waits for the end state, and asserts that everything is there once.
async fn provisioned_exactly(sample: &Sample, objects: &Objects, engine: &Engine) {
    sample.provisioned(objects).await;
    let machines = objects.names("Machine").await;
    for kind in ["DockerMachine", "KubeadmConfig"] {
        assert_eq!(objects.names(kind).await.len(), sample.machines, "one {kind} for each machine");
    }
    let mut containers = machines.clone();
    containers.push(format!("{}-lb", sample.name));
    containers.sort();
    assert_eq!(
        engine.containers(&sample.name).await,
        containers,
        "one container for each machine, and the load balancer"
    );
    let secrets = objects.list("Secret").await;
    let ours = secrets.iter().filter(|secret| secret["type"] == "cluster.x-k8s.io/secret").count();
    assert_eq!(ours, sample.machines + 5, "bootstrap data, four certificates and the kubeconfig: {secrets:?}");
    let nodes: Api<Node> = Api::all(objects.workload(&sample.name).await);
    wait::until("the workload API lists the machines' nodes", async || {
        let nodes = nodes.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = nodes.items.into_iter().filter_map(|node| node.metadata.name).collect();
        if names == machines { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
}

async fn nothing_is_left(sample: &Sample, objects: &Objects, engine: &Engine) {
    wait::until("nothing is left", async || {
        let left = (objects.versions().await, engine.containers(&sample.name).await);
        if left.0.is_empty() && left.1.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

/// Orphans would have other names than what is listed by their owners.
async fn every_clone_is_referenced(objects: &Objects) {
    let machines = objects.list("Machine").await;
    for (kind, pointer) in
        [("DockerMachine", "/spec/infrastructureRef/name"), ("KubeadmConfig", "/spec/bootstrap/configRef/name")]
    {
        for clone in objects.list(kind).await {
            assert!(
                machines.iter().any(|machine| text(machine, pointer) == name_of(&clone)),
                "{kind} {}",
                name_of(&clone)
            );
        }
    }
}

#[tokio::test]
async fn c10_the_host_is_killed_at_every_step_of_a_clusters_life() {
    let management = Management::start();
    let (objects, engine) = (management.objects("steps").await, management.engine());
    let sample = Sample::new("steps", 1, 2);
    sample.create(&objects).await;
    for moment in Moment::OF_LIFE {
        moment.reached("steps", &objects, &engine).await;
        management.kill();
        management.restart();
    }
    provisioned_exactly(&sample, &objects, &engine).await;
    every_clone_is_referenced(&objects).await;
    objects.delete("Cluster", "steps").await;
    for moment in Moment::OF_DEATH {
        moment.reached("steps", &objects, &engine).await;
        management.kill();
        management.restart();
    }
    nothing_is_left(&sample, &objects, &engine).await;
}

#[tokio::test]
async fn c10_the_host_is_killed_at_random_moments() {
    let mut random = StdRng::seed_from_u64(seed());
    let management = Management::start();
    let (objects, engine) = (management.objects("random").await, management.engine());
    let sample = Sample::new("random", 1, 2);
    sample.create(&objects).await;
    let mut kill = async |times: usize| {
        for _ in 0..times {
            // Not a wait for anything: the moment of the kill is the input of this test.
            tokio::time::sleep(Duration::from_millis(random.random_range(0..1200))).await;
            management.kill();
            management.restart();
        }
    };
    kill(6).await;
    provisioned_exactly(&sample, &objects, &engine).await;
    every_clone_is_referenced(&objects).await;
    objects.delete("Cluster", "random").await;
    kill(4).await;
    nothing_is_left(&sample, &objects, &engine).await;
}

#[tokio::test]
async fn r4_the_engine_is_killed_with_machines_in_it() {
    let management = Management::start();
    let (objects, engine) = (management.objects("engine").await, management.engine());
    let sample = Sample::new("engine", 1, 1);
    sample.create(&objects).await;
    for moment in [Moment::LoadBalancerMade, Moment::StepStarted, Moment::Initialized, Moment::WorkerMade] {
        moment.reached("engine", &objects, &engine).await;
        engine.signal(Signal::KILL);
        wait::until("the engine is dead", async || if engine.runs() { Err(String::new()) } else { Ok(()) }).await;
        management.restart_engine();
        wait::until("the engine is back", async || if engine.answers().await { Ok(()) } else { Err(String::new()) })
            .await;
    }
    provisioned_exactly(&sample, &objects, &engine).await;

    // Both at once, and only the host is started again: it brings the engine back.
    engine.signal(Signal::KILL);
    management.kill();
    wait::until("the engine is dead", async || if engine.runs() { Err(String::new()) } else { Ok(()) }).await;
    management.restart();
    provisioned_exactly(&sample, &objects, &engine).await;
}

#[tokio::test]
async fn c13_finalizers_are_stored_while_the_engine_cannot_do_anything_yet() {
    let management = Management::start();
    let (objects, engine) = (management.objects("frozen").await, management.engine());
    let sample = Sample::new("frozen", 1, 0);
    engine.signal(Signal::STOP);
    sample.create(&objects).await;
    let held = |object: &Value| object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
    objects.until("DockerCluster", "frozen", "its finalizer is stored", held).await;
    engine.signal(Signal::CONT);
    provisioned_exactly(&sample, &objects, &engine).await;
}

//! An engine in the test's own process. What a test does with its nodes is in [`capwasm_sim_node::testing`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "for tests")]

use std::path::Path;
use std::time::Duration;

use capwasm_sim_node::testing::prepare;
use capwasm_sim_service::docker::Docker;
use http::Method;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{SimError, SimOptions, run};

/// A simulated engine in this process.
pub struct Sim {
    /// A client of the engine's socket.
    pub docker: Docker,
    stop: CancellationToken,
    task: JoinHandle<Result<(), SimError>>,
}

impl Sim {
    /// Starts one with its socket and its data in `directory`, and waits until it answers.
    pub async fn start(directory: &Path) -> Sim {
        let socket = directory.join("docker.sock");
        Sim::run(SimOptions::new(&socket, directory.join("data"))).await
    }

    /// As [`Sim::start`], with the images and the network of nodes.
    pub async fn prepared(directory: &Path) -> Sim {
        let sim = Sim::start(directory).await;
        prepare(&sim.docker).await;
        sim
    }

    /// As [`Sim::start`], with options of its own. What an engine of this process that was stopped had open is let go of by tasks that
    /// may end a moment after it: until then it is tried again.
    pub async fn run(options: SimOptions) -> Sim {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let stop = CancellationToken::new();
            let task = tokio::spawn(run(options.clone(), stop.clone()));
            let docker = Docker::unix(&options.socket);
            while !task.is_finished() {
                if docker.json(Method::GET, "/_ping", &Value::Null).await.is_ok() {
                    return Sim { docker, stop, task };
                }
                assert!(Instant::now() < deadline, "the engine did not come up");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let ended = task.await;
            assert!(Instant::now() < deadline, "the engine did not come up: {ended:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Ends it as a signal would.
    pub async fn stop(self) {
        self.stop.cancel();
        self.ended().await;
    }

    /// Waits until it ends by itself.
    pub async fn ended(self) {
        self.task.await.unwrap().unwrap();
    }
}

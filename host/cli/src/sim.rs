//! `capwasm sim`: the simulated container engine, as a process of its own; on request with a simulated OpenStack.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use capwasm_sim_engine::{NODE_GRACE, SimOptions};
use capwasm_sim_openstack::{self as openstack, OpenStack};
use capwasm_sim_service::docker::Docker;
use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::signals;

/// How to make the simulation fail.
const FAILURES: &str = "\
Failures on request: the container label capwasm.dev/simulate (never-join, fail-bootstrap, slow-start=<ms>[..<ms>],
unhealthy=<static pod>, etcd-lost, not-ready, silent; several with commas), or POST /capwasm/faults on the socket, for
nodes and for calls of the engine's API. See sim/README.md. With --openstack the same path on its address concerns calls
of OpenStack's APIs.";

/// Options of `capwasm sim`.
#[derive(Args)]
#[command(after_help = FAILURES)]
pub struct Options {
    /// Unix socket of the Docker Engine API.
    #[arg(long)]
    socket: PathBuf,
    /// Folder of everything that outlives the process.
    #[arg(long)]
    data_dir: PathBuf,
    /// Seconds that a killed node may be silent until its Node becomes Unknown; Kubernetes waits 50.
    #[arg(long, value_name = "SECONDS", default_value_t = NODE_GRACE.as_secs())]
    node_grace: u64,
    /// Address of a simulated OpenStack, whose servers are nodes of the engine; prints its clouds.yaml. It is kept in memory.
    #[arg(long, value_name = "ADDRESS")]
    openstack: Option<SocketAddr>,
    /// Kubernetes version of OpenStack servers whose image does not say one.
    #[arg(long, value_name = "VERSION", default_value = "v1.34.0")]
    kubernetes_version: String,
    /// Milliseconds that servers, load balancers and volumes of OpenStack take to come and to go.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 5)]
    openstack_delay: u64,
}

/// Runs until SIGINT or SIGTERM.
pub async fn run(options: Options) -> Result<()> {
    let shutdown = signals::shutdown()?;
    eprintln!(
        "simulated container engine on {}: its machines are simulated, nothing runs in them",
        options.socket.display()
    );
    let node_grace = Duration::from_secs(options.node_grace);
    let sim = SimOptions { node_grace, ..SimOptions::new(options.socket.clone(), options.data_dir.clone()) };
    let Some(address) = options.openstack else {
        capwasm_sim_engine::run(sim, shutdown).await?;
        return Ok(());
    };
    // The engine outlives the OpenStack on it, whose end then leaves nothing half done.
    let stop_engine = CancellationToken::new();
    let mut engine = tokio::spawn(capwasm_sim_engine::run(sim, stop_engine.clone()));
    let outcome = tokio::select! {
        ended = &mut engine => return Ok(ended??),
        outcome = serve_openstack(&options, address, shutdown) => outcome,
    };
    stop_engine.cancel();
    engine.await??;
    outcome
}

/// Serves a simulated OpenStack until `shutdown` is cancelled.
async fn serve_openstack(options: &Options, address: SocketAddr, shutdown: CancellationToken) -> Result<()> {
    answers(&options.socket).await;
    let delay = Duration::from_millis(options.openstack_delay);
    let cloud = OpenStack::start(openstack::Options {
        listen: address,
        delays: openstack::Delays { server: delay, load_balancer: delay, volume: delay },
        nodes: Some(openstack::Nodes { engine: options.socket.clone(), version: options.kubernetes_version.clone() }),
        ..openstack::Options::default()
    });
    let cloud = cloud.await.context("unable to start the simulated OpenStack")?;
    eprintln!("simulated OpenStack on {}: its servers are simulated, nothing runs in them", cloud.auth_url());
    print!("{}", cloud.clouds_yaml());
    shutdown.cancelled().await;
    cloud.stop().await;
    Ok(())
}

/// Waits until the engine answers, after its containers were restarted.
async fn answers(socket: &Path) {
    let docker = Docker::unix(socket);
    while docker.json(http::Method::GET, "/_ping", &serde_json::Value::Null).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

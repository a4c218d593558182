//! Container engine for machines: Docker, or the simulated one in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_runtime::NamedEndpoint;
use capwasm_sim_node::image::{self, Flavour};
use capwasm_sim_service::docker::{Address, Docker};
use http::Method;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::named::Environment;

mod docker;
pub mod named;

/// Image repository of simulated nodes; then repository and tag of the load balancer.
const NODE: &str = "capwasm/node";
const LOAD_BALANCER: (&str, &str) = ("capwasm/haproxy", "simulated");
/// An image pull is a single request.
const LONGEST_REQUEST_SECONDS: u64 = 900;
/// Timeout of the start of the simulated engine.
const SIM_READY: Duration = Duration::from_secs(15);
/// Between two looks whether it is there, and between two starts at most.
const SIM_LOOK: Duration = Duration::from_secs(1);
const SIM_LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Timeout of its end.
const SIM_ENDS: Duration = Duration::from_secs(10);

/// Selection of the engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Docker or simulator.
    pub choice: Choice,
    /// Socket of the Docker engine; by default, `environment` decides.
    pub docker_socket: Option<PathBuf>,
    /// Environment variables about Docker.
    pub environment: Environment,
    /// Kubernetes versions (`v1.34.0`) of simulated nodes that run in Docker containers instead of kindest/node, for
    /// machines without an image registry. Their images are created.
    pub simulated_nodes: Vec<String>,
}

/// Engine for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Docker if it answers, else the simulator.
    Auto,
    /// Docker.
    Docker,
    /// Simulated engine.
    Sim,
}

/// A container engine that answers.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Address of its API.
    pub address: Address,
    /// Kind of its machines.
    pub machines: Machines,
    /// Process id of the simulated engine.
    pub simulator: Option<u32>,
}

/// Kind of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    /// kindest/node in Docker containers.
    Kind,
    /// Simulated nodes in Docker containers.
    SimulatedInDocker,
    /// Simulated containers with simulated nodes.
    Simulated,
}

impl Engine {
    /// The engine as a named endpoint.
    pub fn endpoint(&self) -> NamedEndpoint {
        let endpoint = match &self.address {
            Address::Unix(socket) => NamedEndpoint::unix(socket.clone()),
            Address::Tcp(authority) => NamedEndpoint::url(format!("http://{authority}")),
        };
        NamedEndpoint { timeout_seconds: Some(LONGEST_REQUEST_SECONDS), ..endpoint }
    }

    /// `spec.configuration` of docker-infra for this engine.
    pub fn configuration(&self) -> Value {
        match self.machines {
            Machines::Kind => json!({}),
            Machines::Simulated => json!({"privileged": false}),
            Machines::SimulatedInDocker => json!({
                "privileged": false,
                "network": "capwasm",
                "images": {"node": format!("{NODE}:{{version}}"), "loadBalancer": format!("{}:{}", LOAD_BALANCER.0, LOAD_BALANCER.1)},
            }),
        }
    }

    /// Description for people.
    pub fn describe(&self) -> String {
        let machines = match self.machines {
            Machines::Kind => "Docker containers",
            Machines::SimulatedInDocker => "SIMULATED nodes in Docker containers",
            Machines::Simulated => "SIMULATED",
        };
        format!("{machines}, engine at {}", self.address)
    }

    /// Ends a simulated engine without containers, since its host is about to end. For one with containers, returns how
    /// to end it.
    ///
    /// # Errors
    /// When it cannot be talked to, or does not end.
    pub async fn leave(&self) -> Result<Option<String>> {
        let (Machines::Simulated, Address::Unix(socket)) = (self.machines, &self.address) else { return Ok(None) };
        // Whoever listens there, also when an earlier host started it. One that ended already needs nobody.
        let Ok(listener) = UnixStream::connect(socket).await else { return Ok(None) };
        let process = listener.peer_cred()?.pid().context("nobody knows which process the simulated engine is")?;
        let docker = Docker::at(self.address.clone()).within(docker::LOOK);
        let containers = docker.json(Method::GET, "/containers/json?all=1", &Value::Null).await;
        let containers = containers.context("unable to ask the simulated engine for its containers")?;
        match containers.as_array().map_or(0, Vec::len) {
            0 => {}
            count => {
                return Ok(Some(format!(
                    "the simulated engine goes on with {count} containers; it ends with: kill {process}"
                )));
            }
        }
        stop_simulator(u32::try_from(process)?)?;
        let ended = async {
            while UnixStream::connect(socket).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SIM_ENDS, ended).await.context("the simulated engine does not end")?;
        Ok(None)
    }
}

/// Starts a simulated engine again whenever it is gone.
pub struct Keeper {
    stop: CancellationToken,
    keeping: JoinHandle<()>,
}

impl Keeper {
    /// Begins. For other engines, does nothing.
    pub fn start(engine: &Engine, data_dir: &Path) -> Keeper {
        let stop = CancellationToken::new();
        let (engine, data_dir, stopped) = (engine.clone(), data_dir.to_owned(), stop.clone());
        let keeping = tokio::spawn(async move {
            if let (Machines::Simulated, Address::Unix(socket)) = (engine.machines, &engine.address) {
                stopped.run_until_cancelled(keep(socket, &data_dir)).await;
            }
        });
        Keeper { stop, keeping }
    }

    /// Ends, so that the engine may end too.
    pub async fn end(self) {
        self.stop.cancel();
        if self.keeping.await.is_err() {
            tracing::error!("nobody has looked after the simulated engine");
        }
    }
}

/// Looks whether the engine is there, and starts it if not: it goes on from its journal.
async fn keep(socket: &Path, data_dir: &Path) {
    let mut pause = SIM_LOOK;
    loop {
        tokio::time::sleep(pause).await;
        // A process that is gone refuses at once. Where its folder is gone too, it has ended by itself.
        if UnixStream::connect(socket).await.is_ok() || !data_dir.is_dir() {
            pause = SIM_LOOK;
            continue;
        }
        tracing::warn!("the simulated engine is gone; it is started again");
        match simulator(data_dir).await {
            Ok(_) => tracing::info!("the simulated engine answers again"),
            Err(error) => tracing::error!(error = format!("{error:#}"), "the simulated engine does not start"),
        }
        pause = (pause * 2).min(SIM_LONGEST_PAUSE);
    }
}

/// Connects to Docker, or connects to or starts the simulated engine.
pub async fn start(options: &Options, data_dir: &Path) -> Result<Engine> {
    let Some(address) = docker_engine(options).await? else { return simulator(data_dir).await };
    if options.simulated_nodes.is_empty() {
        return Ok(Engine { address, machines: Machines::Kind, simulator: None });
    }
    simulated_nodes(&address, &options.simulated_nodes).await?;
    Ok(Engine { address, machines: Machines::SimulatedInDocker, simulator: None })
}

/// Address of the Docker engine, if it is selected.
async fn docker_engine(options: &Options) -> Result<Option<Address>> {
    let named = || named::engine(options.docker_socket.as_deref(), &options.environment);
    match options.choice {
        Choice::Sim => Ok(None),
        Choice::Docker => {
            let address = named()?;
            docker::ping(&address).await.with_context(|| {
                format!("no Docker engine answers at {address}: start one, give --docker-socket, or use --engine sim")
            })?;
            Ok(Some(address))
        }
        Choice::Auto => match named() {
            Ok(address) => Ok(docker::ping(&address).await.is_ok().then_some(address)),
            Err(error) => {
                tracing::warn!(error = format!("{:#}", anyhow::Error::from(error)), "no Docker engine is used");
                Ok(None)
            }
        },
    }
}

/// As [`start`], for a cluster of one version: uses simulated nodes when Docker neither has nor can pull the
/// kindest/node image. `say` informs the user.
pub async fn start_for(
    options: &Options,
    data_dir: &Path,
    version: &str,
    say: &mut dyn FnMut(String),
) -> Result<Engine> {
    let engine = start(options, data_dir).await?;
    if engine.machines != Machines::Kind {
        return Ok(engine);
    }
    let image = format!("kindest/node:{version}");
    if docker::has_image(&engine.address, &image).await? {
        return Ok(engine);
    }
    say(format!("pulling {image}"));
    match docker::pull(&engine.address, "kindest/node", version).await {
        Ok(()) => Ok(engine),
        Err(error) => {
            say(format!("{image} cannot be pulled ({error:#}); the nodes will be SIMULATED, in real containers"));
            simulated_nodes(&engine.address, &[version.to_owned()]).await?;
            Ok(Engine { machines: Machines::SimulatedInDocker, ..engine })
        }
    }
}

/// Loads images of simulated nodes into a Docker engine.
async fn simulated_nodes(address: &Address, versions: &[String]) -> Result<()> {
    let binary = std::env::current_exe()?.with_file_name("capwasm-node");
    if !binary.is_file() {
        bail!("{} is not there: simulated nodes in containers need it; run `cargo xtask build`", binary.display());
    }
    let docker = Docker::at(address.clone());
    let unable = "unable to make the images of simulated nodes";
    image::load(&docker, &binary, LOAD_BALANCER.0, LOAD_BALANCER.1, Flavour::Balancer).await.context(unable)?;
    for version in versions {
        image::load(&docker, &binary, NODE, version, Flavour::Node(version)).await.context(unable)?;
    }
    Ok(())
}

/// The simulated engine of a data folder: the running one, or a new process that outlives this one.
async fn simulator(data_dir: &Path) -> Result<Engine> {
    let socket = socket_path(data_dir)?;
    let address = Address::Unix(socket.clone());
    let engine = |simulator| Engine { address: address.clone(), machines: Machines::Simulated, simulator };
    if docker::ping(&address).await.is_ok() {
        return Ok(engine(None));
    }
    let folder = data_dir.join("sim");
    std::fs::create_dir_all(&folder).with_context(|| format!("unable to make {}", folder.display()))?;
    let log_path = folder.join("sim.log");
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log_path)
        .with_context(|| format!("unable to write {}", log_path.display()))?;
    let child = Command::new(std::env::current_exe()?)
        .args(["sim", "--socket"])
        .arg(&socket)
        .arg("--data-dir")
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // A Ctrl-C at this terminal is for the host; the engine goes on, as dockerd would.
        .process_group(0)
        .spawn()
        .context("unable to start the simulated engine")?;
    let mut starting = Starting { child, serves: false };
    let deadline = tokio::time::Instant::now() + SIM_READY;
    loop {
        if docker::ping(&address).await.is_ok() {
            starting.serves = true;
            return Ok(engine(starting.child.id()));
        }
        let ended = starting.child.try_wait()?;
        if ended.is_some() || tokio::time::Instant::now() > deadline {
            let log = std::fs::read_to_string(&log_path).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(3).collect();
            if last.is_empty() {
                bail!("the simulated engine does not answer, and {} is empty: is the disk full?", log_path.display());
            }
            bail!("the simulated engine does not answer; the end of {}: {}", log_path.display(), last.join(" / "));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A starting engine, killed unless it serves.
struct Starting {
    child: Child,
    serves: bool,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if !self.serves {
            // It may have ended by itself.
            let _ = self.child.start_kill();
        }
    }
}

/// Ends a simulated engine that this process started, with its containers.
pub fn stop_simulator(process: u32) -> Result<()> {
    let process = rustix::process::Pid::from_raw(i32::try_from(process)?).context("no process id")?;
    rustix::process::kill_process(process, rustix::process::Signal::TERM).context("unable to stop the simulated engine")
}

/// `sim.sock` in the data folder, or in a shorter path if that is too long for a socket.
fn socket_path(data_dir: &Path) -> Result<PathBuf> {
    const LONGEST: usize = 100;
    let folder = std::path::absolute(data_dir)?;
    let socket = folder.join("sim.sock");
    if socket.as_os_str().len() <= LONGEST {
        return Ok(socket);
    }
    use sha2::{Digest, Sha256};
    let hash = hex::encode(&Sha256::digest(folder.as_os_str().as_encoded_bytes())[..8]);
    Ok(std::env::temp_dir().join(format!("capwasm-{hash}.sock")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_deep_data_folder_still_has_a_socket_that_can_be_bound() {
        assert_eq!(socket_path(Path::new("/data")).unwrap(), Path::new("/data/sim.sock"));
        let deep = PathBuf::from("/d".repeat(80));
        let socket = socket_path(&deep).unwrap();
        assert!(socket.as_os_str().len() < 100, "{}", socket.display());
        assert_eq!(socket, socket_path(&deep).unwrap(), "the same folder has the same socket");
    }
}

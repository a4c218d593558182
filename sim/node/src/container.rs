//! `capwasm-node`: the simulated node and the load balancer inside real containers.
//!
//! One program under many names: `node` and `haproxy` run as process 1; every command of the [`shell`](crate::shell) runs by
//! its name (`sh`, `kubeadm`, `cp`, ...) on the real file system of the container.
//!
//! Process 1 of a node looks at `/etc/kubernetes` every moment, as a kubelet does: it serves the API server whose static pod
//! is there from a store in `/var/lib/etcd`, with a member of etcd beside it, shows the static pods, and renews the node's
//! Lease with the certificate that kubeadm got. What goes wrong on request is in the environment, see [`capwasm_sim_service::faults`].
//!
//! A node of this kind shares its store with nobody, so a cluster in real containers has one control-plane node: a second one
//! could only pass requests on to the first, and a rollout, which removes the first, would lose the cluster.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Surroundings};
use crate::etcd::Etcd;
use crate::files::{Files, RealFiles, base_name, reason};
use crate::kubeadm::kubeconfig::Kubeconfig;
use crate::kubeadm::paths;
use crate::kubelet::Registration;
use crate::node::Node;
use crate::rest::Rest;
use crate::shell::{self, Inherited, Streams, Target};
use crate::workload::{Workloads, run_controllers};
use capwasm_sim_service::balancer::{Balancer, CONFIGURATION, Configuration};
use capwasm_sim_service::faults::{self, NodeFault};

/// Names under which the program can be called, besides `node` and `haproxy`.
pub const COMMANDS: [&str; 34] = [
    "sh",
    "bash",
    "echo",
    "printf",
    "sleep",
    "hostname",
    "uname",
    "true",
    "false",
    "test",
    "[",
    "mkdir",
    "cp",
    "mv",
    "rm",
    "cat",
    "tail",
    "ls",
    "touch",
    "chmod",
    "chown",
    "ln",
    "tee",
    "env",
    "systemctl",
    "crictl",
    "ctr",
    "id",
    "useradd",
    "usermod",
    "groupadd",
    "passwd",
    "kubeadm",
    "kubectl",
];
/// Environment variable of the image that says which Kubernetes version the node pretends to be.
pub const VERSION_VARIABLE: &str = "KUBERNETES_VERSION";
const STORE: &str = "/var/lib/etcd/capwasm.redb";
const MEMBERS: &str = "/var/lib/etcd/members";
/// Name of this node among the servers of its cluster: there is no other.
const SELF: &str = "node";
const CACHE: usize = 4 << 20;
/// How often the kubelet looks at its files.
const LOOK: Duration = Duration::from_millis(200);
const BEAT: Duration = Duration::from_secs(10);

/// Runs the program that the arguments name and returns its exit code.
pub async fn main(arguments: Vec<String>) -> i32 {
    // Both TLS back ends may be linked in; the first choice stays.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let own = arguments.first().map(|name| base_name(name).to_owned()).unwrap_or_default();
    let words = if own == "capwasm-node" { arguments.get(1..).unwrap_or_default().to_vec() } else { arguments };
    match words.first().map(|name| base_name(name)) {
        Some("node") => run_node().await,
        Some("haproxy") => run_balancer().await,
        Some(name) if COMMANDS.contains(&name) => {
            let streams = Streams {
                input: bytes::Bytes::new(),
                out: Target::Inherit(Inherited::Out),
                error: Target::Inherit(Inherited::Error),
            };
            let environment: BTreeMap<String, String> = std::env::vars().collect();
            let directory =
                std::env::current_dir().map_or_else(|_| "/".to_owned(), |path| path.to_string_lossy().into_owned());
            shell::execute(&RealNode, &words, environment, &directory, streams).await
        }
        other => {
            log(&format!(
                "capwasm-node: {} is not one of node, haproxy, {}",
                other.unwrap_or("no command"),
                COMMANDS.join(", ")
            ));
            127
        }
    }
}

/// A line of the container's log.
fn log(line: &str) {
    use std::io::Write;
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// This container as a node.
struct RealNode;

#[async_trait]
impl Node for RealNode {
    fn files(&self) -> &dyn Files {
        &RealFiles
    }

    fn hostname(&self) -> String {
        std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
    }

    fn address(&self) -> IpAddr {
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        let hostname = self.hostname();
        let listed = hosts.lines().find_map(|line| {
            let (address, names) = line.split_once(char::is_whitespace)?;
            let own = names.split_whitespace().any(|name| name == hostname);
            address.parse::<IpAddr>().ok().filter(|address| own && !address.is_loopback())
        });
        // Connecting a datagram socket sends nothing; it only chooses the address that would be used.
        let routed = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
            socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
            socket.local_addr().ok().map(|address| address.ip())
        };
        listed.or_else(routed).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    fn version(&self) -> Option<String> {
        std::env::var(VERSION_VARIABLE).ok().filter(|version| !version.is_empty())
    }

    fn shares_store(&self) -> bool {
        false
    }

    fn faults(&self) -> Vec<NodeFault> {
        faults::listed(&std::env::var(faults::VARIABLE).unwrap_or_default())
    }

    async fn join_etcd(&self, _: &[u8], _: &str, _: &str) -> Result<Vec<(String, String)>, String> {
        Err("the members of etcd in real containers do not know each other".to_owned())
    }

    async fn leave_etcd(&self, _: &[u8], _: &str) -> Result<(), String> {
        // The only member: it goes with its files.
        Ok(())
    }

    async fn wake_kubelet(&self) -> Result<(), String> {
        // Process 1 looks by itself.
        Ok(())
    }
}

/// The address that listens on all addresses: of both families where the container has IPv6.
fn everywhere() -> IpAddr {
    let both = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    if std::net::TcpListener::bind((both, 0)).is_ok() { both } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) }
}

async fn run_node() -> i32 {
    log("capwasm simulated node: no systemd, no containerd, no kubelet; nothing but a simulation runs here");
    let (Ok(mut term), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        log("unable to handle signals");
        return 1;
    };
    let mut kubelet = Kubelet::default();
    let mut ticks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = term.recv() => return 0,
            _ = interrupt.recv() => return 0,
            _ = ticks.tick() => kubelet.look().await,
        }
    }
}

/// What process 1 of a node does.
#[derive(Default)]
struct Kubelet {
    workloads: Option<Arc<Workloads>>,
    agent: Agent,
    connection: Option<(Rest, Registration)>,
    next_beat: Option<Instant>,
    last_problem: String,
}

impl Kubelet {
    async fn look(&mut self) {
        if let Err(problem) = self.run_pods().await {
            self.complain(&problem);
        }
        if self.next_beat.is_some_and(|at| at > Instant::now()) {
            return;
        }
        match self.beat().await {
            Ok(true) => self.next_beat = Some(Instant::now() + BEAT),
            Ok(false) => {}
            Err(problem) => {
                self.next_beat = Some(Instant::now() + Duration::from_secs(1));
                self.complain(&problem);
            }
        }
    }

    /// Says a problem once, not every time it is met.
    fn complain(&mut self, problem: &str) {
        if self.last_problem != problem {
            log(&format!("kubelet: {problem}"));
            self.last_problem = problem.to_owned();
        }
    }

    /// Runs the static pods of a control-plane node.
    async fn run_pods(&mut self) -> Result<(), String> {
        let files: &dyn Files = &RealFiles;
        if self.workloads.is_none() {
            if !files.exists(paths::API_SERVER_MANIFEST) {
                return Ok(());
            }
            files.make_directories(crate::files::parent(STORE)).map_err(|error| reason(&error))?;
            let etcd = Etcd::open(Path::new(MEMBERS))?;
            let workloads = Workloads::open(Path::new(STORE), CACHE, etcd, crate::NODE_GRACE)?;
            // For as long as the container runs.
            drop(tokio::spawn(run_controllers(Arc::clone(&workloads), CancellationToken::new())));
            self.workloads = Some(workloads);
        }
        let Some(workloads) = &self.workloads else { return Ok(()) };
        let faults = RealNode.faults();
        let around = Surroundings { id: SELF, bind: everywhere(), files, faults: &faults, workloads: Some(workloads) };
        let before = self.agent.keyspace().is_some();
        self.agent.run_pods(&around).await?;
        if !before && self.agent.keyspace().is_some() {
            log("kubelet: serving the API server");
        }
        Ok(())
    }

    /// Registers anew after a start, then says how the node is; false before kubeadm is done.
    async fn beat(&mut self) -> Result<bool, String> {
        let files: &dyn Files = &RealFiles;
        if !files.exists(paths::KUBELET) {
            return Ok(false);
        }
        if self.connection.is_none() {
            let Some(registration) = Registration::read(&RealNode) else { return Ok(false) };
            let rest = Kubeconfig::load(files, paths::KUBELET)?.client()?;
            self.agent.register(registration.clone());
            self.connection = Some((rest, registration));
        }
        let Some((rest, registration)) = &self.connection else { return Ok(false) };
        let faults = RealNode.faults();
        let around =
            Surroundings { id: SELF, bind: everywhere(), files, faults: &faults, workloads: self.workloads.as_ref() };
        let told = self.agent.tell(&around, registration, rest, &|| None, true).await;
        // Other containers go without a word: their Leases tell.
        if let (Some(workloads), Some(keyspace)) = (&self.workloads, self.agent.keyspace()) {
            workloads.chores().scan_later(keyspace);
        }
        told.map(|()| true).map_err(|error| format!("unable to say how the node is: {error}"))
    }
}

async fn run_balancer() -> i32 {
    let (Ok(mut hup), Ok(mut term), Ok(mut interrupt)) =
        (signal(SignalKind::hangup()), signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        log("unable to handle signals");
        return 1;
    };
    let configuration = || -> Result<Configuration, String> {
        let files: &dyn Files = &RealFiles;
        let text = files.read_text(CONFIGURATION).map_err(|error| {
            format!("[ALERT] Could not open configuration file {CONFIGURATION} : {}", reason(&error))
        })?;
        Configuration::parse(&text).map_err(|problems| problems.join("\n"))
    };
    let started = match configuration() {
        Ok(configuration) => Balancer::start(everywhere(), &configuration).await.map_err(|error| error.to_string()),
        Err(problem) => Err(problem),
    };
    let balancer = match started {
        Ok(balancer) => balancer,
        Err(problem) => {
            log(&problem);
            return 1;
        }
    };
    log("[NOTICE] capwasm load balancer: configuration loaded");
    loop {
        tokio::select! {
            _ = term.recv() => return 0,
            _ = interrupt.recv() => return 0,
            _ = hup.recv() => {
                let outcome = match configuration() {
                    Ok(configuration) => balancer.reload(&configuration).await.map_err(|error| error.to_string()),
                    Err(problem) => Err(problem),
                };
                log(&outcome.err().unwrap_or_else(|| "[NOTICE] configuration reloaded".to_owned()));
            }
        }
    }
}

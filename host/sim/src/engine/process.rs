//! What runs in a container: a node's kubelet, or a load balancer. No thread and no task of its own per node; only listeners.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::containers::Container;
use super::record::Role;
use crate::balancer::{Balancer, CONFIGURATION, Configuration};
use crate::files::{Files, MemoryFiles, reason};
use crate::heartbeat::Member;
use crate::kubeadm::kubeconfig::Kubeconfig;
use crate::kubeadm::paths;
use crate::kubelet::Registration;
use crate::node::Node;
use crate::workload::{Serving, StaticPod, keyspace_of_authority};

/// Process 1 of a running container.
pub(super) struct Process {
    /// Cancelled when it ends.
    pub stop: CancellationToken,
    part: Part,
}

enum Part {
    Balancer(Arc<Balancer>),
    Node { container: String, kubelet: tokio::sync::Mutex<Kubelet> },
}

/// What a node's kubelet does now.
#[derive(Default)]
struct Kubelet {
    serving: Option<Serving>,
    beating: Option<Member>,
}

impl Process {
    /// Ends it; nothing is removed in the workload cluster.
    pub async fn end(&self, engine: &Engine) {
        self.stop.cancel();
        match &self.part {
            Part::Balancer(balancer) => balancer.stop(),
            Part::Node { container, kubelet } => {
                let mut kubelet = kubelet.lock().await;
                if let Some(member) = kubelet.beating.take() {
                    engine.heartbeats.remove(&member);
                }
                if let Some(serving) = kubelet.serving.take() {
                    serving.stop.cancel();
                    engine.workloads.leave(&serving.keyspace, container).await;
                }
            }
        }
    }
}

impl Engine {
    /// Runs a container's process; one that cannot run ends at once with a line in its log.
    pub(super) async fn launch(self: &Arc<Self>, container: &Arc<Container>) {
        let role = container.record.lock().role;
        match role {
            Role::Balancer => match self.launch_balancer(container).await {
                Ok(balancer) => {
                    *container.process.lock() =
                        Some(Arc::new(Process { stop: CancellationToken::new(), part: Part::Balancer(balancer) }));
                }
                Err(problems) => {
                    problems.into_iter().for_each(|line| container.record.lock().log(line));
                    self.halt(container, 1).await;
                }
            },
            Role::Node => {
                let part = Part::Node { container: container.id(), kubelet: tokio::sync::Mutex::default() };
                let process = Arc::new(Process { stop: CancellationToken::new(), part });
                *container.process.lock() = Some(Arc::clone(&process));
                container.record.lock().log(
                    "capwasm simulated node: no systemd, no containerd, no kubelet; nothing but a simulation runs here",
                );
                let files = MemoryFiles::new(Arc::clone(&container.tree));
                if let Err(problem) = self.look(container, &process, &files, true).await {
                    container.record.lock().log(format!("kubelet: {problem}"));
                }
            }
        }
    }

    async fn launch_balancer(&self, container: &Container) -> Result<Arc<Balancer>, Vec<String>> {
        let configuration = read_configuration(container)?;
        let address = container.record.lock().address;
        let balancer = Balancer::start(IpAddr::V4(address), &configuration).await;
        let balancer = balancer.map_err(|error| vec![format!("[ALERT] cannot bind socket on {address}: {error}")])?;
        container.record.lock().log("[NOTICE] capwasm simulated load balancer: configuration loaded");
        Ok(balancer)
    }

    /// `SIGHUP`: a load balancer reads its configuration again; a broken one is logged and the old one stays.
    pub(super) async fn reload(&self, container: &Container) {
        let process = container.process.lock().clone();
        let Some(Part::Balancer(balancer)) = process.as_deref().map(|process| &process.part) else { return };
        let lines = match read_configuration(container) {
            Ok(configuration) => match balancer.reload(&configuration).await {
                Ok(()) => vec!["[NOTICE] configuration reloaded".to_owned()],
                Err(error) => vec![format!("[ALERT] cannot bind socket: {error}")],
            },
            Err(problems) => problems,
        };
        lines.into_iter().for_each(|line| container.record.lock().log(line));
    }

    /// The kubelet looks at the node's files: serves the API server whose static pod is there, and beats when it has a
    /// kubeconfig. `starting`: it registers its node anew.
    async fn look(
        &self,
        container: &Container,
        process: &Process,
        files: &dyn Files,
        starting: bool,
    ) -> Result<(), String> {
        let Part::Node { container: id, kubelet } = &process.part else { return Ok(()) };
        let mut kubelet = kubelet.lock().await;
        if process.stop.is_cancelled() {
            return Err("the container is stopping".to_owned());
        }
        if kubelet.serving.is_none()
            && let Some(pod) = StaticPod::read(files)?
        {
            let address = container.record.lock().address;
            kubelet.serving = Some(self.workloads.serve(id, &pod, IpAddr::V4(address)).await?);
            let known = container.record.lock().keyspace.replace(pod.keyspace.clone()) == Some(pod.keyspace);
            if !known {
                self.keep(container).await.map_err(|refused| refused.message)?;
            }
        }
        if kubelet.beating.is_none() && files.exists(paths::KUBELET) {
            let keyspace = keyspace_of_authority(&Kubeconfig::load(files, paths::KUBELET)?.authority)?;
            let node = SimulatedNode::facts(container);
            if let Some(registration) = Registration::read(&FactsAndFiles { facts: &node, files }) {
                let member = Member { keyspace, node: registration.name.clone() };
                self.heartbeats.add(member.clone(), starting.then_some(registration));
                kubelet.beating = Some(member);
            }
        }
        Ok(())
    }

    /// Stops everything that runs, keeping on disk that it should run.
    pub(crate) async fn quiesce(&self) {
        self.quiescing.cancel();
        self.requests.close();
        self.requests.wait().await;
        let containers: Vec<Arc<Container>> = self.state.lock().containers.values().cloned().collect();
        for container in containers {
            container.tasks.close();
            container.tasks.wait().await;
            let process = container.process.lock().take();
            if let Some(process) = process {
                process.end(self).await;
            }
        }
    }
}

fn read_configuration(container: &Container) -> Result<Configuration, Vec<String>> {
    let files = MemoryFiles::new(Arc::clone(&container.tree));
    let text = (&files as &dyn Files).read_text(CONFIGURATION);
    let text = text.map_err(|error| {
        vec![format!("[ALERT] Could not open configuration file {CONFIGURATION} : {}", reason(&error))]
    })?;
    Configuration::parse(&text)
        .map_err(|problems| problems.into_iter().map(|problem| format!("[ALERT] {problem}")).collect())
}

struct Facts {
    hostname: String,
    address: IpAddr,
    version: Option<String>,
}

/// A node without a kubelet to wake, for reading its registration.
struct FactsAndFiles<'a> {
    facts: &'a Facts,
    files: &'a dyn Files,
}

#[async_trait]
impl Node for FactsAndFiles<'_> {
    fn files(&self) -> &dyn Files {
        self.files
    }
    fn hostname(&self) -> String {
        self.facts.hostname.clone()
    }
    fn address(&self) -> IpAddr {
        self.facts.address
    }
    fn version(&self) -> Option<String> {
        self.facts.version.clone()
    }
    fn shares_store(&self) -> bool {
        true
    }
    async fn wake_kubelet(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A running simulated node, as one exec sees it.
pub(super) struct SimulatedNode {
    engine: Arc<Engine>,
    container: Arc<Container>,
    process: Arc<Process>,
    facts: Facts,
    /// Its files; remembers what the exec changed.
    pub changes: MemoryFiles,
}

impl SimulatedNode {
    /// The node in a running container.
    pub fn new(engine: Arc<Engine>, container: Arc<Container>, process: Arc<Process>) -> SimulatedNode {
        let changes = MemoryFiles::new(Arc::clone(&container.tree));
        SimulatedNode { engine, facts: Self::facts(&container), container, process, changes }
    }

    fn facts(container: &Container) -> Facts {
        let record = container.record.lock();
        Facts { hostname: record.hostname(), address: IpAddr::V4(record.address), version: record.version.clone() }
    }
}

#[async_trait]
impl Node for SimulatedNode {
    fn files(&self) -> &dyn Files {
        &self.changes
    }
    fn hostname(&self) -> String {
        self.facts.hostname.clone()
    }
    fn address(&self) -> IpAddr {
        self.facts.address
    }
    fn version(&self) -> Option<String> {
        self.facts.version.clone()
    }
    fn shares_store(&self) -> bool {
        true
    }
    async fn wake_kubelet(&self) -> Result<(), String> {
        self.engine.look(&self.container, &self.process, &self.changes, false).await
    }
}

//! What runs in a container: a node's kubelet, or a load balancer. No thread and no task of its own per node; only listeners.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::containers::Container;
use super::node::Facts;
use super::record::Role;
use crate::heartbeat::{Heart, Member};
use capwasm_sim_node::agent::{Agent, Surroundings};
use capwasm_sim_node::etcd::MemberState;
use capwasm_sim_node::files::{Files, MemoryFiles, reason};
use capwasm_sim_node::kubeadm::kubeconfig::Kubeconfig;
use capwasm_sim_node::kubeadm::paths;
use capwasm_sim_node::kubelet::Registration;
use capwasm_sim_node::workload::keyspace_of_authority;
use capwasm_sim_service::balancer::{Balancer, CONFIGURATION, Configuration};
use capwasm_sim_service::faults::{LABEL, NodeFault};

/// With every which heartbeat a kubelet looks whether its mirror pods are still there.
const CHECK: u32 = 3;

/// Process 1 of a running container.
pub(super) struct Process {
    /// Cancelled when it ends.
    pub stop: CancellationToken,
    part: Part,
}

enum Part {
    Balancer(Arc<Balancer>),
    Node(Box<NodePart>),
}

struct NodePart {
    container: String,
    kubelet: tokio::sync::Mutex<Kubelet>,
    /// What the kubelet knew when it looked last.
    seen: Mutex<Option<Seen>>,
}

/// What makes a kubelet look again.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    faults: Vec<NodeFault>,
    etcd: MemberState,
    quorum: bool,
}

/// What a node's kubelet does now.
#[derive(Default)]
struct Kubelet {
    agent: Agent,
    beating: Option<(Member, Registration)>,
    beats: u32,
}

impl Process {
    /// Ends it; nothing is removed in the workload cluster.
    pub async fn end(&self, engine: &Engine) {
        self.stop.cancel();
        match &self.part {
            Part::Balancer(balancer) => balancer.stop(),
            Part::Node(part) => {
                let mut kubelet = part.kubelet.lock().await;
                if let Some((member, _)) = kubelet.beating.take() {
                    engine.heartbeats.remove(&member);
                    engine.workloads.chores().miss(&member.keyspace, &member.node);
                }
                kubelet.agent.stop(&part.container, &engine.workloads).await;
            }
        }
    }
}

/// A node's place on the wheel.
struct NodeHeart {
    engine: Weak<Engine>,
    container: Weak<Container>,
    process: Weak<Process>,
}

#[async_trait]
impl Heart for NodeHeart {
    async fn beat(&self) {
        let (Some(engine), Some(container), Some(process)) =
            (self.engine.upgrade(), self.container.upgrade(), self.process.upgrade())
        else {
            return;
        };
        let Part::Node(part) = &process.part else { return };
        let files = MemoryFiles::new(Arc::clone(&container.tree));
        let faults = engine.faults_of(&container);
        let mut kubelet = part.kubelet.lock().await;
        if !process.stop.is_cancelled() {
            let check = kubelet.beats % CHECK == 0;
            kubelet.beats = kubelet.beats.wrapping_add(1);
            engine.tell(part, &container, &mut kubelet, &files, &faults, check).await;
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
                let part = NodePart {
                    container: container.id(),
                    kubelet: tokio::sync::Mutex::default(),
                    seen: Mutex::default(),
                };
                let process = Arc::new(Process { stop: CancellationToken::new(), part: Part::Node(Box::new(part)) });
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

    /// What goes wrong in a container now.
    pub(super) fn faults_of(&self, container: &Container) -> Vec<NodeFault> {
        let record = container.record.lock();
        self.faults.of(&record.name, record.config["Labels"][LABEL].as_str())
    }

    /// The kubelet looks at the node's files: runs the static pods that are there, and beats when it has a kubeconfig.
    /// `starting`: it registers its node anew.
    pub(super) async fn look(
        self: &Arc<Self>,
        container: &Arc<Container>,
        process: &Arc<Process>,
        files: &dyn Files,
        starting: bool,
    ) -> Result<(), String> {
        let Part::Node(part) = &process.part else { return Ok(()) };
        let mut kubelet = part.kubelet.lock().await;
        if process.stop.is_cancelled() {
            return Err("the container is stopping".to_owned());
        }
        let faults = self.faults_of(container);
        let bind = IpAddr::V4(container.record.lock().address);
        let around =
            Surroundings { id: &part.container, bind, files, faults: &faults, workloads: Some(&self.workloads) };
        let ran = kubelet.agent.run_pods(&around).await;
        if let Some(keyspace) = kubelet.agent.keyspace() {
            let known = {
                let mut record = container.record.lock();
                let name = kubelet.agent.member().filter(|name| *name != record.hostname()).map(str::to_owned);
                let known = record.keyspace.replace(keyspace.to_owned()).as_deref() == Some(keyspace);
                std::mem::replace(&mut record.node, name.clone()) == name && known
            };
            if !known {
                self.keep(container).await.map_err(|refused| refused.message)?;
            }
        }
        if kubelet.beating.is_none() && files.exists(paths::KUBELET) {
            let keyspace = keyspace_of_authority(&Kubeconfig::load(files, paths::KUBELET)?.authority)?;
            let facts = Facts::of(container);
            if let Some(registration) = Registration::read(&facts.with(files)) {
                if starting {
                    kubelet.agent.register(registration.clone());
                }
                let member = Member { keyspace, node: registration.name.clone() };
                let heart = NodeHeart {
                    engine: Arc::downgrade(self),
                    container: Arc::downgrade(container),
                    process: Arc::downgrade(process),
                };
                if faults.contains(&NodeFault::Silent) {
                    self.workloads.chores().miss(&member.keyspace, &member.node);
                } else {
                    self.workloads.chores().heard(&member.keyspace, &member.node);
                }
                self.heartbeats.add(member.clone(), Arc::new(heart));
                kubelet.beating = Some((member, registration));
            }
        }
        if !starting {
            self.tell(part, container, &mut kubelet, files, &faults, false).await;
        }
        ran
    }

    /// The kubelet of a running node sees that its files changed.
    pub(super) async fn look_again(self: &Arc<Self>, container: &Arc<Container>) {
        let process = container.process.lock().clone();
        let Some(process) = process else { return };
        let files = MemoryFiles::new(Arc::clone(&container.tree));
        if let Err(problem) = self.look(container, &process, &files, false).await {
            container.record.lock().log(format!("kubelet: {problem}"));
        }
    }

    /// The kubelet tells the API server how its node is, when there is one that hears it.
    async fn tell(
        &self,
        part: &NodePart,
        container: &Container,
        kubelet: &mut Kubelet,
        files: &dyn Files,
        faults: &[NodeFault],
        check: bool,
    ) {
        let Some((member, registration)) = &kubelet.beating else { return };
        let bind = IpAddr::V4(container.record.lock().address);
        let around = Surroundings { id: &part.container, bind, files, faults, workloads: Some(&self.workloads) };
        let Some(rest) = self.workloads.node_client(&member.keyspace, &member.node) else { return };
        let controllers = || self.workloads.controller_client(&member.keyspace);
        let told = kubelet.agent.tell(&around, registration, &rest, &controllers, check).await;
        if let Err(error) = told {
            tracing::debug!(node = member.node, keyspace = member.keyspace, %error, "a kubelet was not heard");
        }
    }

    /// Takes members out of etcd whose nodes know nothing of them: the engine was killed while they joined, and the join is
    /// run again from its start.
    pub(super) fn withdraw_halfway_members(&self, containers: &[Arc<Container>]) {
        for container in containers {
            let files = MemoryFiles::new(Arc::clone(&container.tree));
            let record = container.record.lock();
            let Some(keyspace) = record.keyspace.as_ref().filter(|_| record.role == Role::Node) else { continue };
            if !(&files as &dyn Files).exists(paths::ETCD_MANIFEST) {
                self.workloads.etcd().withdraw(keyspace, &record.node_name());
            }
        }
    }

    /// Lets kubelets look again whose faults or member of etcd changed, until cancelled.
    pub(crate) async fn review(self: Arc<Self>, stop: CancellationToken) {
        let (mut faults, mut etcd) = (self.faults.changes(), self.workloads.etcd().changes());
        // Whatever happened until now was seen when containers were started.
        loop {
            let running = tokio::select! {
                () = stop.cancelled() => return,
                changed = faults.changed() => changed.is_ok(),
                changed = etcd.changed() => changed.is_ok(),
            };
            if !running {
                return;
            }
            self.workloads.review();
            let containers: Vec<Arc<Container>> = self.state.lock().containers.values().cloned().collect();
            let looks = containers.iter().map(|container| self.review_container(container));
            futures::future::join_all(looks).await;
        }
    }

    async fn review_container(self: &Arc<Self>, container: &Arc<Container>) {
        let process = container.process.lock().clone();
        let Some(process) = process else { return };
        let Part::Node(part) = &process.part else { return };
        let (name, keyspace) = {
            let record = container.record.lock();
            (record.node_name(), record.keyspace.clone())
        };
        let etcd = self.workloads.etcd();
        let seen = Seen {
            faults: self.faults_of(container),
            etcd: keyspace.as_ref().map_or(MemberState::None, |keyspace| etcd.state(keyspace, &name)),
            quorum: keyspace.as_ref().is_none_or(|keyspace| etcd.has_quorum(keyspace)),
        };
        let before = part.seen.lock().replace(seen.clone());
        if before.as_ref() == Some(&seen) {
            return;
        }
        self.hush(part, &seen, before.as_ref()).await;
        self.look_again(container).await;
    }

    /// A kubelet that becomes silent is missed, one that speaks again says anew how its node is.
    async fn hush(&self, part: &NodePart, seen: &Seen, before: Option<&Seen>) {
        let silent = |seen: &Seen| seen.faults.contains(&NodeFault::Silent);
        let was = before.is_some_and(silent);
        if was == silent(seen) {
            return;
        }
        let mut kubelet = part.kubelet.lock().await;
        let Some((member, registration)) = kubelet.beating.clone() else { return };
        if was {
            self.workloads.chores().heard(&member.keyspace, &member.node);
            kubelet.agent.register(registration);
        } else {
            self.workloads.chores().miss(&member.keyspace, &member.node);
        }
    }

    /// Stops everything that runs, keeping on disk that it should run.
    pub(crate) async fn quiesce(&self) {
        self.quiescing.cancel();
        self.requests.close();
        self.requests.wait().await;
        let containers: Vec<Arc<Container>> = self.state.lock().containers.values().cloned().collect();
        let ends = containers.iter().map(|container| async move {
            container.tasks.close();
            container.tasks.wait().await;
            let process = container.process.lock().take();
            if let Some(process) = process {
                process.end(self).await;
            }
        });
        futures::future::join_all(ends).await;
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

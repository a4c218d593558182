//! A simulated node as the commands that run on it see it.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;

use super::Engine;
use super::containers::Container;
use super::process::Process;
use capwasm_sim_node::Node;
use capwasm_sim_node::files::{Files, MemoryFiles};
use capwasm_sim_node::workload::keyspace_of_authority;
use capwasm_sim_service::faults::NodeFault;

/// What does not change while a container runs.
pub(super) struct Facts {
    hostname: String,
    address: IpAddr,
    version: Option<String>,
}

impl Facts {
    pub fn of(container: &Container) -> Facts {
        let record = container.record.lock();
        Facts { hostname: record.hostname(), address: IpAddr::V4(record.address), version: record.version.clone() }
    }

    /// As a node without a kubelet to wake, for reading its registration.
    pub fn with<'a>(&'a self, files: &'a dyn Files) -> FactsAndFiles<'a> {
        FactsAndFiles { facts: self, files }
    }
}

pub(super) struct FactsAndFiles<'a> {
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
    fn faults(&self) -> Vec<NodeFault> {
        Vec::new()
    }
    async fn join_etcd(&self, _: &[u8], _: &str, _: &str) -> Result<Vec<(String, String)>, String> {
        Err("only a running node joins".to_owned())
    }
    async fn leave_etcd(&self, _: &[u8], _: &str) -> Result<(), String> {
        Ok(())
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
        SimulatedNode { engine, facts: Facts::of(&container), container, process, changes }
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
    fn faults(&self) -> Vec<NodeFault> {
        self.engine.faults_of(&self.container)
    }
    async fn join_etcd(&self, authority: &[u8], name: &str, peer_url: &str) -> Result<Vec<(String, String)>, String> {
        let (keyspace, etcd) = (keyspace_of_authority(authority)?, self.engine.workloads.etcd());
        // Before the member is there, so that an engine that is killed meanwhile knows whose it was.
        {
            let mut record = self.container.record.lock();
            record.keyspace = Some(keyspace.clone());
            record.node = (name != record.hostname()).then(|| name.to_owned());
        }
        self.engine.keep(&self.container).await.map_err(|refused| refused.message)?;
        etcd.add(&keyspace, name, peer_url)?;
        Ok(etcd.members(&keyspace))
    }
    async fn leave_etcd(&self, authority: &[u8], name: &str) -> Result<(), String> {
        self.engine.workloads.etcd().remove(&keyspace_of_authority(authority)?, name)
    }
    async fn wake_kubelet(&self) -> Result<(), String> {
        self.engine.look(&self.container, &self.process, &self.changes, false).await
    }
}

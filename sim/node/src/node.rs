//! What a node offers to the commands that run on it, whether it is simulated or a real container.

use std::net::IpAddr;

use async_trait::async_trait;

use crate::files::Files;
use capwasm_sim_service::faults::NodeFault;

/// A machine as its shell and its kubeadm see it.
#[async_trait]
pub trait Node: Send + Sync {
    /// Its file system.
    fn files(&self) -> &dyn Files;
    /// Its host name, which is the Node's name by default.
    fn hostname(&self) -> String;
    /// The address that other machines reach it at.
    fn address(&self) -> IpAddr;
    /// Kubernetes version of its kubelet and kubeadm (`v1.34.0`), when its image says one.
    fn version(&self) -> Option<String>;
    /// Whether a second control-plane node can share the first one's store, as members of one etcd do.
    fn shares_store(&self) -> bool;
    /// Failures that are in force on it now.
    fn faults(&self) -> Vec<NodeFault>;
    /// Makes this node's member of etcd one of the cluster whose CA has this DER; all members with their peer URLs.
    ///
    /// # Errors
    /// Why the members that are there do not take it.
    async fn join_etcd(&self, authority: &[u8], name: &str, peer_url: &str) -> Result<Vec<(String, String)>, String>;
    /// Takes this node's member of etcd out of the cluster whose CA has this DER; not there is fine.
    ///
    /// # Errors
    /// Why the members that are there do not let it go.
    async fn leave_etcd(&self, authority: &[u8], name: &str) -> Result<(), String>;
    /// Makes the kubelet look at its files now: a control plane whose static pod is there is served when this returns.
    ///
    /// # Errors
    /// Why the static pod cannot run.
    async fn wake_kubelet(&self) -> Result<(), String>;
}

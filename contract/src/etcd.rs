//! Membership of the workload cluster's etcd.

use serde::{Deserialize, Serialize};

/// One member, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// etcd's own number for it, which it prints in hexadecimal.
    pub id: u64,
    /// The Node's name.
    pub name: String,
    /// URLs at which the other members reach it.
    pub peer_urls: Vec<String>,
    /// Whether it has no vote yet.
    pub learner: bool,
    /// Whether it leads.
    pub leader: bool,
    /// Whether it answers, knows the same members as the others, and raises no alarm.
    pub healthy: bool,
    /// What is wrong when it is not healthy.
    pub message: String,
    /// Alarms that it raises, by etcd's names: `NOSPACE`, `CORRUPT`.
    pub alarms: Vec<String>,
}

impl EtcdMember {
    /// Bytes that it takes, its texts included.
    pub fn bytes(&self) -> usize {
        let lists: usize = self.peer_urls.iter().chain(&self.alarms).map(String::len).sum();
        size_of::<EtcdMember>() + self.name.len() + self.message.len() + lists
    }
}

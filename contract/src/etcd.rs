//! Membership of the workload cluster's etcd.

use serde::{Deserialize, Serialize};

/// Member of etcd, as it reports itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// Id of the member, which etcd prints in hexadecimal.
    pub id: u64,
    /// Name of its Node.
    pub name: String,
    /// URLs for other members.
    pub peer_urls: Vec<String>,
    /// Whether it is a learner, without a vote.
    pub learner: bool,
    /// Whether it is the leader.
    pub leader: bool,
    /// Whether it answers, knows the same members as the others, and raises no alarm.
    pub healthy: bool,
    /// Why it is not healthy.
    pub message: String,
    /// Its alarms by etcd's names: `NOSPACE`, `CORRUPT`.
    pub alarms: Vec<String>,
}

impl EtcdMember {
    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        let lists: usize = self.peer_urls.iter().chain(&self.alarms).map(String::len).sum();
        size_of::<EtcdMember>() + self.name.len() + self.message.len() + lists
    }
}

//! What is kept of containers, execs, images and networks.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::journal::Change;
use super::random_id;

/// Lines of log that are kept of a container.
const LOG_LINES: usize = 200;

/// What a container's image makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    Node,
    Balancer,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Without the slash.
    pub name: String,
    /// As it was asked for.
    pub image: String,
    pub image_id: String,
    /// By the image's name.
    pub role: Role,
    /// Kubernetes version in the image's tag.
    pub version: Option<String>,
    /// The request's fields except `HostConfig` and `NetworkingConfig`.
    pub config: Value,
    pub host_config: Value,
    pub network: String,
    /// Endpoint id in that network.
    pub endpoint_id: String,
    /// Its loopback address, kept until it is removed.
    pub address: Ipv4Addr,
    pub created: Timestamp,
    /// Whether it should run.
    pub running: bool,
    pub started: Option<Timestamp>,
    pub finished: Option<Timestamp>,
    pub exit_code: i32,
    /// Keyspace of the cluster whose control plane it is a member of.
    #[serde(default)]
    pub keyspace: Option<String>,
    /// Name of its Node, when it is in a cluster and has another name than its host.
    #[serde(default)]
    pub node: Option<String>,
    /// Its log's last lines.
    pub log: Vec<String>,
}

impl ContainerRecord {
    /// Adds a line; the oldest go beyond the limit.
    pub fn log(&mut self, line: impl Into<String>) {
        self.log.push(line.into());
        let excess = self.log.len().saturating_sub(LOG_LINES);
        self.log.drain(..excess);
    }

    /// Name of its Node, which is that of its member of etcd.
    pub fn node_name(&self) -> String {
        self.node.clone().unwrap_or_else(|| self.hostname())
    }

    pub fn hostname(&self) -> String {
        match self.config["Hostname"].as_str() {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => self.id.chars().take(12).collect(),
        }
    }

    /// Names of the volumes that it was created with.
    pub fn volumes(&self) -> impl Iterator<Item = &str> {
        let binds = self.host_config["Binds"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let bound = binds.filter_map(|bind| bind.split(':').next()).filter(|source| !source.starts_with('/'));
        let mounts = self.host_config["Mounts"].as_array().into_iter().flatten();
        let mounted = mounts.filter(|mount| mount["Type"] == "volume").filter_map(|mount| mount["Source"].as_str());
        bound.chain(mounted)
    }

    /// The change of the journal that stores it.
    pub fn change(&self) -> Change {
        Change::Put(format!("container/{}", self.id), encode(self))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExecRecord {
    /// 64 hexadecimal digits.
    pub id: String,
    pub container: String,
    pub created: Timestamp,
    /// The request's body.
    pub config: Value,
    /// Whether it was started and has not ended.
    pub running: bool,
    /// Exit code once it ended.
    pub exit_code: Option<i32>,
}

impl ExecRecord {
    /// The change of the journal that stores it.
    pub fn change(&self) -> Change {
        Change::Put(format!("exec/{}", self.id), encode(self))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ImageRecord {
    /// `sha256:...`.
    pub id: String,
    pub created: Timestamp,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VolumeRecord {
    pub name: String,
    pub created: Timestamp,
    /// The request's body.
    pub config: Value,
}

impl VolumeRecord {
    /// The change of the journal that stores it.
    pub fn change(&self) -> Change {
        Change::Put(format!("volume/{}", self.name), encode(self))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// 64 hexadecimal digits.
    pub id: String,
    pub name: String,
    pub created: Timestamp,
    /// The request's body.
    pub config: Value,
}

impl NetworkRecord {
    pub fn new(name: &str, config: Value) -> NetworkRecord {
        NetworkRecord { id: random_id(), name: name.to_owned(), created: Timestamp::now(), config }
    }

    /// Whether its containers have IPv6 addresses too.
    pub fn has_ipv6(&self) -> bool {
        self.config["EnableIPv6"].as_bool().unwrap_or(false)
    }

    /// The change of the journal that stores it.
    pub fn change(&self) -> Change {
        Change::Put(format!("network/{}", self.name), encode(self))
    }
}

/// JSON bytes of a record.
pub fn encode(record: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and JSON values only, with string keys: serialization cannot fail.
    serde_json::to_vec(record).unwrap_or_default()
}

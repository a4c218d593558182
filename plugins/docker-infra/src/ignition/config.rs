//! The document in its own words. What is not read is counted among [`Config::ignored`] where it would do something.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    pub ignition: Ignition,
    pub storage: Storage,
    pub systemd: Systemd,
    pub passwd: Passwd,
    networkd: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ignition {
    pub version: String,
    config: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Storage {
    pub files: Vec<Node>,
    pub directories: Vec<Node>,
    pub links: Vec<Node>,
    disks: Vec<Value>,
    raid: Vec<Value>,
    filesystems: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Owner {
    pub id: Option<u32>,
    pub name: String,
}

/// A file, directory or link.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    #[serde(deserialize_with = "nullable")]
    pub filesystem: String,
    pub path: String,
    /// Decimal in the document.
    pub mode: Option<u32>,
    pub user: Owner,
    pub group: Owner,
    pub contents: Contents,
    /// Of a file: a flag in version 2, more parts in version 3.
    pub append: Value,
    #[serde(deserialize_with = "nullable")]
    pub target: String,
    pub hard: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Contents {
    #[serde(deserialize_with = "nullable")]
    pub source: String,
    #[serde(deserialize_with = "nullable")]
    pub compression: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Systemd {
    pub units: Vec<Unit>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Unit {
    pub name: String,
    pub enabled: Option<bool>,
    /// Deprecated form of `enabled`.
    pub enable: bool,
    pub mask: bool,
    #[serde(deserialize_with = "nullable")]
    pub contents: String,
    pub dropins: Vec<Dropin>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Dropin {
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub contents: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Passwd {
    pub users: Vec<User>,
    pub groups: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct User {
    pub name: String,
    pub uid: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    pub gecos: String,
    #[serde(deserialize_with = "nullable")]
    pub home_dir: String,
    #[serde(deserialize_with = "nullable")]
    pub shell: String,
    #[serde(deserialize_with = "nullable")]
    pub primary_group: String,
    pub groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub password_hash: String,
    pub ssh_authorized_keys: Vec<String>,
    pub system: bool,
    pub no_create_home: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Group {
    pub name: String,
    pub gid: Option<u32>,
}

fn nullable<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Config {
    /// Sections that a container cannot follow.
    pub fn ignored(&self) -> Vec<String> {
        let is_used = |value: &Value| match value {
            Value::Null => false,
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        };
        let sections = [
            ("storage.disks", !self.storage.disks.is_empty()),
            ("storage.raid", !self.storage.raid.is_empty()),
            ("storage.filesystems", !self.storage.filesystems.is_empty()),
            ("networkd", is_used(&self.networkd)),
            ("ignition.config", is_used(&self.ignition.config)),
        ];
        sections.into_iter().filter(|(_, used)| *used).map(|(name, _)| name.to_owned()).collect()
    }
}

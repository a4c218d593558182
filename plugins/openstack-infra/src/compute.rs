//! Typed calls of Nova: servers, flavors, server groups.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::answer::{decode, decode_member, nullable};
use crate::cloud::{Cloud, Failure, Gone, Query, Service, encode};

/// How old a list of flavors may be: machines are made by the dozen.
const FLAVORS_AGE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Nova's")]
pub struct Server {
    pub id: String,
    #[serde(default)]
    pub name: String,
    /// `BUILD`, `ACTIVE`, `ERROR`, `SHUTOFF`, `DELETED`, …
    #[serde(default)]
    pub status: String,
    /// By the network's name.
    #[serde(default, deserialize_with = "nullable")]
    pub addresses: BTreeMap<String, Vec<ServerAddress>>,
    #[serde(default, deserialize_with = "nullable")]
    pub description: String,
    /// RFC 3339.
    #[serde(default)]
    pub created: String,
    /// What Nova is doing to it: `deleting`, `spawning`, …
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// Why it is in `ERROR`.
    #[serde(default)]
    pub fault: Option<ServerFault>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServerAddress {
    pub addr: String,
    /// 4 or 6.
    #[serde(default)]
    pub version: u8,
    /// `fixed` or `floating`.
    #[serde(default, rename = "OS-EXT-IPS:type")]
    pub kind: String,
}

/// Nova's word for what went wrong with a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServerFault {
    #[serde(default)]
    pub message: String,
}

impl Server {
    /// Whether there is nothing left of it but Nova's memory.
    pub fn is_gone(&self) -> bool {
        matches!(self.status.as_str(), "DELETED" | "SOFT_DELETED")
    }

    /// Whether Nova is deleting it.
    pub fn is_being_deleted(&self) -> bool {
        self.task_state.as_deref() == Some("deleting")
    }
}

/// A flavor; the list by name has nothing but id and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Nova's")]
pub struct Flavor {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub vcpus: u64,
    /// MiB.
    #[serde(default)]
    pub ram: u64,
    /// GiB.
    #[serde(default)]
    pub disk: u64,
    /// GiB.
    #[serde(default, rename = "OS-FLV-EXT-DATA:ephemeral")]
    pub ephemeral: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Nova's")]
pub struct ServerGroup {
    pub id: String,
    #[serde(default)]
    pub name: String,
}

/// None when there is no such server.
pub fn server(cloud: &Cloud<'_>, id: &str) -> Result<Option<Server>, Failure> {
    cloud
        .find(Service::Compute, &format!("/servers/{}", encode(id)))?
        .map(|answer| decode_member(cloud, Service::Compute, answer, "server"))
        .transpose()
}

/// All servers of the project that have exactly this name and are not gone.
pub fn servers_named(cloud: &Cloud<'_>, name: &str) -> Result<Vec<Server>, Failure> {
    // Nova takes the name as a regular expression.
    let query = Query::new().with("name", format!("^{}$", name.replace('.', "\\.")));
    let found = cloud.list(Service::Compute, "/servers/detail", "servers", &query)?;
    let servers: Result<Vec<Server>, Failure> =
        found.into_iter().map(|item| decode(cloud, Service::Compute, item)).collect();
    Ok(servers?.into_iter().filter(|server| server.name == name && !server.is_gone()).collect())
}

/// Asks for a server; returns its id. Nova makes another one each time.
pub fn create_server(cloud: &Cloud<'_>, body: &Value) -> Result<String, Failure> {
    let created: Created =
        decode_member(cloud, Service::Compute, cloud.post(Service::Compute, "/servers", body)?, "server")?;
    Ok(created.id)
}

/// Asks for the deletion, which ends some time after the answer.
pub fn delete_server(cloud: &Cloud<'_>, id: &str) -> Result<Gone, Failure> {
    cloud.delete(Service::Compute, &format!("/servers/{}", encode(id)))
}

/// The flavor of a name that the project may use. Nova filters by nothing; a list of a moment ago will do if it has it.
pub fn flavor_named(cloud: &Cloud<'_>, name: &str) -> Result<Option<Flavor>, Failure> {
    const PATH: &str = "/flavors";
    let named = |items: Vec<Value>| -> Result<Option<Flavor>, Failure> {
        let flavors: Result<Vec<Flavor>, Failure> =
            items.into_iter().map(|item| decode(cloud, Service::Compute, item)).collect();
        Ok(flavors?.into_iter().find(|flavor| flavor.name == name))
    };
    let recent: Vec<Value> =
        decode_member(cloud, Service::Compute, cloud.get_recent(Service::Compute, PATH, FLAVORS_AGE)?, "flavors")?;
    match named(recent)? {
        Some(flavor) => Ok(Some(flavor)),
        None => named(cloud.list(Service::Compute, PATH, "flavors", &Query::new())?),
    }
}

/// One flavor with its sizes.
pub fn flavor(cloud: &Cloud<'_>, id: &str) -> Result<Option<Flavor>, Failure> {
    cloud
        .find(Service::Compute, &format!("/flavors/{}", encode(id)))?
        .map(|answer| decode_member(cloud, Service::Compute, answer, "flavor"))
        .transpose()
}

/// All server groups of the project: Nova filters them by nothing.
pub fn server_groups(cloud: &Cloud<'_>) -> Result<Vec<ServerGroup>, Failure> {
    let found = cloud.list(Service::Compute, "/os-server-groups", "server_groups", &Query::new())?;
    found.into_iter().map(|item| decode(cloud, Service::Compute, item)).collect()
}

#[derive(Deserialize)]
struct Created {
    id: String,
}

//! Ports and trunks of servers.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::nullable;
use crate::cloud::{Cloud, Failure, Gone, Query, Service, encode};
use crate::network::{self, Port, Resource};

/// Neutron's extension for trunks.
pub const TRUNK_EXTENSION: &str = "trunk";

/// A trunk: a port that carries other ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct Trunk {
    pub id: String,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub sub_ports: Vec<SubPort>,
}

/// A port that a trunk carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SubPort {
    pub port_id: String,
}

impl Resource for Trunk {
    const PATH: &'static str = "trunks";
    const MANY: &'static str = "trunks";
    const ONE: &'static str = "trunk";
    const WHAT: &'static str = "trunk";
}

/// Ports of the project that have exactly this name, in `network` if it is known.
pub fn ports_named(cloud: &Cloud<'_>, name: &str, network: Option<&str>) -> Result<Vec<Port>, Failure> {
    let query = Query::new().with("name", name).with("project_id", cloud.project_id());
    let query = network.into_iter().fold(query, |query, network| query.with("network_id", network));
    network::list(cloud, &query)
}

pub fn trunk_of(cloud: &Cloud<'_>, port: &str) -> Result<Option<Trunk>, Failure> {
    Ok(network::list::<Trunk>(cloud, &Query::new().with("port_id", port))?.into_iter().next())
}

/// How the deletion of a port ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    Gone(Gone),
    /// Its trunk carries these ports, which nobody would know again once they are off it: nothing was deleted.
    Carries(Vec<String>),
}

/// Deletes a trunk and the ports that it carries.
fn delete_trunk(cloud: &Cloud<'_>, trunk: &Trunk) -> Result<(), Failure> {
    if !trunk.sub_ports.is_empty() {
        let sub_ports: Vec<Value> = trunk.sub_ports.iter().map(|port| json!({"port_id": port.port_id})).collect();
        let path = format!("/trunks/{}/remove_subports", encode(&trunk.id));
        cloud.put(Service::Network, &path, &json!({"sub_ports": sub_ports}))?;
        for port in &trunk.sub_ports {
            network::delete::<Port>(cloud, &port.port_id)?;
        }
    }
    network::delete::<Trunk>(cloud, &trunk.id)?;
    Ok(())
}

/// Deletes a port, and first its trunk, which `trunk` says that it has. One that somebody put on the port is found by the
/// port's refusal to go. Ports on the trunk go with it if `known` has all of them.
pub fn delete_port(cloud: &Cloud<'_>, port: &str, trunk: bool, known: &[String]) -> Result<Deletion, Failure> {
    if !trunk {
        match network::delete::<Port>(cloud, port) {
            Err(failure) if failure.is_conflict() && cloud.network_extension(TRUNK_EXTENSION)? => {}
            other => return other.map(Deletion::Gone),
        }
    }
    if let Some(trunk) = trunk_of(cloud, port)? {
        let carried: Vec<String> = trunk.sub_ports.iter().map(|port| port.port_id.clone()).collect();
        if carried.iter().any(|port| !known.contains(port)) {
            return Ok(Deletion::Carries(carried));
        }
        delete_trunk(cloud, &trunk)?;
    }
    network::delete::<Port>(cloud, port).map(Deletion::Gone)
}

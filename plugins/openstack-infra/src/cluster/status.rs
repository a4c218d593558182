//! The status of an OpenStackCluster as this provider writes it, and reads it back. It is a hint: whatever is missing is
//! found again in OpenStack.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::network;

/// Everything but conditions, `ready` and failure domains, which the host writes. None is written as null, which clears.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The network of the machines.
    pub network: Option<NetworkStatus>,
    /// The network that floating IPs come from.
    pub external_network: Option<Tagged>,
    /// The router between the machines' network and the external one.
    pub router: Option<RouterStatus>,
    /// The load balancer in front of the API servers.
    pub api_server_load_balancer: Option<LoadBalancerStatus>,
    pub control_plane_security_group: Option<Named>,
    pub worker_security_group: Option<Named>,
    pub bastion_security_group: Option<Named>,
    pub bastion: Option<BastionStatus>,
    /// Fingerprints of what was last brought to OpenStack, by part; none is written as null.
    pub applied: BTreeMap<String, Option<String>>,
}

/// A resource with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are OpenStack's")]
pub struct Named {
    pub id: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are OpenStack's")]
pub struct Tagged {
    pub id: String,
    pub name: String,
    pub tags: Vec<String>,
}

/// A network and those of its subnets that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are OpenStack's")]
pub struct NetworkStatus {
    pub id: String,
    pub name: String,
    pub tags: Vec<String>,
    pub subnets: Vec<SubnetStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are OpenStack's")]
pub struct SubnetStatus {
    pub id: String,
    pub name: String,
    pub cidr: String,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are OpenStack's")]
pub struct RouterStatus {
    pub id: String,
    pub name: String,
    pub tags: Vec<String>,
    /// Addresses of its gateway in the external network.
    pub ips: Vec<String>,
}

/// The API server's load balancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names are OpenStack's")]
pub struct LoadBalancerStatus {
    pub id: String,
    pub name: String,
    /// Its floating IP; empty when it has none.
    pub ip: String,
    /// Its virtual IP in OpenStack's network.
    #[serde(rename = "internalIP")]
    pub internal_ip: String,
    pub tags: Vec<String>,
    #[serde(rename = "allowedCIDRs")]
    pub allowed_cidrs: Option<Vec<String>>,
    /// Where it is, when that is not the cluster's network.
    pub load_balancer_network: Option<NetworkStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names are OpenStack's")]
pub struct BastionStatus {
    pub id: Option<String>,
    pub name: String,
    pub state: Option<String>,
    pub ip: Option<String>,
    #[serde(rename = "floatingIP")]
    pub floating_ip: Option<String>,
    pub ssh_key_name: Option<String>,
    pub resolved: Option<Value>,
    pub resources: Option<Value>,
}

impl Status {
    /// Of an object; empty where it is of another shape, because it may be lost anyway.
    pub fn of(object: &Value) -> Status {
        object.get("status").and_then(|status| Status::deserialize(status).ok()).unwrap_or_default()
    }

    /// CIDRs of the cluster's subnets.
    pub fn cidrs(&self) -> impl Iterator<Item = &str> {
        self.network.iter().flat_map(|network| &network.subnets).map(|subnet| subnet.cidr.as_str())
    }

    /// Whether a part was brought to OpenStack as its fingerprint says.
    pub fn is_applied(&self, part: &str, print: &str) -> bool {
        self.applied.get(part).and_then(Option::as_deref) == Some(print)
    }

    /// Remembers that a part was brought to OpenStack, or forgets it.
    pub fn set_applied(&mut self, part: &str, print: Option<String>) {
        self.applied.insert(part.to_owned(), print);
    }
}

impl NetworkStatus {
    /// Of a network and those of its subnets that are used.
    pub fn of(network: &network::Network, subnets: &[network::Subnet]) -> NetworkStatus {
        let subnets = subnets.iter().map(|subnet| SubnetStatus {
            id: subnet.id.clone(),
            name: subnet.name.clone(),
            cidr: subnet.cidr.clone(),
            tags: subnet.tags.clone(),
        });
        NetworkStatus {
            id: network.id.clone(),
            name: network.name.clone(),
            tags: network.tags.clone(),
            subnets: subnets.collect(),
        }
    }
}

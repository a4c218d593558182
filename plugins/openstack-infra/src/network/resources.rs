//! What is read of Neutron's resources.

use serde::Deserialize;

use super::Resource;
use crate::answer::nullable;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct Network {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
    /// Ids.
    #[serde(default, deserialize_with = "nullable")]
    pub subnets: Vec<String>,
}

/// A range of addresses of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct Subnet {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub network_id: String,
    #[serde(default)]
    pub cidr: String,
    #[serde(default, deserialize_with = "nullable")]
    pub dns_nameservers: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub allocation_pools: Vec<AllocationPool>,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
}

/// Addresses of a subnet that ports get by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct AllocationPool {
    pub start: String,
    pub end: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct Router {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
    /// None when the router has no gateway.
    #[serde(default)]
    pub external_gateway_info: Option<GatewayInfo>,
}

/// How a router reaches its external network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct GatewayInfo {
    #[serde(default)]
    pub network_id: String,
    #[serde(default, deserialize_with = "nullable")]
    pub external_fixed_ips: Vec<FixedIp>,
}

/// An address of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct FixedIp {
    #[serde(default)]
    pub subnet_id: String,
    #[serde(default)]
    pub ip_address: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct Port {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub network_id: String,
    #[serde(default, deserialize_with = "nullable")]
    pub description: String,
    /// Of the server, router or load balancer; empty for a port that nothing uses.
    #[serde(default, deserialize_with = "nullable")]
    pub device_id: String,
    /// `network:router_interface`, `compute:<zone>`, …
    #[serde(default, deserialize_with = "nullable")]
    pub device_owner: String,
    #[serde(default, deserialize_with = "nullable")]
    pub fixed_ips: Vec<FixedIp>,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct FloatingIp {
    pub id: String,
    #[serde(default)]
    pub floating_ip_address: String,
    #[serde(default)]
    pub floating_network_id: String,
    /// None when it leads nowhere.
    #[serde(default)]
    pub port_id: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub description: String,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
}

/// A security group with its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct SecurityGroup {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub description: String,
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub security_group_rules: Vec<Rule>,
}

/// A rule of a security group; what is not set does not matter to the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names are Neutron's")]
pub struct Rule {
    pub id: String,
    #[serde(default)]
    pub direction: String,
    #[serde(default, deserialize_with = "nullable")]
    pub ethertype: String,
    #[serde(default)]
    pub protocol: Option<String>,
    #[serde(default)]
    pub port_range_min: Option<u16>,
    #[serde(default)]
    pub port_range_max: Option<u16>,
    #[serde(default)]
    pub remote_group_id: Option<String>,
    #[serde(default)]
    pub remote_ip_prefix: Option<String>,
}

macro_rules! resource {
    ($kind:ty, $path:literal, $many:literal, $one:literal, $what:literal) => {
        impl Resource for $kind {
            const PATH: &'static str = $path;
            const MANY: &'static str = $many;
            const ONE: &'static str = $one;
            const WHAT: &'static str = $what;
        }
    };
}

resource!(Network, "networks", "networks", "network", "network");
resource!(Subnet, "subnets", "subnets", "subnet", "subnet");
resource!(Router, "routers", "routers", "router", "router");
resource!(Port, "ports", "ports", "port", "port");
resource!(FloatingIp, "floatingips", "floatingips", "floatingip", "floating IP");
resource!(SecurityGroup, "security-groups", "security_groups", "security_group", "security group");
resource!(Rule, "security-group-rules", "security_group_rules", "security_group_rule", "security group rule");

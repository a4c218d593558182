//! What is read of an OpenStackCluster's spec, in v1beta1.

use capwasm_sdk::Problem;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::param::Param;

/// Where the API server listens unless the spec says otherwise.
const API_SERVER_PORT: u16 = 6443;

/// `spec` of an OpenStackCluster. What names resources of OpenStack (`id | filter`) stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Not empty: the network is this provider's to make. At most one.
    pub managed_subnets: Vec<ManagedSubnet>,
    /// Of a network that somebody else made.
    pub subnets: Vec<Value>,
    /// The one of them that machines and the load balancer have their addresses in; the first without it.
    pub primary_subnet: Value,
    /// A network that somebody else made.
    pub network: Value,
    /// A router that somebody else made.
    pub router: Value,
    /// Instead of the only external network.
    pub external_network: Value,
    /// There is no external network, and none is looked for.
    pub disable_external_network: bool,
    /// Addresses of the router's gateway.
    #[serde(rename = "externalRouterIPs")]
    pub external_router_ips: Vec<ExternalRouterIp>,
    /// Of the managed network.
    #[serde(rename = "networkMTU")]
    pub network_mtu: Option<u32>,
    /// Of the managed network: its ports have neither security groups nor address checks.
    pub disable_port_security: bool,
    /// The API server has a floating IP unless this is set.
    #[serde(rename = "disableAPIServerFloatingIP")]
    pub disable_api_server_floating_ip: bool,
    /// A floating IP that the user allocated.
    #[serde(rename = "apiServerFloatingIP")]
    pub api_server_floating_ip: String,
    /// The load balancer's own address, or that of something that the user runs.
    #[serde(rename = "apiServerFixedIP")]
    pub api_server_fixed_ip: String,
    /// 6443 without it.
    pub api_server_port: Option<u16>,
    /// The load balancer in front of the API servers.
    pub api_server_load_balancer: Option<LoadBalancerSpec>,
    /// None: machines have the project's default group.
    pub managed_security_groups: Option<ManagedSecurityGroups>,
    /// Tags of everything that can have tags.
    pub tags: Vec<String>,
    /// Set by the user, or by the host from an earlier answer.
    pub control_plane_endpoint: EndpointSpec,
    /// Zones for control planes; empty for all.
    pub control_plane_availability_zones: Vec<String>,
    /// No zone is for control planes.
    pub control_plane_omit_availability_zone: bool,
    /// A server to reach the others by SSH.
    pub bastion: Option<BastionSpec>,
    /// The Secret or OpenStackClusterIdentity with the credentials.
    pub identity_ref: Value,
}

/// The subnet of a managed network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedSubnet {
    /// `10.6.0.0/24`.
    pub cidr: String,
    pub dns_nameservers: Vec<String>,
    /// Ranges that ports get addresses from; empty for all of it.
    pub allocation_pools: Vec<Pool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pool {
    pub start: String,
    pub end: String,
}

/// An address of the router in an external subnet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalRouterIp {
    /// An address of the subnet; empty for any.
    #[serde(rename = "fixedIP")]
    pub fixed_ip: String,
    /// As of any `subnet`: an id, or a filter.
    pub subnet: Value,
}

/// A load balancer of Octavia.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerSpec {
    pub enabled: bool,
    /// Ports besides the API server's.
    pub additional_ports: Vec<u16>,
    /// Not empty: nobody else may come in. CIDRs or addresses of IPv4.
    #[serde(rename = "allowedCIDRs")]
    pub allowed_cidrs: Vec<String>,
    /// `amphora`, `ovn`, …; Octavia's default without it.
    pub provider: String,
    /// Name of one of Octavia's flavors.
    pub flavor: String,
    /// One of Octavia's zones.
    pub availability_zone: String,
    /// Where its address is; the cluster's network without it.
    pub network: Value,
    /// Of that network; the first counts.
    pub subnets: Vec<Value>,
    pub monitor: MonitorSpec,
}

impl Default for LoadBalancerSpec {
    fn default() -> LoadBalancerSpec {
        LoadBalancerSpec {
            enabled: true,
            additional_ports: Vec::new(),
            allowed_cidrs: Vec::new(),
            provider: String::new(),
            flavor: String::new(),
            availability_zone: String::new(),
            network: Value::Null,
            subnets: Vec::new(),
            monitor: MonitorSpec::default(),
        }
    }
}

/// A health monitor; seconds, and tries. Zero is as if it were not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MonitorSpec {
    /// Seconds between two checks.
    #[serde(deserialize_with = "or_10")]
    pub delay: u32,
    /// Seconds of one check.
    #[serde(deserialize_with = "or_5")]
    pub timeout: u32,
    /// Successes before a member is up.
    #[serde(deserialize_with = "or_5")]
    pub max_retries: u32,
    /// Failures before it is down.
    #[serde(deserialize_with = "or_3")]
    pub max_retries_down: u32,
}

impl Default for MonitorSpec {
    fn default() -> MonitorSpec {
        MonitorSpec { delay: 10, timeout: 5, max_retries: 5, max_retries_down: 3 }
    }
}

fn or_10<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    or(deserializer, 10)
}

fn or_5<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    or(deserializer, 5)
}

fn or_3<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    or(deserializer, 3)
}

fn or<'de, D: Deserializer<'de>>(deserializer: D, usual: u32) -> Result<u32, D::Error> {
    Ok(Some(u32::deserialize(deserializer)?).filter(|given| *given != 0).unwrap_or(usual))
}

/// Security groups that are this provider's to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedSecurityGroups {
    /// Allows everything between the machines, instead of single ports.
    pub allow_all_in_cluster_traffic: bool,
    /// For both groups of machines.
    pub all_nodes_security_group_rules: Vec<RuleSpec>,
    pub control_plane_nodes_security_group_rules: Vec<RuleSpec>,
    pub worker_nodes_security_group_rules: Vec<RuleSpec>,
}

/// A rule of the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleSpec {
    pub name: String,
    /// For people, in OpenStack too.
    pub description: String,
    /// `ingress` or `egress`.
    pub direction: String,
    /// `IPv4` (also without it) or `IPv6`.
    pub ether_type: String,
    /// Empty for any protocol.
    pub protocol: String,
    pub port_range_min: u16,
    pub port_range_max: u16,
    /// The other side, as a group or as a CIDR.
    #[serde(rename = "remoteGroupID")]
    pub remote_group_id: String,
    /// The other side, as a group or as a CIDR.
    #[serde(rename = "remoteIPPrefix")]
    pub remote_ip_prefix: String,
    /// Who is on the other side: `controlplane`, `worker`, `bastion`.
    pub remote_managed_groups: Vec<String>,
}

/// An endpoint; empty when it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointSpec {
    /// Name or address.
    pub host: String,
    /// 0 when not given.
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BastionSpec {
    pub enabled: bool,
    /// As an OpenStackMachine's spec.
    pub spec: Value,
    pub availability_zone: String,
    /// A floating IP that the user allocated.
    #[serde(rename = "floatingIP")]
    pub floating_ip: String,
}

impl Default for BastionSpec {
    fn default() -> BastionSpec {
        BastionSpec { enabled: true, spec: Value::Null, availability_zone: String::new(), floating_ip: String::new() }
    }
}

impl Spec {
    /// The load balancer, where there is one.
    pub fn load_balancer(&self) -> Option<&LoadBalancerSpec> {
        self.api_server_load_balancer.as_ref().filter(|spec| spec.enabled)
    }

    /// The bastion, where there is one.
    pub fn bastion(&self) -> Option<&BastionSpec> {
        self.bastion.as_ref().filter(|spec| spec.enabled)
    }

    /// Where the API server listens.
    pub fn api_port(&self) -> u16 {
        let endpoint = &self.control_plane_endpoint;
        if !endpoint.host.is_empty() && endpoint.port != 0 {
            return endpoint.port;
        }
        self.api_server_port.filter(|port| *port != 0).unwrap_or(API_SERVER_PORT)
    }

    /// Ports of the load balancer, the API server's first, each once.
    pub fn load_balancer_ports(&self) -> Vec<u16> {
        let mut ports = vec![self.api_port()];
        for port in self.load_balancer().into_iter().flat_map(|spec| &spec.additional_ports) {
            if !ports.contains(port) {
                ports.push(*port);
            }
        }
        ports
    }

    /// The network that somebody else made.
    pub fn network(&self) -> Result<Option<Param>, Problem> {
        Param::read(&self.network, "spec.network")
    }

    /// The router that somebody else made.
    pub fn router(&self) -> Result<Option<Param>, Problem> {
        Param::read(&self.router, "spec.router")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::object;
    use serde_json::json;

    fn read(spec: Value) -> Spec {
        object::spec(&json!({"metadata": {"name": "c"}, "spec": spec})).unwrap()
    }

    #[test]
    fn what_is_not_given_is_as_upstream_has_it() {
        let spec = read(json!({"apiServerLoadBalancer": {"monitor": {"delay": 0, "timeout": 7}}, "bastion": {}}));
        assert!(spec.load_balancer().is_some() && spec.bastion().is_some());
        let monitor = spec.load_balancer().unwrap().monitor;
        assert_eq!(monitor, MonitorSpec { delay: 10, timeout: 7, max_retries: 5, max_retries_down: 3 });
        assert_eq!(read(json!({})).load_balancer(), None);
        assert_eq!(read(json!({"apiServerLoadBalancer": {"enabled": false}})).load_balancer(), None);
        assert_eq!(read(json!({"bastion": {"enabled": false}})).bastion(), None);
    }

    #[test]
    fn the_port_is_the_endpoints_then_the_given_one_then_6443() {
        let table = [
            (json!({}), 6443),
            (json!({"apiServerPort": 443}), 443),
            (json!({"apiServerPort": 0}), 6443),
            (json!({"apiServerPort": 443, "controlPlaneEndpoint": {"host": "h", "port": 8443}}), 8443),
            (json!({"apiServerPort": 443, "controlPlaneEndpoint": {"host": "", "port": 0}}), 443),
        ];
        for (spec, port) in table {
            assert_eq!(read(spec.clone()).api_port(), port, "{spec}");
        }
        let ports = json!({"apiServerLoadBalancer": {"enabled": true, "additionalPorts": [22, 6443, 22]}});
        assert_eq!(read(ports).load_balancer_ports(), [6443, 22]);
    }
}

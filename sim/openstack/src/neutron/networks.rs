//! Networks, subnets, and the addresses in them.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::attributes::{Kind, required};
use super::{Networking, bad_request, forbidden, fresh, invalid_input, refused};
use crate::answer::Answer;
use crate::cloud::Scope;
use crate::table::{items, merge, text};

/// Ids of a network's subnets.
pub(super) fn subnets_of(state: &Networking, network: &str) -> Vec<String> {
    state.subnets.ids(|subnet| text(subnet, "network_id") == network)
}

/// Makes a network, and returns its id.
pub(crate) fn create(state: &mut Networking, project: &str, given: &Map<String, Value>) -> Result<String, Answer> {
    state.check_quota(project, Kind::Network)?;
    let mut made = fresh(project);
    let defaults = json!({
        "admin_state_up": true, "mtu": 1450, "status": "ACTIVE", "shared": false, "port_security_enabled": true,
        "qos_policy_id": null, "dns_domain": "", "router:external": false, "vlan_transparent": false, "qinq": false,
        "is_default": false, "availability_zone_hints": [], "availability_zones": [], "ipv4_address_scope": null,
        "ipv6_address_scope": null, "provider:network_type": "vxlan", "provider:physical_network": null,
        "provider:segmentation_id": state.networks.iter().count() + 1, "revision_number": 1,
    });
    merge(&mut made, defaults.as_object().cloned().unwrap_or_default());
    merge(&mut made, given.clone());
    made["project_id"] = json!(project);
    let id = text(&made, "id").to_owned();
    state.networks.insert(made);
    Ok(id)
}

/// Deletes a network with its subnets.
pub(super) fn delete(state: &mut Networking, id: &str) -> Result<(), Answer> {
    let ports = state.ports.ids(|port| text(port, "network_id") == id);
    if !ports.is_empty() {
        let message = format!(
            "Unable to complete operation on network {id}. There are one or more ports still in use on the network, id for these ports is: {}.",
            ports.join(",")
        );
        return Err(refused(409, "NetworkInUse", &message));
    }
    for subnet in subnets_of(state, id) {
        state.subnets.remove(&subnet);
    }
    state.networks.remove(id);
    Ok(())
}

/// Makes a subnet, and returns its id.
pub(crate) fn create_subnet(
    state: &mut Networking,
    scope: &Scope,
    project: &str,
    given: &Map<String, Value>,
) -> Result<String, Answer> {
    let network = required(given, "network_id")?.as_str().unwrap_or_default().to_owned();
    let version = required(given, "ip_version")?;
    let version = version.as_u64().or_else(|| version.as_str()?.parse().ok()).unwrap_or_default();
    if !matches!(version, 4 | 6) {
        return Err(bad_request(&format!("Invalid input for ip_version. Reason: {version} is not in valid_values.")));
    }
    let found = state.find(scope, Kind::Network, &network)?;
    if !scope.owns(found) {
        return Err(forbidden("create", Kind::Subnet, None));
    }
    let external = found["router:external"].clone();
    let Some(cidr) = given.get("cidr").and_then(Value::as_str) else {
        let message = "Bad subnets request: a subnetpool must be specified in the absence of a cidr.";
        return Err(refused(400, "BadRequest", message));
    };
    let net: IpNet = cidr.parse().map_err(|_| invalid_input(&format!("{cidr} is not in a CIDR format.")))?;
    let net = net.trunc();
    if u64::from(if net.addr().is_ipv4() { 4u8 } else { 6 }) != version {
        return Err(invalid_input(&format!("cidr '{cidr}' does not match the ip_version '{version}'")));
    }
    let overlap = state.subnets.iter().filter(|subnet| text(subnet, "network_id") == network).any(|subnet| {
        let other: Option<IpNet> = text(subnet, "cidr").parse().ok();
        other.is_some_and(|other| other.contains(&net) || net.contains(&other))
    });
    if overlap {
        let message = format!("Requested subnet with cidr: {net} for network: {network} overlaps with another subnet.");
        return Err(invalid_input(&message));
    }
    state.check_quota(project, Kind::Subnet)?;
    let first = address(number(net.network()) + 1, net.addr().is_ipv4());
    let gateway = given.get("gateway_ip").cloned().unwrap_or_else(|| json!(first.to_string()));
    let pools = match given.get("allocation_pools") {
        Some(pools) => {
            check_pools(pools, &net)?;
            pools.clone()
        }
        None => default_pools(&net, gateway.as_str().and_then(|gateway| gateway.parse().ok())),
    };
    let mut made = fresh(project);
    let defaults = json!({
        "subnetpool_id": null, "enable_dhcp": true, "ipv6_ra_mode": null, "ipv6_address_mode": null, "host_routes": [],
        "dns_nameservers": [], "service_types": [],
    });
    merge(&mut made, defaults.as_object().cloned().unwrap_or_default());
    merge(&mut made, given.clone());
    made["project_id"] = json!(project);
    made["ip_version"] = json!(version);
    made["cidr"] = json!(net.to_string());
    made["gateway_ip"] = gateway;
    made["allocation_pools"] = pools;
    made["router:external"] = external;
    let id = text(&made, "id").to_owned();
    state.subnets.insert(made);
    Ok(id)
}

fn check_pools(pools: &Value, net: &IpNet) -> Result<(), Answer> {
    for pool in pools.as_array().into_iter().flatten() {
        let end = |field: &str| text(pool, field).parse::<IpAddr>().ok();
        let (Some(start), Some(end)) = (end("start"), end("end")) else {
            return Err(bad_request("Invalid input for allocation_pools. Reason: Invalid data format for IP pool."));
        };
        let name = format!("{start}-{end}");
        if !net.contains(&start) || !net.contains(&end) {
            let message = format!("The allocation pool {name} spans beyond the subnet cidr {net}.");
            return Err(refused(400, "OutOfBoundsAllocationPool", &message));
        }
        if start > end {
            let message = format!("The allocation pool {name} is not valid.");
            return Err(refused(400, "InvalidAllocationPool", &message));
        }
    }
    Ok(())
}

/// All host addresses but the gateway's.
fn default_pools(net: &IpNet, gateway: Option<IpAddr>) -> Value {
    let is_v4 = net.addr().is_ipv4();
    let (first, last) = (number(net.network()), number(net.broadcast()));
    let (first, last) = if is_v4 { (first + 1, last.saturating_sub(1)) } else { (first + 1, last) };
    let gateway = gateway.map(number).filter(|gateway| (first..=last).contains(gateway));
    let ranges = match gateway {
        Some(gateway) => vec![(first, gateway.saturating_sub(1)), (gateway + 1, last)],
        None => vec![(first, last)],
    };
    let pool = |(start, end): (u128, u128)| json!({ "start": address(start, is_v4).to_string(), "end": address(end, is_v4).to_string() });
    ranges.into_iter().filter(|(start, end)| start <= end).map(pool).collect()
}

pub(super) fn update_subnet(state: &mut Networking, id: &str, given: &Map<String, Value>) -> Result<(), Answer> {
    let Some(found) = state.subnets.get_mut(id) else { return Ok(()) };
    if let (Some(pools), Ok(net)) = (given.get("allocation_pools"), text(found, "cidr").parse()) {
        check_pools(pools, &net)?;
    }
    merge(found, given.clone());
    Ok(())
}

pub(super) fn delete_subnet(state: &mut Networking, id: &str) -> Result<(), Answer> {
    let used = state.ports.iter().any(|port| items(port, "fixed_ips").any(|fixed| text(fixed, "subnet_id") == id));
    if used {
        let message = format!(
            "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet."
        );
        return Err(refused(409, "SubnetInUse", &message));
    }
    state.subnets.remove(id);
    Ok(())
}

/// Addresses in a network for a port: as `wanted` says, or one of its first IPv4 and one of its first IPv6 subnet.
pub(super) fn allocate(
    state: &Networking,
    scope: &Scope,
    network: &str,
    wanted: Option<&Value>,
    own: Option<&str>,
) -> Result<Value, Answer> {
    let wanted: Vec<Value> = match wanted {
        Some(wanted) => wanted.as_array().cloned().unwrap_or_default(),
        None => {
            let subnets: Vec<&Value> =
                state.subnets.iter().filter(|subnet| text(subnet, "network_id") == network).collect();
            let first = |version: u64| subnets.iter().find(|subnet| subnet["ip_version"] == version);
            [4, 6].into_iter().filter_map(first).map(|subnet| json!({ "subnet_id": subnet["id"] })).collect()
        }
    };
    let mut given: Vec<Value> = Vec::new();
    for one in &wanted {
        let subnet = match (one["subnet_id"].as_str(), one["ip_address"].as_str()) {
            (Some(id), _) => {
                let found = state.find(scope, Kind::Subnet, id)?;
                if text(found, "network_id") != network {
                    let message = format!(
                        "Failed to create port on network {network}, because fixed_ips included invalid subnet {id}."
                    );
                    return Err(invalid_input(&message));
                }
                found
            }
            (None, Some(ip)) => {
                let holds = |subnet: &&Value| {
                    text(subnet, "network_id") == network
                        && ip.parse().is_ok_and(|ip: IpAddr| {
                            text(subnet, "cidr").parse().is_ok_and(|net: IpNet| net.contains(&ip))
                        })
                };
                let message =
                    format!("IP address {ip} is not a valid IP for any of the subnets on the specified network.");
                state.subnets.iter().find(holds).ok_or_else(|| refused(400, "InvalidIpForNetwork", &message))?
            }
            (None, None) => return Err(invalid_input("IP allocation requires subnet_id or ip_address.")),
        };
        let id = text(subnet, "id");
        let mut used = addresses(state, id, own);
        used.extend(given.iter().filter(|fixed| text(fixed, "subnet_id") == id).filter_map(ip));
        let chosen = match one["ip_address"].as_str() {
            Some(wanted) => {
                let net: Option<IpNet> = text(subnet, "cidr").parse().ok();
                let wanted: Option<IpAddr> = wanted.parse().ok().filter(|ip| net.is_some_and(|net| net.contains(ip)));
                let wanted = wanted.ok_or_else(|| {
                    let message =
                        format!("IP address {} is not a valid IP for the specified subnet.", text(one, "ip_address"));
                    refused(400, "InvalidIpForSubnet", &message)
                })?;
                if used.contains(&wanted) {
                    let message = format!("IP address {wanted} already allocated in subnet {id}");
                    return Err(refused(409, "IpAddressAlreadyAllocated", &message));
                }
                wanted
            }
            None => free(subnet, &used).ok_or_else(|| {
                let message = format!("No more IP addresses available on network {network}.");
                refused(409, "IpAddressGenerationFailure", &message)
            })?,
        };
        given.push(json!({ "subnet_id": id, "ip_address": chosen.to_string() }));
    }
    Ok(json!(given))
}

fn ip(fixed: &Value) -> Option<IpAddr> {
    text(fixed, "ip_address").parse().ok()
}

/// Addresses that ports have in a subnet; but for one port.
fn addresses(state: &Networking, subnet: &str, but: Option<&str>) -> HashSet<IpAddr> {
    let ports = state.ports.iter().filter(|port| but != Some(text(port, "id")));
    let fixed = ports.flat_map(|port| items(port, "fixed_ips"));
    fixed.filter(|fixed| text(fixed, "subnet_id") == subnet).filter_map(ip).collect()
}

/// The lowest free address in a subnet's pools.
fn free(subnet: &Value, used: &HashSet<IpAddr>) -> Option<IpAddr> {
    items(subnet, "allocation_pools").find_map(|pool| {
        let end = |field: &str| text(pool, field).parse::<IpAddr>().ok();
        let (start, end) = (end("start")?, end("end")?);
        let mut candidates = number(start)..=number(end);
        candidates.find_map(|candidate| {
            let candidate = address(candidate, start.is_ipv4());
            (!used.contains(&candidate)).then_some(candidate)
        })
    })
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

fn address(number: u128, is_v4: bool) -> IpAddr {
    match u32::try_from(number) {
        Ok(number) if is_v4 => Ipv4Addr::from(number).into(),
        _ => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn pools_leave_out_network_broadcast_and_gateway() {
        let pools = |net: &str, gateway: &str| default_pools(&net.parse().unwrap(), gateway.parse().ok());
        assert_eq!(pools("10.6.0.0/24", "10.6.0.1"), json!([{ "start": "10.6.0.2", "end": "10.6.0.254" }]));
        let split = json!([{ "start": "10.6.0.1", "end": "10.6.0.8" }, { "start": "10.6.0.10", "end": "10.6.0.14" }]);
        assert_eq!(pools("10.6.0.0/28", "10.6.0.9"), split);
        assert_eq!(pools("10.6.0.0/30", ""), json!([{ "start": "10.6.0.1", "end": "10.6.0.2" }]));
        assert_eq!(pools("fd00::/126", "fd00::1"), json!([{ "start": "fd00::2", "end": "fd00::3" }]));
    }

    #[test]
    fn the_lowest_free_address_of_the_pools_is_taken() {
        let subnet = json!({ "allocation_pools": [{ "start": "10.0.0.2", "end": "10.0.0.3" }, { "start": "10.0.0.9", "end": "10.0.0.9" }] });
        let used = |all: &[&str]| all.iter().map(|ip| ip.parse().unwrap()).collect::<HashSet<IpAddr>>();
        assert_eq!(free(&subnet, &used(&["10.0.0.2"])), "10.0.0.3".parse().ok());
        assert_eq!(free(&subnet, &used(&["10.0.0.2", "10.0.0.3"])), "10.0.0.9".parse().ok());
        assert_eq!(free(&subnet, &used(&["10.0.0.2", "10.0.0.3", "10.0.0.9"])), None);
    }
}

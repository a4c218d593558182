//! Which IP families a cluster speaks, and which first, from its `spec.clusterNetwork`.

use std::net::IpAddr;

use capwasm_sdk::{Problem, object};
use serde_json::Value;

use crate::engine::Container;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// The families of a cluster, in order; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Families(Vec<Family>);

impl Default for Families {
    fn default() -> Families {
        Families(vec![Family::V4])
    }
}

impl Families {
    /// Of a Cluster; IPv4 when it says nothing. Services decide about the order, because API servers do as well.
    pub fn of(cluster: &Value) -> Result<Families, Problem> {
        let services = families(cluster, "/spec/clusterNetwork/services/cidrBlocks")?;
        let pods = families(cluster, "/spec/clusterNetwork/pods/cidrBlocks")?;
        let both = |list: &[Family]| list.contains(&Family::V4) && list.contains(&Family::V6);
        if !services.is_empty() && !pods.is_empty() && (both(&services) != both(&pods) || services[0] != pods[0]) {
            let message = "services and pods of spec.clusterNetwork are not of the same IP families in the same order";
            return Err(invalid(message.to_owned()));
        }
        let families = if services.is_empty() { pods } else { services };
        Ok(if families.is_empty() { Families::default() } else { Families(families) })
    }

    /// Where the API server is reached.
    pub fn first(&self) -> Family {
        self.0.first().copied().unwrap_or(Family::V4)
    }

    /// Whether it is one of them.
    pub fn has(&self, family: Family) -> bool {
        self.0.contains(&family)
    }

    /// The addresses that a container has in a network, in order.
    pub fn addresses<'a>(&'a self, container: &'a Container, network: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(move |family| address(container, *family, network))
    }
}

pub fn address<'a>(container: &'a Container, family: Family, network: &str) -> Option<&'a str> {
    match family {
        Family::V4 => container.ipv4(network),
        Family::V6 => container.ipv6(network),
    }
}

pub fn family_of(address: &str) -> Option<Family> {
    Some(if address.parse::<IpAddr>().ok()?.is_ipv4() { Family::V4 } else { Family::V6 })
}

fn families(cluster: &Value, at: &str) -> Result<Vec<Family>, Problem> {
    let blocks = cluster.pointer(at).and_then(Value::as_array);
    let mut families = Vec::new();
    for block in blocks.into_iter().flatten().filter_map(Value::as_str) {
        let family = block
            .split_once('/')
            .and_then(|(address, bits)| bits.parse::<u8>().ok().and_then(|_| family_of(address)))
            .ok_or_else(|| {
                let shown: String = block.chars().take(80).collect();
                invalid(format!("{shown:?} in {at} of Cluster {} is not a CIDR", object::name(cluster)))
            })?;
        if !families.contains(&family) {
            families.push(family);
        }
    }
    Ok(families)
}

fn invalid(message: String) -> Problem {
    Problem::invalid("BadClusterNetwork", message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn families_come_from_the_cluster_network_in_its_order() {
        use Family::{V4, V6};
        let table = [
            ("nothing said", json!([]), json!([]), Some(vec![V4])),
            ("IPv4", json!(["10.0.0.0/12"]), json!(["192.168.0.0/16"]), Some(vec![V4])),
            ("IPv6", json!(["fd00::/108"]), json!(["fd01::/64"]), Some(vec![V6])),
            (
                "both, IPv4 first",
                json!(["10.0.0.0/12", "fd00::/108"]),
                json!(["10.1.0.0/16", "fd01::/64"]),
                Some(vec![V4, V6]),
            ),
            (
                "both, IPv6 first",
                json!(["fd00::/108", "10.0.0.0/12"]),
                json!(["fd01::/64", "10.1.0.0/16"]),
                Some(vec![V6, V4]),
            ),
            ("pods alone", json!([]), json!(["fd01::/64"]), Some(vec![V6])),
            ("at odds", json!(["10.0.0.0/12"]), json!(["fd01::/64"]), None),
            ("one and both", json!(["10.0.0.0/12"]), json!(["10.1.0.0/16", "fd01::/64"]), None),
            ("no CIDR", json!(["10.0.0.0"]), json!([]), None),
        ];
        for (what, services, pods, expected) in table {
            let cluster = json!({"spec": {"clusterNetwork": {"services": {"cidrBlocks": services}, "pods": {"cidrBlocks": pods}}}});
            assert_eq!(Families::of(&cluster).ok(), expected.map(Families), "{what}");
        }
    }
}

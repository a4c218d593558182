//! The cluster's network and subnets: made here, or found.

use capwasm_sdk::{Context, Problem};
use serde_json::{Map, Value, json};

use super::events::{self, Act};
use super::pass::{Pass, pick};
use super::spec::{ManagedSubnet, Pool, Spec};
use super::status::NetworkStatus;
use crate::cloud::Query;
use crate::names::ClusterNames;
use crate::network::{self, AllocationPool, Network, Subnet};
use crate::param::Param;

/// A cluster has one subnet, or one of each address family.
const MOST_SUBNETS: usize = 2;

/// Creates or changes network and subnets, or finds those that somebody else made.
pub fn reconcile(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<(), Problem> {
    match pass.spec.managed_subnets.clone().as_slice() {
        [] => existing(pass),
        [subnet] => managed(cx, pass, subnet),
        _ => Err(Problem::invalid("TooManySubnets", "spec.managedSubnets may have one subnet at most")),
    }
}

fn managed(cx: &mut Context<'_>, pass: &mut Pass<'_>, wanted: &ManagedSubnet) -> Result<(), Problem> {
    let mut network = managed_network(cx, pass)?;
    network.tags = pass.tag::<Network>(&network.id, &network.tags)?;
    pass.status.network = Some(NetworkStatus::of(&network, &[]));
    let mut subnet = managed_subnet(cx, pass, &network.id, wanted)?;
    subnet.tags = pass.tag::<Subnet>(&subnet.id, &subnet.tags)?;
    pass.status.network = Some(NetworkStatus::of(&network, &[subnet]));
    Ok(())
}

fn managed_network(cx: &mut Context<'_>, pass: &Pass<'_>) -> Result<Network, Problem> {
    let name = pass.names.network();
    let known = pass.status.network.as_ref().map_or("", |network| network.id.as_str());
    if let Some(found) = pick(network::named::<Network>(&pass.cloud, &name)?, known, |one| &one.id) {
        return Ok(found);
    }
    let made = network::create::<Network>(&pass.cloud, network_fields(&pass.spec, &pass.names))
        .map_err(|failure| events::failed(cx, Act::Create, events::NETWORK, &name, failure))?;
    events::done(cx, Act::Create, events::NETWORK, &name, &made.id);
    Ok(made)
}

fn managed_subnet(
    cx: &mut Context<'_>,
    pass: &Pass<'_>,
    network: &str,
    wanted: &ManagedSubnet,
) -> Result<Subnet, Problem> {
    let name = pass.names.subnet();
    let found: Vec<Subnet> =
        network::list(&pass.cloud, &Query::new().with("network_id", network).with("cidr", &wanted.cidr))?;
    let Some(found) = found.into_iter().next() else {
        let made = network::create::<Subnet>(&pass.cloud, subnet_fields(&pass.names, network, wanted))
            .map_err(|failure| events::failed(cx, Act::Create, events::SUBNET, &name, failure))?;
        events::done(cx, Act::Create, events::SUBNET, &name, &made.id);
        return Ok(made);
    };
    let Some(change) = subnet_change(&found, wanted) else { return Ok(found) };
    let changed = network::update::<Subnet>(&pass.cloud, &found.id, change)
        .map_err(|failure| events::failed(cx, Act::Update, events::SUBNET, &name, failure))?;
    events::done(cx, Act::Update, events::SUBNET, &name, &changed.id);
    Ok(changed)
}

fn network_fields(spec: &Spec, names: &ClusterNames) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), names.network().into());
    fields.insert("description".to_owned(), names.description().into());
    fields.insert("admin_state_up".to_owned(), true.into());
    if spec.disable_port_security {
        fields.insert("port_security_enabled".to_owned(), false.into());
    }
    if let Some(mtu) = spec.network_mtu.filter(|mtu| *mtu > 0) {
        fields.insert("mtu".to_owned(), mtu.into());
    }
    Value::Object(fields)
}

fn subnet_fields(names: &ClusterNames, network: &str, wanted: &ManagedSubnet) -> Value {
    let version = if wanted.cidr.contains(':') { 6 } else { 4 };
    let mut fields = json!({
        "name": names.subnet(), "description": names.description(), "network_id": network, "ip_version": version,
        "cidr": wanted.cidr, "dns_nameservers": wanted.dns_nameservers,
    });
    if !wanted.allocation_pools.is_empty() {
        let pools = wanted.allocation_pools.iter().map(|pool| json!({"start": pool.start, "end": pool.end}));
        fields["allocation_pools"] = pools.collect();
    }
    fields
}

/// What to change of a subnet: name servers, and pools where some are given.
fn subnet_change(found: &Subnet, wanted: &ManagedSubnet) -> Option<Value> {
    let mut change = Map::new();
    if found.dns_nameservers != wanted.dns_nameservers {
        change.insert("dns_nameservers".to_owned(), json!(wanted.dns_nameservers));
    }
    let has = |pool: &Pool| {
        let pool = AllocationPool { start: pool.start.clone(), end: pool.end.clone() };
        found.allocation_pools.contains(&pool)
    };
    let wanted = &wanted.allocation_pools;
    let is_as_wanted = wanted.len() == found.allocation_pools.len() && wanted.iter().all(has);
    if !wanted.is_empty() && !is_as_wanted {
        let pools = wanted.iter().map(|pool| json!({"start": pool.start, "end": pool.end}));
        change.insert("allocation_pools".to_owned(), pools.collect());
    }
    (!change.is_empty()).then_some(Value::Object(change))
}

fn existing(pass: &mut Pass<'_>) -> Result<(), Problem> {
    let cloud = &pass.cloud;
    let named = pass.spec.network()?;
    let named = named.map(|param| network::one::<Network>(cloud, &param, &Query::new())).transpose();
    let named = named.map_err(|problem| problem.context("spec.network"))?;
    let among = named.as_ref().map_or_else(Query::new, |network| Query::new().with("network_id", &network.id));
    let mut subnets = Vec::new();
    for (index, value) in pass.spec.subnets.iter().enumerate() {
        let path = format!("spec.subnets[{index}]");
        let Some(param) = Param::read(value, &path)? else { continue };
        let found = network::one::<Subnet>(cloud, &param, &among);
        subnets.push(found.map_err(|problem| problem.context(path))?);
    }
    let network = match (named, subnets.first()) {
        (Some(network), _) => network,
        // Nobody named the network, so it is that of the subnets.
        (None, Some(subnet)) => network::get::<Network>(cloud, &subnet.network_id)?.ok_or_else(|| {
            Problem::invalid("NoNetwork", format!("the network of subnet {} cannot be seen", subnet.id))
        })?,
        (None, None) => {
            let message = "spec needs managedSubnets, or a network or subnets that are there already";
            return Err(Problem::invalid("NoNetwork", message));
        }
    };
    if subnets.is_empty() {
        subnets = network::list(cloud, &Query::new().with("network_id", &network.id))?;
        // In the network's own order.
        for (place, id) in network.subnets.iter().enumerate() {
            if let Some(at) = subnets.iter().position(|subnet: &Subnet| subnet.id == *id) {
                subnets.swap(at, place.min(at));
            }
        }
    }
    check(&network, &subnets)?;
    primary_first(pass, &network, &mut subnets)?;
    pass.status.network = Some(NetworkStatus::of(&network, &subnets));
    Ok(())
}

/// Puts the primary subnet where the load balancer and its members look.
fn primary_first(pass: &Pass<'_>, network: &Network, subnets: &mut Vec<Subnet>) -> Result<(), Problem> {
    let path = "spec.primarySubnet";
    let Some(param) = Param::read(&pass.spec.primary_subnet, path)? else { return Ok(()) };
    let known = |id: &str| subnets.iter().position(|subnet| subnet.id == id);
    let at = match &param {
        Param::Id(id) => known(id),
        Param::Filter(_) => None,
    };
    let primary = match at {
        Some(at) => subnets.remove(at),
        None => {
            let among = Query::new().with("network_id", &network.id);
            let found = network::one::<Subnet>(&pass.cloud, &param, &among);
            let found = found.map_err(|problem| problem.context(path))?;
            if found.network_id != network.id {
                let message = format!("{path} {} is not of network {}", found.id, network.id);
                return Err(Problem::invalid("InvalidSubnets", message));
            }
            subnets.retain(|subnet| subnet.id != found.id);
            found
        }
    };
    subnets.insert(0, primary);
    Ok(())
}

fn check(network: &Network, subnets: &[Subnet]) -> Result<(), Problem> {
    let invalid = |message: String| Err(Problem::invalid("InvalidSubnets", message));
    if let Some(other) = subnets.iter().find(|subnet| subnet.network_id != network.id) {
        return invalid(format!("subnet {} is not of network {}", other.id, network.id));
    }
    let families = subnets.iter().filter(|subnet| subnet.cidr.contains(':')).count();
    match subnets.len() {
        0 => invalid(format!("network {} has no subnet", network.id)),
        1 => Ok(()),
        MOST_SUBNETS if families == 1 => Ok(()),
        MOST_SUBNETS => invalid("two subnets have to be one of IPv4 and one of IPv6".to_owned()),
        many => invalid(format!("{many} subnets match; a cluster has one, or one of IPv4 and one of IPv6")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn subnet(id: &str, network: &str, cidr: &str) -> Subnet {
        Subnet { id: id.to_owned(), network_id: network.to_owned(), cidr: cidr.to_owned(), ..Subnet::default() }
    }

    #[test]
    fn a_managed_network_says_what_the_spec_says_and_no_more() {
        let names = ClusterNames::new("ns", "c");
        let plain = network_fields(&Spec::default(), &names);
        let described = "Created by cluster-api-provider-openstack cluster ns-c";
        let expected = json!({"name": "k8s-clusterapi-cluster-ns-c", "description": described, "admin_state_up": true});
        assert_eq!(plain, expected);
        let spec = Spec { disable_port_security: true, network_mtu: Some(1450), ..Spec::default() };
        let fields = network_fields(&spec, &names);
        assert_eq!((&fields["port_security_enabled"], &fields["mtu"]), (&json!(false), &json!(1450)));
    }

    #[test]
    fn only_name_servers_and_given_pools_of_a_subnet_are_changed() {
        let found = Subnet {
            dns_nameservers: vec!["1.1.1.1".to_owned()],
            allocation_pools: vec![AllocationPool { start: "10.0.0.2".to_owned(), end: "10.0.0.254".to_owned() }],
            ..subnet("s", "n", "10.0.0.0/24")
        };
        let same = ManagedSubnet { dns_nameservers: vec!["1.1.1.1".to_owned()], ..ManagedSubnet::default() };
        assert_eq!(subnet_change(&found, &same), None, "pools that were not given stay");
        let other = ManagedSubnet { dns_nameservers: vec!["8.8.8.8".to_owned()], ..same.clone() };
        assert_eq!(subnet_change(&found, &other), Some(json!({"dns_nameservers": ["8.8.8.8"]})));
        let pool = Pool { start: "10.0.0.10".to_owned(), end: "10.0.0.20".to_owned() };
        let pools = ManagedSubnet { allocation_pools: vec![pool], ..same };
        let expected = json!({"allocation_pools": [{"start": "10.0.0.10", "end": "10.0.0.20"}]});
        assert_eq!(subnet_change(&found, &pools), Some(expected));
    }

    #[test]
    fn subnets_are_of_one_network_and_of_different_families() {
        let network = Network { id: "n".to_owned(), ..Network::default() };
        let four = subnet("a", "n", "10.0.0.0/24");
        let six = subnet("b", "n", "fd00::/64");
        assert!(check(&network, &[]).is_err());
        assert!(check(&network, std::slice::from_ref(&four)).is_ok());
        assert!(check(&network, &[four.clone(), six.clone()]).is_ok());
        assert!(check(&network, &[four.clone(), subnet("c", "n", "10.1.0.0/24")]).is_err());
        assert!(check(&network, &[six.clone(), subnet("c", "n", "fd01::/64")]).is_err());
        assert!(check(&network, &[four.clone(), six, subnet("c", "n", "10.1.0.0/24")]).is_err());
        assert!(check(&network, &[subnet("a", "other", "10.0.0.0/24")]).is_err());
    }
}

//! Taking a cluster's infrastructure away, in the order in which OpenStack lets go of it. What somebody else made stays.

use std::collections::BTreeSet;

use capwasm_sdk::{Context, Problem};
use serde_json::json;

use super::bastion;
use super::events::{self, Act};
use super::janitor;
use super::pass::{Pass, pause};
use super::security_groups;
use crate::cloud::{Query, Service};
use crate::load_balancer::{self, ACTIVE, ERROR, LoadBalancer};
use crate::network::{self, FloatingIp, Network, Port, Resource, Router, SecurityGroup};

/// Takes the next things away; true when nothing is left.
pub fn remove(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<bool, Problem> {
    if !bastion::remove(cx, pass)? {
        return Ok(false);
    }
    if !balancers(cx, pass)? || !janitor::remove(cx, pass)? {
        cx.out.wake_after(pause(cx.host.attempt()));
        return Ok(false);
    }
    // A router does not let go of a subnet while a floating IP leads through it.
    bastion::delete_floating_ips(cx, pass, &given_addresses(pass))?;
    if !pass.spec.managed_subnets.is_empty() {
        let networks: Vec<Network> = network::named(&pass.cloud, &pass.names.network())?;
        routers(cx, pass, &networks)?;
        for network in &networks {
            ports(cx, pass, network)?;
            delete::<Network>(cx, pass, events::NETWORK, &network.name, &network.id)?;
        }
    }
    for group in security_groups::all(&pass.cloud, &pass.names)? {
        delete::<SecurityGroup>(cx, pass, events::SECURITY_GROUP, &group.name, &group.id)?;
    }
    Ok(true)
}

/// Addresses that the user brought.
fn given_addresses(pass: &Pass<'_>) -> Vec<String> {
    let bastion = pass.spec.bastion.as_ref().map_or("", |spec| spec.floating_ip.as_str());
    let given = [pass.spec.api_server_floating_ip.as_str(), bastion];
    given.into_iter().filter(|address| !address.is_empty()).map(str::to_owned).collect()
}

/// True when there is no load balancer any more.
fn balancers(cx: &mut Context<'_>, pass: &Pass<'_>) -> Result<bool, Problem> {
    let is_known = super::load_balancer::known(&pass.status).is_some();
    if pass.spec.load_balancer().is_none() && !is_known || !pass.cloud.offers(Service::LoadBalancer) {
        return Ok(true);
    }
    let found: Vec<LoadBalancer> = load_balancer::named(&pass.cloud, &pass.names.load_balancer())?;
    for balancer in &found {
        if !balancer.vip_port_id.is_empty() {
            disconnect(cx, pass, &balancer.vip_port_id)?;
        }
        delete_balancer(cx, pass, balancer)?;
    }
    Ok(found.is_empty())
}

/// Deletes a load balancer as soon as Octavia lets it be deleted.
pub fn delete_balancer(cx: &mut Context<'_>, pass: &Pass<'_>, balancer: &LoadBalancer) -> Result<(), Problem> {
    if ![ACTIVE, ERROR].contains(&balancer.provisioning_status.as_str()) {
        return Ok(());
    }
    match load_balancer::delete_with_all(&pass.cloud, &balancer.id) {
        Ok(_) => events::done(cx, Act::Delete, events::LOAD_BALANCER, &balancer.name, &balancer.id),
        // It began to change meanwhile.
        Err(failure) if failure.is_conflict() => {}
        Err(failure) => return Err(events::failed(cx, Act::Delete, events::LOAD_BALANCER, &balancer.name, failure)),
    }
    Ok(())
}

/// Deletes the floating IP of a port; one that the user brought is only taken off it.
fn disconnect(cx: &mut Context<'_>, pass: &Pass<'_>, port: &str) -> Result<(), Problem> {
    let given = given_addresses(pass);
    for ip in network::list::<FloatingIp>(&pass.cloud, &Query::new().with("port_id", port))? {
        let name = &ip.floating_ip_address;
        if ip.description == pass.names.description() && !given.contains(name) {
            delete::<FloatingIp>(cx, pass, events::FLOATING_IP, name, &ip.id)?;
        } else {
            network::update::<FloatingIp>(&pass.cloud, &ip.id, json!({"port_id": null}))
                .map_err(|failure| events::failed(cx, Act::Disassociate, events::FLOATING_IP, name, failure))?;
            events::done(cx, Act::Disassociate, events::FLOATING_IP, name, &ip.id);
        }
    }
    Ok(())
}

fn routers(cx: &mut Context<'_>, pass: &Pass<'_>, networks: &[Network]) -> Result<(), Problem> {
    if let Some(param) = pass.spec.router()? {
        // Somebody else's router only lets go of what is going.
        let found = network::one::<Router>(&pass.cloud, &param, &Query::new());
        return match found {
            Ok(router) => interfaces(pass, &router.id, networks),
            Err(problem) if problem.reason == network::NO_MATCH => Ok(()),
            Err(problem) => Err(problem),
        };
    }
    for router in network::named::<Router>(&pass.cloud, &pass.names.router())? {
        interfaces(pass, &router.id, networks)?;
        delete::<Router>(cx, pass, events::ROUTER, &router.name, &router.id)?;
    }
    Ok(())
}

/// Takes a router off the subnets of the cluster's networks.
fn interfaces(pass: &Pass<'_>, router: &str, networks: &[Network]) -> Result<(), Problem> {
    let ports = network::list::<Port>(&pass.cloud, &Query::new().with("device_id", router))?;
    let of_cluster = ports.iter().filter(|port| networks.iter().any(|network| network.id == port.network_id));
    let mut subnets = BTreeSet::new();
    subnets.extend(of_cluster.flat_map(|port| &port.fixed_ips).map(|address| address.subnet_id.as_str()));
    for subnet in subnets {
        match network::remove_router_interface(&pass.cloud, router, subnet) {
            Err(failure) if !failure.is_not_found() => {
                return Err(Problem::from(failure).context("unable to take the router off the subnet"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Deletes ports of the cluster that nothing uses.
fn ports(cx: &mut Context<'_>, pass: &Pass<'_>, network: &Network) -> Result<(), Problem> {
    let found: Vec<Port> = network::list(&pass.cloud, &Query::new().with("network_id", &network.id))?;
    let base = pass.names.base();
    let is_ours = |port: &&Port| port.name.starts_with(&pass.cluster) || port.name.starts_with(&base);
    for port in found.iter().filter(|port| port.device_owner.is_empty()).filter(is_ours) {
        delete::<Port>(cx, pass, events::PORT, &port.name, &port.id)?;
    }
    Ok(())
}

/// Deletes one resource, and says so.
pub fn delete<T: Resource>(
    cx: &mut Context<'_>,
    pass: &Pass<'_>,
    what: events::What,
    name: &str,
    id: &str,
) -> Result<(), Problem> {
    network::delete::<T>(&pass.cloud, id).map_err(|failure| events::failed(cx, Act::Delete, what, name, failure))?;
    events::done(cx, Act::Delete, what, name, id);
    Ok(())
}

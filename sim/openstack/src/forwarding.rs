//! Traffic: floating IPs and addresses of load balancers on loopback lead to the nodes behind them.
//!
//! A load balancer is reached at its VIP, when that is a loopback address, and at its floating IP; its listeners' ports lead
//! to the members. A floating IP of a server leads to its node, on every TCP port that a security group of it lets in by its
//! own (a range of one).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde_json::Value;

use super::cloud::{Cloud, State};
use super::nodes;
use super::octavia;
use super::table::{items, text, texts};
use capwasm_sim_service::balancer::{Balancer, Configuration, Server};

/// Addresses on loopback that lead elsewhere. Nothing listens any more when it is dropped.
#[derive(Default)]
pub struct Forwarding {
    open: BTreeMap<IpAddr, (Configuration, Arc<Balancer>)>,
}

impl Forwarding {
    /// Leads these addresses' TCP ports to any of their targets, and no others.
    pub async fn lead(&mut self, wanted: BTreeMap<IpAddr, BTreeMap<u16, Vec<SocketAddr>>>) {
        let server =
            |to: &SocketAddr| Server { name: to.to_string(), address: to.to_string(), weight: 1, backup: false };
        let servers = |(port, targets): (u16, Vec<SocketAddr>)| (port, targets.iter().map(server).collect());
        let configuration = |ports: BTreeMap<_, _>| Configuration { ports: ports.into_iter().map(servers).collect() };
        self.set(wanted.into_iter().map(|(address, ports)| (address, configuration(ports))).collect()).await;
    }

    async fn set(&mut self, wanted: BTreeMap<IpAddr, Configuration>) {
        self.open.retain(|address, (_, balancer)| {
            let stays = wanted.contains_key(address);
            if !stays {
                balancer.stop();
            }
            stays
        });
        for (address, configuration) in wanted {
            if self.open.get(&address).is_some_and(|(known, _)| *known == configuration) {
                continue;
            }
            let outcome = match self.open.get(&address) {
                Some((_, balancer)) => balancer.reload(&configuration).await.map(|()| Arc::clone(balancer)),
                None => Balancer::start(address, &configuration).await,
            };
            match outcome {
                Ok(balancer) => drop(self.open.insert(address, (configuration, balancer))),
                Err(error) => {
                    tracing::warn!(%address, %error, "an address of the simulated OpenStack cannot be served")
                }
            }
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (_, balancer) in self.open.values() {
            balancer.stop();
        }
    }
}

/// Keeps listeners as the state wants them, until the cloud ends.
pub(super) async fn run(cloud: Arc<Cloud>) {
    let mut forwarding = Forwarding::default();
    loop {
        forwarding.set(cloud.look(|state| wanted(&cloud, state))).await;
        tokio::select! {
            () = cloud.stop.cancelled() => return,
            () = cloud.changed.notified() => {}
        }
    }
}

/// For each floating IP and load balancer's address on loopback, which ports lead to which servers.
fn wanted(cloud: &Cloud, state: &State) -> BTreeMap<IpAddr, Configuration> {
    let mut found: BTreeMap<IpAddr, Configuration> = BTreeMap::new();
    let loopback = |text: &str| text.parse::<IpAddr>().ok().filter(IpAddr::is_loopback);
    let floating = |port: &str| {
        let of_port = state.networking.floating.iter().filter(|floating| text(floating, "port_id") == port);
        of_port.filter_map(|floating| loopback(text(floating, "floating_ip_address"))).collect::<Vec<_>>()
    };
    for balancer in state.balancing.balancers.iter() {
        let mut addresses = floating(text(balancer, "vip_port_id"));
        addresses.extend(loopback(text(balancer, "vip_address")));
        if addresses.is_empty() {
            continue;
        }
        let mut configuration = Configuration::default();
        for (port, members) in octavia::targets(&state.balancing, text(balancer, "id")) {
            let server = |(address, port, weight): &(String, u16, u32)| {
                let to = reach(cloud, state, text(balancer, "vip_network_id"), address)?;
                Some(Server { name: address.clone(), address: format!("{to}:{port}"), weight: *weight, backup: false })
            };
            configuration.ports.insert(port, members.iter().filter_map(server).collect());
        }
        for address in addresses {
            found.insert(address, configuration.clone());
        }
    }
    for port in state.networking.ports.iter() {
        let Some(node) = nodes::address(cloud, text(port, "device_id")) else { continue };
        for address in floating(text(port, "id")) {
            let server = |port: u16| {
                let server =
                    Server { name: node.to_string(), address: format!("{node}:{port}"), weight: 1, backup: false };
                (port, vec![server])
            };
            let ports = open_ports(state, port).into_iter().map(server).collect();
            found.insert(address, Configuration { ports });
        }
    }
    found
}

/// Where a member's address is reached: at its server's node, or as it is when it is on loopback already. Other networks may
/// have the same addresses, so that of the load balancer counts first.
fn reach(cloud: &Cloud, state: &State, network: &str, address: &str) -> Option<IpAddr> {
    let has = |port: &&Value| items(port, "fixed_ips").any(|fixed| text(fixed, "ip_address") == address);
    let mut ports: Vec<&Value> = state.networking.ports.iter().filter(has).collect();
    ports.sort_by_key(|port| text(port, "network_id") != network);
    let node = ports.into_iter().find_map(|port| nodes::address(cloud, text(port, "device_id")));
    node.map(IpAddr::V4).or_else(|| address.parse().ok().filter(IpAddr::is_loopback))
}

/// TCP ports that a port's security groups let in one by one.
fn open_ports(state: &State, port: &Value) -> Vec<u16> {
    let groups: Vec<&str> = texts(port, "security_groups").collect();
    let rules = state.networking.rules.iter().filter(|rule| groups.contains(&text(rule, "security_group_id")));
    let single = |rule: &Value| {
        let lets_in = text(rule, "direction") == "ingress" && text(rule, "protocol") == "tcp";
        let (least, most) = (rule["port_range_min"].as_u64()?, rule["port_range_max"].as_u64()?);
        (lets_in && least == most).then(|| u16::try_from(least).ok()).flatten()
    };
    rules.filter_map(single).collect()
}

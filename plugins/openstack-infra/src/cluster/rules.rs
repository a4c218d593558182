//! Rules of the managed security groups: which there should be, and how they compare to those that are.

use capwasm_sdk::Problem;
use serde_json::{Map, Value};

use super::cidr;
use super::spec::{ManagedSecurityGroups, RuleSpec, Spec};
use crate::names::SecurityGroupRole;
use crate::network::Rule;

/// Where services of type NodePort listen.
const NODE_PORTS: (u16, u16) = (30000, 32767);
/// The API server's usual port, open whatever the endpoint's port is.
const API_SERVER: u16 = 6443;

/// Ids of the groups by role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupIds {
    pub control_plane: String,
    pub worker: String,
    /// Of the bastion, where there is one.
    pub bastion: Option<String>,
}

/// A rule that should be; in Neutron's words, normalised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// For people; does not count in comparisons.
    pub description: String,
    direction: String,
    ethertype: String,
    protocol: Option<String>,
    ports: Option<(u16, u16)>,
    remote_group: Option<String>,
    remote_prefix: Option<String>,
}

impl GroupIds {
    fn of(&self, name: &str) -> Option<&str> {
        match name {
            "controlplane" => Some(&self.control_plane),
            "worker" => Some(&self.worker),
            "bastion" => self.bastion.as_deref(),
            _ => None,
        }
    }
}

impl Wanted {
    fn new(description: &str, direction: &str, ethertype: &str) -> Wanted {
        Wanted {
            description: description.to_owned(),
            direction: direction.to_owned(),
            ethertype: ethertype.to_owned(),
            ..Wanted::default()
        }
    }

    fn ingress(description: &str) -> Wanted {
        Wanted::new(description, "ingress", "IPv4")
    }

    fn tcp(self, first: u16, last: u16) -> Wanted {
        Wanted { protocol: Some("tcp".to_owned()), ports: Some((first, last)), ..self }
    }

    fn udp(self, first: u16, last: u16) -> Wanted {
        Wanted { protocol: Some("udp".to_owned()), ports: Some((first, last)), ..self }
    }

    fn of_group(self, id: &str) -> Wanted {
        Wanted { remote_group: Some(id.to_owned()), ..self }
    }

    fn of_range(self, cidr: &str) -> Wanted {
        Wanted { remote_prefix: Some(cidr.to_owned()), ..self }
    }

    /// Whether a rule of Neutron's does the same.
    fn matches(&self, rule: &Rule) -> bool {
        let ports = match (rule.port_range_min.unwrap_or(0), rule.port_range_max.unwrap_or(0)) {
            (0, 0) => None,
            ports => Some(ports),
        };
        let is = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        self.direction == rule.direction
            && self.ethertype == rule.ethertype
            && self.protocol == is(&rule.protocol).map(|protocol| protocol.to_lowercase())
            && self.ports == ports
            && self.remote_group == is(&rule.remote_group_id)
            && self.remote_prefix == is(&rule.remote_ip_prefix).map(|prefix| normal(&prefix))
    }

    fn does_the_same(&self, other: &Wanted) -> bool {
        *self == Wanted { description: self.description.clone(), ..other.clone() }
    }

    /// For a request to make it in a group.
    pub fn fields(&self, group: &str) -> Value {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("security_group_id", group.into());
        set("direction", self.direction.clone().into());
        set("ethertype", self.ethertype.clone().into());
        if !self.description.is_empty() {
            set("description", self.description.clone().into());
        }
        if let Some(protocol) = &self.protocol {
            set("protocol", protocol.clone().into());
        }
        if let Some((first, last)) = self.ports {
            set("port_range_min", first.into());
            set("port_range_max", last.into());
        }
        if let Some(id) = &self.remote_group {
            set("remote_group_id", id.clone().into());
        }
        if let Some(prefix) = &self.remote_prefix {
            set("remote_ip_prefix", prefix.clone().into());
        }
        Value::Object(fields)
    }
}

/// As Neutron writes it; as it is where it is no range.
fn normal(prefix: &str) -> String {
    cidr::parse(prefix).map_or_else(|| prefix.to_owned(), |range| range.to_string())
}

/// What is to be done to a group's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Ids of rules that should not be.
    pub surplus: Vec<String>,
    pub missing: Vec<Wanted>,
}

impl Change {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.surplus.is_empty() && self.missing.is_empty()
    }
}

/// Compares the rules of a group to what they should be.
pub fn compare(found: &[Rule], wanted: &[Wanted]) -> Change {
    let surplus = found.iter().filter(|rule| !wanted.iter().any(|wanted| wanted.matches(rule)));
    let missing = wanted.iter().filter(|wanted| !found.iter().any(|rule| wanted.matches(rule)));
    Change { surplus: surplus.map(|rule| rule.id.clone()).collect(), missing: missing.cloned().collect() }
}

/// The rules of a group, each once. `cidrs` are those of the cluster's subnets.
///
/// # Errors
/// Invalid: a rule of the user's names a group that there is not, or two kinds of remote.
pub fn wanted<'c>(
    role: SecurityGroupRole,
    spec: &Spec,
    managed: &ManagedSecurityGroups,
    ids: &GroupIds,
    cidrs: impl Iterator<Item = &'c str>,
) -> Result<Vec<Wanted>, Problem> {
    let mut rules = vec![Wanted::new("Full open", "egress", "IPv4"), Wanted::new("Full open", "egress", "IPv6")];
    match role {
        SecurityGroupRole::ControlPlane => {
            control_plane(&mut rules, spec, managed, ids);
            custom(&mut rules, &managed.control_plane_nodes_security_group_rules, ids)?;
            custom(&mut rules, &managed.all_nodes_security_group_rules, ids)?;
        }
        SecurityGroupRole::Worker => {
            worker(&mut rules, managed, ids, cidrs);
            custom(&mut rules, &managed.worker_nodes_security_group_rules, ids)?;
            custom(&mut rules, &managed.all_nodes_security_group_rules, ids)?;
        }
        SecurityGroupRole::Bastion => rules.push(Wanted::ingress("SSH").tcp(22, 22)),
    }
    let mut each_once: Vec<Wanted> = Vec::with_capacity(rules.len());
    for rule in rules {
        // Neutron refuses a rule that is there already.
        if !each_once.iter().any(|known| known.does_the_same(&rule)) {
            each_once.push(rule);
        }
    }
    Ok(each_once)
}

fn control_plane(rules: &mut Vec<Wanted>, spec: &Spec, managed: &ManagedSecurityGroups, ids: &GroupIds) {
    rules.push(Wanted::ingress("Kubernetes API").tcp(API_SERVER, API_SERVER));
    let port = spec.api_port();
    rules.push(Wanted::ingress("Kubernetes API").tcp(port, port));
    for port in spec.load_balancer().into_iter().flat_map(|spec| &spec.additional_ports) {
        rules.push(Wanted::ingress("Additional ports").tcp(*port, *port));
    }
    if managed.allow_all_in_cluster_traffic {
        in_cluster(rules, ids);
    } else {
        rules.push(Wanted::ingress("Etcd").tcp(2379, 2380).of_group(&ids.control_plane));
        kubelet(rules, ids);
    }
    ssh(rules, ids);
}

fn worker<'c>(
    rules: &mut Vec<Wanted>,
    managed: &ManagedSecurityGroups,
    ids: &GroupIds,
    cidrs: impl Iterator<Item = &'c str>,
) {
    let (first, last) = NODE_PORTS;
    let node_ports = || {
        let rule = Wanted::ingress("Node Port Services");
        [rule.clone().tcp(first, last), rule.udp(first, last)]
    };
    for cidr in cidrs.filter_map(cidr::parse).filter(cidr::is_ipv4) {
        rules.extend(node_ports().map(|rule| rule.of_range(&cidr.to_string())));
    }
    for group in [&ids.worker, &ids.control_plane] {
        rules.extend(node_ports().map(|rule| rule.of_group(group)));
    }
    if managed.allow_all_in_cluster_traffic {
        in_cluster(rules, ids)
    } else {
        kubelet(rules, ids)
    }
    ssh(rules, ids);
}

fn in_cluster(rules: &mut Vec<Wanted>, ids: &GroupIds) {
    for group in [&ids.control_plane, &ids.worker] {
        rules.push(Wanted::ingress("In-cluster Ingress").of_group(group));
    }
}

fn kubelet(rules: &mut Vec<Wanted>, ids: &GroupIds) {
    for group in [&ids.control_plane, &ids.worker] {
        rules.push(Wanted::ingress("Kubelet API").tcp(10250, 10250).of_group(group));
    }
}

fn ssh(rules: &mut Vec<Wanted>, ids: &GroupIds) {
    if let Some(bastion) = &ids.bastion {
        rules.push(Wanted::ingress("SSH").tcp(22, 22).of_group(bastion));
    }
}

fn custom(rules: &mut Vec<Wanted>, specs: &[RuleSpec], ids: &GroupIds) -> Result<(), Problem> {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    for spec in specs {
        let rule = Wanted {
            description: if spec.description.is_empty() { spec.name.clone() } else { spec.description.clone() },
            direction: spec.direction.clone(),
            ethertype: given(&spec.ether_type).unwrap_or_else(|| "IPv4".to_owned()),
            protocol: given(&spec.protocol).map(|protocol| protocol.to_lowercase()),
            ports: Some((spec.port_range_min, spec.port_range_max)).filter(|ports| *ports != (0, 0)),
            remote_group: given(&spec.remote_group_id),
            remote_prefix: given(&spec.remote_ip_prefix).map(|prefix| normal(&prefix)),
        };
        let kinds = [rule.remote_group.is_some(), rule.remote_prefix.is_some(), !spec.remote_managed_groups.is_empty()];
        if kinds.iter().filter(|given| **given).count() > 1 {
            let message = format!(
                "security group rule {}: use one of remoteManagedGroups, remoteGroupID and remoteIPPrefix",
                spec.name
            );
            return Err(Problem::invalid("InvalidSecurityGroupRule", message));
        }
        if spec.remote_managed_groups.is_empty() {
            rules.push(rule);
            continue;
        }
        for name in &spec.remote_managed_groups {
            let id = ids.of(name).ok_or_else(|| {
                let message = format!("security group rule {}: there is no managed group {name}", spec.name);
                Problem::invalid("InvalidSecurityGroupRule", message)
            })?;
            rules.push(rule.clone().of_group(id));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;

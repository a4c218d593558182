//! Which machines are behind the load balancer: written here alone, for all of them at once.
//!
//! Every control-plane machine with an address is a member of the pool of each port, until it is being deleted; its
//! condition `APIServerIngressReady` says whether it is one, and a machine that goes waits for that.

use std::collections::BTreeMap;

use capwasm_api::names::fingerprint;
use capwasm_sdk::{Context, Fault, ObjectRef, Problem, object};
use serde_json::{Value, json};

use super::cidr::{self, IpNet};
use super::load_balancer::{known, settle};
use super::pass::{Pass, READY};
use super::status::{Status, SubnetStatus};
use crate::kinds::{API_SERVER_INGRESS_READY, CONTROL_PLANE_LABEL, V1BETA1};
use crate::load_balancer::{self, ERROR, Member, Pool};
use crate::names::ClusterNames;

/// Key of its fingerprint in `status.applied`.
const PART: &str = "members";
/// Reason of a machine that is not a member any more.
const DELETING: &str = "Deleting";
/// Reason in upstream's words.
const MEMBER_ERROR: &str = "LoadBalancerMemberError";

/// A control-plane machine, as a member of the load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Machine {
    name: String,
    namespace: String,
    /// In the cluster's network, where it has one yet.
    address: Option<String>,
    is_deleting: bool,
    /// Status and reason of its condition.
    told: (String, String),
}

impl Machine {
    fn is_member(&self) -> bool {
        !self.is_deleting && self.address.is_some()
    }
}

/// Brings the members of all pools nearer to the machines, and tells the machines.
///
/// # Errors
/// Waiting while Octavia is at it. Machines are told of other errors, too.
pub fn reconcile(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<(), Problem> {
    if pass.spec.load_balancer().is_none() {
        return Ok(());
    }
    let Some(balancer) = known(&pass.status).map(|balancer| balancer.id.clone()) else { return Ok(()) };
    let cidrs: Vec<IpNet> = pass.status.cidrs().filter_map(cidr::parse).collect();
    let machines = machines(&cx.host.related("machines"), &cx.host.related("infrastructure-machines"), &cidrs);
    let ports = pass.spec.load_balancer_ports();
    let print = print(&balancer, &ports, &machines);
    // A cluster that has no machines yet has no members, and nobody has to look.
    let is_wanted = !machines.is_empty() || pass.status.applied.contains_key(PART);
    if is_wanted && !pass.status.is_applied(PART, &print) {
        if let Err(problem) = apply(cx, pass, &balancer, &ports, &machines) {
            pass.status.set_applied(PART, None);
            if problem.fault != Fault::Waiting {
                for machine in machines.iter().filter(|machine| machine.is_member()) {
                    tell(cx, machine, false, MEMBER_ERROR, &problem.message);
                }
            }
            return Err(problem);
        }
        pass.status.set_applied(PART, Some(print));
    }
    for machine in &machines {
        if machine.is_member() {
            tell(cx, machine, true, READY, "the load balancer leads to it");
        } else if machine.is_deleting {
            tell(cx, machine, false, DELETING, "it is not behind the load balancer any more");
        }
    }
    Ok(())
}

fn machines(machines: &[Value], infrastructure: &[Value], cidrs: &[IpNet]) -> Vec<Machine> {
    let is_control_plane = |found: &Value| {
        object::label(found, CONTROL_PLANE_LABEL).is_some()
            || machines.iter().any(|machine| {
                object::label(machine, CONTROL_PLANE_LABEL).is_some()
                    && object::text(machine, "/spec/infrastructureRef/name") == object::name(found)
                    && object::namespace(machine) == object::namespace(found)
            })
    };
    let mut found = BTreeMap::new();
    let machines = infrastructure.iter().filter(|found| is_control_plane(found)).map(|found| {
        let told = object::condition(found, API_SERVER_INGRESS_READY);
        let text = |at: &str| told.map(|told| object::text(told, at).to_owned()).unwrap_or_default();
        Machine {
            name: object::name(found).to_owned(),
            namespace: object::namespace(found).to_owned(),
            address: address(found, cidrs),
            is_deleting: object::is_deleting(found),
            told: (text("/status"), text("/reason")),
        }
    });
    found.extend(machines.map(|machine| (machine.name.clone(), machine)));
    found.into_values().collect()
}

/// Its first address in one of the cluster's subnets; any of its own without one.
fn address(machine: &Value, cidrs: &[IpNet]) -> Option<String> {
    let all = machine.pointer("/status/addresses").and_then(Value::as_array)?;
    let internal: Vec<&str> = all
        .iter()
        .filter(|address| object::text(address, "/type") == "InternalIP")
        .map(|address| object::text(address, "/address"))
        .filter(|address| !address.is_empty())
        .collect();
    let near = internal.iter().find(|address| cidrs.iter().any(|range| cidr::contains(range, address)));
    near.or(internal.first()).map(|address| (*address).to_owned())
}

fn print(balancer: &str, ports: &[u16], machines: &[Machine]) -> String {
    let members: Vec<Value> = machines
        .iter()
        .filter(|machine| machine.is_member())
        .map(|machine| json!([machine.name, machine.address]))
        .collect();
    fingerprint(&json!([balancer, ports, members]).to_string())
}

fn apply(
    cx: &Context<'_>,
    pass: &Pass<'_>,
    balancer: &str,
    ports: &[u16],
    machines: &[Machine],
) -> Result<(), Problem> {
    settle(cx, pass, balancer)?;
    for port in ports {
        let name = pass.names.load_balancer_port(*port);
        let pool = load_balancer::named::<Pool>(&pass.cloud, &name)?.into_iter().next();
        let pool =
            pool.ok_or_else(|| Problem::transient("LoadBalancerPoolGone", format!("there is no pool {name}")))?;
        let wanted = wanted(&pass.names, *port, machines);
        let from = (!in_own_network(&pass.status)).then_some(&pass.status);
        if !are(&load_balancer::members(&pass.cloud, &pool.id)?, &wanted) {
            let members: Vec<Value> = wanted.iter().map(|member| fields(member, &pass.spec.tags, from)).collect();
            load_balancer::set_members(&pass.cloud, &pool.id, &members)
                .map_err(|failure| Problem::from(failure).context(format!("unable to set the members of {name}")))?;
            settle(cx, pass, balancer)?;
        }
    }
    Ok(())
}

fn wanted(names: &ClusterNames, port: u16, machines: &[Machine]) -> Vec<Member> {
    let member = |machine: &Machine| {
        Some(Member {
            name: names.load_balancer_member(port, &machine.name),
            address: machine.address.clone()?,
            protocol_port: port,
            ..Member::default()
        })
    };
    machines.iter().filter(|machine| machine.is_member()).filter_map(member).collect()
}

/// Whether the load balancer is where the machines are.
fn in_own_network(status: &Status) -> bool {
    let balancers = status.api_server_load_balancer.as_ref().and_then(|known| known.load_balancer_network.as_ref());
    let balancers = balancers.map(|network| network.id.as_str());
    balancers.is_none() || balancers == status.network.as_ref().map(|network| network.id.as_str())
}

/// `from`: the machines' network, where it is not the load balancer's. Octavia has to be told which subnet leads to a member
/// then, and OVN takes none without it.
fn fields(member: &Member, tags: &[String], from: Option<&Status>) -> Value {
    let mut fields = json!({"name": member.name, "address": member.address, "protocol_port": member.protocol_port});
    let subnets = from.and_then(|status| status.network.as_ref()).map_or(&[][..], |network| &network.subnets);
    let has_it =
        |subnet: &&SubnetStatus| cidr::parse(&subnet.cidr).is_some_and(|range| cidr::contains(&range, &member.address));
    if let Some(subnet) = subnets.iter().find(has_it).or(subnets.first()) {
        fields["subnet_id"] = subnet.id.clone().into();
    }
    if !tags.is_empty() {
        fields["tags"] = json!(tags);
    }
    fields
}

/// Whether a pool has exactly these members, and none of them needs to be written again.
fn are(found: &[Member], wanted: &[Member]) -> bool {
    let same = |found: &Member, wanted: &Member| {
        found.name == wanted.name
            && found.address == wanted.address
            && found.protocol_port == wanted.protocol_port
            && found.provisioning_status != ERROR
    };
    found.len() == wanted.len() && wanted.iter().all(|wanted| found.iter().any(|found| same(found, wanted)))
}

fn tell(cx: &mut Context<'_>, machine: &Machine, is_ready: bool, reason: &str, message: &str) {
    let status = if is_ready { "True" } else { "False" };
    if machine.told == (status.to_owned(), reason.to_owned()) {
        return;
    }
    let target = ObjectRef::new(V1BETA1, "OpenStackMachine", &machine.name).in_namespace(&machine.namespace);
    let key = format!("ingress-{}", machine.name);
    cx.out.set_condition_of(key, target, API_SERVER_INGRESS_READY, Some(is_ready), reason, message);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::load_balancer::ACTIVE;

    fn infrastructure(name: &str, addresses: &[(&str, &str)], deleting: bool) -> Value {
        let addresses: Vec<Value> =
            addresses.iter().map(|(kind, address)| json!({"type": kind, "address": address})).collect();
        let at = if deleting { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        json!({"metadata": {"name": name, "deletionTimestamp": at}, "status": {"addresses": addresses}})
    }

    fn machine(name: &str, control_plane: bool) -> Value {
        let labels = if control_plane { json!({CONTROL_PLANE_LABEL: ""}) } else { json!({}) };
        json!({"metadata": {"name": format!("m-{name}"), "labels": labels}, "spec": {"infrastructureRef": {"name": name}}})
    }

    #[test]
    fn members_are_control_plane_machines_with_an_address_that_stay() {
        let of = [machine("a", true), machine("b", true), machine("c", true), machine("w", false)];
        let infra = [
            infrastructure("c", &[("InternalIP", "10.6.0.3")], true),
            infrastructure(
                "b",
                &[("InternalIP", "192.168.0.9"), ("ExternalIP", "1.1.1.1"), ("InternalIP", "10.6.0.2")],
                false,
            ),
            infrastructure("a", &[("ExternalIP", "1.1.1.2")], false),
            infrastructure("w", &[("InternalIP", "10.6.0.4")], false),
        ];
        let cidrs = [cidr::parse("10.6.0.0/24").unwrap()];
        let found = machines(&of, &infra, &cidrs);
        assert_eq!(found.iter().map(|machine| machine.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        let members = wanted(&ClusterNames::new("ns", "k"), 6443, &found);
        assert_eq!(members.len(), 1);
        let member = (members[0].name.as_str(), members[0].address.as_str(), members[0].protocol_port);
        assert_eq!(member, ("k8s-clusterapi-cluster-ns-k-kubeapi-6443-b", "10.6.0.2", 6443));
    }

    #[test]
    fn a_pool_is_written_again_when_a_member_is_missing_moved_broken_or_too_many() {
        let member = |address: &str, status: &str| Member {
            name: "n".to_owned(),
            address: address.to_owned(),
            protocol_port: 6443,
            provisioning_status: status.to_owned(),
            ..Member::default()
        };
        let wanted = [member("10.0.0.1", "")];
        assert!(are(&[member("10.0.0.1", ACTIVE)], &wanted));
        assert!(are(&[member("10.0.0.1", "PENDING_CREATE")], &wanted));
        assert!(!are(&[], &wanted));
        assert!(!are(&[member("10.0.0.2", ACTIVE)], &wanted));
        assert!(!are(&[member("10.0.0.1", ERROR)], &wanted));
        assert!(!are(&[member("10.0.0.1", ACTIVE), member("10.0.0.2", ACTIVE)], &wanted));
        assert!(are(&[], &[]));
    }
}

//! A machine's member of etcd, and whether members and machines belong together.

use std::time::Duration;

use capwasm_api::names::reason;
use capwasm_sdk::{EtcdMember, object};
use jiff::Timestamp;

use super::Verdict;
use super::node::waiting;
use crate::etcd::label;
use crate::machine::Machine;
use crate::names::reason as own;
use crate::observe::Observed;

/// How long a new Node's member may take to appear before it is missed.
const NEW: Duration = Duration::from_secs(120);

/// What is to be said of a machine's member.
pub fn verdict(machine: &Machine, members: &Result<Vec<EtcdMember>, String>) -> Verdict {
    let Some(node) = &machine.node else { return waiting(machine) };
    if machine.deleting.is_some() {
        return (Some(false), reason::DELETING, "Machine is deleting".to_owned());
    }
    let members = match members {
        Ok(members) => members,
        Err(why) => return (None, reason::INSPECTION_FAILED, format!("Failed to connect to etcd: {why}")),
    };
    let not_healthy = |message: String| (Some(false), own::NOT_HEALTHY, message);
    let Some(member) = members.iter().find(|member| member.name == *node) else {
        let names: Vec<String> = members.iter().map(label).collect();
        return not_healthy(format!("etcd has the members {}, and none of this Machine's Node", names.join(", ")));
    };
    match () {
        () if !member.alarms.is_empty() => not_healthy(format!("etcd reports alarms: {}", member.alarms.join(", "))),
        () if !member.healthy && member.message.is_empty() => not_healthy("The member is not healthy".to_owned()),
        () if !member.healthy => not_healthy(member.message.clone()),
        () if member.learner => not_healthy("The member is a learner and does not vote yet".to_owned()),
        () => (Some(true), own::HEALTHY, String::new()),
    }
}

/// Whether members and machines belong together, and what does not. Machines that still join are given time.
pub fn compare(observed: &Observed) -> (bool, Vec<String>) {
    let Some(members) = observed.workload.known_members() else {
        return (!observed.machines.iter().any(|machine| machine.node.is_some()), Vec::new());
    };
    let joining = observed.machines.iter().any(|machine| machine.node.is_none());
    let mut matching = true;
    for machine in observed.machines.iter().filter(|machine| machine.deleting.is_none()) {
        let Some(node) = &machine.node else { continue };
        if !members.iter().any(|member| member.name == *node) && !is_new(observed, node) {
            matching = false;
        }
    }
    let mut issues = Vec::new();
    for member in members.iter().filter(|member| observed.machine_of_node(&member.name).is_none()) {
        issues.push(format!("etcd member {} does not have a corresponding Machine", label(member)));
        matching &= joining;
    }
    (matching, issues)
}

fn is_new(observed: &Observed, node: &str) -> bool {
    let node = observed.workload.nodes.iter().find(|known| object::name(known) == node);
    let created = node.and_then(|node| object::text(node, "/metadata/creationTimestamp").parse::<Timestamp>().ok());
    created.is_some_and(|created| Duration::try_from(observed.now.duration_since(created)).unwrap_or_default() < NEW)
}

//! `NodeReady` and `NodeHealthy`.

use std::time::Duration;

use capwasm_api::conditions::{Condition, Status, get};
use capwasm_api::names::{condition, reason};
use capwasm_object::{json, meta};
use serde_json::Value;

use super::decide::Decision;
use super::observe::{NodeSight, Observed};

/// How long a lost connection leaves the conditions as they are: a restart of the API server says nothing about its
/// Nodes.
const CONNECTION_GRACE: Duration = Duration::from_secs(300);
/// Conditions of a Node that must be False.
const PRESSURES: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

/// Both conditions; empty keeps the last ones.
pub(super) fn all(decision: &mut Decision<'_>) -> Vec<Condition> {
    let observed = decision.observed;
    let both = |status: Status, reason: &str, message: String| {
        [condition::NODE_READY, condition::NODE_HEALTHY]
            .map(|name| Condition::new(name, status, reason).message(message.clone()))
            .to_vec()
    };
    match &observed.node {
        NodeSight::ClusterGoes => Vec::new(),
        NodeSight::NoInfrastructure => both(
            Status::Unknown,
            reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
            "Waiting for Cluster status.initialization.infrastructureProvisioned to be true".to_owned(),
        ),
        NodeSight::NoControlPlane => both(
            Status::Unknown,
            reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED,
            "Waiting for Cluster control plane to be initialized".to_owned(),
        ),
        NodeSight::Unidentified => {
            let kind =
                observed.infrastructure.found().map_or("the infrastructure object", |(object, _)| meta::kind(object));
            both(Status::Unknown, reason::INSPECTION_FAILED, format!("Waiting for {kind} to report spec.providerID"))
        }
        NodeSight::Disconnected(why) => match grace(observed) {
            Grace::Kept(left) => {
                if let Some(left) = left {
                    decision.wake_after(left);
                }
                Vec::new()
            }
            Grace::Over => both(Status::Unknown, reason::CONNECTION_DOWN, format!("Remote connection is down: {why}")),
        },
        NodeSight::Absent(provider_id) => match &observed.machine.status.node_ref {
            Some(node) => both(Status::False, reason::NODE_DELETED, format!("Node {} has been deleted", node.name)),
            None => both(
                Status::Unknown,
                reason::NODE_DOES_NOT_EXIST,
                format!("Waiting for a Node with spec.providerID {provider_id} to exist"),
            ),
        },
        NodeSight::Found(node) => vec![ready(node), healthy(node)],
    }
}

enum Grace {
    /// Keep the last conditions, for this time at most; without a time, a change of the Cluster wakes the Machine.
    Kept(Option<Duration>),
    /// Report unknown.
    Over,
}

/// Computed from when the Cluster's connection probe failed.
fn grace(observed: &Observed) -> Grace {
    let seen = get(&observed.object, condition::NODE_HEALTHY)
        .is_some_and(|seen| seen.reason != reason::CONNECTION_DOWN && observed.machine.status.node_ref.is_some());
    if !seen {
        return Grace::Over;
    }
    let probe = observed.cluster.as_deref().and_then(|cluster| get(cluster, condition::REMOTE_CONNECTION_PROBE));
    match probe.filter(|probe| probe.status == Status::False).and_then(|probe| probe.since()) {
        None => Grace::Kept(None),
        Some(since) => {
            let passed = Duration::try_from(observed.now.duration_since(since)).unwrap_or_default();
            CONNECTION_GRACE
                .checked_sub(passed)
                .filter(|left| !left.is_zero())
                .map_or(Grace::Over, |left| Grace::Kept(Some(left)))
        }
    }
}

/// Status of a Node's condition, with its message or reason.
fn of_node(node: &Value, name: &str) -> Option<(Status, String)> {
    let list = json::items(node, "/status/conditions");
    let found = Condition::from_value(list.iter().find(|entry| json::text(entry, "/type") == Some(name))?)?;
    let text = if found.message.is_empty() { found.reason } else { found.message };
    Some((found.status, text))
}

fn ready(node: &Value) -> Condition {
    let name = condition::NODE_READY;
    match of_node(node, "Ready") {
        Some((Status::True, _)) => Condition::new(name, true, reason::NODE_READY),
        Some((Status::False, text)) => {
            Condition::new(name, false, reason::NODE_NOT_READY).message(format!("* Node.Ready: {text}"))
        }
        Some((Status::Unknown, text)) => {
            Condition::new(name, Status::Unknown, reason::NODE_READY_UNKNOWN).message(format!("* Node.Ready: {text}"))
        }
        None => Condition::new(name, Status::Unknown, reason::NODE_READY_UNKNOWN)
            .message("* Node.Ready: Condition not yet reported"),
    }
}

fn healthy(node: &Value) -> Condition {
    let name = condition::NODE_HEALTHY;
    let good = |one: &str| if one == "Ready" { Status::True } else { Status::False };
    let mut issues = Vec::new();
    let mut unknown = Vec::new();
    for one in std::iter::once("Ready").chain(PRESSURES) {
        match of_node(node, one) {
            None => unknown.push(format!("* Node.{one}: Condition not yet reported")),
            Some((Status::Unknown, text)) => unknown.push(format!("* Node.{one}: {text}")),
            Some((status, text)) if status != good(one) => issues.push(format!("* Node.{one}: {text}")),
            Some(_) => {}
        }
    }
    let (status, reason) = match (issues.is_empty(), unknown.is_empty()) {
        (false, _) => (Status::False, reason::NODE_NOT_HEALTHY),
        (true, false) => (Status::Unknown, reason::NODE_HEALTH_UNKNOWN),
        (true, true) => (Status::True, reason::NODE_HEALTHY),
    };
    issues.extend(unknown);
    Condition::new(name, status, reason).message(issues.join("\n"))
}

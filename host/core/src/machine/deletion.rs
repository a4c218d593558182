//! Order of a Machine's deletion: pre-drain hooks, drain, volumes, pre-terminate hooks, infrastructure, bootstrap
//! configuration, Node.

use std::time::Duration;

use capwasm_api::conditions as metav1;
use capwasm_api::kinds::MachineDeletionStatus;
use capwasm_api::names::{annotations, reason};
use capwasm_object::{json, meta};
use capwasm_reconcile::{Action, Operation, Target};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::decide::Decision;
use super::drain;
use super::observe::{Departure, NodeSight, Observed};
use crate::decision::Wait;
use crate::external::External;

/// How often Pods are listed during a drain; they are not watched.
const DRAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Key of the operation, to find its result in the next pass.
const DELETE_NODE: &str = "delete node";

/// The next step follows from what exists, so every pass may be the first.
pub(super) fn decide(decision: &mut Decision<'_>) -> Option<Wait> {
    let observed = decision.observed;
    let departure = observed.departure.clone().unwrap_or_default();
    let node_goes = node_goes(observed, &departure);
    if node_goes {
        let hooks = hooks(observed, annotations::PRE_DRAIN_HOOK_PREFIX);
        if !hooks.is_empty() {
            begin(decision, |deletion| &mut deletion.wait_for_pre_drain_hook_start_time);
            return Some(Wait::new(reason::WAITING_FOR_PRE_DRAIN_HOOK, format!("Waiting for {}", hooks.join(", "))));
        }
        if let Some(wait) = drain(decision, &departure).or_else(|| volumes(decision)) {
            return Some(wait);
        }
    }
    let hooks = hooks(observed, annotations::PRE_TERMINATE_HOOK_PREFIX);
    if !hooks.is_empty() {
        begin(decision, |deletion| &mut deletion.wait_for_pre_terminate_hook_start_time);
        return Some(Wait::new(reason::WAITING_FOR_PRE_TERMINATE_HOOK, format!("Waiting for {}", hooks.join(", "))));
    }
    if let Some(message) = decision.delete_external(&observed.infrastructure) {
        return Some(Wait::new(reason::WAITING_FOR_INFRASTRUCTURE_DELETION, message));
    }
    if let Some(message) = observed.bootstrap.as_ref().and_then(|external| decision.delete_external(external)) {
        return Some(Wait::new(reason::WAITING_FOR_BOOTSTRAP_DELETION, message));
    }
    if node_goes { delete_node(decision) } else { None }
}

/// Whether to drain and delete the Node. Not when the whole cluster is deleted, or has no API server.
fn node_goes(observed: &Observed, departure: &Departure) -> bool {
    let cluster_deleting = observed.cluster.as_deref().is_some_and(meta::is_deleting);
    let has_node = observed.machine.status.node_ref.is_some() || matches!(observed.node, NodeSight::Found(_));
    let has_api = departure.externally_managed || departure.control_plane_machines > 0;
    !cluster_deleting && !departure.control_plane_deleting && has_node && has_api
}

/// Whether the infrastructure is gone or being deleted; no if unknown.
fn infrastructure_goes(observed: &Observed) -> bool {
    match &observed.infrastructure {
        External::Found { object, .. } => meta::is_deleting(object),
        External::Unserved(_) => false,
        External::Missing | External::NotInstalled(_) => true,
    }
}

fn hooks(observed: &Observed, prefix: &str) -> Vec<String> {
    observed.machine.metadata.annotations.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
}

/// Whether to drain the Node, as far as that is known without its Pods.
pub(super) fn drains(observed: &Observed, departure: &Departure) -> bool {
    let excluded = observed.machine.metadata.annotations.contains_key(annotations::EXCLUDE_NODE_DRAINING);
    let started = observed.machine.status.deletion.node_drain_start_time.as_deref();
    let limit = observed.machine.spec.deletion.node_drain_timeout_seconds;
    node_goes(observed, departure)
        && !infrastructure_goes(observed)
        && !excluded
        && !expired(started, limit, observed.now)
}

/// `None` when the Node is drained, or need not be.
fn drain(decision: &mut Decision<'_>, departure: &Departure) -> Option<Wait> {
    let observed = decision.observed;
    if !drains(observed, departure) {
        return None;
    }
    let started = observed.machine.status.deletion.node_drain_start_time.as_deref();
    let limit = observed.machine.spec.deletion.node_drain_timeout_seconds;
    let node = match &observed.node {
        NodeSight::Found(node) => node,
        NodeSight::Disconnected(why) => {
            begin(decision, |deletion| &mut deletion.node_drain_start_time);
            limit_wakes(decision, started, limit);
            return Some(Wait::new(reason::DRAINING_NODE, format!("The workload cluster cannot be reached: {why}")));
        }
        _ => return None,
    };
    let cluster = observed.cluster_id();
    let target = |kind: &str, object: &Value| Target {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: meta::namespace(object).to_owned(),
        name: meta::name(object).to_owned(),
    };
    if json::flag(node, "/spec/unschedulable") != Some(true) {
        // The Node is watched: what this changes brings the next pass, which sees every Pod that was scheduled before.
        let action = Action::Patch {
            target: target("Node", node),
            merge: json!({"spec": {"unschedulable": true}}),
            resource_version: None,
            subresource: None,
        };
        decision.plan.operations.push(Operation::workload("cordon", &cluster, action));
        begin(decision, |deletion| &mut deletion.node_drain_start_time);
        return Some(Wait::new(reason::DRAINING_NODE, format!("Cordoning Node {}", meta::name(node))));
    }
    let unreachable = json::items(node, "/status/conditions")
        .iter()
        .any(|one| json::text(one, "/type") == Some("Ready") && json::text(one, "/status") == Some("Unknown"));
    let Some(pods) = &departure.pods else {
        begin(decision, |deletion| &mut deletion.node_drain_start_time);
        decision.wake_after(DRAIN_INTERVAL);
        return Some(Wait::new(reason::DRAINING_NODE, "The Pods of the Node could not be listed".to_owned()));
    };
    let drain = drain::sort(pods.iter().map(AsRef::as_ref), unreachable, &departure.rules);
    if drain.is_done() {
        return None;
    }
    let key = |pod: &Value| format!("evict {}/{}", meta::namespace(pod), meta::name(pod));
    // The round goes on behind the one that was refused: every Pod has its turn, however many a disruption budget holds.
    let mut evict = drain.evict.clone();
    let refused = |pod: &&Value| observed.results.iter().any(|(name, result)| *name == key(pod) && result.is_err());
    if let Some(at) = evict.iter().position(refused) {
        evict.rotate_left(at + 1);
    }
    for pod in evict {
        let action = Action::Evict { target: target("Pod", pod), grace_period: unreachable.then_some(1) };
        decision.plan.operations.push(Operation::workload(key(pod), &cluster, action));
    }
    begin(decision, |deletion| &mut deletion.node_drain_start_time);
    decision.wake_after(DRAIN_INTERVAL);
    limit_wakes(decision, started, limit);
    let line = |what: &str, pods: &[&Value]| {
        let names: Vec<String> =
            pods.iter().take(5).map(|pod| format!("{}/{}", meta::namespace(pod), meta::name(pod))).collect();
        let more = if pods.len() > 5 { format!(", ... ({} more)", pods.len() - 5) } else { String::new() };
        (!pods.is_empty()).then(|| format!("* {what}: {}{more}", names.join(", ")))
    };
    let lines = [
        line("Pods to evict", &drain.evict),
        line("Pods to wait for", &drain.wait),
        line("Pods of later rounds", &drain.later),
    ];
    Some(Wait::new(reason::DRAINING_NODE, lines.into_iter().flatten().collect::<Vec<_>>().join("\n")))
}

/// `None` when no volume is attached, or none has to be waited for. The Node is watched, so only the timeout needs a
/// timer.
fn volumes(decision: &mut Decision<'_>) -> Option<Wait> {
    let observed = decision.observed;
    let NodeSight::Found(node) = &observed.node else { return None };
    let excluded = observed.machine.metadata.annotations.contains_key(annotations::EXCLUDE_VOLUME_DETACH);
    let started = observed.machine.status.deletion.wait_for_node_volume_detach_start_time.as_deref();
    let limit = observed.machine.spec.deletion.node_volume_detach_timeout_seconds;
    let attached = json::items(node, "/status/volumesAttached");
    if attached.is_empty() || infrastructure_goes(observed) || excluded || expired(started, limit, observed.now) {
        return None;
    }
    begin(decision, |deletion| &mut deletion.wait_for_node_volume_detach_start_time);
    limit_wakes(decision, started, limit);
    let names: Vec<&str> = attached.iter().filter_map(|volume| json::text(volume, "/name")).take(5).collect();
    Some(Wait::new(reason::WAITING_FOR_VOLUME_DETACH, format!("* Volumes: {}", names.join(", "))))
}

/// Deletes the Node last, before the finalizer is removed: if that fails, the Machine stays and retries until the
/// timeout.
fn delete_node(decision: &mut Decision<'_>) -> Option<Wait> {
    let observed = decision.observed;
    let limit = observed.machine.spec.deletion.node_deletion_timeout_seconds;
    let passed = expired(observed.machine.metadata.deletion_timestamp.as_deref(), limit, observed.now);
    let failed = observed.results.iter().any(|(name, result)| name == DELETE_NODE && result.is_err());
    match &observed.node {
        NodeSight::Found(_) if failed && passed => None,
        NodeSight::Found(node) => {
            let target = Target {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                namespace: String::new(),
                name: meta::name(node).to_owned(),
            };
            let action =
                Action::Delete { target, uid: json::text(node, "/metadata/uid").map(str::to_owned), propagation: None };
            decision.plan.operations.push(Operation::workload(DELETE_NODE, &observed.cluster_id(), action));
            None
        }
        NodeSight::Disconnected(why) if !passed => {
            limit_wakes(decision, observed.machine.metadata.deletion_timestamp.as_deref(), limit);
            Some(Wait::new(reason::DELETING_NODE, format!("The workload cluster cannot be reached: {why}")))
        }
        _ => None,
    }
}

/// Whether a timeout in seconds has passed; absent and 0 mean none.
fn expired(since: Option<&str>, limit: Option<i32>, now: Timestamp) -> bool {
    remaining(since, limit, now).is_some_and(|left| left.is_zero())
}

fn remaining(since: Option<&str>, limit: Option<i32>, now: Timestamp) -> Option<Duration> {
    let limit = Duration::from_secs(u64::try_from(limit?).ok().filter(|seconds| *seconds > 0)?);
    let since: Timestamp = since?.parse().ok()?;
    Some(limit.saturating_sub(Duration::try_from(now.duration_since(since)).unwrap_or_default()))
}

fn limit_wakes(decision: &mut Decision<'_>, since: Option<&str>, limit: Option<i32>) {
    let now = decision.observed.now;
    let started = metav1::timestamp(now);
    if let Some(left) = remaining(Some(since.unwrap_or(&started)), limit, now) {
        decision.wake_after(left.max(Duration::from_secs(1)));
    }
}

/// Records the start of a step of the deletion, once.
fn begin(decision: &mut Decision<'_>, step: impl FnOnce(&mut MachineDeletionStatus) -> &mut Option<String>) {
    step(&mut decision.draft.status.deletion).get_or_insert_with(|| metav1::timestamp(decision.observed.now));
}

#[cfg(test)]
mod tests;

//! Evaluates the health of a Machine.

use std::time::Duration;

use capwasm_api::conditions::{self, Condition, Status};
use capwasm_api::kinds::{HealthChecks, UnhealthyCondition};
use capwasm_api::names::{annotations, condition, labels, reason};
use capwasm_object::{json, meta};
use jiff::Timestamp;
use serde_json::Value;

use super::observe::{NodeSight, Target};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It has a Node without problems.
    Healthy,
    /// Not checked yet, or nothing to check.
    Unsaid,
    /// Unhealthy after this time, unless something changes.
    Doubtful(Duration),
    /// Unhealthy; reason and message of `HealthCheckSucceeded`.
    Unhealthy(&'static str, String),
}

pub(super) fn evaluate(target: &Target, checks: &HealthChecks, cluster: &Value, now: Timestamp) -> Health {
    let machine = &*target.machine;
    if meta::annotation(machine, annotations::REMEDIATE_MACHINE).is_some() {
        let message =
            format!("Health check failed: marked for remediation via {} annotation", annotations::REMEDIATE_MACHINE);
        return Health::Unhealthy(reason::HAS_REMEDIATE_ANNOTATION, message);
    }
    // Nobody is blamed for what is not there yet; but the first control-plane Machine may be what keeps it from coming.
    let holds = |name: &str| conditions::is_true(cluster, name);
    let is_control_plane = meta::label(machine, labels::CONTROL_PLANE).is_some();
    if !(holds(condition::CONTROL_PLANE_INITIALIZED) || is_control_plane) || !holds(condition::INFRASTRUCTURE_READY) {
        return Health::Unsaid;
    }
    let mut found = Findings::default();
    for bad in &checks.unhealthy_machine_conditions {
        let one = conditions::get(machine, &bad.kind);
        found.condition(one.as_ref(), bad, "Machine", reason::UNHEALTHY_MACHINE, now);
    }
    match &target.node {
        NodeSight::Gone(name) => found.bad(reason::NODE_DELETED, format!("Node {name} has been deleted")),
        NodeSight::None => found.startup(machine, cluster, checks.node_startup_timeout_seconds.unwrap_or(0), now),
        NodeSight::Found(node) => {
            let list = json::items(node, "/status/conditions");
            for bad in &checks.unhealthy_node_conditions {
                let entry = list.iter().find(|entry| json::text(entry, "/type") == Some(&bad.kind));
                let one = entry.and_then(Condition::from_value);
                found.condition(one.as_ref(), bad, "Node", reason::UNHEALTHY_NODE, now);
            }
        }
    }
    found.verdict(matches!(target.node, NodeSight::Found(_)))
}

/// Problems, those of the Machine first: the first one is reported.
#[derive(Default)]
struct Findings {
    bad: Vec<(&'static str, String)>,
    soonest: Option<Duration>,
}

impl Findings {
    fn bad(&mut self, reason: &'static str, message: String) {
        self.bad.push((reason, message));
    }

    /// A problem since `since`, tolerated for `limit`.
    fn lasting(
        &mut self,
        since: Timestamp,
        limit: Duration,
        now: Timestamp,
        bad: impl FnOnce() -> (&'static str, String),
    ) {
        let lasted = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        match limit.checked_sub(lasted) {
            Some(left) => self.soonest = Some(self.soonest.map_or(left, |soonest| soonest.min(left))),
            None => self.bad.push(bad()),
        }
    }

    fn condition(
        &mut self,
        one: Option<&Condition>,
        bad: &UnhealthyCondition,
        of: &str,
        reason: &'static str,
        now: Timestamp,
    ) {
        let Some(one) = one.filter(|one| one.status == Status::parse(&bad.status)) else { return };
        let limit = seconds(bad.timeout_seconds);
        self.lasting(one.since().unwrap_or(now), limit, now, || {
            let text = format!(
                "Condition {} on {of} is reporting status {} for more than {}s",
                bad.kind, bad.status, bad.timeout_seconds
            );
            (reason, text)
        });
    }

    /// Startup timeout of the Node, from when everything that it needs existed.
    fn startup(&mut self, machine: &Value, cluster: &Value, limit: i64, now: Timestamp) {
        if limit == 0 || json::text(machine, "/status/nodeRef/name").is_some() {
            return;
        }
        let since = |object: &Value, name: &str| {
            conditions::get(object, name).filter(|one| one.status == Status::True).and_then(|one| one.since())
        };
        let created = json::text(machine, "/metadata/creationTimestamp").and_then(|created| created.parse().ok());
        let begun = [
            created,
            since(cluster, condition::CONTROL_PLANE_INITIALIZED),
            since(cluster, condition::INFRASTRUCTURE_READY),
            since(machine, condition::INFRASTRUCTURE_READY),
        ];
        let begun = begun.into_iter().flatten().max().unwrap_or(now);
        self.lasting(begun, seconds(limit), now, || {
            (reason::NODE_STARTUP_TIMEOUT, format!("Node failed to report startup in {limit}s"))
        });
    }

    fn verdict(self, has_node: bool) -> Health {
        match (self.bad.first(), self.soonest) {
            (Some((reason, _)), _) => {
                let lines: Vec<String> = self.bad.iter().map(|(_, line)| format!("  * {line}")).collect();
                Health::Unhealthy(reason, format!("Health check failed:\n{}", lines.join("\n")))
            }
            (None, Some(left)) => Health::Doubtful(left),
            (None, None) if has_node => Health::Healthy,
            (None, None) => Health::Unsaid,
        }
    }
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn with(object: Value, conditions: &[(&str, &str, &str)]) -> Value {
        let mut object = object;
        let list: Vec<Value> = conditions
            .iter()
            .map(|(name, status, since)| json!({"type": name, "status": status, "reason": "R", "lastTransitionTime": format!("2026-01-01T{since}Z")}))
            .collect();
        json::set(&mut object, &["status", "conditions"], list);
        object
    }

    fn machine(more: Value) -> Value {
        let mut machine = json!({"metadata": {"name": "m", "creationTimestamp": "2026-01-01T00:40:00Z", "labels": {}, "annotations": {}}, "status": {}});
        if let Some(merge) = more.as_object() {
            for (key, value) in merge {
                json::set(&mut machine, &["metadata", key], value.clone());
            }
        }
        machine
    }

    fn checks() -> HealthChecks {
        serde_json::from_value(json!({"nodeStartupTimeoutSeconds": 600,
            "unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}, {"type": "Ready", "status": "False", "timeoutSeconds": 300}],
            "unhealthyMachineConditions": [{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 60}]}))
        .unwrap()
    }

    #[test]
    fn a_machine_is_judged_by_its_conditions_its_node_and_the_clock() {
        let ready = with(
            json!({}),
            &[("ControlPlaneInitialized", "True", "00:10:00"), ("InfrastructureReady", "True", "00:05:00")],
        );
        let early = with(
            json!({}),
            &[("ControlPlaneInitialized", "False", "00:10:00"), ("InfrastructureReady", "True", "00:05:00")],
        );
        let late = with(
            json!({}),
            &[("ControlPlaneInitialized", "True", "00:55:00"), ("InfrastructureReady", "True", "00:05:00")],
        );
        let unready = with(
            json!({}),
            &[("ControlPlaneInitialized", "True", "00:10:00"), ("InfrastructureReady", "False", "00:05:00")],
        );
        let node = |status: &str, since: &str| NodeSight::Found(Arc::new(with(json!({}), &[("Ready", status, since)])));
        let plain = || machine(json!({}));
        let control_plane = machine(json!({"labels": {"cluster.x-k8s.io/control-plane": ""}}));
        let asked = machine(json!({"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}));
        let broken = with(plain(), &[("InfrastructureReady", "False", "00:50:00")]);
        let breaking = with(plain(), &[("InfrastructureReady", "False", "00:59:30")]);
        let fresh = with(plain(), &[("InfrastructureReady", "True", "00:57:00")]);
        let mut had = plain();
        json::set(&mut had, &["status", "nodeRef"], json!({"name": "n"}));
        let doubtful = |seconds: u64| Health::Doubtful(Duration::from_secs(seconds));
        let bad = |reason: &'static str, text: &str| Health::Unhealthy(reason, format!("Health check failed:\n{text}"));
        let rows = [
            ("a good node", plain(), node("True", "00:50:00"), &ready, Health::Healthy),
            ("a node that just went", plain(), node("Unknown", "00:58:00"), &ready, doubtful(180)),
            (
                "a node that is lost",
                plain(),
                node("Unknown", "00:50:00"),
                &ready,
                bad("UnhealthyNode", "  * Condition Ready on Node is reporting status Unknown for more than 300s"),
            ),
            (
                "a deleted node",
                had.clone(),
                NodeSight::Gone("n".to_owned()),
                &ready,
                bad("NodeDeleted", "  * Node n has been deleted"),
            ),
            ("a node that cannot be seen", had, NodeSight::None, &ready, Health::Unsaid),
            (
                "no node for too long",
                plain(),
                NodeSight::None,
                &ready,
                bad("NodeStartupTimeout", "  * Node failed to report startup in 600s"),
            ),
            ("counted from the control plane", plain(), NodeSight::None, &late, doubtful(300)),
            ("counted from its infrastructure", fresh, NodeSight::None, &ready, doubtful(420)),
            ("before there is a control plane", plain(), NodeSight::None, &early, Health::Unsaid),
            (
                "the first control-plane machine",
                control_plane,
                NodeSight::None,
                &early,
                bad("NodeStartupTimeout", "  * Node failed to report startup in 600s"),
            ),
            ("before there is infrastructure", plain(), NodeSight::None, &unready, Health::Unsaid),
            (
                "asked for by a user, whatever else",
                asked,
                node("True", "00:50:00"),
                &unready,
                Health::Unhealthy(
                    "HasRemediateAnnotation",
                    "Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation"
                        .to_owned(),
                ),
            ),
            (
                "a bad machine with a good node",
                broken.clone(),
                node("True", "00:50:00"),
                &ready,
                bad(
                    "UnhealthyMachine",
                    "  * Condition InfrastructureReady on Machine is reporting status False for more than 60s",
                ),
            ),
            (
                "both bad",
                broken,
                node("False", "00:50:00"),
                &ready,
                bad(
                    "UnhealthyMachine",
                    "  * Condition InfrastructureReady on Machine is reporting status False for more than 60s\n  * Condition Ready on Node is reporting status False for more than 300s",
                ),
            ),
            ("about to be bad", breaking, node("True", "00:50:00"), &ready, doubtful(30)),
        ];
        for (row, machine, node, cluster, expected) in rows {
            let target = Target { machine: Arc::new(machine), node };
            assert_eq!(evaluate(&target, &checks(), cluster, NOW.parse().unwrap()), expected, "{row}");
        }
        let unlimited = HealthChecks { node_startup_timeout_seconds: Some(0), ..checks() };
        let target = Target { machine: Arc::new(plain()), node: NodeSight::None };
        assert_eq!(evaluate(&target, &unlimited, &ready, NOW.parse().unwrap()), Health::Unsaid, "0 is no limit");
    }
}

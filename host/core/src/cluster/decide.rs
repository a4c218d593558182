//! The decision about a Cluster.

use capwasm_api::conditions::{self, Condition, Status};
use capwasm_api::names::{condition, finalizers, reason};
use capwasm_api::{contract, json};
use capwasm_reconcile::{Event, Operation, Plan, Verdict};
use serde_json::Value;

use super::observe::Observed;
use super::{conditions as own_conditions, deletion, replicas};
use crate::draft::Draft;
use crate::external::External;
use crate::{gate, ownership};

/// What is collected on the way to a plan.
pub(super) struct Decision<'a> {
    pub(super) observed: &'a Observed,
    pub(super) draft: Draft,
    pub(super) plan: Plan,
    /// The first thing that is wrong; later phases still run.
    pub(super) failure: Option<(&'static str, String)>,
}

impl Decision<'_> {
    pub(super) fn fail(&mut self, reason: &'static str, message: impl Into<String>) {
        self.failure.get_or_insert((reason, message.into()));
    }
}

/// What of a Cluster's status sums up that of its parts, for people: nobody acts on it here.
const SUMS: [&str; 11] = [
    "controlPlane",
    "workers",
    condition::CONTROL_PLANE_MACHINES_READY,
    condition::CONTROL_PLANE_MACHINES_UP_TO_DATE,
    condition::WORKER_MACHINES_READY,
    condition::WORKER_MACHINES_UP_TO_DATE,
    condition::WORKERS_AVAILABLE,
    condition::ROLLING_OUT,
    condition::SCALING_UP,
    condition::SCALING_DOWN,
    condition::REMEDIATING,
];

/// What should be, given what was observed.
pub(super) fn decide(observed: &Observed) -> Plan {
    let mut decision =
        Decision { observed, draft: Draft::new(&observed.object, observed.now), plan: Plan::nothing(), failure: None };
    let paused = gate::paused(&observed.object, Some(&observed.object));
    decision.draft.condition(&paused);
    if paused.status == Status::True {
        return Plan { desired: Some(decision.draft.finish(false)), ..Plan::nothing() };
    }
    decision.draft.finalizer(finalizers::CLUSTER);
    infrastructure(&mut decision);
    control_plane(&mut decision);
    let stage = if observed.is_deleting() {
        match deletion::decide(&mut decision) {
            // The last pass writes no status that nobody could read.
            deletion::Stage::Done => {
                let release = if decision.draft.has_finalizer(finalizers::CLUSTER) {
                    vec![finalizers::CLUSTER.to_owned()]
                } else {
                    Vec::new()
                };
                return Plan { release, ..decision.plan };
            }
            deletion::Stage::Waiting(stage) => Some(stage),
        }
    } else {
        None
    };
    replicas::set(&mut decision);
    phase(&mut decision);
    own_conditions::set(&mut decision, stage);
    let Decision { draft, mut plan, failure, .. } = decision;
    plan.verdict = match failure {
        Some((reason, message)) => {
            Verdict::Failed { reason: reason.to_owned(), message, retry_after: None, backoff: false }
        }
        None if stage.is_some() => Verdict::Waiting,
        None => Verdict::Done,
    };
    let reconciled = matches!(plan.verdict, Verdict::Done | Verdict::Waiting);
    // The first status tells its user that somebody looks after the Cluster.
    let known = json::text(&observed.object, "/status/phase").is_some();
    plan.status_may_wait = known && draft.is_informational(&SUMS);
    plan.desired = Some(draft.finish(reconciled));
    plan
}

fn infrastructure(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let before = observed.cluster.status.initialization.infrastructure_provisioned == Some(true);
    let Some(external) = &observed.infrastructure else {
        if observed.cluster.spec.topology.is_none() {
            decision.draft.set(&["status", "initialization", "infrastructureProvisioned"], true);
        }
        return;
    };
    let Some((object, contract)) = external.found() else {
        return absent(decision, external, before, "the infrastructure object is gone though it was provisioned");
    };
    adopt(decision, "own infrastructure", object);
    if !contract::infrastructure::provisioned(object, contract) {
        return;
    }
    endpoint(decision, object);
    let domains = contract::infrastructure::failure_domains(object, contract);
    let domains = if domains.is_empty() { Value::Null } else { serde_json::to_value(&domains).unwrap_or_default() };
    decision.draft.set(&["status", "failureDomains"], domains);
    decision.draft.set(&["status", "initialization", "infrastructureProvisioned"], true);
    if !before {
        let text = format!("{} {} is provisioned", json::kind(object), json::name(object));
        decision.plan.events.push(Event::normal(condition::INFRASTRUCTURE_READY, text));
    }
}

fn control_plane(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let before = observed.cluster.status.initialization.control_plane_initialized == Some(true);
    let initialized = match &observed.control_plane {
        None => observed.control_plane_machines().any(|machine| json::text(machine, "/status/nodeRef/name").is_some()),
        Some(external) => match external.found() {
            None => {
                return absent(
                    decision,
                    external,
                    before,
                    "the control plane object is gone though it was initialized",
                );
            }
            Some((object, contract)) => {
                adopt(decision, "own control plane", object);
                endpoint(decision, object);
                contract::control_plane::initialized(object, contract)
            }
        },
    };
    if initialized {
        decision.draft.set(&["status", "initialization", "controlPlaneInitialized"], true);
    }
}

/// A missing object is waited for, unless it had reported success before: then it was lost.
fn absent(decision: &mut Decision<'_>, external: &External, before: bool, lost: &str) {
    if decision.observed.is_deleting() {
        return;
    }
    match external.unusable_kind() {
        Some(message) => decision.fail("Unserved", message),
        _ if before => decision.fail("Lost", lost),
        _ => {}
    }
}

fn adopt(decision: &mut Decision<'_>, key: &str, object: &Value) {
    if json::is_deleting(object) {
        return;
    }
    let cluster = &decision.observed.object;
    // A topology manages its objects, so it controls them; otherwise the user does.
    let owner = ownership::reference(cluster, decision.observed.cluster.spec.topology.is_some());
    match ownership::adopt(object, &owner, json::name(cluster), &[]) {
        Ok(Some(action)) => decision.plan.operations.push(Operation::management(key, action)),
        Ok(None) => {}
        Err(foreign) => decision.fail("ForeignOwner", foreign.to_string()),
    }
}

/// Copies the endpoint, unless the Cluster has one.
fn endpoint(decision: &mut Decision<'_>, from: &Value) {
    let has_one = contract::infrastructure::endpoint(&decision.draft.desired).is_some();
    if let Some(endpoint) = contract::infrastructure::endpoint(from).filter(|_| !has_one) {
        decision.draft.set(&["spec", "controlPlaneEndpoint", "host"], endpoint.host);
        decision.draft.set(&["spec", "controlPlaneEndpoint", "port"], endpoint.port);
    }
}

fn phase(decision: &mut Decision<'_>) {
    let (observed, desired) = (decision.observed, &decision.draft.desired);
    let phase = if observed.is_deleting() {
        "Deleting"
    } else if json::flag(desired, "/status/initialization/infrastructureProvisioned") == Some(true)
        && contract::infrastructure::endpoint(desired).is_some()
    {
        "Provisioned"
    } else if observed.infrastructure.is_some() || observed.control_plane.is_some() {
        "Provisioning"
    } else {
        "Pending"
    };
    decision.draft.set(&["status", "phase"], phase);
}

/// `ControlPlaneInitialized` as the draft has it.
pub(super) fn initialized_condition(desired: &Value) -> Condition {
    if json::flag(desired, "/status/initialization/controlPlaneInitialized") == Some(true)
        || conditions::is_true(desired, condition::CONTROL_PLANE_INITIALIZED)
    {
        Condition::new(condition::CONTROL_PLANE_INITIALIZED, true, reason::INITIALIZED)
    } else {
        Condition::new(condition::CONTROL_PLANE_INITIALIZED, false, reason::NOT_INITIALIZED)
            .message("Control plane not yet initialized")
    }
}

#[cfg(test)]
mod tests;

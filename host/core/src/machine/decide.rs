//! The decision about a Machine.

use std::sync::Arc;
use std::time::Duration;

use capwasm_api::conditions::{self as metav1, Status};
use capwasm_api::names::{annotations, condition, finalizers, labels};
use capwasm_api::{contract, json};
use capwasm_reconcile::{Operation, Plan, Verdict};
use serde_json::{Map, Value};

use super::observe::{NodeSight, Observed};
use super::{conditions, deletion, node};
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

    /// Run again after this time, or earlier if something else wants that.
    pub(super) fn wake_after(&mut self, time: Duration) {
        self.plan.wake_after = Some(self.plan.wake_after.map_or(time, |earlier| earlier.min(time)));
    }
}

/// What should be, given what was observed.
pub(super) fn decide(observed: &Observed) -> Plan {
    let mut decision =
        Decision { observed, draft: Draft::new(&observed.object, observed.now), plan: Plan::nothing(), failure: None };
    let Some(cluster) = observed.cluster.as_deref() else {
        // The read of the Cluster wakes the Machine when it appears.
        let message = format!("Cluster {} does not exist", observed.machine.spec.cluster_name);
        let verdict = Verdict::Failed { reason: "NoCluster".to_owned(), message, retry_after: None, backoff: false };
        return Plan { verdict, ..Plan::nothing() };
    };
    let paused = gate::paused(&observed.object, Some(cluster));
    decision.draft.condition(&paused);
    if paused.status == Status::True {
        return Plan { desired: Some(decision.draft.finish(false)), ..Plan::nothing() };
    }
    decision.draft.finalizer(finalizers::MACHINE);
    own(&mut decision, cluster);
    bootstrap(&mut decision);
    infrastructure(&mut decision);
    node(&mut decision);
    certificates(&mut decision);
    let stage = if observed.is_deleting() {
        match deletion::decide(&mut decision) {
            // The last pass writes no status that nobody could read.
            deletion::Stage::Done => {
                let release = if decision.draft.has_finalizer(finalizers::MACHINE) {
                    vec![finalizers::MACHINE.to_owned()]
                } else {
                    Vec::new()
                };
                return Plan { release, ..decision.plan };
            }
            waiting => Some(waiting),
        }
    } else {
        None
    };
    let waiting = stage.is_some();
    phase(&mut decision);
    conditions::set(&mut decision, stage);
    let Decision { draft, mut plan, failure, .. } = decision;
    plan.verdict = match failure {
        Some((reason, message)) => {
            Verdict::Failed { reason: reason.to_owned(), message, retry_after: None, backoff: false }
        }
        None if waiting => Verdict::Waiting,
        None => Verdict::Done,
    };
    let reconciled = matches!(plan.verdict, Verdict::Done | Verdict::Waiting);
    let before = with_implied(observed, &draft.desired);
    plan.status_may_wait = metav1::is_informational(&before, &draft.desired, &COPIED) || gates_are_due(observed);
    plan.desired = Some(draft.finish(reconciled));
    plan
}

/// Whether the Node was only just found and a readiness gate was never reported: whoever reports it sees the Node as well, and
/// the Machine's first news of the Node tells both. Gates that nobody reports hold it up for as long as a status may wait, once.
fn gates_are_due(observed: &Observed) -> bool {
    let Observed { object, machine, node, .. } = observed;
    matches!(node, NodeSight::Found(_))
        && machine.status.node_ref.is_none()
        && machine.spec.readiness_gates.iter().any(|gate| metav1::get(object, &gate.condition_type).is_none())
}

/// What of a Machine's status is copied from elsewhere for people to read.
const COPIED: [&str; 2] = ["addresses", "certificatesExpiryDate"];

/// The observed Machine, with what its new spec says already: that there are bootstrap data, and infrastructure. The spec is
/// written at once, and the status that follows from it may wait.
fn with_implied(observed: &Observed, desired: &Value) -> Value {
    let mut object = (*observed.object).clone();
    for (spec, flag, condition) in [
        ("/spec/bootstrap/dataSecretName", "bootstrapDataSecretCreated", condition::BOOTSTRAP_CONFIG_READY),
        ("/spec/providerID", "infrastructureProvisioned", condition::INFRASTRUCTURE_READY),
    ] {
        let latched = json::flag(desired, &format!("/status/initialization/{flag}")) == Some(true);
        if !latched || json::text(desired, spec).is_none() {
            continue;
        }
        json::set(&mut object, &["status", "initialization", flag], true);
        if let Some(holds) = metav1::get(desired, condition).filter(|one| one.status == Status::True) {
            metav1::set(&mut object, &holds, observed.now);
        }
    }
    object
}

/// A Machine that nothing made belongs to its Cluster.
fn own(decision: &mut Decision<'_>, cluster: &Value) {
    let metadata = &decision.observed.machine.metadata;
    let made = [labels::SET_NAME, labels::POOL_NAME, labels::CONTROL_PLANE_NAME]
        .iter()
        .any(|key| metadata.labels.contains_key(*key));
    if metadata.controller().is_none() && !made {
        ownership::own(&mut decision.draft.desired, &ownership::reference(cluster, false));
    }
}

/// Makes the Machine the controller of what was created for it, in place of the set or control plane that created it.
fn adopt(decision: &mut Decision<'_>, key: &str, object: &Value) {
    if json::is_deleting(object) || decision.observed.is_deleting() {
        return;
    }
    let machine = &decision.observed.object;
    let creators: Vec<&str> =
        decision.observed.machine.metadata.owner_references.iter().map(|owner| owner.uid.as_str()).collect();
    let cluster = &decision.observed.machine.spec.cluster_name;
    match ownership::adopt(object, &ownership::reference(machine, true), cluster, &creators) {
        Ok(Some(action)) => decision.plan.operations.push(Operation::management(key, action)),
        Ok(None) => {}
        Err(foreign) => decision.fail("ForeignOwner", foreign.to_string()),
    }
}

fn bootstrap(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let created = ["status", "initialization", "bootstrapDataSecretCreated"];
    let Some(external) = &observed.bootstrap else {
        if observed.machine.spec.bootstrap.data_secret_name.is_some() {
            decision.draft.set(&created, true);
        }
        return;
    };
    let Some((object, contract)) = external.found() else {
        if let Some(message) = external.unusable_kind() {
            decision.fail("Unserved", message);
        }
        return;
    };
    adopt(decision, "own bootstrap config", object);
    if !contract::bootstrap::data_secret_created(object, contract) {
        return;
    }
    match contract::bootstrap::data_secret_name(object) {
        Some(name) => {
            decision.draft.set(&["spec", "bootstrap", "dataSecretName"], name);
            decision.draft.set(&created, true);
        }
        None => {
            let path = contract::bootstrap::data_secret_created_path(contract);
            decision.fail(
                "NoDataSecretName",
                format!("{} {path} is true, but status.dataSecretName is empty", json::kind(object)),
            );
        }
    }
}

fn infrastructure(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let Some((object, contract)) = observed.infrastructure.found() else {
        let before = observed.machine.status.initialization.infrastructure_provisioned == Some(true);
        match observed.infrastructure.unusable_kind() {
            _ if observed.is_deleting() => {}
            Some(message) => decision.fail("Unserved", message),
            _ if before => decision.fail("Lost", "the infrastructure object is gone though it was provisioned"),
            _ => {}
        }
        return;
    };
    adopt(decision, "own infrastructure", object);
    // A provider that is done but has not said who the machine is wakes this Machine when it does.
    let Some(provider_id) = contract::infrastructure::provider_id(object)
        .filter(|_| contract::infrastructure::provisioned(object, contract))
    else {
        return;
    };
    decision.draft.set(&["spec", "providerID"], provider_id);
    let addresses: Vec<Value> = contract::infrastructure::addresses(object)
        .iter()
        .filter_map(|address| serde_json::to_value(address).ok())
        .collect();
    decision.draft.set(&["status", "addresses"], if addresses.is_empty() { Value::Null } else { addresses.into() });
    if let Some(domain) = contract::infrastructure::failure_domain(object) {
        decision.draft.set(&["status", "failureDomain"], domain);
        if observed.machine.spec.failure_domain.is_none() && json::text(object, "/spec/failureDomain").is_some() {
            decision.draft.set(&["spec", "failureDomain"], domain);
        }
    }
    decision.draft.set(&["status", "initialization", "infrastructureProvisioned"], true);
}

fn node(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let NodeSight::Found(found) = &observed.node else { return };
    decision
        .draft
        .set(&["status", "nodeRef"], Value::Object(Map::from_iter([("name".to_owned(), json::name(found).into())])));
    decision.draft.set(&["status", "nodeInfo"], node::info(found));
    if observed.is_deleting() {
        return;
    }
    let infrastructure = observed.infrastructure.found();
    let traits = node::Traits {
        interruptible: infrastructure.is_some_and(|(object, _)| contract::infrastructure::interruptible(object)),
        outdated: is_outdated(observed),
    };
    if let Some(action) = node::synchronise(found, &observed.machine, traits) {
        decision.plan.operations.push(Operation::workload("synchronise node", &observed.cluster_id(), action));
    }
}

/// Whether a newer revision of the MachineDeployment was seen than that of the Machine's set.
fn is_outdated(observed: &Observed) -> bool {
    let revision = |object: &Option<Arc<Value>>| -> Option<u64> {
        json::annotation(object.as_deref()?, annotations::REVISION)?.parse().ok()
    };
    revision(&observed.set).zip(revision(&observed.deployment)).is_some_and(|(own, highest)| own < highest)
}

fn certificates(decision: &mut Decision<'_>) {
    let config = decision.observed.bootstrap.as_ref().and_then(External::found).map(|(object, _)| object);
    let expiry = config
        .and_then(|config| json::annotation(config, annotations::CERTIFICATES_EXPIRY))
        .or_else(|| json::annotation(&decision.observed.object, annotations::CERTIFICATES_EXPIRY))
        .filter(|expiry| expiry.parse::<jiff::Timestamp>().is_ok());
    if let Some(expiry) = expiry {
        decision.draft.set(&["status", "certificatesExpiryDate"], expiry);
    }
}

fn phase(decision: &mut Decision<'_>) {
    let desired = &decision.draft.desired;
    let flag = |name: &str| json::flag(desired, &format!("/status/initialization/{name}")) == Some(true);
    let phase = if decision.observed.is_deleting() {
        "Deleting"
    } else if flag("infrastructureProvisioned") {
        if json::text(desired, "/status/nodeRef/name").is_some() { "Running" } else { "Provisioned" }
    } else if flag("bootstrapDataSecretCreated") {
        "Provisioning"
    } else {
        "Pending"
    };
    if decision.observed.machine.status.phase != phase {
        decision.draft.set(&["status", "phase"], phase);
        decision.draft.set(&["status", "lastUpdated"], metav1::timestamp(decision.observed.now));
    }
}

#[cfg(test)]
pub(super) mod tests;

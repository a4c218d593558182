//! The decision about a Machine.

use std::sync::Arc;

use capwasm_api::conditions as metav1;
use capwasm_api::kinds::{MachineSpec, MachineStatus, Metadata, NodeRef, lay_over};
use capwasm_api::names::{annotations, condition, finalizers, labels};
use capwasm_object::{json, meta, owners};
use capwasm_reconcile::{Operation, Plan};
use serde_json::{Value, json};

use super::observe::{NodeSight, Observed};
use super::{conditions, deletion, node};
use crate::decision::{self, Course, Found, Needs, Subject, Wait};
use crate::external::External;

pub(super) type Decision<'a> = decision::Decision<'a, Observed>;

pub(super) fn decide(observed: &Observed) -> Plan {
    decision::decide(observed)
}

impl Subject for Observed {
    type Spec = MachineSpec;
    type Status = MachineStatus;
    type Kept = ();

    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE);
    const NEEDS: Needs = Needs::Always;
    /// Copied from elsewhere for people to read.
    const SUMS: &'static [&'static str] = &["addresses", "certificatesExpiryDate"];

    fn found(&self) -> Found<'_, MachineSpec, MachineStatus> {
        Found { object: &self.object, typed: &self.machine, cluster: self.cluster.as_deref(), now: self.now }
    }

    fn keep(decision: &mut Decision<'_>, cluster: &Value) {
        own(decision, cluster);
        follow(decision);
    }

    fn delete(decision: &mut Decision<'_>) -> Option<Wait> {
        if let Some(cluster) = decision.observed.cluster.as_deref() {
            own(decision, cluster);
        }
        follow(decision);
        deletion::decide(decision)
    }

    fn report(decision: &mut Decision<'_>, course: Course<()>) {
        phase(decision);
        conditions::set(decision, &course);
    }

    fn before(decision: &Decision<'_>) -> Option<Value> {
        with_implied(decision)
    }

    fn may_wait(&self, is_informational: bool) -> bool {
        is_informational || gates_are_due(self)
    }
}

/// Whether the Node was just found and a readiness gate was never reported: its reporter sees the Node as well, and
/// both are written together. Gates that nobody reports delay the status once, by as long as a status may wait.
fn gates_are_due(observed: &Observed) -> bool {
    let Observed { object, machine, node, .. } = observed;
    matches!(node, NodeSight::Found(_))
        && machine.status.node_ref.is_none()
        && machine.spec.readiness_gates.iter().any(|gate| metav1::get(object, &gate.condition_type).is_none())
}

/// The observed status with what the new spec implies: that bootstrap data and infrastructure exist. The spec is
/// written at once, and the status that follows from it may wait. `None` when nothing is implied.
fn with_implied(decision: &Decision<'_>) -> Option<Value> {
    let Decision { observed, draft, .. } = decision;
    let (before, after) = (&observed.machine.status, &draft.status.initialization);
    let mut implied = before.clone();
    let mut conditions = Vec::new();
    if after.bootstrap_data_secret_created == Some(true) && draft.spec.bootstrap.data_secret_name.is_some() {
        implied.initialization.bootstrap_data_secret_created = Some(true);
        conditions.push(condition::BOOTSTRAP_CONFIG_READY);
    }
    if after.infrastructure_provisioned == Some(true) && draft.spec.provider_id.is_some() {
        implied.initialization.infrastructure_provisioned = Some(true);
        conditions.push(condition::INFRASTRUCTURE_READY);
    }
    let is_news = |name: &str| metav1::is_true(&draft.object, name) && !metav1::is_true(&observed.object, name);
    conditions.retain(|name| is_news(name));
    if implied == *before && conditions.is_empty() {
        return None;
    }
    let mut object = json!({"status": observed.object.get("status")});
    lay_over(json::map(&mut object, &[]).entry("status").or_insert(Value::Null), before, &implied);
    for holds in conditions.into_iter().filter_map(|name| metav1::get(&draft.object, name)) {
        metav1::set(&mut object, &holds, observed.now);
    }
    Some(object)
}

/// Makes the Cluster the owner of a stand-alone Machine, and labels one that the control plane controls: that is how all
/// others tell it from workers.
fn own(decision: &mut Decision<'_>, cluster: &Value) {
    let metadata = &decision.observed.machine.metadata;
    if is_of_control_plane(metadata, cluster) && !metadata.labels.contains_key(labels::CONTROL_PLANE) {
        json::set(&mut decision.draft.object, &["metadata", "labels", labels::CONTROL_PLANE], "");
    }
    let made = [labels::SET_NAME, labels::POOL_NAME, labels::CONTROL_PLANE_NAME]
        .iter()
        .any(|key| metadata.labels.contains_key(*key));
    if metadata.controller().is_none() && !made {
        owners::add(&mut decision.draft.object, &owners::reference_to(cluster, false));
    }
}

/// Whether the object of the Cluster's `spec.controlPlaneRef` controls the Machine.
fn is_of_control_plane(machine: &Metadata, cluster: &Value) -> bool {
    let plane = |field: &str| json::text(cluster, &format!("/spec/controlPlaneRef/{field}"));
    machine.controller().is_some_and(|owner| {
        (plane("apiGroup"), plane("kind"), plane("name"))
            == (Some(owner.group()), Some(owner.kind.as_str()), Some(owner.name.as_str()))
    })
}

/// Copies what provider objects and the Node report.
fn follow(decision: &mut Decision<'_>) {
    bootstrap(decision);
    infrastructure(decision);
    node(decision);
    certificates(decision);
}

/// Makes the Machine the controller of its clone, in place of the set or control plane that created it.
fn adopt(decision: &mut Decision<'_>, key: &str, object: &Value) {
    if decision.is_deleting() {
        return;
    }
    let Observed { object: own, machine, .. } = decision.observed;
    let creators: Vec<&str> = machine.metadata.owner_references.iter().map(|owner| owner.uid.as_str()).collect();
    decision.adopt(key, object, &owners::reference_to(own, true), &creators);
}

fn bootstrap(decision: &mut Decision<'_>) {
    let Observed { bootstrap, machine, .. } = decision.observed;
    let data = match bootstrap {
        None => machine.spec.bootstrap.data_secret_name.clone(),
        Some(external) => {
            if let Some((object, _)) = external.found() {
                adopt(decision, "own bootstrap config", object);
            }
            decision.bootstrap_data(external)
        }
    };
    if let Some(name) = data {
        decision.draft.spec.bootstrap.data_secret_name = Some(name);
        decision.draft.status.initialization.bootstrap_data_secret_created = Some(true);
    }
}

fn infrastructure(decision: &mut Decision<'_>) {
    let Observed { infrastructure, machine, .. } = decision.observed;
    let Some((object, report)) = infrastructure.found() else {
        let before = machine.status.initialization.infrastructure_provisioned == Some(true);
        return decision.miss(infrastructure, before, "the infrastructure object is gone though it was provisioned");
    };
    adopt(decision, "own infrastructure", object);
    // A provider that is done but has not said who the machine is wakes this Machine when it does.
    let Some(provider_id) = report.provider_id.as_ref().filter(|_| report.provisioned) else { return };
    let (spec, status) = (&mut decision.draft.spec, &mut decision.draft.status);
    spec.provider_id = Some(provider_id.clone());
    status.addresses.clone_from(&report.addresses);
    if let Some(domain) = &report.failure_domain {
        status.failure_domain = Some(domain.clone());
        if machine.spec.failure_domain.is_none() && report.failure_domain_in_spec {
            spec.failure_domain = Some(domain.clone());
        }
    }
    status.initialization.infrastructure_provisioned = Some(true);
}

fn node(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let NodeSight::Found(found) = &observed.node else { return };
    decision.draft.status.node_ref = Some(NodeRef { name: meta::name(found).to_owned() });
    decision.draft.status.node_info = node::info(found);
    if decision.is_deleting() {
        return;
    }
    let traits = node::Traits {
        interruptible: observed.infrastructure.report().is_some_and(|report| report.interruptible),
        outdated: is_outdated(observed),
    };
    if let Some(action) = node::synchronise(found, &observed.machine, traits) {
        decision.plan.operations.push(Operation::workload("synchronise node", &observed.cluster_id(), action));
    }
}

/// Whether the MachineDeployment has a newer revision than the Machine's set.
fn is_outdated(observed: &Observed) -> bool {
    let revision = |object: &Option<Arc<Value>>| -> Option<u64> {
        meta::annotation(object.as_deref()?, annotations::REVISION)?.parse().ok()
    };
    revision(&observed.set).zip(revision(&observed.deployment)).is_some_and(|(own, highest)| own < highest)
}

fn certificates(decision: &mut Decision<'_>) {
    let config = decision.observed.bootstrap.as_ref().and_then(External::found).map(|(object, _)| object);
    let expiry = config
        .and_then(|config| meta::annotation(config, annotations::CERTIFICATES_EXPIRY))
        .or_else(|| meta::annotation(&decision.observed.object, annotations::CERTIFICATES_EXPIRY))
        .filter(|expiry| expiry.parse::<jiff::Timestamp>().is_ok());
    if let Some(expiry) = expiry {
        decision.draft.status.certificates_expiry_date = Some(expiry.to_owned());
    }
}

fn phase(decision: &mut Decision<'_>) {
    let deleting = decision.is_deleting();
    let status = &mut decision.draft.status;
    let phase = if deleting {
        "Deleting"
    } else if status.initialization.infrastructure_provisioned == Some(true) {
        if status.node_ref.is_some() { "Running" } else { "Provisioned" }
    } else if status.initialization.bootstrap_data_secret_created == Some(true) {
        "Provisioning"
    } else {
        "Pending"
    };
    if status.phase != phase {
        status.phase = phase.to_owned();
        status.last_updated = Some(metav1::timestamp(decision.observed.now));
    }
}

#[cfg(test)]
pub(super) mod tests;

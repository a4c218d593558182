//! The decision about a Cluster.

use capwasm_api::conditions::{self, Condition};
use capwasm_api::kinds::{ClusterSpec, ClusterStatus, Endpoint};
use capwasm_api::names::{condition, finalizers, reason};
use capwasm_object::{json, meta, owners};
use capwasm_reconcile::{Event, Plan};
use serde_json::Value;

use super::observe::Observed;
use super::{conditions as own_conditions, deletion, replicas};
use crate::decision::{self, Course, Found, Needs, Subject, Wait};

pub(super) type Decision<'a> = decision::Decision<'a, Observed>;

pub(super) fn decide(observed: &Observed) -> Plan {
    decision::decide(observed)
}

impl Subject for Observed {
    type Spec = ClusterSpec;
    type Status = ClusterStatus;
    type Kept = ();

    const FINALIZER: Option<&'static str> = Some(finalizers::CLUSTER);
    const NEEDS: Needs = Needs::Always;
    const SUMS: &'static [&'static str] = &[
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

    fn found(&self) -> Found<'_, ClusterSpec, ClusterStatus> {
        Found { object: &self.object, typed: &self.cluster, cluster: Some(&self.object), now: self.now }
    }

    fn keep(decision: &mut Decision<'_>, _: &Value) {
        infrastructure(decision);
        control_plane(decision);
    }

    fn delete(decision: &mut Decision<'_>) -> Option<Wait> {
        infrastructure(decision);
        control_plane(decision);
        deletion::decide(decision)
    }

    fn report(decision: &mut Decision<'_>, course: Course<()>) {
        replicas::set(decision);
        phase(decision);
        own_conditions::set(decision, &course);
    }

    /// The first status is written at once, so that its user sees that the Cluster is reconciled.
    fn may_wait(&self, is_informational: bool) -> bool {
        !self.cluster.status.phase.is_empty() && is_informational
    }
}

fn infrastructure(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let before = observed.cluster.status.initialization.infrastructure_provisioned == Some(true);
    let Some(external) = &observed.infrastructure else {
        if observed.cluster.spec.topology.is_none() {
            decision.draft.status.initialization.infrastructure_provisioned = Some(true);
        }
        return;
    };
    let Some((object, report)) = external.found() else {
        return decision.miss(external, before, "the infrastructure object is gone though it was provisioned");
    };
    adopt(decision, "own infrastructure", object);
    if !report.provisioned {
        return;
    }
    endpoint(decision, report.endpoint.as_ref());
    let status = &mut decision.draft.status;
    status.failure_domains.clone_from(&report.failure_domains);
    status.initialization.infrastructure_provisioned = Some(true);
    if !before {
        let text = format!("{} {} is provisioned", meta::kind(object), meta::name(object));
        decision.plan.events.push(Event::normal(condition::INFRASTRUCTURE_READY, text));
    }
}

fn control_plane(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let before = observed.cluster.status.initialization.control_plane_initialized == Some(true);
    let initialized = match &observed.control_plane {
        None => observed.control_plane_machines().any(|machine| json::text(machine, "/status/nodeRef/name").is_some()),
        Some(external) => {
            let Some((object, report)) = external.found() else {
                return decision.miss(external, before, "the control plane object is gone though it was initialized");
            };
            adopt(decision, "own control plane", object);
            endpoint(decision, report.endpoint.as_ref());
            report.initialized
        }
    };
    if initialized {
        decision.draft.status.initialization.control_plane_initialized = Some(true);
    }
}

fn adopt(decision: &mut Decision<'_>, key: &str, object: &Value) {
    let Observed { object: cluster, cluster: typed, .. } = decision.observed;
    // A topology manages its objects, so it controls them; otherwise the user does.
    decision.adopt(key, object, &owners::reference_to(cluster, typed.spec.topology.is_some()), &[]);
}

fn endpoint(decision: &mut Decision<'_>, reported: Option<&Endpoint>) {
    if decision.draft.spec.endpoint().is_none()
        && let Some(endpoint) = reported
    {
        decision.draft.spec.control_plane_endpoint = Some(endpoint.clone());
    }
}

fn phase(decision: &mut Decision<'_>) {
    let (observed, draft) = (decision.observed, &decision.draft);
    let phase = if decision.is_deleting() {
        "Deleting"
    } else if draft.status.initialization.infrastructure_provisioned == Some(true) && draft.spec.endpoint().is_some() {
        "Provisioned"
    } else if observed.infrastructure.is_some() || observed.control_plane.is_some() {
        "Provisioning"
    } else {
        "Pending"
    };
    decision.draft.status.phase = phase.to_owned();
}

pub(super) fn initialized_condition(decision: &Decision<'_>) -> Condition {
    let draft = &decision.draft;
    if draft.status.initialization.control_plane_initialized == Some(true)
        || conditions::is_true(&draft.object, condition::CONTROL_PLANE_INITIALIZED)
    {
        Condition::new(condition::CONTROL_PLANE_INITIALIZED, true, reason::INITIALIZED)
    } else {
        Condition::new(condition::CONTROL_PLANE_INITIALIZED, false, reason::NOT_INITIALIZED)
            .message("Control plane not yet initialized")
    }
}

#[cfg(test)]
mod tests;

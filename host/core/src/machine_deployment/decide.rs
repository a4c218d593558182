//! The decision about a MachineDeployment.

use std::time::Duration;

use capwasm_api::conditions::Status;
use capwasm_api::json;
use capwasm_api::names::{annotations, finalizers};
use capwasm_reconcile::{Action, Operation, Plan, Target, Verdict};
use serde_json::{Value, json};

use super::observe::{Observed, Set};
use super::rollout::{self, Size, Strategy};
use super::{conditions, sets};
use crate::draft::Draft;
use crate::members::SUMS;
use crate::{gate, ownership};

/// What is collected on the way to a plan.
pub(super) struct Decision<'a> {
    pub(super) observed: &'a Observed,
    pub(super) draft: Draft,
    pub(super) plan: Plan,
}

impl Decision<'_> {
    fn operation(&mut self, key: String, action: Action) {
        self.plan.operations.push(Operation::management(key, action));
    }

    fn delete(&mut self, set: &Set) {
        let uid = Some(set.typed.metadata.uid.clone());
        let action = Action::Delete { target: Target::of(&set.object), uid, propagation: None };
        self.operation(format!("delete MachineSet {}", set.typed.metadata.name), action);
    }

    /// Patches a set into what it should be, when it is not.
    fn update(&mut self, set: &Set, wanted: &Value) {
        if let Some(merge) = json::merge_patch(&set.object, wanted) {
            let action =
                Action::Patch { target: Target::of(&set.object), merge, resource_version: None, subresource: None };
            self.operation(format!("update MachineSet {}", set.typed.metadata.name), action);
        }
    }
}

/// What should be, given what was observed.
pub(super) fn decide(observed: &Observed) -> Plan {
    let mut decision = Decision { observed, draft: Draft::new(&observed.object, observed.now), plan: Plan::nothing() };
    let paused = gate::paused(&observed.object, observed.cluster.as_deref());
    decision.draft.condition(&paused);
    if paused.status == Status::True {
        return Plan { desired: Some(decision.draft.finish(false)), ..Plan::nothing() };
    }
    if observed.is_deleting() {
        if observed.sets.is_empty() {
            let has = decision.draft.has_finalizer(finalizers::MACHINE_DEPLOYMENT);
            return Plan {
                release: has.then(|| finalizers::MACHINE_DEPLOYMENT.to_owned()).into_iter().collect(),
                ..Plan::nothing()
            };
        }
        for set in observed.sets.iter().filter(|set| !set.typed.metadata.is_deleting()) {
            decision.delete(set);
        }
        decision.plan.verdict = Verdict::Waiting;
    } else {
        let Some(cluster) = observed.cluster.as_deref() else {
            let message = format!("Cluster {} does not exist", observed.deployment.spec.cluster_name);
            let verdict =
                Verdict::Failed { reason: "NoCluster".to_owned(), message, retry_after: None, backoff: false };
            return Plan { verdict, ..Plan::nothing() };
        };
        decision.draft.finalizer(finalizers::MACHINE_DEPLOYMENT);
        ownership::own(&mut decision.draft.desired, &ownership::reference(cluster, false));
        roll_out(&mut decision);
    }
    conditions::set(&mut decision);
    let Decision { draft, mut plan, .. } = decision;
    plan.status_may_wait = draft.is_informational(&SUMS);
    plan.desired = Some(draft.finish(true));
    plan
}

/// How machines are replaced, resolved for the wanted number.
pub(super) fn strategy(observed: &Observed) -> Strategy {
    let strategy = &observed.deployment.spec.rollout.strategy;
    if strategy.kind.as_deref() == Some("OnDelete") {
        return Strategy::OnDelete;
    }
    let limits = &strategy.rolling_update;
    rollout::rolling_update(limits.max_surge.as_ref(), limits.max_unavailable.as_ref(), observed.replicas())
}

fn roll_out(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let deployment = &observed.deployment;
    let strategy = strategy(observed);
    let surge = match strategy {
        Strategy::RollingUpdate { surge, .. } => surge,
        Strategy::OnDelete => 0,
    };
    let revision = sets::highest_revision(observed);
    if revision > 0 {
        // Recorded once it was seen: a create that is repeated before that finds the same name.
        decision.draft.set(&["metadata", "annotations", annotations::REVISION], revision.to_string());
    }
    if let Some(after) =
        deployment.spec.rollout.after.as_deref().and_then(|after| after.parse::<jiff::Timestamp>().ok())
    {
        let left = after.duration_since(observed.now);
        if left.is_positive() {
            decision.plan.wake_after = Some(Duration::try_from(left).unwrap_or_default());
        }
    }
    let desired = decision.draft.desired.clone();
    let (new, old) = sets::split(observed);
    let sizes: Vec<Size> = old.iter().map(|set| size(set)).collect();
    let (grown, shrunk) = rollout::next(observed.replicas(), strategy, &new.map(size).unwrap_or_default(), &sizes);
    // A held deployment keeps its old machines, but follows its number.
    let held = deployment.spec.paused == Some(true);
    match new {
        Some(set) => {
            let mut wanted = (*set.object).clone();
            sets::follow(&mut wanted, &desired, deployment);
            sets::scale(&mut wanted, deployment, grown, surge);
            json::set(&mut wanted, &["metadata", "annotations", annotations::DISABLE_MACHINE_CREATE], Value::Null);
            decision.update(set, &wanted);
        }
        None if held => {}
        None => {
            let set = sets::create(&desired, deployment, revision.saturating_add(1), grown, surge);
            decision.operation(format!("create MachineSet {}", json::name(&set)), Action::Create(set));
        }
    }
    if held {
        return;
    }
    let is_complete =
        new.map(size).is_some_and(|size| size.wanted == observed.replicas() && size.available >= size.wanted);
    for (set, replicas) in old.into_iter().zip(shrunk) {
        if set.typed.metadata.is_deleting() {
            continue;
        }
        let size = size(set);
        if is_complete && size.wanted == 0 && size.actual == 0 {
            decision.delete(set);
            continue;
        }
        let mut wanted = (*set.object).clone();
        json::set(&mut wanted, &["spec", "replicas"], replicas);
        if strategy == Strategy::OnDelete {
            json::set(&mut wanted, &["metadata", "annotations", annotations::DISABLE_MACHINE_CREATE], json!("true"));
        }
        decision.update(set, &wanted);
    }
}

fn size(set: &Set) -> Size {
    let (spec, status) = (&set.typed.spec, &set.typed.status);
    let count = |value: Option<i32>| i64::from(value.unwrap_or(0));
    Size { wanted: count(spec.replicas), actual: count(status.replicas), available: count(status.available_replicas) }
}

#[cfg(test)]
mod tests;

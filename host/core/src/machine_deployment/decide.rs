//! The decision about a MachineDeployment.

use std::time::Duration;

use capwasm_api::kinds::{MachineDeploymentSpec, MachineDeploymentStatus};
use capwasm_api::names::{annotations, finalizers, reason};
use capwasm_object::{json, merge_patch, meta, owners};
use capwasm_reconcile::{Action, Plan, Target};
use serde_json::{Value, json};

use super::observe::{Observed, Set};
use super::rollout::{self, Size, Strategy};
use super::{conditions, sets};
use crate::decision::{self, Course, Found, Needs, Subject, Wait};
use crate::machine_conditions::SUMS;
use crate::ownership;

pub(super) type Decision<'a> = decision::Decision<'a, Observed>;

pub(super) fn decide(observed: &Observed) -> Plan {
    decision::decide(observed)
}

impl Subject for Observed {
    type Spec = MachineDeploymentSpec;
    type Status = MachineDeploymentStatus;
    type Kept = ();

    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE_DEPLOYMENT);
    const NEEDS: Needs = Needs::ToBeKept;
    const SUMS: &'static [&'static str] = &SUMS;

    fn found(&self) -> Found<'_, MachineDeploymentSpec, MachineDeploymentStatus> {
        Found { object: &self.object, typed: &self.deployment, cluster: self.cluster.as_deref(), now: self.now }
    }

    fn keep(decision: &mut Decision<'_>, cluster: &Value) {
        owners::add(&mut decision.draft.object, &owners::reference_to(cluster, false));
        adopt(decision, cluster);
        roll_out(decision);
    }

    fn delete(decision: &mut Decision<'_>) -> Option<Wait> {
        let sets = &decision.observed.sets;
        for set in sets {
            decision.delete(&set.object);
        }
        let message = || format!("Deleting {} MachineSets", sets.len());
        (!sets.is_empty()).then(|| Wait::new(reason::DELETING, message()))
    }

    fn report(decision: &mut Decision<'_>, course: Course<()>) {
        conditions::set(decision, &course);
    }
}

/// Takes over sets that nobody controls. Such a set took its Cluster for its owner meanwhile.
fn adopt(decision: &mut Decision<'_>, cluster: &Value) {
    let observed = decision.observed;
    let owner = owners::reference_to(&observed.object, true);
    for set in observed.sets.iter().filter(|set| ownership::is_stray(&set.object)) {
        let key = format!("adopt MachineSet {}", set.typed.metadata.name);
        decision.adopt(key, &set.object, &owner, &[meta::uid(cluster)]);
    }
}

/// Patches a set if it differs from `wanted`.
fn update(decision: &mut Decision<'_>, set: &Set, wanted: &Value) {
    if let Some(merge) = merge_patch::diff(&set.object, wanted) {
        let target = Target::of(&set.object);
        let action = Action::Patch { target, merge, resource_version: None, subresource: None };
        decision.operation(format!("update MachineSet {}", set.typed.metadata.name), action);
    }
}

/// The rollout strategy with limits resolved against the wanted replicas.
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
        decision.draft.annotate(annotations::REVISION, revision.to_string());
    }
    if let Some(after) =
        deployment.spec.rollout.after.as_deref().and_then(|after| after.parse::<jiff::Timestamp>().ok())
    {
        let left = after.duration_since(observed.now);
        if left.is_positive() {
            decision.wake_after(Duration::try_from(left).unwrap_or_default());
        }
    }
    let (new, old) = sets::split(observed);
    let sizes: Vec<Size> = old.iter().map(|set| size(set)).collect();
    let (grown, shrunk) = rollout::next(observed.replicas(), strategy, &new.map(size).unwrap_or_default(), &sizes);
    // A held deployment keeps its old machines, but follows its number.
    let held = deployment.spec.paused == Some(true);
    match new {
        Some(set) => {
            let mut wanted = (*set.object).clone();
            sets::follow(&mut wanted, &decision.draft.object, deployment);
            sets::scale(&mut wanted, deployment, grown, surge);
            json::set(&mut wanted, &["metadata", "annotations", annotations::DISABLE_MACHINE_CREATE], Value::Null);
            update(decision, set, &wanted);
        }
        None if held => {}
        None => {
            let set = sets::create(&decision.draft.object, deployment, revision.saturating_add(1), grown, surge);
            decision.operation(format!("create MachineSet {}", meta::name(&set)), Action::Create(set));
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
            decision.delete(&set.object);
            continue;
        }
        let mut wanted = (*set.object).clone();
        json::set(&mut wanted, &["spec", "replicas"], replicas);
        if strategy == Strategy::OnDelete {
            json::set(&mut wanted, &["metadata", "annotations", annotations::DISABLE_MACHINE_CREATE], json!("true"));
        }
        update(decision, set, &wanted);
    }
}

fn size(set: &Set) -> Size {
    let (spec, status) = (&set.typed.spec, &set.typed.status);
    Size {
        wanted: i64::from(spec.replicas.unwrap_or(0)),
        actual: status.replicas.unwrap_or(0),
        available: status.available_replicas.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;

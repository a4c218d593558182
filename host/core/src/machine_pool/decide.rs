//! The decision about a MachinePool.

use std::cmp::Ordering;
use std::time::Duration;

use capwasm_api::conditions as metav1;
use capwasm_api::kinds::{MachinePoolSpec, MachinePoolStatus, VersionCount};
use capwasm_api::names::{annotations, condition, finalizers};
use capwasm_object::{json, meta, owners};
use capwasm_reconcile::Plan;
use serde_json::Value;

use super::observe::Observed;
use super::{conditions, deletion, machines, nodes};
use crate::decision::{self, Course, Found, Needs, Subject, Wait};
use crate::machine_conditions::SUMS;

pub(super) type Decision<'a> = decision::Decision<'a, Observed>;

pub(super) fn decide(observed: &Observed) -> Plan {
    decision::decide(observed)
}

impl Subject for Observed {
    type Spec = MachinePoolSpec;
    type Status = MachinePoolStatus;
    type Kept = ();

    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE_POOL);
    const NEEDS: Needs = Needs::ToBeKept;
    const SUMS: &'static [&'static str] = &SUMS;

    fn found(&self) -> Found<'_, MachinePoolSpec, MachinePoolStatus> {
        Found { object: &self.object, typed: &self.pool, cluster: self.cluster.as_deref(), now: self.now }
    }

    fn keep(decision: &mut Decision<'_>, cluster: &Value) {
        owners::add(&mut decision.draft.object, &owners::reference_to(cluster, false));
        bootstrap(decision);
        infrastructure(decision);
        if let Some(members) = &decision.observed.members {
            machines::align(decision, members);
        }
        follow_nodes(decision);
    }

    fn delete(decision: &mut Decision<'_>) -> Option<Wait> {
        deletion::decide(decision)
    }

    fn report(decision: &mut Decision<'_>, course: Course<()>) {
        counters(decision);
        phase(decision);
        conditions::set(decision, &course);
    }
}

/// Makes the pool the controller of an object that it refers to.
fn adopt(decision: &mut Decision<'_>, key: &str, object: &Value) {
    decision.adopt(key, object, &owners::reference_to(&decision.observed.object, true), &[]);
}

/// Unlike a Machine's, the data of a pool may be replaced under another name: later members need a valid token.
fn bootstrap(decision: &mut Decision<'_>) {
    let Observed { bootstrap, pool, .. } = decision.observed;
    let data = match bootstrap {
        None => pool.spec.template.spec.bootstrap.data_secret_name.clone(),
        Some(external) => {
            let object = external.found().map(|(object, _)| object);
            if let Some(object) = object {
                adopt(decision, "own bootstrap config", object);
            }
            if object.is_some_and(meta::is_deleting) {
                return;
            }
            decision.bootstrap_data(external)
        }
    };
    if let Some(name) = data {
        decision.draft.spec.template.spec.bootstrap.data_secret_name = Some(name);
        decision.draft.status.initialization.bootstrap_data_secret_created = Some(true);
    }
}

fn infrastructure(decision: &mut Decision<'_>) {
    let Observed { object: own, infrastructure, pool, .. } = decision.observed;
    let before = pool.status.initialization.infrastructure_provisioned == Some(true);
    let Some((object, report)) = infrastructure.found() else {
        return decision.miss(infrastructure, before, "the infrastructure object is gone though it was provisioned");
    };
    adopt(decision, "own infrastructure", object);
    if meta::is_deleting(object) || !(report.provisioned || before) {
        return;
    }
    let (spec, status) = (&mut decision.draft.spec, &mut decision.draft.status);
    status.initialization.infrastructure_provisioned = Some(true);
    if let Some(replicas) = report.replicas {
        status.replicas = Some(replicas);
        if is_counted_outside(own)
            && let Ok(replicas) = i32::try_from(replicas)
        {
            spec.replicas = Some(replicas);
        }
    }
    // A provider that counts machines that it does not name yet has more to say.
    if !report.provider_ids.is_empty() || report.replicas.unwrap_or(0) == 0 {
        spec.provider_id_list.clone_from(&report.provider_ids);
    }
}

fn follow_nodes(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let Some(all) = observed.seen() else { return };
    let ids = decision.draft.spec.provider_id_list.clone();
    nodes::retire(decision, all, &ids);
    let own = nodes::of(all, &ids);
    decision.draft.status.node_refs = nodes::references(&own);
    if observed.members.is_none() {
        for node in own {
            nodes::mark(decision, node);
        }
    }
}

/// Sets replicas and versions: from Machines if there are any, else from Nodes.
fn counters(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let (ready, available, up_to_date, counted);
    if observed.members.is_some() {
        let count = |name: &str| observed.machines.iter().filter(|machine| metav1::is_true(machine, name)).count();
        (ready, available, up_to_date) =
            (count(condition::READY), count(condition::AVAILABLE), count(condition::UP_TO_DATE));
        counted = observed.machines.iter().map(AsRef::as_ref).collect();
    } else {
        // What was counted last stands while the Nodes cannot be seen.
        let Some(all) = observed.seen() else { return };
        let own = nodes::of(all, &decision.draft.spec.provider_id_list);
        let seconds = observed.pool.spec.template.spec.min_ready_seconds.unwrap_or(0);
        let min_ready = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let next;
        (ready, available, next) = nodes::count(&own, min_ready, observed.now);
        up_to_date = own.len();
        if let Some(next) = next {
            decision.wake_after(next);
        }
        counted = own;
    }
    let number = |count: usize| i64::try_from(count).ok();
    let running = counted.iter().filter_map(|object: &&Value| json::text(object, "/status/nodeInfo/kubeletVersion"));
    let status = &mut decision.draft.status;
    status.ready_replicas = number(ready);
    status.available_replicas = number(available);
    status.up_to_date_replicas = number(up_to_date);
    status.versions = VersionCount::total(running.map(|version| (version, 1)));
}

/// Whether replicas are managed externally, such as by the provider's autoscaler.
fn is_counted_outside(object: &Value) -> bool {
    meta::annotation(object, annotations::REPLICAS_MANAGED_BY).is_some_and(|by| by != "false")
}

fn phase(decision: &mut Decision<'_>) {
    let (deleting, draft) = (decision.is_deleting(), &mut decision.draft);
    let status = &mut draft.status;
    let wanted = i64::from(draft.spec.replicas.unwrap_or(1));
    let phase = if deleting {
        "Deleting"
    } else if status.initialization.infrastructure_provisioned == Some(true) {
        match (status.ready_replicas.unwrap_or(0).cmp(&wanted), is_counted_outside(&draft.object)) {
            (Ordering::Equal, _) => "Running",
            (_, true) => "Scaling",
            (Ordering::Less, false) => "ScalingUp",
            (Ordering::Greater, false) => "ScalingDown",
        }
    } else if !status.node_refs.is_empty() {
        "Provisioned"
    } else if status.initialization.bootstrap_data_secret_created == Some(true) {
        "Provisioning"
    } else {
        "Pending"
    };
    status.phase = phase.to_owned();
}

#[cfg(test)]
mod tests;

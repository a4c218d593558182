//! Replica counters of a Cluster.

use capwasm_api::conditions;
use capwasm_api::contract::{Contract, control_plane};
use capwasm_api::kinds::{ReplicaCounts, VersionCount};
use capwasm_api::names::condition;
use capwasm_object::owners;
use serde_json::Value;

use super::decide::Decision;
use super::observe::Observed;

/// Sets `status.controlPlane` and `status.workers`.
pub(super) fn set(decision: &mut Decision<'_>) {
    let (control_plane, workers) = (control_plane(decision.observed), workers(decision.observed));
    let status = &mut decision.draft.status;
    (status.control_plane, status.workers) = (control_plane, Some(workers));
    for counts in status.control_plane.iter_mut().chain(&mut status.workers) {
        counts.versions.retain(|entry| entry.replicas > 0);
    }
}

fn control_plane(observed: &Observed) -> Option<ReplicaCounts> {
    match &observed.control_plane {
        None => {
            let mut machines = observed.control_plane_machines().peekable();
            machines.peek()?;
            Some(total(machines.map(of_machine)))
        }
        Some(external) => external.report().map(|report| report.counts.clone()),
    }
}

fn workers(observed: &Observed) -> ReplicaCounts {
    let grouped = |object: &&Value| owners::controller_uid(object).is_none();
    let sets = observed.sets.iter().map(AsRef::as_ref).filter(grouped);
    let groups = observed.pools.iter().chain(&observed.deployments).map(AsRef::as_ref).chain(sets);
    let groups = groups.map(|group| control_plane::counts(group, Contract::V1Beta2));
    total(groups.chain(observed.worker_machines().filter(grouped).map(of_machine)))
}

fn of_machine(machine: &Value) -> ReplicaCounts {
    let one = |name| Some(i64::from(conditions::is_true(machine, name)));
    ReplicaCounts {
        desired_replicas: Some(1),
        replicas: Some(1),
        up_to_date_replicas: one(condition::UP_TO_DATE),
        ready_replicas: one(condition::READY),
        available_replicas: one(condition::AVAILABLE),
        versions: Vec::new(),
    }
}

/// Adds counters; unreported ones count as 0.
fn total(all: impl Iterator<Item = ReplicaCounts>) -> ReplicaCounts {
    let (mut sums, mut versions) = ([0_i64; 5], Vec::new());
    for one in all {
        let counters =
            [one.desired_replicas, one.replicas, one.up_to_date_replicas, one.ready_replicas, one.available_replicas];
        for (sum, count) in sums.iter_mut().zip(counters) {
            *sum = sum.saturating_add(count.unwrap_or(0));
        }
        versions.extend(one.versions.into_iter().map(|entry| (entry.version, entry.replicas)));
    }
    let [desired, replicas, up_to_date, ready, available] = sums.map(Some);
    ReplicaCounts {
        desired_replicas: desired,
        replicas,
        up_to_date_replicas: up_to_date,
        ready_replicas: ready,
        available_replicas: available,
        versions: VersionCount::total(versions),
    }
}

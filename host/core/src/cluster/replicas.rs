//! Replica counters of a Cluster.

use std::collections::BTreeMap;

use capwasm_api::contract::{self, control_plane::Counters};
use capwasm_api::kinds::VersionCount;
use capwasm_api::names::condition;
use capwasm_api::{conditions, json};
use serde_json::{Value, json};

use super::decide::Decision;
use crate::ownership;

/// Sets `status.controlPlane` and `status.workers`.
pub(super) fn set(decision: &mut Decision<'_>) {
    let control_plane = control_plane(decision);
    let workers = workers(decision);
    decision.draft.set(&["status", "controlPlane"], control_plane);
    decision.draft.set(&["status", "workers"], workers);
}

fn control_plane(decision: &Decision<'_>) -> Value {
    let observed = decision.observed;
    match &observed.control_plane {
        None => {
            let machines: Vec<&Value> = observed.control_plane_machines().collect();
            if machines.is_empty() { Value::Null } else { to_value(total(machines.into_iter().map(of_machine)), &[]) }
        }
        Some(external) => external.found().map_or(Value::Null, |(object, contract)| {
            to_value(contract::control_plane::counters(object, contract), &contract::control_plane::versions(object))
        }),
    }
}

fn workers(decision: &Decision<'_>) -> Value {
    let observed = decision.observed;
    let grouped = |object: &&Value| ownership::controller_uid(object).is_none();
    let sets: Vec<&Value> = observed.sets.iter().map(AsRef::as_ref).filter(grouped).collect();
    let single: Vec<&Value> = observed.worker_machines().filter(grouped).collect();
    let groups = observed.pools.iter().chain(&observed.deployments).map(AsRef::as_ref).chain(sets);
    let groups: Vec<&Value> = groups.collect();
    let counters = total(groups.iter().map(|group| of_group(group)).chain(single.into_iter().map(of_machine)));
    let mut versions: BTreeMap<String, i32> = BTreeMap::new();
    for entry in groups.into_iter().flat_map(contract::control_plane::versions) {
        let count = versions.entry(entry.version).or_default();
        *count = count.saturating_add(entry.replicas);
    }
    let versions: Vec<VersionCount> =
        versions.into_iter().map(|(version, replicas)| VersionCount { version, replicas }).collect();
    to_value(counters, &versions)
}

fn of_group(object: &Value) -> Counters {
    contract::control_plane::counters(object, contract::Contract::V1Beta2)
}

fn of_machine(machine: &Value) -> Counters {
    let one = |name| Some(i64::from(conditions::is_true(machine, name)));
    Counters {
        desired: Some(1),
        replicas: Some(1),
        ready: one(condition::READY),
        available: one(condition::AVAILABLE),
        up_to_date: one(condition::UP_TO_DATE),
    }
}

/// Sums; a counter that somebody does not report yet counts nothing.
fn total(all: impl Iterator<Item = Counters>) -> Counters {
    let add = |a: Option<i64>, b: Option<i64>| Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0)));
    all.fold(
        Counters { desired: Some(0), replicas: Some(0), ready: Some(0), available: Some(0), up_to_date: Some(0) },
        |a, b| Counters {
            desired: add(a.desired, b.desired),
            replicas: add(a.replicas, b.replicas),
            ready: add(a.ready, b.ready),
            available: add(a.available, b.available),
            up_to_date: add(a.up_to_date, b.up_to_date),
        },
    )
}

fn to_value(counters: Counters, versions: &[VersionCount]) -> Value {
    let mut value = json!({});
    for (name, count) in [
        ("desiredReplicas", counters.desired),
        ("replicas", counters.replicas),
        ("upToDateReplicas", counters.up_to_date),
        ("readyReplicas", counters.ready),
        ("availableReplicas", counters.available),
    ] {
        if let Some(count) = count {
            json::set(&mut value, &[name], count);
        }
    }
    let versions: Vec<Value> = versions
        .iter()
        .filter(|entry| entry.replicas > 0)
        .map(|entry| json!({"version": entry.version, "replicas": entry.replicas}))
        .collect();
    if !versions.is_empty() {
        json::set(&mut value, &["versions"], versions);
    }
    value
}

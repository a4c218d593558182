//! Conditions about a group of Machines, shared by Clusters, MachineDeployments and MachineSets.

use capwasm_api::conditions::{Aggregate, Condition, Polarity, Reasons, aggregate, is_false};
use capwasm_api::names::{condition, reason};
use capwasm_object::meta;
use serde_json::Value;

/// Conditions that summarise Machines and replicas for people.
pub(crate) const SUMS: [&str; 6] = [
    condition::MACHINES_READY,
    condition::MACHINES_UP_TO_DATE,
    condition::ROLLING_OUT,
    condition::SCALING_UP,
    condition::SCALING_DOWN,
    condition::REMEDIATING,
];

/// Merges the condition `source` of all Machines into `target`; true without Machines.
pub(crate) fn aggregated(machines: &[&Value], source: &str, target: &str, reasons: Reasons) -> Condition {
    if machines.is_empty() {
        return Condition::new(target, true, reason::NO_REPLICAS);
    }
    aggregate(machines.iter().copied(), Aggregate { source, target, polarity: Polarity::Positive, reasons })
}

/// `Remediating`: whether Machines wait for their owner to remediate them.
pub(crate) fn remediating(machines: &[&Value]) -> Condition {
    let waiting = machines.iter().filter(|machine| is_false(machine, condition::OWNER_REMEDIATED));
    let mut names: Vec<&str> = waiting.map(|machine| meta::name(machine)).collect();
    if names.is_empty() {
        return Condition::new(condition::REMEDIATING, false, reason::NOT_REMEDIATING);
    }
    names.sort_unstable();
    Condition::new(condition::REMEDIATING, true, reason::REMEDIATING)
        .message(format!("* Machines {}", names.join(", ")))
}

//! Counters and conditions of a MachineSet.

use capwasm_api::conditions;
use capwasm_api::conditions::{Condition, Status};
use capwasm_api::kinds::{MachineSetStatus, VersionCount};
use capwasm_api::names::{condition, reason};
use capwasm_object::{json, selector::Selector};
use serde_json::Value;

use super::decide::Decision;
use crate::decision::Course;
use crate::machine_conditions::{aggregated, remediating};
use crate::reasons;

pub(super) fn set(decision: &mut Decision<'_>, course: &Course<Vec<String>>) {
    let observed = decision.observed;
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let count = |name: &str| number(machines.iter().filter(|machine| conditions::is_true(machine, name)).count());
    let running = machines.iter().filter_map(|machine| json::text(machine, "/status/nodeInfo/kubeletVersion"));
    let draft = &mut decision.draft;
    draft.status = MachineSetStatus {
        replicas: number(machines.len()),
        ready_replicas: count(condition::READY),
        available_replicas: count(condition::AVAILABLE),
        up_to_date_replicas: count(condition::UP_TO_DATE),
        selector: Selector::of(&draft.spec.selector).ok().map(|selector| selector.to_string()),
        versions: VersionCount::total(running.map(|version| (version, 1))),
    };

    let set = || observed.set.spec.replicas.and_then(|wanted| usize::try_from(wanted).ok());
    let (wanted, held) = match course {
        Course::Kept(held) => (set(), held.as_slice()),
        Course::Going(_) => (Some(0), [].as_slice()),
    };
    let all = [
        scaling_up(wanted, machines.len(), held),
        scaling_down(wanted, machines.len()),
        aggregated(&machines, condition::READY, condition::MACHINES_READY, reasons::READY),
        aggregated(&machines, condition::UP_TO_DATE, condition::MACHINES_UP_TO_DATE, reasons::UP_TO_DATE),
        remediating(&machines),
        course.deleting(),
    ];
    for condition in &all {
        decision.draft.condition(condition);
    }
}

fn number(count: usize) -> Option<i64> {
    i64::try_from(count).ok()
}

fn scaling_up(wanted: Option<usize>, current: usize, held: &[String]) -> Condition {
    let name = condition::SCALING_UP;
    match wanted {
        None => Condition::new(name, Status::Unknown, reason::WAITING_FOR_REPLICAS_SET)
            .message("Waiting for spec.replicas set"),
        Some(wanted) if current < wanted => {
            let mut lines = vec![format!("Scaling up from {current} to {wanted} replicas")];
            lines.extend(held.iter().map(|why| format!("* {why}")));
            Condition::new(name, true, reason::SCALING_UP).message(lines.join("\n"))
        }
        Some(_) => Condition::new(name, false, reason::NOT_SCALING_UP),
    }
}

fn scaling_down(wanted: Option<usize>, current: usize) -> Condition {
    let name = condition::SCALING_DOWN;
    match wanted {
        None => Condition::new(name, Status::Unknown, reason::WAITING_FOR_REPLICAS_SET)
            .message("Waiting for spec.replicas set"),
        Some(wanted) if current > wanted => Condition::new(name, true, reason::SCALING_DOWN)
            .message(format!("Scaling down from {current} to {wanted} replicas")),
        Some(_) => Condition::new(name, false, reason::NOT_SCALING_DOWN),
    }
}

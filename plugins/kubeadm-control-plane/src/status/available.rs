//! `Available`: certificates are there, etcd decides, and at least one machine runs all components.

use std::time::Duration;

use capwasm_api::conditions::{self, Status};
use capwasm_api::names::{condition, reason};
use capwasm_sdk::Outcome;
use jiff::Timestamp;

use crate::etcd::quorum;
use crate::health::Findings;
use crate::machine::Machine;
use crate::names;
use crate::observe::{Observed, Reach};

/// How long etcd may take to report its members after the initialization.
const PATIENCE: Duration = Duration::from_secs(120);
/// Issues that are younger are not told while all in all the control plane is available.
const FLICKER: Duration = Duration::from_secs(10);

/// How many are well, how many are not for long enough to be told, and how many not yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    well: usize,
    ill: usize,
    young: usize,
}

/// Sets the condition, except while what was last seen stands.
pub fn set(out: &mut Outcome, observed: &Observed, findings: &Findings) {
    let say = |out: &mut Outcome, status: Option<bool>, why: &str, message: String| {
        out.condition(condition::AVAILABLE, status, why, message);
    };
    if !observed.initialized {
        let message = "Control plane not yet initialized".to_owned();
        return say(out, Some(false), reason::NOT_AVAILABLE, message);
    }
    if matches!(observed.workload.reach, Reach::Settling(_))
        && conditions::get(&observed.plane.object, condition::AVAILABLE).is_some()
    {
        return;
    }
    let managed = observed.manages_etcd();
    if managed && observed.workload.known_members().is_none() {
        let since = observed.plane.initialized_since().unwrap_or(observed.now);
        return if passed(since, observed.now) < PATIENCE {
            out.wake_after(PATIENCE.saturating_sub(passed(since, observed.now)));
            say(out, Some(false), reason::NOT_AVAILABLE, "Waiting for etcd to report the list of members".to_owned())
        } else {
            say(out, None, reason::INSPECTION_FAILED, "Failed to get etcd members".to_owned())
        };
    }
    if managed && !findings.members_match {
        let message = "The list of etcd members does not match the list of Machines and Nodes".to_owned();
        return say(out, Some(false), reason::NOT_AVAILABLE, message);
    }
    let planes = planes(observed);
    let (members, voters, learners) = members(observed);
    let needed = quorum(voters);
    let certificates = super::certificates_available(out, observed);
    let total = observed.workload.known_members().map_or(0, <[_]>::len);
    if certificates && planes.well > 0 && (!managed || members.well >= needed) {
        let mut lines = Vec::new();
        if managed && members.ill > 0 {
            lines.push(of_etcd(members.well + members.young, total, learners, needed));
        }
        if planes.ill > 0 {
            lines.push(of_machines(planes.well + planes.young, observed.machines.len()));
        }
        if planes.young + members.young > 0 {
            out.wake_after(FLICKER);
        }
        return say(out, Some(true), reason::AVAILABLE, lines.join("\n"));
    }
    let mut lines = Vec::new();
    if !certificates {
        lines.push("* Control plane certificates are not available".to_owned());
    }
    if managed && members.well < needed {
        lines.push(of_etcd(members.well, total, learners, needed));
    }
    if planes.well == 0 {
        lines.push("* There are no Machines with healthy control plane components, at least 1 required".to_owned());
    }
    say(out, Some(false), reason::NOT_AVAILABLE, lines.join("\n"));
}

fn of_etcd(well: usize, total: usize, learners: usize, needed: usize) -> String {
    let learners = if learners > 0 { format!(" {learners} learner etcd member,") } else { String::new() };
    match well {
        0 => format!(
            "* There are no healthy etcd member,{learners} at least {needed} healthy member required for etcd quorum"
        ),
        1 => format!(
            "* 1 of {total} etcd members is healthy,{learners} at least {needed} healthy member required for etcd quorum"
        ),
        well => format!(
            "* {well} of {total} etcd members are healthy,{learners} at least {needed} healthy member required for etcd quorum"
        ),
    }
}

fn of_machines(well: usize, total: usize) -> String {
    match well {
        1 => format!("* 1 of {total} Machines has healthy control plane components, at least 1 required"),
        well => format!("* {well} of {total} Machines have healthy control plane components, at least 1 required"),
    }
}

/// Machines by the health of all that they run; kubeadm ties an API server to the member beside it.
fn planes(observed: &Observed) -> Tally {
    let health = names::health_conditions(observed.manages_etcd());
    let mut tally = Tally::default();
    for machine in observed.machines.iter().filter(|machine| !machine.provider_id.is_empty() || machine.node.is_some())
    {
        count(&mut tally, machine, &health, observed.now);
    }
    tally
}

/// etcd's members by the health of their machines, the number of voters, and that of learners.
fn members(observed: &Observed) -> (Tally, usize, usize) {
    let (mut tally, mut voters, mut learners) = (Tally::default(), 0, 0);
    let joining: Vec<&Machine> = observed.machines.iter().filter(|machine| machine.node.is_none()).collect();
    for member in observed.workload.known_members().unwrap_or_default() {
        // One without a name is starting.
        if member.learner || member.name.is_empty() {
            learners += 1;
        } else {
            voters += 1;
        }
        if member.name.is_empty() {
            tally.well += 1;
            continue;
        }
        match (observed.machine_of_node(&member.name), joining.as_slice()) {
            (Some(machine), _) => count(&mut tally, machine, &[names::ETCD_MEMBER_HEALTHY], observed.now),
            // Machines come one at a time, so that a member without one belongs to the one that joins.
            (None, [_]) => tally.young += 1,
            (None, _) => tally.ill += 1,
        }
    }
    (tally, voters, learners)
}

fn count(tally: &mut Tally, machine: &Machine, health: &[&str], now: Timestamp) {
    let issues = health.iter().filter_map(|name| machine.conditions.get(name));
    let since = issues.filter(|one| one.status != Status::True).filter_map(|one| one.since()).min();
    if health.iter().all(|name| machine.holds(name) == Some(true)) {
        tally.well += 1;
    } else if since.is_some_and(|since| passed(since, now) > FLICKER) {
        tally.ill += 1;
    } else {
        tally.young += 1;
    }
}

fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

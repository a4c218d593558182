//! What is reported: counters, versions and conditions of the control plane, and `UpToDate` on its machines.

use std::collections::BTreeMap;

use capwasm_api::names::{CORE_API_VERSION, condition, reason};
use capwasm_sdk::{ControlPlaneAnswer, ObjectRef, Outcome, Problem, object};
use serde_json::{Value, json};

use crate::decide::Observed;
use crate::observe::{Machine, selector};

/// The first API server has answered.
pub const INITIALIZED: &str = "Initialized";
/// The cluster's certificates exist.
pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";
/// Deletion waits for the control plane's own machines.
const WAITING_FOR_MACHINE_DELETION: &str = "WaitingForMachineDeletion";

/// What counts for the answer to the host.
pub fn answer(observed: &Observed, cluster: &str) -> ControlPlaneAnswer {
    let count = |pick: fn(&Machine) -> bool| observed.machines.iter().filter(|machine| pick(machine)).count() as u32;
    ControlPlaneAnswer {
        initialized: observed.initialized,
        endpoint: None,
        version: observed
            .machines
            .iter()
            .map(|machine| machine.version.as_str())
            .min_by_key(|version| order(version))
            .map(str::to_owned),
        replicas: observed.machines.len() as u32,
        ready: count(|machine| machine.ready == Some(true)),
        available: count(|machine| machine.available == Some(true)),
        up_to_date: count(|machine| machine.outdated.is_empty()),
        selector: selector(cluster),
    }
}

/// Versions in their order; a pre-release comes before its release.
fn order(version: &str) -> (u64, u64, u64, bool, String) {
    let (release, pre) =
        version.trim_start_matches('v').split_once('-').unwrap_or((version.trim_start_matches('v'), ""));
    let mut parts = release.split(['.', '+']).map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next(), pre.is_empty(), pre.to_owned())
}

/// Counters and versions, for passes that end before they can answer, too.
pub fn counters(out: &mut Outcome, answer: &ControlPlaneAnswer, observed: &Observed) {
    let mut versions = BTreeMap::new();
    for machine in observed.machines.iter().filter(|machine| !machine.version.is_empty()) {
        *versions.entry((order(&machine.version), &machine.version)).or_insert(0u32) += 1;
    }
    let versions: Vec<_> =
        versions.iter().map(|((_, version), count)| json!({"version": version, "replicas": count})).collect();
    out.status(json!({
        "replicas": answer.replicas,
        "readyReplicas": answer.ready,
        "availableReplicas": answer.available,
        "upToDateReplicas": answer.up_to_date,
        "selector": answer.selector,
        "versions": if versions.is_empty() { Value::Null } else { json!(versions) },
    }));
}

/// The conditions of a control plane that is not being deleted, except CertificatesAvailable.
pub fn conditions(out: &mut Outcome, observed: &Observed) {
    let (wanted, there) = (observed.replicas as usize, observed.machines.len());
    let initialized = observed.initialized;
    out.condition(
        INITIALIZED,
        Some(initialized),
        if initialized { reason::INITIALIZED } else { reason::NOT_INITIALIZED },
        "",
    );
    available(out, observed);
    machines_ready(out, observed);
    machines_up_to_date(out, observed);
    switch(out, condition::SCALING_UP, there < wanted, (reason::SCALING_UP, reason::NOT_SCALING_UP), || {
        format!("Scaling up from {there} to {wanted} replicas")
    });
    switch(out, condition::SCALING_DOWN, there > wanted, (reason::SCALING_DOWN, reason::NOT_SCALING_DOWN), || {
        format!("Scaling down from {there} to {wanted} replicas")
    });
    let outdated = observed.machines.iter().filter(|machine| !machine.outdated.is_empty()).count();
    switch(out, condition::ROLLING_OUT, outdated > 0, (reason::ROLLING_OUT, reason::NOT_ROLLING_OUT), || {
        format!("{outdated} of {there} machines are not up to date; this version of the provider does not replace them")
    });
    out.condition(condition::REMEDIATING, Some(false), reason::NOT_REMEDIATING, "");
    out.condition(condition::DELETING, Some(false), reason::NOT_DELETING, "");
}

/// Tells of a wish for more or fewer machines that cannot be met.
pub fn refused(out: &mut Outcome, observed: &Observed, problem: &Problem) {
    let (there, wanted) = (observed.machines.len(), observed.replicas as usize);
    let (name, reason) = if there < wanted {
        (condition::SCALING_UP, reason::SCALING_UP)
    } else {
        (condition::SCALING_DOWN, reason::SCALING_DOWN)
    };
    out.condition(
        name,
        Some(true),
        reason,
        format!("Scaling from {there} to {wanted} replicas is refused: {}", problem.message),
    );
    out.warning(&problem.reason, problem.message.clone());
}

fn switch(out: &mut Outcome, name: &str, on: bool, (yes, no): (&str, &str), message: impl FnOnce() -> String) {
    if on {
        out.condition(name, Some(true), yes, message());
    } else {
        out.condition(name, Some(false), no, "");
    }
}

/// Enough members are there for API servers and etcd to work.
fn available(out: &mut Outcome, observed: &Observed) {
    let there = observed.machines.len();
    let working =
        observed.machines.iter().filter(|machine| machine.has_node && !machine.lost && !machine.deleting).count();
    // Whoever has not joined yet is no member that etcd could miss.
    let members = observed.machines.iter().filter(|machine| machine.has_node).count();
    let enough = if observed.external_etcd { 1 } else { members / 2 + 1 };
    let (holds, message) = match () {
        () if !observed.initialized => (false, "Control plane not yet initialized".to_owned()),
        () if working >= enough && working > 0 => (true, String::new()),
        () => (false, format!("{working} of {there} machines work, {enough} are needed")),
    };
    out.condition(
        condition::AVAILABLE,
        Some(holds),
        if holds { reason::AVAILABLE } else { reason::NOT_AVAILABLE },
        message,
    );
}

fn machines_ready(out: &mut Outcome, observed: &Observed) {
    let name = condition::MACHINES_READY;
    let names = |state: Option<bool>| list(observed.machines.iter().filter(|machine| machine.ready == state));
    let (not_ready, unknown) = (names(Some(false)), names(None));
    match () {
        () if observed.machines.is_empty() => out.condition(name, Some(true), reason::NO_REPLICAS, ""),
        () if !not_ready.is_empty() => {
            out.condition(name, Some(false), reason::NOT_READY, format!("Not ready: {not_ready}"))
        }
        () if !unknown.is_empty() => {
            out.condition(name, None, reason::READY_UNKNOWN, format!("Not known to be ready: {unknown}"))
        }
        () => out.condition(name, Some(true), reason::READY, ""),
    };
}

fn machines_up_to_date(out: &mut Outcome, observed: &Observed) {
    let name = condition::MACHINES_UP_TO_DATE;
    let outdated: Vec<_> = observed
        .machines
        .iter()
        .filter(|machine| !machine.outdated.is_empty())
        .map(|machine| format!("Machine {}: {}", machine.name, machine.outdated.join("; ")))
        .collect();
    match () {
        () if observed.machines.is_empty() => out.condition(name, Some(true), reason::NO_REPLICAS, ""),
        () if !outdated.is_empty() => out.condition(name, Some(false), reason::NOT_UP_TO_DATE, outdated.join("\n")),
        () => out.condition(name, Some(true), reason::UP_TO_DATE, ""),
    };
}

/// `UpToDate` on each machine where it says something else.
pub fn machine_conditions(out: &mut Outcome, observed: &Observed) {
    for machine in observed.machines.iter().filter(|machine| !machine.deleting) {
        let current = machine.outdated.is_empty();
        let (status, why) = if current { ("True", reason::UP_TO_DATE) } else { ("False", reason::NOT_UP_TO_DATE) };
        let message = machine.outdated.iter().map(|line| format!("* {line}")).collect::<Vec<_>>().join("\n");
        let known = object::condition(&machine.object, condition::UP_TO_DATE).cloned().unwrap_or_default();
        let same = ["/status", "/reason", "/message"].map(|at| object::text(&known, at)) == [status, why, &message];
        if !same {
            let target = ObjectRef::new(CORE_API_VERSION, "Machine", &machine.name);
            out.set_condition_of(
                format!("up-to-date-{}", machine.name),
                target,
                condition::UP_TO_DATE,
                Some(current),
                why,
                message,
            );
        }
    }
}

/// The conditions of a control plane whose deletion waits for its own machines, or for others.
pub fn deleting(out: &mut Outcome, own: &[Machine], others: usize) {
    let (why, message) = match () {
        () if others > 0 => (reason::WAITING_FOR_WORKERS_DELETION, format!("{others} worker Machines are still there")),
        () if !own.is_empty() => {
            (WAITING_FOR_MACHINE_DELETION, format!("Machines are still there: {}", list(own.iter())))
        }
        () => (reason::DELETION_COMPLETED, String::new()),
    };
    out.condition(condition::DELETING, Some(true), why, message);
    out.condition(condition::AVAILABLE, Some(false), reason::NOT_AVAILABLE, "The control plane is being deleted");
    let going = !own.is_empty();
    switch(out, condition::SCALING_DOWN, going, (reason::SCALING_DOWN, reason::NOT_SCALING_DOWN), || {
        format!("Scaling down from {} to 0 replicas", own.len())
    });
}

fn list<'a>(machines: impl Iterator<Item = &'a Machine>) -> String {
    machines.map(|machine| machine.name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn machine(name: &str, joined: bool, lost: bool, ready: Option<bool>) -> Machine {
        Machine { name: name.into(), version: "v1.36.0".into(), has_node: joined, lost, ready, ..Machine::default() }
    }

    #[test]
    fn the_control_plane_is_available_while_most_members_work() {
        let works = || machine("w", true, false, Some(true));
        let joins = || machine("j", false, false, None);
        let lost = || machine("l", true, true, Some(false));
        for (what, initialized, external_etcd, machines, expected) in [
            ("nothing yet", false, false, vec![], false),
            ("not initialized", false, false, vec![joins()], false),
            ("initialized, its Node not matched yet", true, false, vec![joins()], false),
            ("one of one", true, false, vec![works()], true),
            ("one of one while another joins", true, false, vec![works(), joins()], true),
            ("two of three", true, false, vec![works(), works(), lost()], true),
            ("one of three", true, false, vec![works(), lost(), lost()], false),
            ("one of two", true, false, vec![works(), lost()], false),
            ("one of three with etcd elsewhere", true, true, vec![works(), lost(), lost()], true),
            ("none with etcd elsewhere", true, true, vec![lost()], false),
        ] {
            let observed = Observed { replicas: 3, initialized, external_etcd, machines, ..Observed::default() };
            let mut out = Outcome::default();
            conditions(&mut out, &observed);
            assert_eq!(out.condition_named("Available").unwrap().status, Some(expected), "{what}");
        }
    }

    #[test]
    fn the_lowest_version_is_reported() {
        for (versions, expected) in [
            (vec![], None),
            (vec!["v1.36.0", "v1.9.3"], Some("v1.9.3")),
            (vec!["v1.36.0", "v1.36.0-rc.1"], Some("v1.36.0-rc.1")),
            (vec!["v1.36.0+build.1", "v1.37.0"], Some("v1.36.0+build.1")),
        ] {
            let machines =
                versions.iter().map(|version| Machine { version: (*version).into(), ..Machine::default() }).collect();
            assert_eq!(answer(&Observed { machines, ..Observed::default() }, "c").version.as_deref(), expected);
        }
    }

    #[test]
    fn machines_are_told_up_to_date_only_when_that_is_news() {
        let known = |status: &str, reason: &str| json!({"status": {"conditions": [{"type": "UpToDate", "status": status, "reason": reason, "message": ""}]}});
        for (what, object, outdated, news) in [
            ("never told", json!({}), vec![], true),
            ("told", known("True", "UpToDate"), vec![], false),
            ("no longer", known("True", "UpToDate"), vec!["Version".to_owned()], true),
        ] {
            let machine = Machine { object, outdated, ..Machine::default() };
            let mut out = Outcome::default();
            machine_conditions(&mut out, &Observed { machines: vec![machine], ..Observed::default() });
            assert_eq!(!out.operations.is_empty(), news, "{what}");
        }
    }
}

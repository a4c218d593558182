//! What is reported of the control plane: counters, versions, conditions, the last remediation.

mod available;
mod conditions;
mod deprecated;

use capwasm_api::names::{condition, reason};
use capwasm_object::version::Version;
use capwasm_sdk::{ControlPlaneAnswer, Outcome, Problem};
use serde_json::{Value, json};

use crate::health::Findings;
use crate::machine::{Machine, selector};
use crate::names;
use crate::observe::Observed;
use crate::preflight::Preflight;
use crate::remediation;

/// What a pass found on its way that conditions tell.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What stands against the next machine.
    pub preflight: Option<Preflight>,
    /// What else is held, and why.
    pub holds: Vec<String>,
    /// A wish that cannot be met.
    pub refused: Option<Problem>,
}

impl Report {
    fn lines(&self) -> Vec<String> {
        let preflight = self.preflight.iter().flat_map(Preflight::messages);
        let holds = self.holds.iter().map(|hold| format!("* {hold}"));
        let refused = self.refused.iter().map(|problem| format!("* {}", problem.message));
        preflight.chain(holds).chain(refused).collect()
    }
}

/// Says of every machine whether it is as it should be.
pub fn mark_up_to_date(observed: &mut Observed) {
    let now = observed.now;
    for machine in &mut observed.machines {
        let message = machine.outdated.iter().map(|line| format!("* {line}")).collect::<Vec<_>>().join("\n");
        let (status, why) =
            if machine.outdated.is_empty() { (true, reason::UP_TO_DATE) } else { (false, reason::NOT_UP_TO_DATE) };
        machine.set(now, condition::UP_TO_DATE, Some(status), why, &message);
    }
}

/// Whether it is initialized, its lowest version, and the counters of replicas.
pub fn answer(observed: &Observed) -> ControlPlaneAnswer {
    let count =
        |name: &str| observed.machines.iter().filter(|machine| machine.holds(name) == Some(true)).count() as u32;
    ControlPlaneAnswer {
        initialized: observed.initialized,
        endpoint: None,
        version: versions(&observed.machines).first().map(|(version, _)| version.clone()),
        replicas: observed.machines.len() as u32,
        ready: count(condition::READY),
        available: count(condition::AVAILABLE),
        up_to_date: count(condition::UP_TO_DATE),
        selector: selector(&observed.cluster.name),
    }
}

/// Versions of kubelets and how many run each, the lowest first.
fn versions(machines: &[Machine]) -> Vec<(String, u32)> {
    let mut counts = std::collections::BTreeMap::new();
    for machine in machines.iter().filter(|machine| !machine.kubelet_version.is_empty()) {
        let version = &machine.kubelet_version;
        *counts.entry((Version::parse(version), version.clone())).or_insert(0u32) += 1;
    }
    counts.into_iter().map(|((_, version), count)| (version, count)).collect()
}

/// Everything that stands in the status, for passes that end before they can answer, too.
pub fn publish(out: &mut Outcome, observed: &Observed, findings: &Findings, report: &Report) {
    let answer = answer(observed);
    let versions: Vec<Value> = versions(&observed.machines)
        .into_iter()
        .map(|(version, replicas)| json!({"version": version, "replicas": replicas}))
        .collect();
    let mut status = json!({
        "replicas": answer.replicas,
        "readyReplicas": answer.ready,
        "availableReplicas": answer.available,
        "upToDateReplicas": answer.up_to_date,
        "selector": answer.selector,
        "versions": if versions.is_empty() { Value::Null } else { json!(versions) },
    });
    if let Some(last) = remediation::last(observed) {
        status["lastRemediation"] =
            json!({"machine": last.machine, "time": last.timestamp, "retryCount": last.retry_count});
    }
    findings.publish(out);
    conditions::set(out, observed, report);
    available::set(out, observed, findings);
    deprecated::fill(&mut status, out, observed);
    out.status(status);
}

/// The status of a control plane that is being deleted.
pub fn deleting(out: &mut Outcome, machines: &[Machine], others: &[String]) {
    conditions::deleting(out, machines, others);
    out.status(json!({
        "replicas": machines.len(),
        "deprecated": {"v1beta1": {"readyReplicas": 0, "unavailableReplicas": machines.len()}},
    }));
}

/// Whether the certificates are known to be there, from this pass or an earlier one.
fn certificates_available(out: &Outcome, observed: &Observed) -> bool {
    match out.condition_named(names::CERTIFICATES_AVAILABLE) {
        Some(condition) => condition.status == Some(true),
        None => capwasm_api::conditions::is_true(&observed.plane.object, names::CERTIFICATES_AVAILABLE),
    }
}

#[cfg(test)]
mod tests;

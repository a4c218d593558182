//! The decision about a MachineHealthCheck.

use std::time::Duration;

use capwasm_api::conditions::{self, Condition};
use capwasm_api::kinds::{MachineHealthCheckSpec, MachineHealthCheckStatus};
use capwasm_api::names::{condition, reason};
use capwasm_object::{meta, owners};
use capwasm_reconcile::{Action, Event, Plan};
use serde_json::Value;

use super::evaluate::{self, Health};
use super::observe::{External, Observed};
use super::remediation::{self, Then};
use crate::decision::{self, Course, Found, Needs, Subject, Wait};
use crate::int_or_percent;

/// Times in conditions have whole seconds.
const GRAIN: Duration = Duration::from_secs(1);

pub(super) type Decision<'a> = decision::Decision<'a, Observed>;

pub(super) fn decide(observed: &Observed) -> Plan {
    decision::decide(observed)
}

impl Subject for Observed {
    type Spec = MachineHealthCheckSpec;
    type Status = MachineHealthCheckStatus;
    type Kept = ();

    const FINALIZER: Option<&'static str> = None;
    const NEEDS: Needs = Needs::Always;
    const SUMS: &'static [&'static str] = &[];

    fn found(&self) -> Found<'_, MachineHealthCheckSpec, MachineHealthCheckStatus> {
        Found { object: &self.object, typed: &self.check, cluster: self.cluster.as_deref(), now: self.now }
    }

    fn keep(decision: &mut Decision<'_>, cluster: &Value) {
        owners::add(&mut decision.draft.object, &owners::reference_to(cluster, false));
        if decision.observed.unreachable.is_some() {
            // What was said of the Machines stands; the connection wakes.
            return decision.stand();
        }
        check(decision, cluster);
    }

    /// Conditions that it set on Machines stay.
    fn delete(_: &mut Decision<'_>) -> Option<Wait> {
        None
    }

    /// Its status is set in [`Subject::keep`].
    fn report(_: &mut Decision<'_>, _: Course<()>) {}
}

fn check(decision: &mut Decision<'_>, cluster: &Value) {
    let observed = decision.observed;
    let health: Vec<(&Value, Health)> = observed
        .targets
        .iter()
        .map(|target| {
            let health = evaluate::evaluate(target, &observed.check.spec.checks, cluster, observed.now);
            (&*target.machine, health)
        })
        .collect();
    let allowed = count(decision, &health);
    for (machine, health) in &health {
        match health {
            Health::Unsaid => {}
            Health::Doubtful(left) => decision.wake_after(*left + GRAIN),
            Health::Healthy if meta::is_deleting(machine) => {}
            Health::Healthy => healthy(decision, machine),
            Health::Unhealthy(reason, message) => {
                let failed = Condition::new(condition::HEALTH_CHECK_SUCCEEDED, false, *reason).message(message.clone());
                unhealthy(decision, machine, &failed, allowed);
            }
        }
    }
}

/// Sets the counters. Returns whether remediation is allowed.
fn count(decision: &mut Decision<'_>, health: &[(&Value, Health)]) -> bool {
    let observed = decision.observed;
    let expected = i64::try_from(health.len()).unwrap_or(i64::MAX);
    let good = health.iter().filter(|(machine, one)| *one == Health::Healthy && !meta::is_deleting(machine)).count();
    let good = i64::try_from(good).unwrap_or(i64::MAX);
    let unhealthy = expected - good;
    let Limits { least, most, text } = limits(observed, expected);
    let allowed = (least..=most).contains(&unhealthy);
    decision.draft.status = MachineHealthCheckStatus {
        expected_machines: Some(expected),
        current_healthy: Some(good),
        remediations_allowed: Some(if allowed { (most - unhealthy).max(0) } else { 0 }),
        targets: health.iter().map(|(machine, _)| meta::name(machine).to_owned()).collect(),
    };
    let name = condition::REMEDIATION_ALLOWED;
    if allowed {
        decision.draft.condition(&Condition::new(name, true, reason::REMEDIATION_ALLOWED));
        return true;
    }
    let message = format!("Remediation is not allowed, {text} (total: {expected}, unhealthy: {unhealthy})");
    let any = health.iter().any(|(_, one)| matches!(one, Health::Unhealthy(..)));
    if any && !conditions::is_false(&observed.object, name) {
        decision.plan.events.push(Event::warning("RemediationRestricted", message.clone()));
    }
    decision.draft.condition(&Condition::new(name, false, reason::TOO_MANY_UNHEALTHY).message(message));
    false
}

/// Range of unhealthy Machines in which remediation is allowed, and the message outside of it.
struct Limits {
    least: i64,
    most: i64,
    text: String,
}

fn limits(observed: &Observed, expected: i64) -> Limits {
    let trigger = &observed.check.spec.remediation.trigger_if;
    if let Some(range) = &trigger.unhealthy_in_range {
        let bounds = range.trim_start_matches('[').trim_end_matches(']').split_once('-');
        let bounds = bounds.and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
        // An empty range, which allows nothing, is what an unreadable one means.
        let (least, most) = bounds.unwrap_or((1, 0));
        let text = format!("the number of not started or unhealthy machines does not fall within the range {range}");
        return Limits { least, most, text };
    }
    let value = trigger.unhealthy_less_than_or_equal_to.as_ref();
    let most = value.map_or(expected, |value| int_or_percent::resolve(value, expected, false));
    let said = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
    Limits { least: 0, most, text: format!("the number of not started or unhealthy machines exceeds {said}") }
}

fn write(decision: &mut Decision<'_>, machine: &Value, health: &Condition, then: &Then) {
    if let Some(action) = remediation::patch(machine, health, then, decision.observed.now) {
        decision.operation(format!("health of Machine {}", meta::name(machine)), action);
    }
}

fn healthy(decision: &mut Decision<'_>, machine: &Value) {
    let external = decision.observed.external.as_ref();
    if let Some(request) = external.and_then(|external| external.requests.get(meta::name(machine))) {
        decision.delete(request);
    }
    let succeeded = Condition::new(condition::HEALTH_CHECK_SUCCEEDED, true, reason::HEALTH_CHECK_SUCCEEDED);
    write(decision, machine, &succeeded, &Then::Withdraw);
}

fn unhealthy(decision: &mut Decision<'_>, machine: &Value, failed: &Condition, allowed: bool) {
    if allowed && !conditions::is_false(machine, condition::HEALTH_CHECK_SUCCEEDED) {
        let text = format!("Machine {} has been marked as unhealthy: {}", meta::name(machine), failed.reason);
        decision.plan.events.push(Event::normal("MachineMarkedUnhealthy", text));
    }
    let then = match &decision.observed.external {
        _ if !allowed || meta::is_deleting(machine) => Then::Leave,
        None => Then::AskOwner,
        Some(external) => outside(decision, external, machine),
    };
    write(decision, machine, failed, &then);
}

fn outside(decision: &mut Decision<'_>, external: &External, machine: &Value) -> Then {
    let observed = decision.observed;
    let name = meta::name(machine);
    let waiting = || Then::Outside(reason::WAITING_FOR_REMEDIATION, "Waiting for remediation".to_owned());
    if external.requests.contains_key(name) {
        // Whoever acts may have said more about it meanwhile.
        let said = conditions::get(machine, condition::EXTERNALLY_REMEDIATED);
        let failed = [reason::REMEDIATION_TEMPLATE_NOT_FOUND, reason::REMEDIATION_REQUEST_CREATION_FAILED];
        return if said.is_none_or(|said| failed.contains(&said.reason.as_str())) { waiting() } else { Then::Leave };
    }
    let reference = observed.check.spec.remediation.template_ref.as_ref();
    let template = external.template.as_deref();
    let made = template.and_then(|template| remediation::request(template, machine, &observed.check.spec.cluster_name));
    let Some(request) = made else {
        let (kind, template) = reference.map_or(("", ""), |one| (one.kind.as_str(), one.name.as_str()));
        return Then::Outside(
            reason::REMEDIATION_TEMPLATE_NOT_FOUND,
            format!("There is no template {kind} {template}"),
        );
    };
    let key = format!("create {} {name}", meta::kind(&request));
    let refused = observed.results.iter().find(|(one, _)| *one == key).and_then(|(_, result)| result.as_ref().err());
    let then = match refused {
        Some(error) => Then::Outside(reason::REMEDIATION_REQUEST_CREATION_FAILED, error.to_string()),
        None => waiting(),
    };
    decision.operation(key, Action::Create(request));
    then
}

#[cfg(test)]
mod tests;

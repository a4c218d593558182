//! The decision about a MachineHealthCheck.

use std::time::Duration;

use capwasm_api::conditions::{self, Condition, Status};
use capwasm_api::json;
use capwasm_api::names::{condition, reason};
use capwasm_reconcile::{Action, Event, Operation, Plan, Target, Verdict};
use serde_json::Value;

use super::evaluate::{self, Health};
use super::observe::{External, Observed};
use super::remediation::{self, Then};
use crate::draft::Draft;
use crate::{gate, ownership, percent};

/// Times in conditions are in whole seconds.
const GRAIN: Duration = Duration::from_secs(1);

/// What should be, given what was observed.
pub(super) fn decide(observed: &Observed) -> Plan {
    if json::is_deleting(&observed.object) {
        return Plan::nothing();
    }
    let Some(cluster) = observed.cluster.as_deref() else {
        let message = format!("Cluster {} does not exist", observed.check.spec.cluster_name);
        let verdict = Verdict::Failed { reason: "NoCluster".to_owned(), message, retry_after: None, backoff: false };
        return Plan { verdict, ..Plan::nothing() };
    };
    let mut draft = Draft::new(&observed.object, observed.now);
    let paused = gate::paused(&observed.object, Some(cluster));
    draft.condition(&paused);
    if paused.status == Status::True {
        return Plan { desired: Some(draft.finish(false)), ..Plan::nothing() };
    }
    ownership::own(&mut draft.desired, &ownership::reference(cluster, false));
    if observed.unreachable.is_some() {
        // What was said of the Machines stands; the connection wakes.
        return Plan { desired: Some(draft.finish(false)), verdict: Verdict::Waiting, ..Plan::nothing() };
    }
    let health: Vec<(&Value, Health)> = observed
        .targets
        .iter()
        .map(|target| {
            let health = evaluate::evaluate(target, &observed.check.spec.checks, cluster, observed.now);
            (&*target.machine, health)
        })
        .collect();
    let mut plan = Plan::nothing();
    let allowed = count(observed, &health, &mut draft, &mut plan);
    for (machine, health) in &health {
        match health {
            Health::Unsaid => {}
            Health::Doubtful(left) => {
                let after = *left + GRAIN;
                plan.wake_after = Some(plan.wake_after.map_or(after, |earlier| earlier.min(after)));
            }
            Health::Healthy if json::is_deleting(machine) => {}
            Health::Healthy => healthy(observed, machine, &mut plan),
            Health::Unhealthy(reason, message) => {
                let failed = Condition::new(condition::HEALTH_CHECK_SUCCEEDED, false, *reason).message(message.clone());
                unhealthy(observed, machine, &failed, allowed, &mut plan);
            }
        }
    }
    plan.status_may_wait = draft.is_informational(&[]);
    plan.desired = Some(draft.finish(true));
    plan
}

/// Counters, and whether anything may be done.
fn count(observed: &Observed, health: &[(&Value, Health)], draft: &mut Draft, plan: &mut Plan) -> bool {
    let expected = i64::try_from(health.len()).unwrap_or(i64::MAX);
    let good = health.iter().filter(|(machine, one)| *one == Health::Healthy && !json::is_deleting(machine)).count();
    let good = i64::try_from(good).unwrap_or(i64::MAX);
    let unhealthy = expected - good;
    let Limits { least, most, text } = limits(observed, expected);
    let allowed = (least..=most).contains(&unhealthy);
    let names: Vec<&str> = health.iter().map(|(machine, _)| json::name(machine)).collect();
    draft.set(&["status", "expectedMachines"], expected);
    draft.set(&["status", "currentHealthy"], good);
    draft.set(&["status", "remediationsAllowed"], if allowed { (most - unhealthy).max(0) } else { 0 });
    draft.set(&["status", "targets"], if names.is_empty() { Value::Null } else { names.into() });
    let name = condition::REMEDIATION_ALLOWED;
    if allowed {
        draft.condition(&Condition::new(name, true, reason::REMEDIATION_ALLOWED));
        return true;
    }
    let message = format!("Remediation is not allowed, {text} (total: {expected}, unhealthy: {unhealthy})");
    let any = health.iter().any(|(_, one)| matches!(one, Health::Unhealthy(..)));
    if any && !conditions::is_false(&observed.object, name) {
        plan.events.push(Event::warning("RemediationRestricted", message.clone()));
    }
    draft.condition(&Condition::new(name, false, reason::TOO_MANY_UNHEALTHY).message(message));
    false
}

/// Between how many unhealthy Machines something is done, and what it means to be outside.
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
    let most = value.map_or(expected, |value| percent::resolve(value, expected, false));
    let said = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
    Limits { least: 0, most, text: format!("the number of not started or unhealthy machines exceeds {said}") }
}

fn operation(plan: &mut Plan, key: String, action: Action) {
    plan.operations.push(Operation::management(key, action));
}

fn write(observed: &Observed, machine: &Value, health: &Condition, then: &Then, plan: &mut Plan) {
    if let Some(action) = remediation::patch(machine, health, then, observed.now) {
        operation(plan, format!("health of Machine {}", json::name(machine)), action);
    }
}

fn healthy(observed: &Observed, machine: &Value, plan: &mut Plan) {
    if let Some(request) = observed.external.as_ref().and_then(|external| external.requests.get(json::name(machine)))
        && !json::is_deleting(request)
    {
        let uid = json::text(request, "/metadata/uid").map(str::to_owned);
        let action = Action::Delete { target: Target::of(request), uid, propagation: None };
        operation(plan, format!("delete {} {}", json::kind(request), json::name(request)), action);
    }
    let succeeded = Condition::new(condition::HEALTH_CHECK_SUCCEEDED, true, reason::HEALTH_CHECK_SUCCEEDED);
    write(observed, machine, &succeeded, &Then::Withdraw, plan);
}

fn unhealthy(observed: &Observed, machine: &Value, failed: &Condition, allowed: bool, plan: &mut Plan) {
    if allowed && !conditions::is_false(machine, condition::HEALTH_CHECK_SUCCEEDED) {
        let text = format!("Machine {} has been marked as unhealthy: {}", json::name(machine), failed.reason);
        plan.events.push(Event::normal("MachineMarkedUnhealthy", text));
    }
    let then = match &observed.external {
        _ if !allowed || json::is_deleting(machine) => Then::Leave,
        None => Then::AskOwner,
        Some(external) => outside(observed, external, machine, plan),
    };
    write(observed, machine, failed, &then, plan);
}

fn outside(observed: &Observed, external: &External, machine: &Value, plan: &mut Plan) -> Then {
    let name = json::name(machine);
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
    let key = format!("create {} {name}", json::kind(&request));
    let refused = observed.results.iter().find(|(one, _)| *one == key).and_then(|(_, result)| result.as_ref().err());
    let then = match refused {
        Some(error) => Then::Outside(reason::REMEDIATION_REQUEST_CREATION_FAILED, error.to_string()),
        None => waiting(),
    };
    operation(plan, key, Action::Create(request));
    then
}

#[cfg(test)]
mod tests;

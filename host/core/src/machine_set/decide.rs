//! The decision about a MachineSet.

use std::collections::HashSet;

use capwasm_api::conditions::Status;
use capwasm_api::names::{annotations, finalizers, labels, next_slot};
use capwasm_api::{json, selector};
use capwasm_reconcile::{Action, Operation, Plan, Target, Verdict};
use serde_json::Value;

use super::observe::{Observed, Part};
use super::{clone, conditions, naming, preflight, priority, propagate};
use crate::draft::Draft;
use crate::external::External;
use crate::members::SUMS;
use crate::remediation::{self, Limits};
use crate::{gate, ownership, percent};

/// Machines created in one pass; the next ones follow when the caches show them.
const BATCH: usize = 25;

/// What is collected on the way to a plan.
pub(super) struct Decision<'a> {
    pub(super) observed: &'a Observed,
    pub(super) draft: Draft,
    pub(super) plan: Plan,
    /// What holds the creation of Machines.
    pub(super) held: Vec<String>,
    /// The first thing that is wrong.
    failure: Option<(&'static str, String)>,
}

impl Decision<'_> {
    fn fail(&mut self, reason: &'static str, message: impl Into<String>) {
        self.failure.get_or_insert((reason, message.into()));
    }

    fn operation(&mut self, key: String, action: Action) {
        self.plan.operations.push(Operation::management(key, action));
    }

    fn delete(&mut self, object: &Value) {
        let uid = json::text(object, "/metadata/uid").map(str::to_owned);
        let action = Action::Delete { target: Target::of(object), uid, propagation: None };
        self.operation(format!("delete {} {}", json::kind(object), json::name(object)), action);
    }
}

/// What should be, given what was observed.
pub(super) fn decide(observed: &Observed) -> Plan {
    let mut decision = Decision {
        observed,
        draft: Draft::new(&observed.object, observed.now),
        plan: Plan::nothing(),
        held: Vec::new(),
        failure: None,
    };
    let paused = gate::paused(&observed.object, observed.cluster.as_deref());
    decision.draft.condition(&paused);
    if paused.status == Status::True {
        return Plan { desired: Some(decision.draft.finish(false)), ..Plan::nothing() };
    }
    if observed.is_deleting() {
        if observed.machines.is_empty() {
            return done(decision);
        }
        for machine in observed.machines.iter().filter(|machine| !json::is_deleting(machine)) {
            decision.delete(machine);
        }
    } else {
        let Some(cluster) = observed.cluster.as_deref() else {
            let message = format!("Cluster {} does not exist", observed.set.spec.cluster_name);
            let verdict =
                Verdict::Failed { reason: "NoCluster".to_owned(), message, retry_after: None, backoff: false };
            return Plan { verdict, ..Plan::nothing() };
        };
        decision.draft.finalizer(finalizers::MACHINE_SET);
        prepare(&mut decision, cluster);
        for machine in &observed.machines {
            if let Some(action) = propagate::patch(machine, &decision.draft.desired) {
                decision.operation(format!("update Machine {}", json::name(machine)), action);
            }
        }
        equip(&mut decision);
        let limits = remediation_limits(observed);
        decision.plan.operations.extend(remediation::operations(&observed.machines, &limits));
        replicas(&mut decision);
    }
    conditions::set(&mut decision);
    let Decision { draft, mut plan, failure, .. } = decision;
    plan.verdict = match failure {
        Some((reason, message)) => {
            Verdict::Failed { reason: reason.to_owned(), message, retry_after: None, backoff: false }
        }
        None if observed.is_deleting() => Verdict::Waiting,
        None => Verdict::Done,
    };
    let reconciled = matches!(plan.verdict, Verdict::Done | Verdict::Waiting);
    plan.status_may_wait = draft.is_informational(&SUMS);
    plan.desired = Some(draft.finish(reconciled));
    plan
}

/// How far failed Machines may be replaced: those of an old revision go anyway, and others only when a new one could be made.
fn remediation_limits(observed: &Observed) -> Limits {
    let revision =
        |object: &Value| json::annotation(object, annotations::REVISION).and_then(|text| text.parse::<u64>().ok());
    let deployment = observed.deployment.as_deref();
    let outdated =
        revision(&observed.object).zip(deployment.and_then(revision)).is_some_and(|(own, newest)| own < newest);
    let in_flight = deployment.and_then(|deployment| {
        let value = deployment.pointer("/spec/remediation/maxInFlight")?;
        let replicas = json::number(deployment, "/spec/replicas").unwrap_or(1);
        let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((percent::resolve(value, replicas, true), said))
    });
    let held = preflight::failures(&observed.set, observed.control_plane.as_ref().and_then(External::found));
    Limits { outdated, held, in_flight }
}

/// No Machine is left: clones that none ever took go by garbage collection, for the set owns them.
fn done(decision: Decision<'_>) -> Plan {
    let release = if decision.draft.has_finalizer(finalizers::MACHINE_SET) {
        vec![finalizers::MACHINE_SET.to_owned()]
    } else {
        Vec::new()
    };
    Plan { release, ..decision.plan }
}

/// Labels, and owners of everything that does not have one.
fn prepare(decision: &mut Decision<'_>, cluster: &Value) {
    let observed = decision.observed;
    let name = observed.set.spec.cluster_name.as_str();
    decision.draft.set(&["spec", "selector", "matchLabels", labels::CLUSTER_NAME], name);
    decision.draft.set(&["spec", "template", "metadata", "labels", labels::CLUSTER_NAME], name);
    let of_cluster = ownership::reference(cluster, false);
    if observed.set.metadata.controller().is_none() {
        ownership::own(&mut decision.draft.desired, &of_cluster);
    }
    for template in
        [observed.bootstrap.as_ref(), Some(&observed.infrastructure)].into_iter().flatten().filter_map(External::found)
    {
        let template = template.0;
        if json::is_deleting(template) {
            continue;
        }
        match ownership::adopt(template, &of_cluster, name, &[]) {
            Ok(Some(action)) => {
                decision.operation(format!("own {} {}", json::kind(template), json::name(template)), action)
            }
            Ok(None) => {}
            Err(foreign) => decision.fail("ForeignOwner", foreign.to_string()),
        }
    }
    let of_set = ownership::reference(&observed.object, true);
    for stray in &observed.strays {
        if let Ok(Some(action)) = ownership::adopt(stray, &of_set, name, &[]) {
            decision.operation(format!("adopt Machine {}", json::name(stray)), action);
        }
    }
}

/// Creates or deletes Machines, and deletes clones that no Machine refers to.
fn replicas(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let wanted = observed.set.spec.replicas.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(1);
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let mut created = HashSet::new();
    let slot = next_slot(
        json::annotation(&observed.object, annotations::NEXT_SLOT),
        machines.iter().filter_map(|machine| json::annotation(machine, annotations::SLOT)),
    );
    if slot > 0 {
        // A record of what was seen: written with the pass after a creation, so a repeated create finds the same slot.
        decision.draft.set(&["metadata", "annotations", annotations::NEXT_SLOT], slot.to_string());
    }
    if machines.len() < wanted {
        created = create(decision, wanted - machines.len(), slot);
    } else if machines.len() > wanted {
        let order = observed.set.spec.deletion.order.as_deref();
        let count = machines.len() - wanted;
        for machine in priority::choose(machines.iter().copied(), count, order, observed.now) {
            if !json::is_deleting(machine) {
                decision.delete(machine);
            }
        }
    }
    let referenced: HashSet<(&str, &str)> = observed
        .machines
        .iter()
        .chain(&observed.strays)
        .flat_map(|machine| {
            ["/spec/bootstrap/configRef", "/spec/infrastructureRef"].into_iter().filter_map(|at| machine.pointer(at))
        })
        .filter_map(|reference| Some((json::text(reference, "/kind")?, json::text(reference, "/name")?)))
        .collect();
    for orphan in &observed.clones {
        let (kind, name) = (json::kind(orphan), json::name(orphan));
        if !json::is_deleting(orphan) && !referenced.contains(&(kind, name)) && !created.contains(name) {
            decision.delete(orphan);
        }
    }
}

/// Plans new Machines with their clones, and hands back their names.
fn create(decision: &mut Decision<'_>, count: usize, slot: u64) -> HashSet<String> {
    let observed = decision.observed;
    let mut names = HashSet::new();
    if json::annotation(&observed.object, annotations::DISABLE_MACHINE_CREATE).is_some() {
        return names;
    }
    decision.held = preflight::failures(&observed.set, observed.control_plane.as_ref().and_then(External::found));
    if !decision.held.is_empty() {
        return names;
    }
    let taken: HashSet<&str> =
        observed.machines.iter().chain(&observed.strays).map(|machine| json::name(machine)).collect();
    let mut slots = slot..;
    while names.len() < count.min(BATCH) {
        let Some(slot) = slots.next().map(|slot| slot.to_string()) else { break };
        let name = naming::machine_name(&observed.set, &slot);
        if taken.contains(name.as_str()) || names.contains(&name) {
            continue;
        }
        match machine(decision, &name, &slot) {
            Ok(machine) => {
                decision.operation(format!("create Machine {name}"), Action::Create(machine));
                names.insert(name);
                // What belongs to a Machine is created once the Machine can be its owner.
                decision.plan.wake_when_applied = true;
            }
            // The reads of the templates wake the set when they change.
            Err(unusable) => {
                decision.held.push(unusable.to_string());
                decision.fail("TemplateUnusable", unusable.to_string());
                break;
            }
        }
    }
    names
}

/// A new Machine. Its references name what is cloned for it in the next pass; templates that cannot be cloned make no Machine.
fn machine(decision: &Decision<'_>, name: &str, slot: &str) -> Result<Value, clone::Unusable> {
    let observed = decision.observed;
    let template = &observed.set.spec.template.spec;
    let mut machine = clone::machine(&decision.draft.desired, &observed.set, name, slot);
    if let (Some(external), Some(reference)) = (&observed.bootstrap, &template.bootstrap.config_ref) {
        let config = clone::clone(clone::template(external, reference)?, &machine)?;
        json::set(&mut machine, &["spec", "bootstrap", "configRef"], clone::reference(&config));
    }
    let infrastructure =
        clone::clone(clone::template(&observed.infrastructure, &template.infrastructure_ref)?, &machine)?;
    json::set(&mut machine, &["spec", "infrastructureRef"], clone::reference(&infrastructure));
    Ok(machine)
}

/// Creates what Machines refer to and what is not there yet, owned by them from the start.
fn equip(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let template = &observed.set.spec.template.spec;
    for (machine, part) in &observed.bare {
        // As the Machine was created: what it was told since (to pause, to go first) is not for its clones.
        let slot = json::annotation(machine, annotations::SLOT).unwrap_or_default();
        let mut born = clone::machine(&decision.draft.desired, &observed.set, json::name(machine), slot);
        json::set(&mut born, &["metadata", "uid"], json::uid(machine));
        let machine = &born;
        let clone = match part {
            Part::Bootstrap => {
                let (Some(external), Some(reference)) = (&observed.bootstrap, &template.bootstrap.config_ref) else {
                    continue;
                };
                clone::template(external, reference).and_then(|template| clone::clone(template, machine))
            }
            Part::Infrastructure => clone::template(&observed.infrastructure, &template.infrastructure_ref)
                .and_then(|template| clone::clone(template, machine)),
        };
        match clone {
            Ok(clone) => {
                let key = format!("create {} {}", json::kind(&clone), json::name(&clone));
                decision.operation(key, Action::Create(clone));
            }
            Err(unusable) => decision.fail("TemplateUnusable", unusable.to_string()),
        }
    }
}

/// `status.selector`.
pub(super) fn selector_text(desired: &Value) -> String {
    selector::to_text(desired.pointer("/spec/selector").unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests;

//! The decision about a MachineSet.

use std::collections::HashSet;

use capwasm_api::kinds::{MachineSetSpec, MachineSetStatus};
use capwasm_api::names::{annotations, finalizers, labels, next_slot, reason};
use capwasm_object::{json, meta, owners};
use capwasm_reconcile::{Action, Plan};
use serde_json::Value;

use super::observe::{Observed, Part};
use super::{clone, conditions, delete_priority, in_place, naming, preflight};
use crate::decision::{self, Course, Found, Needs, Subject, Wait};
use crate::external::External;
use crate::int_or_percent;
use crate::machine_conditions::SUMS;
use crate::remediation::{self, Limits};

/// Machines created in one pass at most; further ones follow when the caches show them.
pub(super) const BATCH: usize = 25;

pub(super) type Decision<'a> = decision::Decision<'a, Observed>;

pub(super) fn decide(observed: &Observed) -> Plan {
    decision::decide(observed)
}

impl Subject for Observed {
    type Spec = MachineSetSpec;
    type Status = MachineSetStatus;
    /// Reasons against the creation of Machines.
    type Kept = Vec<String>;

    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE_SET);
    const NEEDS: Needs = Needs::ToBeKept;
    const SUMS: &'static [&'static str] = &SUMS;

    fn found(&self) -> Found<'_, MachineSetSpec, MachineSetStatus> {
        Found { object: &self.object, typed: &self.set, cluster: self.cluster.as_deref(), now: self.now }
    }

    fn keep(decision: &mut Decision<'_>, cluster: &Value) -> Vec<String> {
        let observed = decision.observed;
        prepare(decision, cluster);
        for machine in &observed.machines {
            if let Some(action) = in_place::patch(machine, &decision.draft.object) {
                decision.operation(format!("update Machine {}", meta::name(machine)), action);
            }
        }
        equip(decision);
        let limits = remediation_limits(observed);
        decision.plan.operations.extend(remediation::operations(&observed.machines, &limits));
        replicas(decision)
    }

    /// Clones that no Machine took are garbage collected, since the set owns them.
    fn delete(decision: &mut Decision<'_>) -> Option<Wait> {
        let machines = &decision.observed.machines;
        for machine in machines {
            decision.delete(machine);
        }
        let message = || format!("Deleting {} Machines", machines.len());
        (!machines.is_empty()).then(|| Wait::new(reason::DELETING, message()))
    }

    fn report(decision: &mut Decision<'_>, course: Course<Vec<String>>) {
        conditions::set(decision, &course);
    }
}

/// Limits of remediation: outdated Machines are replaced anyway, others only when new ones can be created.
fn remediation_limits(observed: &Observed) -> Limits {
    let revision =
        |object: &Value| meta::annotation(object, annotations::REVISION).and_then(|text| text.parse::<u64>().ok());
    let deployment = observed.deployment.as_deref();
    let outdated =
        revision(&observed.object).zip(deployment.and_then(revision)).is_some_and(|(own, newest)| own < newest);
    let in_flight = deployment.and_then(|deployment| {
        let value = deployment.pointer("/spec/remediation/maxInFlight")?;
        let replicas = json::number(deployment, "/spec/replicas").unwrap_or(1);
        let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((int_or_percent::resolve(value, replicas, true), said))
    });
    let held = preflight::failures(&observed.set, observed.control_plane.as_ref().and_then(External::report));
    Limits { outdated, held, in_flight }
}

/// Sets labels, and adds missing owner references.
fn prepare(decision: &mut Decision<'_>, cluster: &Value) {
    let observed = decision.observed;
    let name = observed.set.spec.cluster_name.as_str();
    let spec = &mut decision.draft.spec;
    json::set(&mut spec.selector, &["matchLabels", labels::CLUSTER_NAME], name);
    spec.template.metadata.labels.insert(labels::CLUSTER_NAME.to_owned(), name.to_owned());
    decision.draft.lay_spec();
    let of_cluster = owners::reference_to(cluster, false);
    if observed.set.metadata.controller().is_none() {
        owners::add(&mut decision.draft.object, &of_cluster);
    }
    let templates = [observed.bootstrap.as_ref(), Some(&observed.infrastructure)].into_iter().flatten();
    for (template, ()) in templates.filter_map(External::found) {
        let key = format!("own {} {}", meta::kind(template), meta::name(template));
        decision.adopt(key, template, &of_cluster, &[]);
    }
    let of_set = owners::reference_to(&observed.object, true);
    for stray in &observed.strays {
        // It may have taken its Cluster for its owner meanwhile.
        decision.adopt(format!("adopt Machine {}", meta::name(stray)), stray, &of_set, &[meta::uid(cluster)]);
    }
}

/// Creates or deletes Machines, and deletes unused clones. Returns reasons against creation.
fn replicas(decision: &mut Decision<'_>) -> Vec<String> {
    let observed = decision.observed;
    let wanted = observed.set.spec.replicas.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(1);
    let machines: Vec<&Value> = observed.machines.iter().map(AsRef::as_ref).collect();
    let (mut created, mut held) = (HashSet::new(), Vec::new());
    let slot = next_slot(
        meta::annotation(&observed.object, annotations::NEXT_SLOT),
        machines.iter().filter_map(|machine| meta::annotation(machine, annotations::SLOT)),
    );
    if slot > 0 {
        // A record of what was seen: written with the pass after a creation, so a repeated create finds the same slot.
        decision.draft.annotate(annotations::NEXT_SLOT, slot.to_string());
    }
    if machines.len() < wanted {
        (created, held) = create(decision, wanted - machines.len(), slot);
    } else if machines.len() > wanted {
        let order = observed.set.spec.deletion.order.as_deref();
        let count = machines.len() - wanted;
        for machine in delete_priority::choose(machines.iter().copied(), count, order, observed.now) {
            decision.delete(machine);
        }
    }
    let referenced: HashSet<(&str, &str)> = observed
        .machines
        .iter()
        .flat_map(|machine| {
            ["/spec/bootstrap/configRef", "/spec/infrastructureRef"].into_iter().filter_map(|at| machine.pointer(at))
        })
        .filter_map(|reference| Some((json::text(reference, "/kind")?, json::text(reference, "/name")?)))
        .collect();
    for orphan in &observed.clones {
        let (kind, name) = (meta::kind(orphan), meta::name(orphan));
        if !referenced.contains(&(kind, name)) && !created.contains(name) {
            decision.delete(orphan);
        }
    }
    held
}

/// Plans new Machines. Returns their names, and reasons against further ones.
fn create(decision: &mut Decision<'_>, count: usize, slot: u64) -> (HashSet<String>, Vec<String>) {
    let observed = decision.observed;
    let mut names = HashSet::new();
    if meta::annotation(&observed.object, annotations::DISABLE_MACHINE_CREATE).is_some() {
        return (names, Vec::new());
    }
    let mut held = preflight::failures(&observed.set, observed.control_plane.as_ref().and_then(External::report));
    if !held.is_empty() {
        return (names, held);
    }
    let taken: HashSet<&str> = observed.machines.iter().map(|machine| meta::name(machine)).collect();
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
                held.push(unusable.to_string());
                decision.fail("TemplateUnusable", unusable.to_string());
                break;
            }
        }
    }
    (names, held)
}

/// A new Machine with references to clones of the next pass; an error if a template cannot be cloned.
fn machine(decision: &Decision<'_>, name: &str, slot: &str) -> Result<Value, clone::Unusable> {
    let observed = decision.observed;
    let template = &observed.set.spec.template.spec;
    let mut machine = clone::machine(&decision.draft.object, &observed.set, name, slot);
    if let (Some(external), Some(reference)) = (&observed.bootstrap, &template.bootstrap.config_ref) {
        let config = clone::clone(clone::template(external, reference)?, &machine)?;
        json::set(&mut machine, &["spec", "bootstrap", "configRef"], clone::reference(&config));
    }
    let infrastructure =
        clone::clone(clone::template(&observed.infrastructure, &template.infrastructure_ref)?, &machine)?;
    json::set(&mut machine, &["spec", "infrastructureRef"], clone::reference(&infrastructure));
    Ok(machine)
}

/// Creates missing clones, owned by their Machines.
fn equip(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let template = &observed.set.spec.template.spec;
    for (machine, part) in &observed.bare {
        // As the Machine was created: what it was told since (to pause, to go first) is not for its clones.
        let slot = meta::annotation(machine, annotations::SLOT).unwrap_or_default();
        let mut born = clone::machine(&decision.draft.object, &observed.set, meta::name(machine), slot);
        json::set(&mut born, &["metadata", "uid"], meta::uid(machine));
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
                let key = format!("create {} {}", meta::kind(&clone), meta::name(&clone));
                decision.operation(key, Action::Create(clone));
            }
            Err(unusable) => decision.fail("TemplateUnusable", unusable.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;

//! The end of a control plane: workers first, then all of its machines at once. etcd ends with them.

use capwasm_api::names::{CORE_API_VERSION, labels};
use capwasm_sdk::{Context, Host, ObjectRef, Optional, Problem, Refused, Selection, object};
use serde_json::Value;

use crate::machine::{Machine, controller};
use crate::plane::ControlPlane;
use crate::{clone, observe, reconcile, status};

/// Deletes the Machines, once those of workers are gone; true when none is left.
pub fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let plane = ControlPlane::read(object).unwrap_or_else(|_| ControlPlane {
        name: object::name(object).to_owned(),
        uid: object::uid(object).to_owned(),
        ..ControlPlane::default()
    });
    let known = cx.related_one("cluster");
    let label = || object::label(object, labels::CLUSTER_NAME).map(str::to_owned);
    let name = match known.as_ref().map(|cluster| object::name(cluster).to_owned()).or_else(label) {
        Some(name) => Some(name),
        None => of_machines(cx.host, &plane)?,
    };
    // Never belonged to a cluster, so that it never made anything.
    let Some(cluster) = name.filter(|name| !name.is_empty()) else { return Ok(true) };
    let (mut own, orphans) = observe::machines(cx.host, &cluster, &plane)?;
    if known.as_ref().is_some_and(object::is_deleting) {
        // Nobody else would delete them while the infrastructure is there.
        let seen: Vec<String> = own.iter().map(|machine| machine.uid.clone()).collect();
        own.extend(orphans.into_iter().filter(|machine| !seen.contains(&machine.uid)));
    }
    let others = workers(cx, &cluster, &own)?;
    if others.is_empty() {
        for machine in &own {
            // There is nothing left that a member could be missed by.
            if machine.has_hook() {
                reconcile::unhook(cx, machine);
            }
            if machine.deleting.is_none() {
                reconcile::delete_machine(cx, machine);
            }
        }
    }
    status::deleting(&mut cx.out, &own, &others);
    Ok(own.is_empty() && others.is_empty())
}

/// The cluster of the machines that the control plane made, where owner and label of its own were lost; none without any.
fn of_machines(host: &dyn Host, plane: &ControlPlane) -> Result<Option<String>, Refused> {
    for name in clone::unseen_names(plane, "", &[]) {
        let machine = host.lookup(&ObjectRef::new(CORE_API_VERSION, "Machine", name)).optional()?;
        let is_own = |machine: &Value| controller(machine).is_none_or(|uid| uid == plane.uid);
        if let Some(machine) = machine.filter(is_own) {
            return Ok(Some(object::text(&machine, "/spec/clusterName").to_owned()));
        }
    }
    Ok(None)
}

/// Worker Machines and MachinePools that are still there, a line for each kind. What lost its label is no worker because of that.
fn workers(cx: &Context<'_>, cluster: &str, own: &[Machine]) -> Result<Vec<String>, Refused> {
    let machines = format!("{}={cluster},!{}", labels::CLUSTER_NAME, labels::CONTROL_PLANE);
    let pools = format!("{}={cluster}", labels::CLUSTER_NAME);
    let mut lines = Vec::new();
    for (kind, plural, selector) in [("Machine", "Machines", machines), ("MachinePool", "MachinePools", pools)] {
        // A management cluster may have no MachinePools at all.
        let selection = Selection::of(CORE_API_VERSION, kind).labelled(selector);
        let found = cx.host.lookup_list(&selection).optional()?.unwrap_or_default();
        let mut found: Vec<Machine> = found.into_iter().map(Machine::read).collect();
        found.retain(|found| !own.iter().any(|own| own.uid == found.uid && own.name == found.name));
        if !found.is_empty() {
            lines.push(format!("* worker {plural}: {}", crate::machine::list(&found)));
        }
    }
    Ok(lines)
}

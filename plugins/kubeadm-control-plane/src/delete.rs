//! The end of a control plane: workers first, then all of its machines at once. etcd ends with them.

use capwasm_api::names::{CORE_API_VERSION, labels};
use capwasm_sdk::{Context, Optional, Problem, Refused, Selection, object};
use serde_json::Value;

use crate::machine::Machine;
use crate::{observe, reconcile, status};

/// Deletes the Machines, once those of workers are gone; true when none is left.
pub fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let cluster = match cx.related_one("cluster") {
        Some(cluster) => object::name(&cluster).to_owned(),
        None => object::label(object, labels::CLUSTER_NAME).unwrap_or_default().to_owned(),
    };
    if cluster.is_empty() {
        // Never belonged to a cluster, so that it never made anything.
        return Ok(true);
    }
    let (own, _) = observe::machines(cx.host, &cluster, object::uid(object))?;
    let others = workers(cx, &cluster)?;
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

/// Worker Machines and MachinePools that are still there, a line for each kind.
fn workers(cx: &Context<'_>, cluster: &str) -> Result<Vec<String>, Refused> {
    let machines = format!("{}={cluster},!{}", labels::CLUSTER_NAME, labels::CONTROL_PLANE);
    let pools = format!("{}={cluster}", labels::CLUSTER_NAME);
    let mut lines = Vec::new();
    for (kind, plural, selector) in [("Machine", "Machines", machines), ("MachinePool", "MachinePools", pools)] {
        // A management cluster may have no MachinePools at all.
        let selection = Selection::of(CORE_API_VERSION, kind).labelled(selector);
        let found = cx.host.lookup_list(&selection).optional()?.unwrap_or_default();
        let found: Vec<Machine> = found.into_iter().map(Machine::read).collect();
        if !found.is_empty() {
            lines.push(format!("* worker {plural}: {}", crate::machine::list(&found)));
        }
    }
    Ok(lines)
}

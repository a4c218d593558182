//! A machine's Node: whether its pods can be believed, and whether it is labelled and tainted as kubeadm does it.

use capwasm_api::names::reason;
use capwasm_object::json;
use capwasm_sdk::object;
use serde_json::{Value, json};

use super::Verdict;
use crate::machine::Machine;
use crate::names::{self, reason as own};
use crate::observe::{Observed, Workload};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Name of the Node whose pods may be looked at, or what is to be said of all of them; and the verdict on labels and taints.
pub fn inspect(machine: &Machine, workload: &Workload) -> (Result<String, Verdict>, Verdict) {
    let both = |verdict: Verdict| (Err(verdict.clone()), verdict);
    let Some(name) = &machine.node else { return both(waiting(machine)) };
    if machine.deleting.is_some() {
        return both((Some(false), reason::DELETING, "Machine is deleting".to_owned()));
    }
    let Some(node) = workload.nodes.iter().find(|node| object::name(node) == name) else {
        return both((None, reason::INSPECTION_FAILED, format!("Node {name} does not exist")));
    };
    let labels = labels_and_taints(machine, node);
    if taints(node).iter().any(|taint| taint["key"] == UNREACHABLE && taint["effect"] == "NoExecute") {
        return both((None, reason::INSPECTION_FAILED, format!("Node {name} is unreachable")));
    }
    if object::condition(node, "Ready").is_some_and(|ready| object::text(ready, "/status") == "Unknown") {
        let message = "Node Ready condition is Unknown, Pod data might be stale".to_owned();
        return (Err((None, reason::INSPECTION_FAILED, message)), labels);
    }
    (Ok(name.clone()), labels)
}

/// A machine without a Node.
pub fn waiting(machine: &Machine) -> Verdict {
    let message = if machine.provider_id.is_empty() {
        format!(
            "Waiting for {} to report spec.providerID",
            object::text(&machine.stored, "/spec/infrastructureRef/kind")
        )
    } else {
        format!("Waiting for a Node with spec.providerID {} to exist", machine.provider_id)
    };
    (None, reason::INSPECTION_FAILED, message)
}

fn taints(node: &Value) -> &[Value] {
    json::items(node, "/spec/taints")
}

fn labels_and_taints(machine: &Machine, node: &Value) -> Verdict {
    let mut missing = Vec::new();
    if object::label(node, names::CONTROL_PLANE_NODE).is_none() {
        missing.push(format!("label {}", names::CONTROL_PLANE_NODE));
    }
    let present = |wanted: &Value| {
        taints(node).iter().any(|taint| taint["key"] == wanted["key"] && taint["effect"] == wanted["effect"])
    };
    for wanted in wanted_taints(machine).iter().filter(|wanted| !present(wanted)) {
        missing.push(format!("taint {}:{}", object::text(wanted, "/key"), object::text(wanted, "/effect")));
    }
    if missing.is_empty() {
        (Some(true), own::SET, String::new())
    } else {
        (Some(false), own::NOT_SET, format!("Node {} misses {}", object::name(node), missing.join(", ")))
    }
}

/// Those of the machine's configuration; kubeadm's own where it says nothing.
fn wanted_taints(machine: &Machine) -> Vec<Value> {
    let configured = machine.config.as_ref().and_then(|config| {
        let taints = |part: &str| json::at(config, &format!("/spec/{part}/nodeRegistration/taints"))?.as_array();
        taints("initConfiguration").or_else(|| taints("joinConfiguration"))
    });
    configured.cloned().unwrap_or_else(|| vec![json!({"key": names::CONTROL_PLANE_NODE, "effect": "NoSchedule"})])
}

/// Control-plane Nodes that no machine accounts for; nothing is said while a machine may still claim one.
pub fn without_machine(observed: &Observed) -> Vec<String> {
    if observed.machines.iter().any(|machine| machine.node.is_none()) {
        return Vec::new();
    }
    let strangers = observed.workload.nodes.iter().map(object::name).filter(|name| {
        observed.machine_of_node(name).is_none()
            && observed
                .workload
                .nodes
                .iter()
                .any(|node| object::name(node) == *name && object::label(node, names::CONTROL_PLANE_NODE).is_some())
    });
    strangers.map(|name| format!("Control plane Node {name} does not have a corresponding Machine")).collect()
}

//! The Node of a machine: it carries the same identity as the machine.

use capwasm_sdk::{Context, ObjectRef, Place, Problem, Refusal, object};
use serde_json::json;

use crate::kinds::provider_id;

/// Makes sure that the Node says which machine it is. Waits while there is none, and until the identity can be read.
pub fn identify(cx: &mut Context<'_>, name: &str) -> Result<(), Problem> {
    let target = ObjectRef::new("v1", "Node", name);
    let node = cx.host.workload(&target).map_err(|refused| match refused.refusal {
        // Read: it wakes when the Node, or the connection, comes.
        Refusal::NotFound | Refusal::Unavailable => {
            Problem::waiting("WaitingForNode", format!("Node {name} cannot be seen yet: {}", refused.message))
        }
        _ => Problem::from(refused),
    })?;
    let wanted = provider_id(name);
    match object::text(&node, "/spec/providerID") {
        known if known == wanted => Ok(()),
        "" => {
            cx.out.patch("node-identity", Place::Workload, target, json!({"spec": {"providerID": wanted}}));
            cx.out.wake_when_applied();
            Err(Problem::waiting("WaitingForNode", format!("Node {name} is being given its identity")))
        }
        other => Err(Problem::invalid("ForeignNode", format!("Node {name} is {other}, not {wanted}"))),
    }
}

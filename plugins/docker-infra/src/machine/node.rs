//! The Node of a machine: it carries the same identity as the machine.

use capwasm_api::time;
use capwasm_sdk::{Context, ObjectRef, Place, Problem, Refusal, object};
use serde_json::json;

use crate::engine::Container;
use crate::kinds::provider_id;

/// Clocks are not the same everywhere.
const SKEW_SECONDS: u64 = 60;

/// What is known of the Node's identity.
pub enum Identity {
    /// It is the machine's, or becomes it with this pass: what is written counts only as a whole.
    Known,
    /// There is no Node to give one to.
    Waiting(String),
}

/// Makes sure that the Node says which machine it is.
pub fn identify(cx: &mut Context<'_>, name: &str, container: &Container) -> Result<Identity, Problem> {
    let target = ObjectRef::new("v1", "Node", name);
    let node = match cx.host.workload(&target) {
        Ok(node) => node,
        // Read: it wakes when the Node, or the connection, comes.
        Err(refused) if matches!(refused.refusal, Refusal::NotFound | Refusal::Unavailable) => {
            return Ok(Identity::Waiting(format!("Node {name} cannot be seen yet: {}", refused.message)));
        }
        Err(refused) => return Err(refused.into()),
    };
    let since = time::parse(object::text(&node, "/metadata/creationTimestamp"));
    if since.zip(time::parse(&container.created)).is_some_and(|(node, container)| node + SKEW_SECONDS < container) {
        return Ok(Identity::Waiting(format!(
            "Node {name} is older than the machine: it is an earlier one's, and must go"
        )));
    }
    let wanted = provider_id(name);
    match object::text(&node, "/spec/providerID") {
        known if known == wanted => {}
        "" => {
            cx.out.patch("node-identity", Place::Workload, target, json!({"spec": {"providerID": wanted}}));
        }
        other => return Err(Problem::invalid("ForeignNode", format!("Node {name} is {other}, not {wanted}"))),
    }
    Ok(Identity::Known)
}

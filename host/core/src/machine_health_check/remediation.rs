//! Writes health to Machines, and creates external remediation requests.

use capwasm_api::conditions::{self, Condition, Status};
use capwasm_api::names::{annotations, condition, labels, reason};
use capwasm_object::{json, meta, owners};
use capwasm_reconcile::{Action, Target};
use jiff::Timestamp;
use serde_json::{Value, json};

/// What happens to `OwnerRemediated` and `ExternallyRemediated` when the health of a Machine is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing.
    Leave,
    /// Ask the owner to remediate, unless it is asked already.
    AskOwner,
    /// External remediation, with reason and message.
    Outside(&'static str, String),
    /// Healthy: withdraw the request.
    Withdraw,
}

/// The patch of a Machine's conditions; `None` when nothing differs. Guarded by resourceVersion, since it writes a
/// list.
pub(super) fn patch(machine: &Value, health: &Condition, then: &Then, now: Timestamp) -> Option<Action> {
    let mut wanted = machine.clone();
    conditions::set(&mut wanted, health, now);
    match then {
        Then::Leave => {}
        Then::AskOwner => {
            // A replacement that goes on is its owner's to end.
            let asked =
                conditions::get(machine, condition::OWNER_REMEDIATED).is_some_and(|one| one.status != Status::True);
            if !asked {
                let ask = Condition::new(condition::OWNER_REMEDIATED, false, reason::WAITING_FOR_REMEDIATION)
                    .message("Waiting for remediation");
                conditions::set(&mut wanted, &ask, now);
            }
        }
        Then::Outside(reason, message) => {
            let outside = Condition::new(condition::EXTERNALLY_REMEDIATED, false, *reason).message(message.clone());
            conditions::set(&mut wanted, &outside, now);
        }
        Then::Withdraw => {
            for name in [condition::OWNER_REMEDIATED, condition::EXTERNALLY_REMEDIATED] {
                if !meta::is_deleting(machine) {
                    conditions::remove(&mut wanted, name);
                }
            }
        }
    }
    let list = |object: &Value| object.pointer("/status/conditions").cloned().unwrap_or_default();
    (list(machine) != list(&wanted)).then(|| Action::Patch {
        target: Target::of(machine),
        merge: json!({"status": {"conditions": list(&wanted)}}),
        resource_version: json::text(machine, "/metadata/resourceVersion").map(str::to_owned),
        subresource: Some("status"),
    })
}

/// A request from the template, with the Machine's name, so that there is one at most; `None` when the object is no
/// template.
pub(super) fn request(template: &Value, machine: &Value, cluster: &str) -> Option<Value> {
    let kind = meta::kind(template).strip_suffix("Template")?;
    let map = |pointer: &str| template.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut labels = map("/spec/template/metadata/labels");
    labels.insert(labels::CLUSTER_NAME.to_owned(), cluster.into());
    let mut notes = map("/spec/template/metadata/annotations");
    notes.insert(annotations::CLONED_FROM_NAME.to_owned(), meta::name(template).into());
    let from = format!("{}.{}", meta::kind(template), meta::group(template));
    notes.insert(annotations::CLONED_FROM_GROUP_KIND.to_owned(), from.into());
    Some(json!({
        "apiVersion": json::text(template, "/apiVersion").unwrap_or_default(),
        "kind": kind,
        "metadata": {
            "name": meta::name(machine),
            "namespace": meta::namespace(machine),
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [owners::reference_to(machine, false)],
        },
        "spec": template.pointer("/spec/template/spec").cloned().unwrap_or_else(|| json!({})),
    }))
}

//! Fixtures for the tables of all kinds.

use std::sync::Arc;

use capwasm_api::contract::{Contract, Report};
use capwasm_reconcile::{Action, Operation, Plan};
use serde_json::{Value, json};

use crate::external::External;

/// An object of a core kind in namespace `ns`, with a uid from its name.
pub(crate) fn core(kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "uid": format!("{name}-uid"), "generation": 1, "resourceVersion": "1"},
        "spec": spec, "status": status})
}

/// A provider object of the newest contract.
pub(crate) fn found<T: Report>(object: Value) -> External<T> {
    let contract = Contract::V1Beta2;
    External::Found { report: T::read(&object, contract), object: Arc::new(object), contract }
}

/// The merge patch of the operation with this key.
pub(crate) fn patch<'a>(plan: &'a Plan, key: &str) -> Option<&'a Value> {
    plan.operations.iter().find(|operation| operation.key == key).and_then(|operation| match &operation.action {
        Action::Patch { merge, .. } => Some(merge),
        _ => None,
    })
}

/// Keys of all operations, in order.
pub(crate) fn keys(plan: &Plan) -> Vec<&str> {
    plan.operations.iter().map(|operation: &Operation| operation.key.as_str()).collect()
}

/// Status and reason of an object's condition.
pub(crate) fn condition(object: &Value, name: &str) -> Option<(String, String)> {
    capwasm_api::conditions::get(object, name).map(|found| (found.status.as_str().to_owned(), found.reason))
}

//! The roles' functions by name, with answers and outcomes in the form in which the host records them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::host::ObjectRef;
use crate::outcome::{Condition, Operation, Outcome, Place};
use crate::problem::{Fault, Problem};
use crate::provider::{
    Bootstrap, Context, ControlPlane, Controller, Endpoint, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool,
};

fn gone(gone: bool) -> Value {
    json!({ "gone": gone })
}

fn endpoint(endpoint: &Option<Endpoint>) -> Value {
    endpoint.as_ref().map_or(Value::Null, |endpoint| json!({"host": endpoint.host, "port": endpoint.port}))
}

/// `infrastructure-cluster`.
pub fn infrastructure_cluster<T: InfrastructureCluster>(
    function: &str,
    cx: &mut Context<'_>,
    object: &Value,
) -> Result<Value, Problem> {
    if function == "deprovision" {
        return T::deprovision(cx, object).map(gone);
    }
    let answer = T::provision(cx, object)?;
    let domains: Vec<Value> = answer
        .failure_domains
        .iter()
        .map(|domain| json!({"name": domain.name, "controlPlane": domain.control_plane, "attributes": domain.attributes}))
        .collect();
    let endpoint = endpoint(&answer.endpoint);
    Ok(json!({"cluster": {"provisioned": answer.provisioned, "endpoint": endpoint, "failureDomains": domains}}))
}

/// `infrastructure-machine`.
pub fn infrastructure_machine<T: InfrastructureMachine>(
    function: &str,
    cx: &mut Context<'_>,
    object: &Value,
) -> Result<Value, Problem> {
    if function == "deprovision" {
        return T::deprovision(cx, object).map(gone);
    }
    let answer = T::provision(cx, object)?;
    let addresses: Vec<Value> =
        answer.addresses.iter().map(|address| json!({"kind": address.kind.as_str(), "value": address.value})).collect();
    Ok(json!({"machine": {
        "provisioned": answer.provisioned, "providerId": answer.provider_id, "addresses": addresses,
        "failureDomain": answer.failure_domain}}))
}

/// `infrastructure-machine-pool`.
pub fn infrastructure_machine_pool<T: InfrastructureMachinePool>(
    function: &str,
    cx: &mut Context<'_>,
    object: &Value,
) -> Result<Value, Problem> {
    if function == "deprovision" {
        return T::deprovision(cx, object).map(gone);
    }
    let answer = T::provision(cx, object)?;
    Ok(json!({"pool": {
        "provisioned": answer.provisioned, "providerIds": answer.provider_ids, "replicas": answer.replicas}}))
}

/// `bootstrap`.
pub fn bootstrap<T: Bootstrap>(function: &str, cx: &mut Context<'_>, object: &Value) -> Result<Value, Problem> {
    if function == "release" {
        return T::release(cx, object).map(gone);
    }
    let data = T::generate(cx, object)?;
    let data = data.map(|data| json!({"format": data.format.as_str(), "value": super::recorded::payload(&data.value)}));
    Ok(json!({ "bootstrap": data }))
}

/// `control-plane`.
pub fn control_plane<T: ControlPlane>(function: &str, cx: &mut Context<'_>, object: &Value) -> Result<Value, Problem> {
    if function == "delete" {
        return T::delete(cx, object).map(gone);
    }
    let answer = T::reconcile(cx, object)?;
    Ok(json!({"controlPlane": {
        "initialized": answer.initialized, "endpoint": endpoint(&answer.endpoint), "version": answer.version,
        "replicas": answer.replicas, "ready": answer.ready, "available": answer.available,
        "upToDate": answer.up_to_date, "selector": answer.selector}}))
}

/// `controller`.
pub fn controller<T: Controller>(function: &str, cx: &mut Context<'_>, object: &Value) -> Result<Value, Problem> {
    if function == "delete" {
        return T::delete(cx, object).map(gone);
    }
    T::reconcile(cx, object).map(|()| json!("reconciled"))
}

/// A problem as it is recorded.
pub(super) fn problem(problem: &Problem) -> Value {
    let fault = match problem.fault {
        Fault::Waiting => "waiting",
        Fault::Transient => "transient",
        Fault::Invalid => "invalid",
        Fault::Terminal => "terminal",
        Fault::Unsupported => "unsupported",
    };
    json!({
        "fault": fault, "reason": problem.reason, "message": problem.message, "retryAfter": time(problem.retry_after),
    })
}

/// A duration as it is recorded, in the contract's whole milliseconds.
fn time(duration: Option<Duration>) -> Value {
    let Some(duration) = duration else { return Value::Null };
    json!({"secs": duration.as_secs(), "nanos": duration.subsec_millis() * 1_000_000})
}

/// An outcome as it is recorded.
pub(super) fn outcome(outcome: &Outcome) -> Value {
    let events: Vec<Value> = outcome
        .events
        .iter()
        .map(|event| json!({"warning": event.warning, "reason": event.reason, "message": event.message}))
        .collect();
    json!({
        "status": outcome.status, "own": outcome.own, "events": events,
        "conditions": outcome.conditions.iter().map(condition).collect::<Vec<_>>(),
        "operations": outcome.operations.iter().map(operation).collect::<Vec<_>>(),
        "wakeAfter": time(outcome.wake_after), "wakeWhenApplied": outcome.wake_when_applied,
    })
}

fn condition(condition: &Condition) -> Value {
    json!({
        "name": condition.name, "status": condition.status, "reason": condition.reason, "message": condition.message,
    })
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Management => "management",
        Place::Workload => "workload",
    }
}

pub(super) fn reference(target: &ObjectRef) -> Value {
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), json!(target.api_version));
    fields.insert("kind".to_owned(), json!(target.kind));
    if let Some(namespace) = &target.namespace {
        fields.insert("namespace".to_owned(), json!(namespace));
    }
    fields.insert("name".to_owned(), json!(target.name));
    fields.into()
}

fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::Create { key, place: at, object } => {
            json!({"create": {"key": key, "place": place(*at), "object": object}})
        }
        Operation::Apply { key, place: at, object } => {
            json!({"apply": {"key": key, "place": place(*at), "object": object}})
        }
        Operation::Patch { key, place: at, target, merge } => {
            json!({"patch": {"key": key, "place": place(*at), "target": reference(target), "merge": merge}})
        }
        Operation::SetConditionOf { key, target, condition: of } => {
            json!({"setConditionOf": {"key": key, "target": reference(target), "condition": condition(of)}})
        }
        Operation::Delete { key, place: at, target, uid } => {
            json!({"delete": {"key": key, "place": place(*at), "target": reference(target), "uid": uid}})
        }
    }
}

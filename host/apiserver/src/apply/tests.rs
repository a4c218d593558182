#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod sequences;
mod sets;
mod tracking;

use capwasm_object::meta;
use serde_json::{Value, json};

use super::{ApplyError, Writer};
use crate::schema::Schema;

fn apply(
    live: Option<&Value>,
    applied: &Value,
    schema: Option<&Schema>,
    manager: &str,
    force: bool,
    subresource: Option<&str>,
    now: &str,
) -> Result<Value, ApplyError> {
    let mut bare = live.cloned();
    let before = bare.as_mut().map_or(Value::Null, |bare| meta::take(bare, "managedFields"));
    let writer = Writer { manager, subresource, now };
    let (mut object, owners) = super::apply(bare.as_ref(), before.clone(), applied, schema, writer, force)?;
    assert_eq!(owners.changed, owners.list != before, "what is said to have changed");
    meta::give(&mut object, "managedFields", owners.list);
    Ok(object)
}

fn update(
    live: Option<&Value>,
    new: &mut Value,
    schema: Option<&Schema>,
    manager: &str,
    subresource: Option<&str>,
    now: &str,
) {
    let mut bare = live.cloned();
    let before = bare.as_mut().map_or(Value::Null, |bare| meta::take(bare, "managedFields"));
    let stated = meta::take(new, "managedFields");
    let writer = Writer { manager, subresource, now };
    let owners = super::update(bare.as_ref(), before.clone(), new, &stated, schema, writer);
    assert!(owners.changed || owners.list == before, "what changed is said to have changed");
    meta::give(new, "managedFields", owners.list);
}

fn schema() -> Schema {
    let keyed = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "value": {"type": "integer"}, "note": {"type": "string"}}},
    });
    let ports = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}},
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "integer"},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}},
            "keyed": keyed, "ports": ports,
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}},
            "inner": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {"phase": {"type": "string"}, "conditions": keyed_conditions()}}}})).unwrap()
}

fn keyed_conditions() -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}})
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "o", "namespace": "n"}, "spec": spec})
}

/// One write in a sequence.
enum Step {
    Apply(&'static str, Value),
    Force(&'static str, Value),
    /// Fails with conflicts at these fields.
    Conflict(&'static str, Value, Vec<&'static str>),
    Update(&'static str, Value),
}

/// Runs writes one after the other, at the seconds 0, 1, 2 and so on.
fn run(name: &str, steps: Vec<Step>) -> Value {
    let schema = schema();
    let mut live: Option<Value> = None;
    for (index, step) in steps.into_iter().enumerate() {
        let now = format!("2026-01-01T00:00:{index:02}Z");
        match step {
            Step::Apply(manager, spec) => {
                let result = apply(live.as_ref(), &object(spec), Some(&schema), manager, false, None, &now);
                live = Some(result.unwrap_or_else(|error| panic!("{name}, step {index}: {error}")));
            }
            Step::Force(manager, spec) => {
                live = Some(apply(live.as_ref(), &object(spec), Some(&schema), manager, true, None, &now).unwrap());
            }
            Step::Conflict(manager, spec, fields) => {
                match apply(live.as_ref(), &object(spec), Some(&schema), manager, false, None, &now) {
                    Err(ApplyError::Conflicts(conflicts)) => {
                        let found: Vec<&str> = conflicts.iter().map(|conflict| conflict.field.as_str()).collect();
                        assert_eq!(found, fields, "{name}, step {index}");
                    }
                    other => panic!("{name}, step {index}: {other:?}"),
                }
            }
            Step::Update(manager, spec) => {
                let mut new = live.clone().unwrap_or_else(|| object(json!({})));
                new["spec"] = spec;
                update(live.as_ref(), &mut new, Some(&schema), manager, None, &now);
                live = Some(new);
            }
        }
    }
    live.unwrap()
}

/// Managers with the fields of `spec` that they own.
fn owners(object: &Value) -> Vec<(String, Value)> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let name = format!("{}/{}", entry["manager"].as_str().unwrap(), entry["operation"].as_str().unwrap());
            (name, entry["fieldsV1"].get("f:spec").cloned().unwrap_or(Value::Null))
        })
        .collect()
}

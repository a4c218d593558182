#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod cel;
mod hostile;
mod kinds;
mod objects;
mod structure;

use serde_json::Value;

use super::{Schema, validate};

fn with_spec(spec: Value) -> Schema {
    let root = serde_json::json!({"type": "object", "properties": {"spec": spec}});
    Schema::parse(&root).unwrap_or_else(|error| panic!("{error}"))
}

/// Errors of an object with this `spec`.
fn errors_of(schema: &Schema, spec: &Value, old: Option<&Value>) -> Vec<String> {
    let object =
        |spec: &Value| serde_json::json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
    let old = old.map(object);
    validate(schema, &object(spec), old.as_ref()).iter().map(ToString::to_string).collect()
}

//! CEL rules of CRDs: a rule within its bound is evaluated within the memory that the bound says, and always with the same result.
//!
//! Input: lines of text; the rule, the schema of the value that it is for, the value, and the value before (may be missing).

use allocation_counter::measure;
use capwasm_apiserver::fuzzing::{CEL_HELD, Structure};
use serde_json::{Value, json};

use crate::lines::lines;

/// What an evaluation may hold: what the bound allows, and as much again for what lists and maps keep in reserve; and what is copied of
/// the values, by their text.
fn allowed(values: usize) -> usize {
    2 * CEL_HELD + 1024 * values
}

pub fn run(data: &[u8]) {
    let Some([rule, schema, value, old]) = lines::<4>(data) else { return };
    let Ok(mut schema) = serde_json::from_str::<Value>(schema) else { return };
    let (Ok(value), old) = (serde_json::from_str::<Value>(value), serde_json::from_str::<Value>(old).ok()) else {
        return;
    };
    let Some(node) = schema.as_object_mut() else { return };
    node.insert(
        "x-kubernetes-validations".into(),
        json!([{"rule": rule, "messageExpression": "'broken: ' + string(self)"}]),
    );
    if rule.contains("oldSelf") {
        node.insert("x-kubernetes-validations".into(), json!([{"rule": rule}]));
    }
    let Ok(structure) = Structure::parse(&json!({"type": "object", "properties": {"spec": schema}})) else { return };
    let object = |spec: &Value| json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
    let size = data.len();
    let (object, old) = (object(&value), old.as_ref().map(object));
    let mut errors = Vec::new();
    let held = measure(|| errors = structure.validate(&object, old.as_ref())).bytes_max;
    assert!(held <= allowed(size) as u64, "{held} bytes are held for {rule}");
    assert!(errors.iter().all(|error| error.len() < 64 << 10), "an error of {} bytes", errors[0].len());
    assert_eq!(structure.validate(&object, old.as_ref()), errors, "another result for {rule}");
}

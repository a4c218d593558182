//! Bodies of writes: server-side apply keeps the promises of its merge, and no patch makes more of an object than it may.
//!
//! Input: lines of text; the schema of `spec`, what manager `a` applies, what manager `b` applies, a JSON patch.

use capwasm_apiserver::bounded_patch::TAKEN;
use capwasm_apiserver::fuzzing::{Structure, json_patched, strategically_merged};
use serde_json::{Value, json};

use crate::lines::lines;

pub fn run(data: &[u8]) {
    let Some([schema, ours, theirs, patch]) = lines::<4>(data) else { return };
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    let (Some(schema), Some(ours), Some(theirs)) = (parsed(schema), parsed(ours), parsed(theirs)) else { return };
    patched(&ours, &theirs, patch);
    let Ok(structure) = Structure::parse(&json!({"type": "object", "properties": {"spec": schema}})) else { return };
    let (ours, theirs) = (object(&ours), object(&theirs));
    let whole = structure.validate(&ours, None).is_empty() && structure.validate(&theirs, None).is_empty();
    let Some(first) = applied(&structure, None, &ours, "a", whole) else { return };
    let first = first.expect("nobody else has a field");
    match structure.apply(Some(&first), &theirs, "b", false) {
        // Where nobody was in the way, each has what it wants, and says so again without effect.
        Ok((second, _)) if whole && same_shape(&ours, &theirs) => {
            for (applied, manager) in [(&ours, "a"), (&theirs, "b")] {
                let again = structure.apply(Some(&second), applied, manager, false);
                let (again, _) = again.unwrap_or_else(|error| panic!("{manager} is refused: {error:?}"));
                assert_eq!(unordered(&again), unordered(&second), "{manager} applies the same again");
            }
        }
        Err(Some(told)) => assert!(told.contains("\"a\""), "who is in the way: {told}"),
        _ => {}
    }
    let _ = applied(&structure, Some(&first), &theirs, "b", whole);
}

/// Whether nothing is a map to one and something else to the other. Upstream sees no conflict where a map that somebody has fields of is
/// replaced as a whole.
fn same_shape(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().all(|(name, value)| other.get(name).is_none_or(|other| same_shape(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.iter().all(|value| other.iter().all(|other| same_shape(value, other)))
        }
        (one, other) => !one.is_object() && !one.is_array() && !other.is_object() && !other.is_array(),
    }
}

/// The object after a forced apply, which the same apply leaves as it is. `None` when it is refused, which a valid one is not.
fn applied(
    structure: &Structure,
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    whole: bool,
) -> Option<Result<Value, String>> {
    let object = match structure.apply(live, applied, manager, true) {
        Ok((object, _)) => object,
        Err(Some(conflicts)) => return Some(Err(conflicts)),
        Err(None) => return None,
    };
    if whole {
        let again = structure.apply(Some(&object), applied, manager, true);
        let (again, changed) = again.unwrap_or_else(|error| panic!("the same is refused: {error:?}"));
        assert_eq!((&again, changed), (&object, false), "the same apply changes something");
    }
    Some(Ok(object))
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec})
}

/// Without the order of lists, which those who merge lists by keys may change, and without who wrote what.
fn unordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "managedFields");
            fields.map(|(name, value)| (name.clone(), unordered(value))).collect()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(unordered).collect();
            items.sort_by_cached_key(Value::to_string);
            items.into()
        }
        other => other.clone(),
    }
}

fn patched(object: &Value, merged: &Value, patch: &str) {
    if let Ok(result) = json_patched(object, patch) {
        let (before, after) = (object.to_string().len(), result.to_string().len());
        // What the patch holds is written out at most once, what it copies is bounded.
        assert!(after <= before + 6 * patch.len() + TAKEN, "{before} bytes became {after}");
    }
    let pod = |spec: &Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    let (live, patch) = (pod(object), pod(merged));
    let unchanged = strategically_merged("v1", "Pod", &live, &json!({}));
    assert_eq!(unchanged.as_ref(), Ok(&live), "an empty patch changes something");
    let _ = strategically_merged("v1", "Pod", &live, &patch);
}

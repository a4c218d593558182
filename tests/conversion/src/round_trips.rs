//! There and back, for every kind and version.

use std::collections::BTreeSet;

use capwasm_api::conversion::{DATA_ANNOTATION, OLD_DATA_ANNOTATION};
use serde_json::Value;

use super::generate::{Generator, Random};
use super::{kinds, schema};

/// Objects per kind, version and direction.
const OBJECTS: u64 = 100;

fn seed(kind: &str, version: &str, index: u64) -> Random {
    let mut seed = index.wrapping_mul(0x1000_0000_01b3);
    for byte in kind.bytes().chain(version.bytes()) {
        seed = (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    Random(seed)
}

pub fn generator<'a>(kind: &str, version: &str, index: u64, covered: &'a mut BTreeSet<String>) -> Generator<'a> {
    let mut random = seed(kind, version, index);
    let density = *random.pick(&[10, 40, 70, 95]);
    Generator { random, density, empties: index % 2 == 1, covered }
}

fn assert_covered(kind: &kinds::Kind, version: &str, covered: &BTreeSet<String>) {
    let schema = &kind.versions.iter().find(|(name, _)| name == version).unwrap().1;
    let mut all = BTreeSet::new();
    for (name, child) in schema["properties"].as_object().unwrap() {
        if !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            schema::paths(child, &format!(".{name}"), &mut all);
        }
    }
    let missing: Vec<&String> = all.difference(covered).collect();
    assert!(missing.is_empty(), "{} {version}: never generated: {missing:?}", kind.kind);
}

/// Without what v1beta1 gives no meaning to: empties, and the namespace that a reference has anyway.
pub fn bare(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let is_reference = map.contains_key("name") && map.get("namespace").is_some_and(|space| space == "space");
            Value::Object(
                map.iter()
                    .filter(|(key, _)| !(is_reference && *key == "namespace"))
                    .map(|(key, child)| (key.clone(), bare(child)))
                    .filter(|(_, child)| !is_nothing(child))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(bare).collect()),
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

/// Without the annotations that conversion itself keeps.
pub fn without_data(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(DATA_ANNOTATION);
        annotations.remove(OLD_DATA_ANNOTATION);
        if annotations.is_empty() {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
    }
    object
}

pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

pub fn differences(at: &str, a: &Value, b: &Value, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let absent = Value::Null;
                differences(
                    &format!("{at}.{key}"),
                    a.get(key).unwrap_or(&absent),
                    b.get(key).unwrap_or(&absent),
                    found,
                );
            }
        }
        _ if a == b => {}
        _ => found.push(format!("{at}: {a} -> {b}")),
    }
}

pub fn assert_same(what: &str, wanted: &Value, found: &Value) {
    let mut all = Vec::new();
    differences("", wanted, found, &mut all);
    assert!(all.is_empty(), "{what}:\n{}", all.join("\n"));
}

/// Runs `test` for every kind and tells of all that fail.
pub fn for_every_kind(test: impl Fn(&kinds::Kind) + std::panic::RefUnwindSafe) {
    let mut failed = Vec::new();
    for kind in kinds::all() {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&kind))).is_err() {
            failed.push(kind.kind);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn an_object_of_the_stored_version_survives_every_older_version_unchanged() {
    for_every_kind(|kind| {
        let (hub, _) = kind.hub();
        let mut covered = BTreeSet::new();
        for (older, older_schema) in &kind.versions[1..] {
            for index in 0..OBJECTS {
                let object = generator(&kind.kind, hub, index, &mut covered).object(kind, hub);
                let what = format!("{} {older} #{index}", kind.kind);
                let shown = kinds::convert(&object, &kind.api_version(older)).unwrap();
                let errors = schema::validate(older_schema, &shown);
                assert!(errors.is_empty(), "{what}: {errors:#?}\n{}", pretty(&object));
                let back = kinds::convert(&shown, &kind.api_version(hub)).unwrap();
                assert_same(&what, &object, &back);
            }
        }
        assert_covered(kind, hub, &covered);
    });
}

/// Fields that v1beta2 wants and v1beta1 leaves to the user (the parts of a reference, for the most part): an object
/// without them is refused on write, as upstream does. No rule invents them.
fn is_wanted_by_the_hub_alone(error: &str) -> bool {
    error.ends_with(": required")
}

#[test]
fn an_object_of_an_older_version_is_stored_and_reads_back_unchanged() {
    for_every_kind(|kind| {
        let (hub, hub_schema) = kind.hub();
        for (older, _) in &kind.versions[1..] {
            let mut covered = BTreeSet::new();
            for index in 0..OBJECTS {
                let object = generator(&kind.kind, older, index, &mut covered).object(kind, older);
                let what = format!("{} {older} #{index}", kind.kind);
                let stored = kinds::convert(&object, &kind.api_version(hub)).unwrap();
                let errors: Vec<String> = schema::validate(hub_schema, &stored)
                    .into_iter()
                    .filter(|error| !is_wanted_by_the_hub_alone(error))
                    .collect();
                assert!(errors.is_empty(), "{what}: {errors:#?}\n{}", pretty(&object));
                let shown = kinds::convert(&stored, &kind.api_version(older)).unwrap();
                assert_same(&what, &bare(&object), &bare(&without_data(&shown)));
                // From then on not a byte changes.
                let again = kinds::convert(&shown, &kind.api_version(hub)).unwrap();
                assert_same(&what, &stored, &again);
                assert_same(&what, &shown, &kinds::convert(&again, &kind.api_version(older)).unwrap());
            }
            assert_covered(kind, older, &covered);
        }
    });
}

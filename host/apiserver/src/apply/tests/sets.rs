#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::super::set::Set;
use super::super::typed::to_set;
use super::schema;

#[test]
fn fields_v1_survives_reading_and_writing() {
    let table = [
        json!({}),
        json!({"f:a": {}}),
        json!({"f:a": {".": {}, "f:b": {}}}),
        json!({"f:a": {"f:b": {}}}),
        json!({"f:l": {"k:{\"name\":\"x\",\"port\":1}": {".": {}, "f:v": {}}, "v:\"s\"": {}, "v:1": {}, "i:3": {}}}),
        json!({"f:with.dots/and:colons": {}}),
    ];
    for fields in table {
        assert_eq!(Set::from_fields_v1(&fields).unwrap().to_fields_v1(), fields);
    }
    let unsorted = Set::from_fields_v1(&json!({"k:{\"port\":1,\"name\":\"x\"}": {}})).unwrap();
    assert_eq!(unsorted.to_fields_v1(), json!({"k:{\"name\":\"x\",\"port\":1}": {}}));
    for fields in
        [json!([]), json!({"x": {}}), json!({"k:x": {}}), json!({"i:x": {}}), json!({"f:a": 1}), json!({"é": {}})]
    {
        assert!(Set::from_fields_v1(&fields).is_none(), "{fields}");
    }
}

#[test]
fn sets_combine_path_by_path() {
    let set = |fields: Value| Set::from_fields_v1(&fields).unwrap();
    let left = json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}, "f:b": {}});
    let table = [
        (
            json!({"f:a": {}}),
            json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}, "f:b": {}}),
            json!({"f:a": {"f:x": {}, "f:y": {}}, "f:b": {}}),
            json!({"f:a": {}}),
        ),
        (
            json!({"f:a": {"f:x": {}}, "f:c": {}}),
            json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}, "f:b": {}, "f:c": {}}),
            json!({"f:a": {".": {}, "f:y": {}}, "f:b": {}}),
            json!({"f:a": {"f:x": {}}}),
        ),
        (left.clone(), left.clone(), json!({}), left.clone()),
        (json!({}), left.clone(), left.clone(), json!({})),
    ];
    for (right, union, difference, intersection) in table {
        let mut found = set(left.clone());
        found.union(&set(right.clone()));
        assert_eq!(found.to_fields_v1(), union, "union with {right}");
        let mut found = set(left.clone());
        found.subtract(&set(right.clone()));
        assert_eq!(found.to_fields_v1(), difference, "without {right}");
        let mut found = set(left.clone());
        found.intersect(&set(right.clone()));
        assert_eq!(found.to_fields_v1(), intersection, "common with {right}");
    }
}

#[test]
fn objects_specify_fields_by_their_schema() {
    let table = [
        ("scalars", json!({"a": "x", "n": 1}), json!({"f:a": {}, "f:n": {}})),
        ("an atomic list", json!({"list": ["x"]}), json!({"f:list": {}})),
        ("a set", json!({"set": ["x", "y"]}), json!({"f:set": {"v:\"x\"": {}, "v:\"y\"": {}}})),
        (
            "a keyed list",
            json!({"keyed": [{"name": "x", "value": 1}]}),
            json!({"f:keyed": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:value": {}}}}),
        ),
        (
            "a key with a default",
            json!({"ports": [{"port": 1}]}),
            json!({"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
        ),
        ("a map", json!({"map": {"k": "v"}}), json!({"f:map": {"f:k": {}}})),
        ("an atomic map", json!({"whole": {"x": "1"}}), json!({"f:whole": {}})),
        ("an empty map", json!({"map": {}}), json!({"f:map": {}})),
        ("null", json!({"a": null}), json!({"f:a": {}})),
        (
            "what the schema does not know",
            json!({"free": {"p": {"q": [1]}}}),
            json!({"f:free": {"f:p": {".": {}, "f:q": {}}}}),
        ),
    ];
    let schema = schema();
    for (name, spec, expected) in table {
        let set = to_set(schema.property("spec"), &spec).to_fields_v1();
        assert_eq!(set, expected, "{name}");
    }
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::super::Schema;

#[test]
fn schemas_that_are_not_structural_are_refused() {
    let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
    let table = [
        ("no type", spec(json!({})), "properties[spec].type"),
        ("an unknown type", spec(json!({"type": "file"})), "properties[spec].type"),
        ("a root that is no object", json!({"type": "string"}), "type"),
        ("no type at the root", json!({}), "type"),
        ("a schema that is no object", json!(true), "<nil>"),
        ("$ref", spec(json!({"type": "object", "$ref": "#/x"})), "properties[spec].$ref"),
        (
            "unique items",
            spec(json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}})),
            "properties[spec].uniqueItems",
        ),
        (
            "no additional properties",
            spec(json!({"type": "object", "additionalProperties": false})),
            "properties[spec].additionalProperties",
        ),
        (
            "both kinds of properties",
            spec(
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            ),
            "properties[spec].additionalProperties",
        ),
        (
            "several item schemas",
            spec(json!({"type": "array", "items": [{"type": "string"}]})),
            "properties[spec].items",
        ),
        (
            "a type in a branch",
            spec(json!({"type": "object", "anyOf": [{"type": "object"}]})),
            "properties[spec].anyOf[0].type",
        ),
        (
            "a default in a branch",
            spec(json!({"type": "object", "allOf": [{"default": {}}]})),
            "properties[spec].allOf[0].default",
        ),
        (
            "an undeclared field in a branch",
            spec(json!({"type": "object", "not": {"properties": {"a": {"minLength": 1}}}})),
            "properties[spec].properties[a]",
        ),
        (
            "a list map without keys",
            spec(json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}})),
            "properties[spec].x-kubernetes-list-map-keys",
        ),
        (
            "a list key that is no property",
            spec(
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object"}}),
            ),
            "properties[spec].x-kubernetes-list-map-keys",
        ),
        (
            "an optional list key",
            spec(
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
            ),
            "properties[spec].x-kubernetes-list-map-keys",
        ),
        (
            "keys without a map",
            spec(json!({"type": "array", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object"}})),
            "properties[spec].x-kubernetes-list-map-keys",
        ),
        (
            "a set of objects",
            spec(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}})),
            "properties[spec].items",
        ),
        (
            "a list type on an object",
            spec(json!({"type": "object", "x-kubernetes-list-type": "set"})),
            "properties[spec].type",
        ),
        (
            "an unknown list type",
            spec(json!({"type": "array", "x-kubernetes-list-type": "bag", "items": {"type": "string"}})),
            "properties[spec].x-kubernetes-list-type",
        ),
        (
            "a map type on a list, of which every apply would say that it changes something",
            spec(
                json!({"type": "array", "x-kubernetes-map-type": "atomic", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            ),
            "properties[spec].type",
        ),
        (
            "an unknown map type",
            spec(json!({"type": "object", "x-kubernetes-map-type": "fuzzy"})),
            "properties[spec].x-kubernetes-map-type",
        ),
        (
            "a default of the wrong type",
            spec(json!({"type": "object", "properties": {"a": {"type": "string", "default": 1}}})),
            "properties[spec].properties[a].default",
        ),
        (
            "a default with unknown fields",
            spec(json!({"type": "object", "default": {"a": 1}})),
            "properties[spec].default",
        ),
        (
            "a typed int-or-string",
            spec(json!({"type": "string", "x-kubernetes-int-or-string": true})),
            "properties[spec].type",
        ),
        (
            "restricted labels",
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            "properties[metadata].properties[labels]",
        ),
        ("a bad pattern", spec(json!({"type": "string", "pattern": "("})), "properties[spec].pattern"),
        (
            "a rule that does not parse",
            spec(json!({"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]})),
            "properties[spec].x-kubernetes-validations[0].rule",
        ),
        (
            "a rule without text",
            spec(json!({"type": "string", "x-kubernetes-validations": [{}]})),
            "properties[spec].x-kubernetes-validations[0].rule",
        ),
        (
            "a rule on an unknown variable",
            spec(json!({"type": "string", "x-kubernetes-validations": [{"rule": "other == self"}]})),
            "properties[spec].x-kubernetes-validations[0].rule",
        ),
        (
            "a rule with an unknown function",
            spec(json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.frobnicate()"}]})),
            "properties[spec].x-kubernetes-validations[0].rule",
        ),
        (
            "a message expression that does not parse",
            spec(json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "messageExpression": "+"}]})),
            "properties[spec].x-kubernetes-validations[0].messageExpression",
        ),
        (
            "a message of two lines",
            spec(json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "message": "a\nb"}]})),
            "properties[spec].x-kubernetes-validations[0].message",
        ),
        (
            "an unknown reason",
            spec(json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "Whim"}]})),
            "properties[spec].x-kubernetes-validations[0].reason",
        ),
        (
            "an optional oldSelf that is not used",
            spec(json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "optionalOldSelf": true}]})),
            "properties[spec].x-kubernetes-validations[0].optionalOldSelf",
        ),
    ];
    for (name, json, path) in table {
        let error = Schema::parse(&json).err().unwrap_or_else(|| panic!("{name}: accepted"));
        let display = error.to_string();
        let bare = |path: &str| path.replace("[x-kubernetes", ".x-kubernetes");
        assert!(error.errors.iter().any(|found| bare(&found.path) == path), "{name}: {display}");
    }
}

#[test]
fn patterns_read_as_re2_reads_them() {
    let table = [
        (r"^\d+$", "12", true),
        (r"^\d+$", "١٢", false),
        (r"^[\w.-]+$", "a_b.c-d", true),
        (r"^[\w.-]+$", "ä", false),
        (r"^[[]$", "[", true),
        (r"^[]a]+$", "]a", true),
        (r"^[^]]+$", "]", false),
        (r"^[[:alpha:]]+$", "abc", true),
        (r"^[a&&b]+$", "&", true),
        (r"^\S+\s$", "a ", true),
        (r"^(?i)abc$", "ABC", true),
        (r"^\p{L}+$", "ä", true),
        (r"^\Qa.b\E$", "a.b", true),
        (r"^\Qa.b\E$", "axb", false),
        (r"\bfoo\b", "a foo b", true),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c", true),
    ];
    for (pattern, text, matches) in table {
        let root = json!({"type": "object", "properties": {"spec": {"type": "string", "pattern": pattern}}});
        let schema = Schema::parse(&root).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        assert_eq!(super::errors_of(&schema, &json!(text), None).is_empty(), matches, "{pattern} {text}");
    }
}

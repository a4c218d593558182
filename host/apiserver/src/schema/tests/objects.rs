#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::super::{Schema, default, prune, validate};
use super::{errors_of, with_spec};
use crate::tree::Tree;

#[test]
fn pruning_drops_what_is_not_declared_and_names_it() {
    let table: Vec<(&str, Value, Value, Value, Vec<&str>)> = vec![
        (
            "unknown fields go",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"a": "x", "b": 1}),
            json!({"a": "x"}),
            vec!["spec.b"],
        ),
        (
            "known fields stay whatever their type",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"a": 1}),
            json!({"a": 1}),
            vec![],
        ),
        (
            "items are pruned",
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!([{"a": "x"}, {"b": {}}]),
            json!([{"a": "x"}, {}]),
            vec!["spec[1].b"],
        ),
        (
            "map values are pruned, keys stay",
            json!({"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!({"k": {"b": 1}, "x.y/z": {"c": 1}}),
            json!({"k": {}, "x.y/z": {}}),
            vec!["spec.k.b", "spec[x.y/z].c"],
        ),
        (
            "preserved fields stay, declared ones among them are pruned",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object"}}}),
            json!({"a": {"x": 1}, "b": {"y": 2}}),
            json!({"a": {}, "b": {"y": 2}}),
            vec!["spec.a.x"],
        ),
        (
            "a map of anything keeps all",
            json!({"type": "object", "additionalProperties": true}),
            json!({"a": {"b": [1]}}),
            json!({"a": {"b": [1]}}),
            vec![],
        ),
        (
            "an object without properties keeps nothing",
            json!({"type": "object"}),
            json!({"a": 1}),
            json!({}),
            vec!["spec.a"],
        ),
        (
            "an embedded resource keeps its type and metadata",
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "x": 1}, "spec": {}, "data": 1}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {}}),
            vec!["spec.data", "spec.metadata.x"],
        ),
        ("scalars have nothing to prune", json!({"type": "string"}), json!("x"), json!("x"), vec![]),
        (
            "nulls stay for defaulting to judge",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"a": null}),
            json!({"a": null}),
            vec![],
        ),
    ];
    for (name, spec, given, expected, dropped) in table {
        let schema = with_spec(spec);
        let mut object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": given});
        let mut found = prune(&schema, &mut object);
        found.sort();
        assert_eq!(object["spec"], expected, "{name}");
        assert_eq!(found, dropped, "{name}");
        assert_eq!(object["metadata"]["name"], "a", "{name}");
    }
}

#[test]
fn defaults_fill_absent_fields_of_present_objects() {
    let table: Vec<(&str, Value, Value, Value)> = vec![
        (
            "an absent field",
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({}),
            json!({"a": "x"}),
        ),
        (
            "a present field stays",
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"a": ""}),
            json!({"a": ""}),
        ),
        (
            "null becomes the default",
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"a": null}),
            json!({"a": "x"}),
        ),
        (
            "null stays where it is allowed",
            json!({"type": "object", "properties": {"a": {"type": "string", "nullable": true, "default": "x"}}}),
            json!({"a": null}),
            json!({"a": null}),
        ),
        (
            "no parent, no default",
            json!({"type": "object", "properties": {"p": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}}}),
            json!({}),
            json!({}),
        ),
        (
            "a default is defaulted in turn",
            json!({"type": "object", "properties": {"p": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}}}}),
            json!({}),
            json!({"p": {"a": "x"}}),
        ),
        (
            "in items",
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}}),
            json!([{}, {"a": 2}]),
            json!([{"a": 1}, {"a": 2}]),
        ),
        (
            "in map values",
            json!({"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}}),
            json!({"k": {}}),
            json!({"k": {"a": 1}}),
        ),
        (
            "a wrong type is left for validation",
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
            json!([]),
            json!([]),
        ),
    ];
    for (name, spec, given, expected) in table {
        let schema = with_spec(spec);
        let mut object = json!({"spec": given});
        default(&schema, &mut object, &Tree::default()).unwrap();
        assert_eq!(object["spec"], expected, "{name}");
    }
}

#[test]
fn validation_speaks_as_kubernetes_does() {
    let object = |property: Value| json!({"type": "object", "properties": {"f": property}});
    let table: Vec<(&str, Value, Value, Vec<&str>)> = vec![
        (
            "a wrong type",
            object(json!({"type": "integer"})),
            json!({"f": "x"}),
            vec!["spec.f: Invalid value: \"string\": spec.f in body must be of type integer: \"string\""],
        ),
        (
            "a fraction is no integer",
            object(json!({"type": "integer"})),
            json!({"f": 1.5}),
            vec!["spec.f: Invalid value: \"number\": spec.f in body must be of type integer: \"number\""],
        ),
        ("1.0 is an integer", object(json!({"type": "integer"})), json!({"f": 1.0}), vec![]),
        (
            "null where it is not allowed",
            object(json!({"type": "string"})),
            json!({"f": null}),
            vec!["spec.f: Invalid value: \"null\": spec.f in body must be of type string: \"null\""],
        ),
        ("null where it is allowed", object(json!({"type": "string", "nullable": true})), json!({"f": null}), vec![]),
        (
            "a missing field",
            json!({"type": "object", "required": ["f"], "properties": {"f": {"type": "string"}}}),
            json!({}),
            vec!["spec.f: Required value"],
        ),
        (
            "an enum",
            object(json!({"type": "string", "enum": ["a", "b"]})),
            json!({"f": "c"}),
            vec!["spec.f: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        ),
        ("an enum of numbers", object(json!({"type": "number", "enum": [1]})), json!({"f": 1.0}), vec![]),
        (
            "a pattern",
            object(json!({"type": "string", "pattern": "^a+$"})),
            json!({"f": "b"}),
            vec!["spec.f: Invalid value: \"b\": spec.f in body should match '^a+$'"],
        ),
        ("a pattern is not anchored", object(json!({"type": "string", "pattern": "a"})), json!({"f": "bab"}), vec![]),
        (
            "too long",
            object(json!({"type": "string", "maxLength": 2})),
            json!({"f": "abc"}),
            vec!["spec.f: Too long: may not be more than 2 bytes"],
        ),
        ("length counts characters", object(json!({"type": "string", "maxLength": 2})), json!({"f": "äö"}), vec![]),
        (
            "too short",
            object(json!({"type": "string", "minLength": 1})),
            json!({"f": ""}),
            vec!["spec.f: Invalid value: \"\": spec.f in body should be at least 1 chars long"],
        ),
        (
            "too large",
            object(json!({"type": "integer", "maximum": 3})),
            json!({"f": 4}),
            vec!["spec.f: Invalid value: 4: spec.f in body should be less than or equal to 3"],
        ),
        (
            "exclusively too large",
            object(json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true})),
            json!({"f": 3}),
            vec!["spec.f: Invalid value: 3: spec.f in body should be less than 3"],
        ),
        (
            "too small",
            object(json!({"type": "number", "minimum": 0.5})),
            json!({"f": 0.25}),
            vec!["spec.f: Invalid value: 0.25: spec.f in body should be greater than or equal to 0.5"],
        ),
        (
            "not a multiple",
            object(json!({"type": "integer", "multipleOf": 4})),
            json!({"f": 6}),
            vec!["spec.f: Invalid value: 6: spec.f in body should be a multiple of 4"],
        ),
        (
            "too many items",
            object(json!({"type": "array", "maxItems": 1, "items": {"type": "string"}})),
            json!({"f": ["a", "b"]}),
            vec!["spec.f: Too many: 2: must have at most 1 items"],
        ),
        (
            "too few items",
            object(json!({"type": "array", "minItems": 1, "items": {"type": "string"}})),
            json!({"f": []}),
            vec!["spec.f: Invalid value: 0: spec.f in body should have at least 1 items"],
        ),
        (
            "too many properties",
            object(json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}})),
            json!({"f": {"a": "", "b": ""}}),
            vec!["spec.f: Too many: 2: must have at most 1 items"],
        ),
        (
            "too few properties",
            object(json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}})),
            json!({"f": {}}),
            vec!["spec.f: Invalid value: 0: spec.f in body should have at least 1 properties"],
        ),
        (
            "a repeated member of a set",
            object(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})),
            json!({"f": ["a", "b", "a"]}),
            vec!["spec.f[2]: Duplicate value: \"a\""],
        ),
        (
            "a repeated key of a map",
            object(
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "p"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "p": {"type": "string", "default": "TCP"}}}}),
            ),
            json!({"f": [{"name": "a"}, {"name": "a", "p": "UDP"}, {"name": "a", "p": "TCP"}]}),
            vec!["spec.f[2]: Duplicate value: {\"name\":\"a\",\"p\":\"TCP\"}"],
        ),
        (
            "int-or-string takes both",
            json!({"type": "object", "properties": {"f": {"x-kubernetes-int-or-string": true}, "g": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}}),
            json!({"f": 1, "g": "x"}),
            vec![],
        ),
        (
            "int-or-string takes no more",
            object(json!({"x-kubernetes-int-or-string": true})),
            json!({"f": true}),
            vec!["spec.f: Invalid value: \"boolean\": spec.f in body must be of type integer,string: \"boolean\""],
        ),
        (
            "anyOf",
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            vec!["spec: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)"],
        ),
        (
            "oneOf with two",
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": "", "b": ""}),
            vec![
                "spec: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            "allOf names the branch's complaint",
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"a": {"maxLength": 1}}}]}),
            json!({"a": "xx"}),
            vec!["spec.a: Too long: may not be more than 1 bytes"],
        ),
        (
            "not",
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"required": ["a"]}}),
            json!({"a": ""}),
            vec!["spec: Invalid value: \"\": \"spec\" must not validate the schema (not)"],
        ),
        (
            "map keys with dots stand in brackets",
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"x.io/y": 1}),
            vec!["spec[x.io/y]: Invalid value: \"integer\": spec[x.io/y] in body must be of type string: \"integer\""],
        ),
    ];
    for (name, spec, given, expected) in table {
        assert_eq!(errors_of(&with_spec(spec), &given, None), expected, "{name}");
    }
}

#[test]
fn formats_hold_for_the_values_they_describe() {
    let table = [
        ("date-time", "2026-01-02T03:04:05Z", true),
        ("date-time", "2026-01-02T03:04:05.123456+02:00", true),
        ("date-time", "2026-01-02", false),
        ("date-time", "2026-13-02T03:04:05Z", false),
        ("date-time", "2026-01-02T03:04:05", false),
        ("date-time", "ääääääääää-----:::::", false),
        ("date", "2026-01-02", true),
        ("date", "2026-1-2", false),
        ("duration", "1h30m", true),
        ("duration", "-1.5s", true),
        ("duration", "1", false),
        ("duration", "h", false),
        ("byte", "aGk=", true),
        ("byte", "a", false),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", true),
        ("uuid", "123e4567", false),
        ("uuid4", "123e4567-e89b-12d3-a456-426614174000", false),
        ("ipv4", "10.0.0.1", true),
        ("ipv4", "10.0.0.256", false),
        ("ipv6", "fd00::1", true),
        ("cidr", "10.0.0.0/8", true),
        ("cidr", "10.0.0.0/33", false),
        ("hostname", "a.b-c", true),
        ("hostname", "-a", false),
        ("uri", "https://x/y", true),
        ("uri", "no uri", false),
        ("made-up", "anything", true),
    ];
    for (format, text, fits) in table {
        let schema = with_spec(json!({"type": "string", "format": format}));
        assert_eq!(errors_of(&schema, &json!(text), None).is_empty(), fits, "{format} {text}");
    }
    let int32 = with_spec(json!({"type": "integer", "format": "int32"}));
    assert!(errors_of(&int32, &json!(2_147_483_647), None).is_empty());
    assert!(!errors_of(&int32, &json!(2_147_483_648_i64), None).is_empty());
    let int64 = with_spec(json!({"type": "integer", "format": "int64"}));
    assert!(!errors_of(&int64, &json!(u64::MAX), None).is_empty());
}

#[test]
fn updates_do_not_fail_for_what_was_wrong_before() {
    let schema = with_spec(json!({
        "type": "object",
        "properties": {
            "a": {"type": "string", "maxLength": 1},
            "b": {"type": "string"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}}},
            "atomic": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        },
    }));
    let table = [
        ("an unchanged field", json!({"a": "long"}), json!({"a": "long", "b": "new"}), 0),
        ("a changed field", json!({"a": "long"}), json!({"a": "other"}), 1),
        (
            "an unchanged item that moved",
            json!({"list": [{"k": "1", "v": "long"}]}),
            json!({"list": [{"k": "0"}, {"k": "1", "v": "long"}]}),
            0,
        ),
        (
            "an item under another key",
            json!({"list": [{"k": "1", "v": "long"}]}),
            json!({"list": [{"k": "2", "v": "long"}]}),
            1,
        ),
        ("an unchanged atomic list", json!({"atomic": ["long"]}), json!({"atomic": ["long"], "b": "x"}), 0),
        ("a changed atomic list is checked whole", json!({"atomic": ["long"]}), json!({"atomic": ["long", "x"]}), 1),
    ];
    for (name, old, new, count) in table {
        assert_eq!(errors_of(&schema, &new, Some(&old)).len(), count, "{name}");
        assert!(!errors_of(&schema, &new, None).is_empty() || count == 0, "{name}");
    }
}

#[test]
fn metadata_is_checked_as_every_objects_metadata() {
    let schema = with_spec(json!({"type": "object"}));
    let errors = validate(&schema, &json!({"metadata": {"labels": {"a": 1}}}), None);
    assert_eq!(errors[0].path, "metadata.labels.a");
    assert_eq!(errors[0].reason.as_str(), "FieldValueTypeInvalid");
}

#[test]
fn a_schema_survives_the_way_to_openapi_and_back() {
    let spec = json!({
        "type": "object", "description": "what it is", "required": ["l"], "x-kubernetes-map-type": "atomic", "nullable": true,
        "properties": {
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "maxItems": 3,
                  "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "pattern": "^a", "enum": ["a"]}}}},
            "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "n": {"type": "integer", "format": "int32", "minimum": 1, "exclusiveMinimum": true, "default": 2, "multipleOf": 2},
            "i": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "additionalProperties": true},
            "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "e": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        },
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "m", "reason": "FieldValueForbidden", "fieldPath": ".n"}],
    });
    let root = json!({"type": "object", "properties": {"spec": spec}});
    let schema = Schema::parse(&root).unwrap();
    assert_eq!(schema.to_openapi(), root);
}

#[test]
fn equal_schemas_are_parsed_once() {
    let json = json!({"type": "object", "properties": {"spec": {"type": "string"}}});
    let first = Schema::shared(&json).unwrap();
    let second = Schema::shared(&json.clone()).unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &second));
}

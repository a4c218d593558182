#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::{errors_of, with_spec};

#[test]
fn rules_decide_about_values() {
    let object = |properties: Value, rule: &str| json!({"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule, "message": "no"}]});
    let two = || json!({"a": {"type": "integer"}, "b": {"type": "integer"}, "namespace": {"type": "string"}, "a-b": {"type": "string"}});
    let names =
        || json!({"l": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}});
    let table = [
        ("a comparison that holds", object(two(), "self.a <= self.b"), json!({"a": 1, "b": 2}), true),
        ("a comparison that fails", object(two(), "self.a <= self.b"), json!({"a": 3, "b": 2}), false),
        ("has", object(two(), "has(self.a) || has(self.b)"), json!({}), false),
        ("has sees the field", object(two(), "has(self.a)"), json!({"a": 1}), true),
        ("an absent field fails the rule", object(two(), "self.a == 1"), json!({}), false),
        ("an error is absorbed by or", object(two(), "self.a == 1 || true"), json!({}), true),
        ("reserved words are escaped", object(two(), "self.__namespace__ == 'x'"), json!({"namespace": "x"}), true),
        ("dashes are escaped", object(two(), "self.a__dash__b == 'x'"), json!({"a-b": "x"}), true),
        (
            "unique names",
            object(names(), "self.l.all(x, self.l.exists_one(y, x.name == y.name))"),
            json!({"l": [{"name": "a"}, {"name": "b"}]}),
            true,
        ),
        (
            "repeated names",
            object(names(), "self.l.all(x, self.l.exists_one(y, x.name == y.name))"),
            json!({"l": [{"name": "a"}, {"name": "a"}]}),
            false,
        ),
        (
            "a filter over literals",
            object(two(), "[has(self.a), has(self.b)].filter(x, x == true).size() == 1"),
            json!({"a": 1}),
            true,
        ),
        (
            "a conditional",
            object(two(), "has(self.a) && self.a == 1 ? has(self.b) : !has(self.b)"),
            json!({"a": 1}),
            false,
        ),
        (
            "map keys are data",
            json!({"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-validations": [{"rule": "'a-b' in self && self['a-b'] == 'x'"}]}),
            json!({"a-b": "x"}),
            true,
        ),
        (
            "a string",
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^(Linux|LVM)$') && size(self) < 6"}]}),
            json!("LVM"),
            true,
        ),
        (
            "membership",
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "!(self in ['Ready','Available'])"}]}),
            json!("Ready"),
            false,
        ),
        (
            "numbers are doubles",
            json!({"type": "number", "x-kubernetes-validations": [{"rule": "self / 2.0 == 0.5"}]}),
            json!(1),
            true,
        ),
        (
            "times",
            json!({"type": "string", "format": "date-time", "x-kubernetes-validations": [{"rule": "self < timestamp('2030-01-01T00:00:00Z')"}]}),
            json!("2026-01-01T00:00:00Z"),
            true,
        ),
        (
            "durations",
            json!({"type": "string", "format": "duration", "x-kubernetes-validations": [{"rule": "self <= duration('1h')"}]}),
            json!("90m"),
            false,
        ),
        (
            "bytes",
            json!({"type": "string", "format": "byte", "x-kubernetes-validations": [{"rule": "size(self) == 2"}]}),
            json!("aGk="),
            true,
        ),
        (
            "int-or-string",
            json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [{"rule": "type(self) == int ? self > 0 : self.endsWith('%')"}]}),
            json!("5%"),
            true,
        ),
        (
            "addresses",
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "isIP(self) && ip(self).family() == 4"}]}),
            json!("10.0.0.1"),
            true,
        ),
        (
            "quantities",
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "isQuantity(self) && quantity(self).isLessThan(quantity('1Gi'))"}]}),
            json!("1Mi"),
            true,
        ),
        (
            "urls",
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "isURL(self) && url(self).getScheme() == 'https'"}]}),
            json!("http://x"),
            false,
        ),
        (
            "a rule that is no boolean",
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self"}]}),
            json!("x"),
            false,
        ),
        (
            "rules in items",
            json!({"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 0"}]}}),
            json!([2, 3]),
            false,
        ),
        (
            "rules in map values",
            json!({"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}}),
            json!({"a": 0}),
            false,
        ),
        ("dyn", json!({"type": "integer", "x-kubernetes-validations": [{"rule": "dyn(self) == 1"}]}), json!(1), true),
    ];
    for (name, spec, value, holds) in table {
        let errors = errors_of(&with_spec(spec), &value, None);
        assert_eq!(errors.is_empty(), holds, "{name}: {errors:?}");
    }
}

#[test]
fn failures_are_told_as_the_rule_says() {
    let rule = |mut rule: Value, extra: Value| {
        rule.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [rule]})
    };
    let never = || json!({"rule": "self.a > 9"});
    let table = [
        ("without a message", rule(never(), json!({})), "spec: Invalid value: \"object\": failed rule: self.a > 9"),
        (
            "with a message",
            rule(never(), json!({"message": "too small"})),
            "spec: Invalid value: \"object\": too small",
        ),
        (
            "with a computed message",
            rule(never(), json!({"message": "x", "messageExpression": "'a is ' + string(self.a)"})),
            "spec: Invalid value: \"object\": a is 1",
        ),
        (
            "a failing message expression falls back",
            rule(never(), json!({"message": "plain", "messageExpression": "self.b"})),
            "spec: Invalid value: \"object\": plain",
        ),
        (
            "at a field",
            rule(never(), json!({"message": "m", "fieldPath": ".a"})),
            "spec.a: Invalid value: \"object\": m",
        ),
        ("forbidden", rule(never(), json!({"message": "m", "reason": "FieldValueForbidden"})), "spec: Forbidden: m"),
        (
            "required",
            rule(never(), json!({"message": "m", "reason": "FieldValueRequired", "fieldPath": ".b"})),
            "spec.b: Required value: m",
        ),
    ];
    for (name, spec, expected) in table {
        assert_eq!(errors_of(&with_spec(spec), &json!({"a": 1}), None), [expected], "{name}");
    }
}

#[test]
fn transition_rules_compare_with_the_old_value() {
    let immutable = json!({"type": "object", "properties": {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}]}}});
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                  "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}]}});
    let atomic = json!({"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}});
    let optional = json!({"type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "oldSelf.hasValue() ? self.a >= oldSelf.value().a : self.a == 0", "optionalOldSelf": true}]});
    let or_value = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf.orValue(5)", "optionalOldSelf": true}]});
    let region = json!({"type": "object", "properties": {"region": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "(!has(self.region) && !has(oldSelf.region)) || self.region == oldSelf.region"}]});
    let state = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a > 0"}]});
    let table = [
        ("nothing to compare on create", &immutable, None, json!({"a": 1}), true),
        ("unchanged", &immutable, Some(json!({"a": 1})), json!({"a": 1}), true),
        ("changed", &immutable, Some(json!({"a": 1})), json!({"a": 2}), false),
        ("newly set", &immutable, Some(json!({})), json!({"a": 2}), true),
        (
            "items are found by key",
            &keyed,
            Some(json!([{"k": "x", "v": 5}])),
            json!([{"k": "y", "v": 0}, {"k": "x", "v": 5}]),
            true,
        ),
        ("an item that shrank", &keyed, Some(json!([{"k": "x", "v": 5}])), json!([{"k": "x", "v": 4}]), false),
        ("items of atomic lists have no past", &atomic, Some(json!([1])), json!([2]), true),
        ("optional without old value", &optional, None, json!({"a": 1}), false),
        ("optional with old value", &optional, Some(json!({"a": 2})), json!({"a": 3}), true),
        ("optional with a larger old value", &optional, Some(json!({"a": 4})), json!({"a": 3}), false),
        ("orValue without old value", &or_value, None, json!(6), true),
        ("orValue with old value", &or_value, Some(json!(9)), json!(6), false),
        ("a field that both lack", &region, Some(json!({})), json!({}), true),
        ("a field that appears", &region, Some(json!({})), json!({"region": "x"}), false),
        ("a state rule is not run on an unchanged value", &state, Some(json!({"a": 0})), json!({"a": 0}), true),
        (
            "a state rule is run when anything below changed",
            &state,
            Some(json!({"a": 0})),
            json!({"a": 0, "b": 1}),
            false,
        ),
    ];
    for (name, spec, old, new, holds) in table {
        let errors = errors_of(&with_spec(spec.clone()), &new, old.as_ref());
        assert_eq!(errors.is_empty(), holds, "{name}: {errors:?}");
    }
}

#[test]
fn rules_wait_until_the_shape_is_right() {
    let spec = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a > 0"}]});
    let errors = errors_of(&with_spec(spec), &json!({}), None);
    assert_eq!(errors.len(), 2);
    assert!(errors[1].contains("some validation rules were not checked"), "{errors:?}");
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::{Schema, default, prune};
use super::{errors_of, with_spec};
use crate::tree::Tree;

/// Time limit of each test, for an unoptimised build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_schema_nested_too_deep_is_refused() {
    let mut spec = json!({"type": "string"});
    for _ in 0..100 {
        spec = json!({"type": "object", "properties": {"a": spec}});
    }
    let error = Schema::parse(&spec).unwrap_err();
    assert!(error.to_string().contains("nested deeper"), "{}", error.errors.len());
    // Dropping a value this deep recurses as deep; give it back piece by piece.
    while let Some(next) = spec.pointer_mut("/properties/a").map(Value::take) {
        spec = next;
    }
}

#[test]
fn an_object_nested_deeper_than_its_schema_is_cut() {
    let schema = with_spec(json!({"type": "object", "properties": {"a": {"type": "object"}}}));
    let mut object = json!({"spec": {"a": {}}});
    let mut deep = json!({});
    for _ in 0..120 {
        deep = json!({"a": deep});
    }
    object["spec"]["a"] = deep;
    assert_eq!(prune(&schema, &mut object), ["spec.a.a"]);
    default(&schema, &mut object, &Tree::default()).unwrap();
}

#[test]
fn defaults_that_multiply_what_an_object_has_are_refused() {
    let text = json!({"type": "string", "default": "x".repeat(1 << 10)});
    let field = json!({"type": "object", "properties": {"a": text}});
    let mut whole = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    whole["default"] = json!({"a": "x".repeat(1 << 10)});
    for (what, schema, spec) in [
        ("in items", json!({"type": "array", "items": field}), json!([{}])),
        ("of items", json!({"type": "array", "items": whole}), json!([null])),
        ("in values", json!({"type": "object", "additionalProperties": field}), json!([{}])),
        ("of values", json!({"type": "object", "additionalProperties": whole}), json!([null])),
    ] {
        let schema = with_spec(schema);
        let of = |times: usize| {
            let item = &spec[0];
            let keyed = || (0..times).map(|index| (index.to_string(), item.clone())).collect();
            let spec = if what.ends_with("items") { json!(vec![item; times]) } else { Value::Object(keyed()) };
            let (tree, mut object) = (Tree::default(), json!({"spec": spec}));
            default(&schema, &mut object, &tree).map_err(|_| tree.refused().map(|error| error.code))
        };
        assert_eq!(of(100), Ok(()), "{what}");
        assert_eq!(of(100_000), Err(Some(413)), "{what}");
    }
}

#[test]
fn costly_patterns_are_refused_or_run_in_linear_time() {
    for pattern in [
        "(a{1000}){1000}",
        "((((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9}){9})",
        &"(".repeat(5000),
        &"a".repeat(20 << 10),
    ] {
        let root = json!({"type": "object", "properties": {"spec": {"type": "string", "pattern": pattern}}});
        assert!(Schema::parse(&root).is_err(), "{}", &pattern[..20]);
    }
    let start = Instant::now();
    let schema = with_spec(json!({"type": "string", "pattern": "^(a+)+$"}));
    assert_eq!(errors_of(&schema, &json!(format!("{}b", "a".repeat(100_000))), None).len(), 1);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn expressions_that_cannot_be_afforded_are_not_run() {
    let list = |rule: &str| json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
    let long: Value = (0..3000).collect();
    let doubling = {
        let mut rule = "x".to_owned();
        for _ in 0..22 {
            rule = format!("[{rule}].map(x, x + x)[0]");
        }
        format!("self.map(x, 'aaaaaaaaaaaaaaaa').all(x, size({rule}) > 0)")
    };
    let table = [
        ("four nested loops", "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))"),
        ("a huge range", "lists.range(2000000000).all(x, x >= 0)"),
        ("strings that double", doubling.as_str()),
    ];
    for (name, rule) in table {
        let start = Instant::now();
        let root = json!({"type": "object", "properties": {"spec": list(rule)}});
        if let Ok(schema) = Schema::parse(&root) {
            let errors = errors_of(&schema, &long, None);
            assert!(errors.first().is_some_and(|error| error.contains("budget")), "{name}: {errors:?}");
        }
        assert!(start.elapsed() < PATIENCE, "{name}");
    }
}

#[test]
fn a_reasonable_quadratic_rule_is_affordable() {
    let schema =
        with_spec(json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.exists_one(y, x.name == y.name))"}]}));
    let items: Value = (0..100).map(|index| json!({"name": format!("n{index}")})).collect();
    assert_eq!(errors_of(&schema, &items, None), Vec::<String>::new());
}

/// Each of these made one write ask for more memory than a machine has; the bound added what multiplies.
#[test]
fn rules_that_multiply_what_they_have_are_refused_before_they_run() {
    let doubling = format!("self{} != []", ".map(x, x + x + x + x)".repeat(20));
    let rules = [
        doubling.as_str(),
        "self.map(x, self.map(y, self.map(z, self.join('') + self.join('')))).size() > 0",
        "lists.range(1000000000).size() > 0",
        "self.join(self.join(self.join(self.join(self.join('aaaaaaaaaaaaaaaa'))))) != ''",
    ];
    let values: Value = (0..100).map(|index| json!(format!("value {index}"))).collect();
    for rule in rules {
        let start = Instant::now();
        let schema = with_spec(json!({"type": "array", "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": rule}]}));
        let errors = errors_of(&schema, &values, None);
        assert!(errors.len() == 1 && errors[0].contains("cost budget"), "{rule}: {errors:?}");
        assert!(start.elapsed() < PATIENCE, "{rule}: {:?}", start.elapsed());
    }
}

#[test]
fn expressions_that_are_too_long_or_too_deep_do_not_compile() {
    let table = [
        ("long", format!("self == '{}'", "a".repeat(40 << 10))),
        ("deep", format!("{}true{}", "(".repeat(4000), ")".repeat(4000))),
        ("many negations", format!("{}true", "!".repeat(20_000))),
        ("a long chain", format!("true{}", " && true".repeat(3000))),
        ("a long sum", format!("0 == 0{}", "+1".repeat(900))),
        ("many fields", format!("self{} == ''", ".a".repeat(900))),
        ("many choices", format!("{}true", "true ? true : ".repeat(300))),
        ("quotes that hide brackets", format!("'\\'' == {}1{}", "(".repeat(3000), ")".repeat(3000))),
        ("bytes that are no expression", "\u{0}\u{1}😀".to_owned()),
        ("an open string", "'".to_owned()),
    ];
    for (name, rule) in table {
        let start = Instant::now();
        let root = json!({"type": "object", "properties": {"spec": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}}});
        assert!(Schema::parse(&root).is_err(), "{name}");
        assert!(start.elapsed() < PATIENCE, "{name} {:?}", start.elapsed());
    }
}

#[test]
fn the_deepest_expression_that_compiles_also_runs() {
    let mut deepest = 0;
    for depth in [10, 20, 30, 35, 36, 37, 38, 39, 40] {
        let rule = format!("{}self{} == self", "(self + ".repeat(depth), ")".repeat(depth));
        let root = json!({"type": "object", "properties": {"spec": {"type": "integer", "x-kubernetes-validations": [{"rule": rule}]}}});
        let Ok(schema) = Schema::parse(&root) else { break };
        deepest = depth;
        // The stack of a worker thread.
        let run = move || errors_of(&schema, &json!(0), None);
        let errors = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
        assert_eq!(errors, Vec::<String>::new(), "{depth}");
    }
    assert!(deepest >= 20, "{deepest}");
}

#[test]
fn an_object_full_of_errors_gets_a_short_answer() {
    let schema = with_spec(json!({"type": "array", "items": {"type": "integer"}}));
    let items: Value = (0..100_000).map(|_| json!("x")).collect();
    assert!(errors_of(&schema, &items, None).len() <= 64);
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::json;

use super::*;

#[test]
fn label_selectors_select_as_their_requirements_say() {
    let labels = json!({"app": "web", "tier": "front", "n": "5", "empty": "", "x.io/y": "z"});
    let table = [
        ("", true, "the empty selector selects everything"),
        ("app=web", true, "equality"),
        ("app==web", true, "double equality"),
        ("app=db", false, "another value"),
        ("app!=db", true, "inequality"),
        ("missing!=db", true, "inequality holds without the label"),
        ("missing notin (a)", true, "notin holds without the label"),
        ("missing=", false, "the empty value is not absence"),
        ("missing in (a)", false, "in without the label"),
        ("empty=", true, "the empty value"),
        ("!empty", false, "an empty value is there"),
        ("tier in (front, back)", true, "in"),
        ("tier in (back)", false, "in without it"),
        ("tier notin (back,front)", false, "notin"),
        ("empty in (,a)", true, "an empty member"),
        ("app", true, "existence"),
        ("!app", false, "absence"),
        ("!nothing , app = web", true, "spaces and conjunction"),
        ("app=web,tier=back", false, "all must hold"),
        ("n>4", true, "greater"),
        ("n<5", false, "less"),
        ("app>4", false, "a word is not greater"),
        ("x.io/y=z", true, "prefixed key"),
        ("x.io/y, !x.io/z", true, "prefixed keys that are there or not"),
        ("in in (in)", false, "operators may be keys"),
    ];
    for (text, expected, name) in table {
        let selector = Selector::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(selector.matches_labels(Some(&labels)), expected, "{name}");
        assert_eq!(selector.matches_object(&json!({"metadata": {"labels": labels}})), expected, "{name}");
        assert_eq!(Selector::parse(&selector.to_string()), Ok(selector), "{name}: survives printing");
    }
    assert!(Selector::parse("!a").unwrap().matches_labels(None));
    assert!(Selector::parse("").unwrap().is_everything());
}

#[test]
fn malformed_label_selectors_are_refused() {
    let long = "x".repeat(64);
    for text in [
        "=",
        "a=b c",
        "a in",
        "a in b",
        "a in b)",
        "a in (b",
        "a under (b)",
        "a b",
        "a=b,",
        "a,",
        ",a",
        "a>b",
        "-a=b",
        "a=b/",
        "/a",
        "a==(",
        "!",
        "!a=b",
        "=b",
        &long,
        "ä=b",
        "a in (b))",
    ] {
        assert!(Selector::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn an_objects_selector_reads_like_the_textual_one() {
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
        {"key": "c", "operator": "Exists"}, {"key": "d", "operator": "NotIn", "values": ["e"]},
        {"key": "f", "operator": "In", "values": ["g"]}]});
    assert_eq!(Selector::of(&selector), Selector::parse("f in (g),a=b,c,d notin (e)"));
    for (what, expression) in [
        ("no values", json!({"key": "a", "operator": "In"})),
        ("no key", json!({"operator": "Exists"})),
        ("unknown operator", json!({"key": "a", "operator": "Near"})),
    ] {
        let selector = json!({"matchExpressions": [expression]});
        assert!(Selector::of(&selector).unwrap_err().to_string().ends_with(what), "{what}");
        assert!(!selects(&selector, None), "{what}: selects nothing");
    }
}

#[test]
fn an_objects_selector_matches_as_kubernetes_does() {
    let labels = json!({"a": "1", "empty": ""});
    for (selector, expected) in [
        (json!(null), true),
        (json!({}), true),
        (json!({"matchLabels": {"a": "1"}}), true),
        (json!({"matchLabels": {"a": "2"}}), false),
        (json!({"matchLabels": {"empty": ""}}), true),
        (json!({"matchLabels": {"absent": ""}}), false),
        (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}), true),
        (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}), false),
        (json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}), true),
        (
            json!({"matchExpressions": [{"key": "empty", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist"}]}),
            true,
        ),
        (json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}), false),
    ] {
        assert_eq!(selects(&selector, Some(&labels)), expected, "{selector}");
    }
}

/// Upstream's order, which is that of the keys.
#[test]
fn a_selector_has_one_text() {
    let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]});
    assert_eq!(Selector::of(&selector).unwrap().to_string(), "a=1,b=2,c in (x,y),!d");
    assert_eq!(Selector::labels([("b", "2")]).and_label("a", "1"), Selector::parse("b=2,a=1").unwrap());
    assert!(is_empty(&json!({"matchLabels": {}})) && is_empty(&Value::Null) && !is_empty(&selector));
}

#[test]
fn one_demanded_value_is_exact() {
    let selector = Selector::parse("a=1,b in (2),c in (3,4),d!=5,e").unwrap();
    let exact: Vec<(&str, &str)> = selector.exact().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(exact, [("a", "1"), ("b", "2")]);
}

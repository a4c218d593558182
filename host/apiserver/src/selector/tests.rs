#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::json;

use super::{FieldSelector, LabelSelector};

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
        ("empty=", true, "the empty value"),
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
        ("in in (in)", false, "operators may be keys"),
    ];
    for (text, expected, name) in table {
        let selector = LabelSelector::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(selector.matches(Some(&labels)), expected, "{name}");
    }
    assert!(LabelSelector::parse("!a").unwrap().matches(None));
    assert!(LabelSelector::parse("").unwrap().is_everything());
}

#[test]
fn malformed_label_selectors_are_refused() {
    let long = "x".repeat(64);
    for text in [
        "=",
        "a=b c",
        "a in",
        "a in b",
        "a in (b",
        "a,",
        ",a",
        "a>b",
        "-a=b",
        "a=b/",
        "/a",
        "a==(",
        "!",
        "!a=b",
        &long,
        "ä=b",
        "a in (b))",
    ] {
        assert!(LabelSelector::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn field_selectors_compare_dotted_paths_as_text() {
    let object = json!({"metadata": {"name": "a"}, "spec": {"n": 3, "on": true, "odd": "a,b=c\\"}});
    let table = [
        ("", true, "empty"),
        ("metadata.name=a", true, "equal"),
        ("metadata.name==a", true, "double equal"),
        ("metadata.name!=a", false, "not equal"),
        ("metadata.namespace=", true, "absent is empty"),
        ("spec.n=3,spec.on=true", true, "numbers and booleans as text"),
        ("spec.odd=a\\,b\\=c\\\\", true, "escapes"),
        ("spec=", true, "a composite is empty"),
    ];
    for (text, expected, name) in table {
        assert_eq!(FieldSelector::parse(text).unwrap().matches(&object), expected, "{name}");
    }
    assert_eq!(FieldSelector::parse("a!=b,metadata.name=x").unwrap().exact("metadata.name"), Some("x"));
    for text in ["a", "=b", "a=b=c", "a=\\x", "a!b", "a=\\"] {
        assert!(FieldSelector::parse(text).is_err(), "{text:?}");
    }
}

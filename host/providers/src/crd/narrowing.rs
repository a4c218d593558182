//! Whether a CRD takes something away from an installed one: a version, a field, a value, or freedom that objects may have used.
//! What cannot be judged (another pattern, a new rule) counts as taken away.

use capwasm_object::json;
use serde_json::{Map, Value, json};

/// Everything that `new` takes away from `live`, in words; empty when it only widens.
pub fn narrowings(live: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for pointer in ["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"] {
        let (old, new) = (json::text(live, pointer), json::text(new, pointer));
        if old != new {
            let what = pointer.trim_start_matches("/spec/").replace('/', ".");
            found.push(format!("{what} is {:?} instead of {:?}", new.unwrap_or_default(), old.unwrap_or_default()));
        }
    }
    for old in json::items(live, "/spec/versions").iter().filter(|version| version["served"] == true) {
        let name = json::text(old, "/name").unwrap_or_default();
        let Some(new) = json::items(new, "/spec/versions").iter().find(|version| version["name"] == old["name"]) else {
            found.push(format!("version {name} is gone"));
            continue;
        };
        for subresource in ["status", "scale"] {
            if present(old, "subresources", subresource) && !present(new, "subresources", subresource) {
                found.push(format!("{name}: subresource {subresource} is gone"));
            }
        }
        let schema = |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
        compare(name, &schema(old), &schema(new), &mut found);
    }
    found
}

fn present(version: &Value, of: &str, name: &str) -> bool {
    version.get(of).and_then(|of| of.get(name)).is_some_and(|value| !value.is_null())
}

const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Bounds that objects must not exceed, and that they must reach.
const MOST: [&str; 4] = ["maxLength", "maxItems", "maxProperties", "maximum"];
const LEAST: [&str; 4] = ["minLength", "minItems", "minProperties", "minimum"];
/// Demands that are as before or not made at all.
const SAME: [&str; 10] = [
    "pattern",
    "format",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];
/// Flags that may only be taken back.
const DEMANDS: [&str; 4] = ["exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "x-kubernetes-embedded-resource"];

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    let flag = |schema: &Value, name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
    let set = |schema: &Value, name: &str| schema.get(name).filter(|value| !value.is_null()).cloned();
    let (was, is) = (json::text(old, "/type"), json::text(new, "/type"));
    let either = flag(new, INT_OR_STRING);
    let wider = match (was, is) {
        _ if was == is && (flag(old, INT_OR_STRING) || !either) => true,
        (Some("integer" | "string"), None) if either => true,
        (_, None) | (Some("integer"), Some("number")) => !either,
        _ => false,
    };
    if !wider {
        let is = if either { "integer or string" } else { is.unwrap_or("any") };
        found.push(format!("{path} is of type {is} instead of {}", was.unwrap_or("any")));
    }
    if flag(old, INT_OR_STRING) && !flag(new, INT_OR_STRING) && is.is_some() {
        found.push(format!("{path} is no integer or string any more"));
    }
    for name in ["nullable", OPEN] {
        if flag(old, name) && !flag(new, name) {
            found.push(format!("{path}: {name} is not true any more"));
        }
    }
    for name in DEMANDS.into_iter().filter(|name| flag(new, name) && !flag(old, name)) {
        found.push(format!("{path}: {name} is new"));
    }
    for name in SAME {
        if let Some(demand) = set(new, name).filter(|demand| set(old, name).as_ref() != Some(demand)) {
            found.push(format!("{path}: {name} is {demand}, which it was not"));
        }
    }
    let number = |schema: &Value, name: &str| schema.get(name).and_then(Value::as_f64);
    for (names, tighter) in [(MOST, (|new, old| new < old) as fn(f64, f64) -> bool), (LEAST, |new, old| new > old)] {
        for name in names {
            // Nothing is shorter than nothing: a minimum of zero demands nothing where there was none.
            let without = if name.starts_with("min") && name != "minimum" { Some(0.0) } else { None };
            let Some(new) = number(new, name) else { continue };
            if number(old, name).or(without).is_none_or(|old| tighter(new, old)) {
                found.push(format!("{path}: {name} is {new}"));
            }
        }
    }
    values(path, old, new, found);
    fields(path, old, new, found);
    rules(path, old, new, found);
    if let Some(items) = set(new, "items") {
        compare(&format!("{path}[]"), &set(old, "items").unwrap_or_default(), &items, found);
    }
}

fn values(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    let Some(new) = new.get("enum").and_then(Value::as_array) else { return };
    match old.get("enum").and_then(Value::as_array) {
        None => found.push(format!("{path} takes certain values only")),
        Some(old) => {
            let gone = old.iter().filter(|value| !new.contains(value));
            found.extend(gone.map(|value| format!("{path} does not take {value} any more")));
        }
    }
}

fn fields(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    let none = Map::new();
    let properties = |schema: &'_ Value| schema.get("properties").and_then(Value::as_object).cloned();
    let (was, is) = (properties(old).unwrap_or_default(), properties(new).unwrap_or(none));
    let rest = |schema: &Value| match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Some(Value::Object(Map::new())),
        Some(schema @ Value::Object(_)) => Some(schema.clone()),
        _ => None,
    };
    let is_open = |schema: &Value| schema.get(OPEN).and_then(Value::as_bool) == Some(true);
    let open = is_open(new);
    if is_open(old) {
        // Whatever these fields were called before, they could be anything.
        let anything = json!({});
        for (name, new) in is.iter().filter(|(name, _)| !was.contains_key(*name)) {
            compare(&format!("{path}.{name}"), &anything, new, found);
        }
        if let (None, Some(new)) = (rest(old), rest(new)) {
            compare(&format!("{path}.*"), &anything, &new, found);
        }
    }
    for (name, old) in &was {
        let field = format!("{path}.{name}");
        match (is.get(name), rest(new)) {
            (Some(new), _) => compare(&field, old, new, found),
            (None, Some(new)) => compare(&field, old, &new, found),
            (None, None) if open => {}
            (None, None) => found.push(format!("{field} is gone")),
        }
    }
    match (rest(old), rest(new)) {
        (Some(old), Some(new)) => compare(&format!("{path}.*"), &old, &new, found),
        (Some(_), None) if !open => found.push(format!("{path} takes certain fields only")),
        _ => {}
    }
    let before = json::items(old, "/required");
    for name in json::items(new, "/required").iter().filter(|name| !before.contains(name)) {
        let name = name.as_str().unwrap_or_default();
        // What has a default is never absent; null is none.
        if is.get(name).is_none_or(|field| field.get("default").is_none_or(Value::is_null)) {
            found.push(format!("{path}.{name} is required"));
        }
    }
}

fn rules(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    let pointer = "/x-kubernetes-validations";
    let before: Vec<_> = json::items(old, pointer).iter().map(|rule| &rule["rule"]).collect();
    let new = json::items(new, pointer).iter().map(|rule| &rule["rule"]).filter(|rule| !before.contains(rule));
    found.extend(new.map(|rule| format!("{path}: rule {rule} is new")));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    fn crd(spec: Value) -> Value {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"kind": "K", "plural": "ks"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}})
    }

    #[test]
    fn what_takes_something_away_is_named() {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let a = |schema: Value| object(json!({"a": schema}));
        let rows = [
            ("a field", a(json!({"type": "string"})), object(json!({})), "v1.spec.a is gone"),
            ("a type", a(json!({"type": "string"})), a(json!({"type": "integer"})), "of type integer"),
            ("a value", a(json!({"enum": ["x", "y"]})), a(json!({"enum": ["x"]})), "does not take \"y\""),
            (
                "values at all",
                a(json!({"type": "string"})),
                a(json!({"type": "string", "enum": ["x"]})),
                "certain values",
            ),
            ("length", a(json!({"maxLength": 9})), a(json!({"maxLength": 8})), "maxLength is 8"),
            ("length at all", a(json!({})), a(json!({"maxLength": 8})), "maxLength is 8"),
            (
                "absence",
                a(json!({})),
                json!({"type": "object", "required": ["a"], "properties": {"a": {}}}),
                "a is required",
            ),
            (
                "absence, for a default that is none",
                a(json!({"default": null})),
                json!({"type": "object", "required": ["a"], "properties": {"a": {"default": null}}}),
                "a is required",
            ),
            ("a minimum", a(json!({})), a(json!({"minLength": 1})), "minLength is 1"),
            ("a pattern", a(json!({"pattern": "a"})), a(json!({"pattern": "b"})), "pattern"),
            ("a rule", a(json!({})), a(json!({"x-kubernetes-validations": [{"rule": "self > 1"}]})), "self > 1"),
            ("openness", a(json!({OPEN: true})), a(json!({})), "not true any more"),
            ("null", a(json!({"nullable": true})), a(json!({})), "nullable"),
            ("free keys", a(json!({"additionalProperties": {"type": "string"}})), a(json!({})), "certain fields"),
            ("in items", a(json!({"items": {"enum": ["x", "y"]}})), a(json!({"items": {"enum": ["y"]}})), "spec.a[]"),
            (
                "a field that could be anything",
                a(json!({OPEN: true})),
                a(json!({OPEN: true, "properties": {"x": {"type": "string"}}})),
                "v1.spec.a.x is of type string instead of any",
            ),
            (
                "keys that could be anything",
                a(json!({OPEN: true})),
                a(json!({OPEN: true, "additionalProperties": {"type": "string"}})),
                "v1.spec.a.* is of type string",
            ),
            (
                "a type for two others",
                a(json!({"type": "boolean"})),
                a(json!({INT_OR_STRING: true})),
                "integer or string",
            ),
            ("any type", a(json!({})), a(json!({INT_OR_STRING: true})), "integer or string instead of any"),
            (
                "in free keys",
                a(json!({"additionalProperties": {"maxLength": 2}})),
                a(json!({"additionalProperties": {"maxLength": 1}})),
                "spec.a.*",
            ),
        ];
        for (name, old, new, part) in rows {
            let found = narrowings(&crd(old), &crd(new));
            assert!(found.len() == 1 && found[0].contains(part), "{name}: {found:?}");
        }
    }

    #[test]
    fn what_only_widens_is_taken() {
        let a = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        let rows = [
            ("the same", a(json!({"type": "string", "enum": ["x"]})), a(json!({"type": "string", "enum": ["x"]}))),
            (
                "a new field",
                a(json!({})),
                json!({"type": "object", "properties": {"a": {}, "b": {"maxLength": 1, "enum": ["x"]}}}),
            ),
            ("more values", a(json!({"enum": ["x"]})), a(json!({"enum": ["y", "x"]}))),
            ("any value", a(json!({"enum": ["x"], "maxLength": 3, "pattern": "x"})), a(json!({}))),
            ("a number", a(json!({"type": "integer"})), a(json!({"type": "number"}))),
            ("an integer or a string", a(json!({"type": "string"})), a(json!({INT_OR_STRING: true}))),
            ("the same of two types", a(json!({INT_OR_STRING: true})), a(json!({INT_OR_STRING: true}))),
            (
                "required with a default",
                a(json!({})),
                json!({"type": "object", "required": ["a"], "properties": {"a": {"default": 1}}}),
            ),
            ("not required", json!({"type": "object", "required": ["a"], "properties": {"a": {}}}), a(json!({}))),
            ("a minimum of nothing", a(json!({})), a(json!({"minLength": 0}))),
            ("fields become open", a(json!({"properties": {"x": {}}})), a(json!({OPEN: true}))),
            ("fewer rules", a(json!({"x-kubernetes-validations": [{"rule": "r"}]})), a(json!({}))),
            (
                "another message",
                a(json!({"x-kubernetes-validations": [{"rule": "r", "message": "a"}]})),
                a(json!({"x-kubernetes-validations": [{"rule": "r", "message": "b"}]})),
            ),
        ];
        for (name, old, new) in rows {
            assert_eq!(narrowings(&crd(old), &crd(new)), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn versions_names_and_subresources_stay() {
        let old = crd(json!({}));
        let mut renamed = old.clone();
        renamed["spec"]["scope"] = "Cluster".into();
        assert_eq!(narrowings(&old, &renamed), ["scope is \"Cluster\" instead of \"Namespaced\""]);
        let mut other = old.clone();
        other["spec"]["versions"][0]["name"] = "v2".into();
        assert_eq!(narrowings(&old, &other), ["version v1 is gone"]);
        let mut unserved = old.clone();
        unserved["spec"]["versions"][0]["served"] = false.into();
        assert_eq!(narrowings(&unserved, &other), Vec::<String>::new(), "nobody could ask for it");
        let mut bare = old.clone();
        bare["spec"]["versions"][0]["subresources"] = json!({});
        assert_eq!(narrowings(&old, &bare), ["v1: subresource status is gone"]);
    }

    #[test]
    fn a_schema_is_not_narrower_than_itself_nor_without_one_of_its_demands() {
        const DEMANDS: [&str; 6] = ["enum", "maxLength", "minItems", "maximum", "pattern", "required"];
        fn made(u: &mut arbitrary::Unstructured<'_>, depth: usize) -> arbitrary::Result<Value> {
            let mut schema = json!({"type": "object", "enum": [1, "x"], "maxLength": u.int_in_range(0..=9)?, "minItems": 1,
                "maximum": u.int_in_range(0..=9)?, "pattern": "a", "required": ["a"], "nullable": u.arbitrary::<bool>()?});
            match u.int_in_range(0..=if depth == 0 { 0 } else { 3 })? {
                0 => {}
                1 => schema["items"] = made(u, depth - 1)?,
                2 => schema["additionalProperties"] = made(u, depth - 1)?,
                _ => schema["properties"] = json!({"a": made(u, depth - 1)?, "b": made(u, depth - 1)?}),
            }
            Ok(schema)
        }
        fn without(u: &mut arbitrary::Unstructured<'_>, schema: &mut Value) -> arbitrary::Result<()> {
            for below in ["/items", "/additionalProperties", "/properties/a"] {
                if let Some(below) = schema.pointer_mut(below)
                    && u.arbitrary()?
                {
                    return without(u, below);
                }
            }
            schema.as_object_mut().unwrap().remove(*u.choose(&DEMANDS)?);
            Ok(())
        }
        arbtest::arbtest(|u| {
            let old = made(u, 3)?;
            let mut new = old.clone();
            without(u, &mut new)?;
            assert_eq!(narrowings(&crd(old.clone()), &crd(old.clone())), Vec::<String>::new());
            assert_eq!(narrowings(&crd(old.clone()), &crd(new.clone())), Vec::<String>::new(), "{old} to {new}");
            let back = narrowings(&crd(new.clone()), &crd(old.clone()));
            assert!(new == old || !back.is_empty(), "{new} to {old}");
            Ok(())
        });
    }
}

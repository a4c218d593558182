//! A strict validator for structural schemas: unknown fields are errors; CEL rules are not looked at.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use regex::Regex;
use serde_json::Value;

thread_local! {
    static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// Whether `text` matches a schema's pattern.
pub fn matches(pattern: &str, text: &str) -> bool {
    PATTERNS.with_borrow_mut(|known| {
        known.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).unwrap()).is_match(text)
    })
}

/// What is wrong with `value`, one line each.
pub fn validate(schema: &Value, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for part in value.as_object().unwrap().keys() {
        if !["apiVersion", "kind", "metadata"].contains(&part.as_str()) {
            match schema["properties"].get(part) {
                Some(schema) => check(schema, &value[part], part, &mut errors),
                None => errors.push(format!("{part}: unknown")),
            }
        }
    }
    require(schema, value, "", &mut errors);
    errors
}

/// Every path of a schema: `spec.list[].field`, `spec.map{}`.
pub fn paths(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    found.insert(at.to_owned());
    for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        paths(child, &format!("{at}.{name}"), found);
    }
    if let Some(items) = schema.get("items") {
        paths(items, &format!("{at}[]"), found);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        paths(values, &format!("{at}{{}}"), found);
    }
}

fn check(schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
    let mut fail = |what: String| errors.push(format!("{at}: {what}"));
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64).map(|limit| limit as usize);
    let within = |count: usize, low: &str, high: &str| {
        limit(low).is_none_or(|low| count >= low) && limit(high).is_none_or(|high| count <= high)
    };
    if schema["x-kubernetes-int-or-string"] == true {
        if !(value.is_i64() || value.is_u64() || value.is_string()) {
            fail(format!("{value} is neither a number nor text"));
        }
        return;
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true && schema.get("type").is_none() {
        return;
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.contains(value)
    {
        fail(format!("{value} is none of {values:?}"));
    }
    match (schema["type"].as_str().unwrap_or_default(), value) {
        ("string", Value::String(text)) => {
            if !within(text.chars().count(), "minLength", "maxLength") {
                fail(format!("length of {text:?}"));
            }
            if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
                && !matches(pattern, text)
            {
                fail(format!("{text:?} does not match {pattern}"));
            }
        }
        ("boolean", Value::Bool(_)) => {}
        ("integer", Value::Number(number)) => {
            let number = number.as_i64().unwrap();
            let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
            if bound("minimum").is_some_and(|low| number < low) || bound("maximum").is_some_and(|high| number > high) {
                fail(format!("{number} is out of bounds"));
            }
        }
        ("number", Value::Number(_)) => {}
        ("array", Value::Array(items)) => {
            if !within(items.len(), "minItems", "maxItems") {
                fail(format!("{} items", items.len()));
            }
            if let Some(keys) = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array) {
                let mut seen = BTreeSet::new();
                for item in items {
                    let id = keys.iter().map(|key| item[key.as_str().unwrap()].to_string()).collect::<Vec<_>>();
                    if !seen.insert(id) {
                        fail(format!("{item} twice"));
                    }
                }
            }
            for (index, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{at}[{index}]"), errors);
            }
        }
        ("object", Value::Object(map)) => {
            if !within(map.len(), "minProperties", "maxProperties") {
                fail(format!("{} properties", map.len()));
            }
            require(schema, value, at, errors);
            for (key, child) in map {
                let at = format!("{at}.{key}");
                let known = schema.get("properties").and_then(|properties| properties.get(key));
                match (known, schema.get("additionalProperties")) {
                    (Some(schema), _) => check(schema, child, &at, errors),
                    (None, Some(schema)) if schema.is_object() => check(schema, child, &at, errors),
                    (None, Some(_)) => {}
                    (None, None) if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
                    (None, None) => errors.push(format!("{at}: unknown")),
                }
            }
        }
        (wanted, found) => fail(format!("{found} is no {wanted}")),
    }
}

fn require(schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
    for key in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let key = key.as_str().unwrap();
        if value.get(key).is_none() {
            errors.push(format!("{at}.{key}: required"));
        }
    }
}

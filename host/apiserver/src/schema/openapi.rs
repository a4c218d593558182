//! From [`Schema`] back to OpenAPI v3 JSON.

use serde_json::{Map, Value, json};

use super::checks::Checks;
use super::rule::Rule;
use super::{ListType, Merge, Schema, Type};

pub(super) fn to_openapi(schema: &Schema) -> Value {
    let mut root = node(schema);
    // Of the root everyone knows that it is a resource.
    if let Some(fields) = root.as_object_mut() {
        fields.remove("x-kubernetes-embedded-resource");
    }
    root
}

fn node(schema: &Schema) -> Value {
    let mut node = Map::new();
    let mut set = |key: &str, value: Value| {
        node.insert(key.to_owned(), value);
    };
    if let Some(description) = &schema.description {
        set("description", json!(description));
    }
    match schema.ty {
        Type::Object => set("type", json!("object")),
        Type::Array => set("type", json!("array")),
        Type::String | Type::Quantity => set("type", json!("string")),
        Type::Integer => set("type", json!("integer")),
        Type::Number => set("type", json!("number")),
        Type::Boolean => set("type", json!("boolean")),
        Type::IntOrString => set("x-kubernetes-int-or-string", json!(true)),
        Type::Any => {}
    }
    if let Some(format) = &schema.format {
        set("format", json!(format));
    }
    if schema.nullable && schema.ty != Type::Any {
        set("nullable", json!(true));
    }
    if schema.preserve {
        set("x-kubernetes-preserve-unknown-fields", json!(true));
    }
    if schema.resource {
        set("x-kubernetes-embedded-resource", json!(true));
    }
    if let Some(default) = &schema.default {
        set("default", default.as_ref().clone());
    }
    if !schema.required.is_empty() {
        set("required", json!(schema.required));
    }
    if schema.atomic {
        set("x-kubernetes-map-type", json!("atomic"));
    }
    if schema.ty == Type::Array {
        match &schema.list {
            ListType::Atomic => set("x-kubernetes-list-type", json!("atomic")),
            ListType::Set => set("x-kubernetes-list-type", json!("set")),
            ListType::Map(keys) => {
                set("x-kubernetes-list-type", json!("map"));
                set("x-kubernetes-list-map-keys", json!(keys));
            }
        }
    }
    if let Some(merge) = schema.merge {
        if let Some(key) = merge.key.filter(|key| !key.is_empty()) {
            set("x-kubernetes-patch-merge-key", json!(key));
        }
        set("x-kubernetes-patch-strategy", json!(strategy(merge)));
    }
    if !schema.properties.is_empty() {
        let properties: Map<String, Value> =
            schema.properties.iter().map(|(name, child)| (name.to_string(), self::node(child))).collect();
        set("properties", Value::Object(properties));
    }
    if let Some(items) = &schema.items {
        set("items", self::node(items));
    }
    if let Some(values) = &schema.additional {
        let anything = values.ty == Type::Any && values.preserve;
        set("additionalProperties", if anything { json!(true) } else { self::node(values) });
    }
    if let Some(checks) = &schema.checks {
        add_checks(checks, &mut node);
    }
    if !schema.rules.is_empty() {
        node.insert("x-kubernetes-validations".to_owned(), schema.rules.iter().map(rule).collect());
    }
    Value::Object(node)
}

fn strategy(merge: Merge) -> &'static str {
    match (merge.key.is_some(), merge.retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, _) => "retainKeys",
    }
}

fn add_checks(checks: &Checks, node: &mut Map<String, Value>) {
    let numbers = [
        ("minLength", checks.min_length),
        ("maxLength", checks.max_length),
        ("minItems", checks.min_items),
        ("maxItems", checks.max_items),
        ("minProperties", checks.min_properties),
        ("maxProperties", checks.max_properties),
    ];
    for (key, value) in numbers {
        if let Some(value) = value {
            node.insert(key.to_owned(), json!(value));
        }
    }
    for (key, exclusive, bound) in
        [("minimum", "exclusiveMinimum", &checks.minimum), ("maximum", "exclusiveMaximum", &checks.maximum)]
    {
        if let Some(bound) = bound {
            node.insert(key.to_owned(), json!(bound.value));
            if bound.exclusive {
                node.insert(exclusive.to_owned(), json!(true));
            }
        }
    }
    if let Some(factor) = &checks.multiple_of {
        node.insert("multipleOf".to_owned(), json!(factor));
    }
    if let Some(pattern) = &checks.pattern {
        node.insert("pattern".to_owned(), json!(pattern.text));
    }
    if let Some(values) = &checks.one_of_values {
        node.insert("enum".to_owned(), json!(values));
    }
    for (key, branches) in [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)] {
        if !branches.is_empty() {
            node.insert(key.to_owned(), branches.iter().map(self::node).collect());
        }
    }
    if let Some(branch) = &checks.not {
        node.insert("not".to_owned(), self::node(branch));
    }
}

fn rule(rule: &Rule) -> Value {
    let mut entry = Map::new();
    entry.insert("rule".to_owned(), json!(rule.text));
    let texts = [
        ("message", rule.message.as_ref()),
        ("messageExpression", rule.message_expression.as_ref().map(|(text, _)| text)),
        ("fieldPath", rule.field_path.as_ref()),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            entry.insert(key.to_owned(), json!(value));
        }
    }
    if let Some(reason) = rule.reason {
        entry.insert("reason".to_owned(), json!(reason.as_str()));
    }
    if rule.optional_old_self {
        entry.insert("optionalOldSelf".to_owned(), json!(true));
    }
    Value::Object(entry)
}

//! From JSON schemas, as schemars makes them of Rust types, to the structural schemas that CRDs take: each value has one type,
//! properties are declared outside of `oneOf`, and a default is something worth storing.

use serde_json::{Map, Value, json};
use thiserror::Error;

/// What a CRD cannot say.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NotStructural {
    /// An enum of which some variants have fields and others have not.
    #[error("an enum is either of names alone, or each of its variants has fields")]
    MixedEnum,
    /// Two variants of an enum give one field different types.
    #[error("variants of an enum disagree about the field {0:?}")]
    Ambiguous(String),
    /// A type that contains itself.
    #[error("a type that contains itself has no end in a CRD; use serde_json::Value where it begins again")]
    Recursive,
}

/// Preserves what it does not know: any JSON value.
const ANYTHING: &str = "x-kubernetes-preserve-unknown-fields";

/// Rewrites a schema and everything in it.
pub fn rewrite(schema: &mut Value) -> Result<(), NotStructural> {
    if schema == &Value::Bool(true) {
        *schema = json!({});
    }
    let Some(fields) = schema.as_object_mut() else { return Ok(()) };
    if fields.contains_key("$ref") {
        return Err(NotStructural::Recursive);
    }
    for name in ["title", "$schema", "examples", "example", "definitions", "$defs", "components"] {
        fields.remove(name);
    }
    if fields.get("default").is_some_and(is_zero) {
        fields.remove("default");
    }
    optional(fields);
    for choice in ["oneOf", "anyOf"] {
        if let Some(Value::Array(variants)) = fields.remove(choice) {
            choose(fields, variants)?;
        }
    }
    numbers(fields);
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().try_for_each(rewrite)?;
    }
    if let Some(items) = fields.get_mut("items") {
        rewrite(items)?;
    }
    additional(fields)?;
    let known = ["type", ANYTHING, "x-kubernetes-int-or-string"];
    if !known.iter().any(|name| fields.contains_key(*name)) {
        fields.insert(ANYTHING.to_owned(), true.into());
    }
    Ok(())
}

/// Values that a reader has anyway when the field is absent. An API server would write them into every object.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
        Value::Bool(true) => false,
    }
}

/// `Option` of something that is a choice itself: what remains is the choice, which may be null.
fn optional(fields: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = fields.get_mut("anyOf") else { return };
    let is_null = |variant: &Value| variant["enum"] == json!([null]) || variant["type"] == "null";
    let before = variants.len();
    variants.retain(|variant| !is_null(variant));
    let nullable = variants.len() < before;
    if nullable && variants.len() == 1 {
        let inner = variants.remove(0);
        fields.remove("anyOf");
        for (name, value) in inner.as_object().into_iter().flatten() {
            // The field's own description says more than its type's.
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    if nullable {
        fields.insert("nullable".to_owned(), true.into());
    }
}

/// An enum: either names, or variants with fields, whose fields are then declared together.
fn choose(fields: &mut Map<String, Value>, variants: Vec<Value>) -> Result<(), NotStructural> {
    if variants.iter().all(|variant| variant["enum"].is_array()) {
        let names: Vec<Value> =
            variants.iter().flat_map(|variant| variant["enum"].as_array().into_iter().flatten()).cloned().collect();
        fields.insert("type".to_owned(), "string".into());
        fields.insert("enum".to_owned(), names.into());
        return Ok(());
    }
    let mut types: Vec<&str> = variants.iter().filter_map(|variant| variant["type"].as_str()).collect();
    types.sort_unstable();
    if types == ["integer", "string"] && variants.len() == 2 {
        fields.insert("x-kubernetes-int-or-string".to_owned(), true.into());
        return Ok(());
    }
    let mut properties = Map::new();
    let mut conditions = Vec::new();
    for mut variant in variants {
        if variant["type"] != "object" {
            return Err(NotStructural::MixedEnum);
        }
        let Some(Value::Object(declared)) = variant.get_mut("properties").map(Value::take) else {
            return Err(NotStructural::MixedEnum);
        };
        conditions.push(condition(&declared, &variant["required"]));
        for (name, schema) in declared {
            merge_property(&mut properties, name, schema)?;
        }
    }
    fields.insert("type".to_owned(), "object".into());
    fields.remove("additionalProperties");
    match fields.get_mut("properties") {
        Some(Value::Object(own)) => {
            for (name, schema) in properties {
                merge_property(own, name, schema)?;
            }
        }
        _ => {
            fields.insert("properties".to_owned(), properties.into());
        }
    }
    fields.insert("oneOf".to_owned(), conditions.into());
    Ok(())
}

/// What tells a variant from the others: the fields that it requires, and the tag that names it.
fn condition(declared: &Map<String, Value>, required: &Value) -> Value {
    let tags: Map<String, Value> = declared
        .iter()
        .filter(|(_, schema)| schema["enum"].as_array().is_some_and(|names| names.len() == 1))
        .map(|(name, schema)| (name.clone(), json!({"enum": schema["enum"]})))
        .collect();
    let mut condition = json!({});
    if required.as_array().is_some_and(|required| !required.is_empty()) {
        condition["required"] = required.clone();
    }
    if !tags.is_empty() {
        condition["properties"] = tags.into();
    }
    condition
}

/// Tags are names that add up; any other field has the same schema wherever it is declared.
fn merge_property(properties: &mut Map<String, Value>, name: String, schema: Value) -> Result<(), NotStructural> {
    let Some(known) = properties.get_mut(&name) else {
        properties.insert(name, schema);
        return Ok(());
    };
    if *known == schema {
        return Ok(());
    }
    match (known.get_mut("enum").and_then(Value::as_array_mut), schema["enum"].as_array()) {
        (Some(known), Some(more)) => {
            known.extend(more.iter().cloned());
            Ok(())
        }
        _ => Err(NotStructural::Ambiguous(name)),
    }
}

/// Kubernetes knows two formats of whole numbers.
fn numbers(fields: &mut Map<String, Value>) {
    if fields.get("type") != Some(&json!("integer")) {
        return;
    }
    let format = match fields.get("format").and_then(Value::as_str) {
        Some("int8" | "int16" | "uint8" | "uint16" | "int32") => "int32",
        _ => "int64",
    };
    fields.insert("format".to_owned(), format.into());
}

/// A map of any values keeps what it does not know; a struct's unknown fields are the API server's to drop, unless it has a map
/// for them.
fn additional(fields: &mut Map<String, Value>) -> Result<(), NotStructural> {
    let declares = fields.get("properties").and_then(Value::as_object).is_some_and(|declared| !declared.is_empty());
    if declares && fields.get("additionalProperties").is_some_and(Value::is_object) {
        fields.insert("additionalProperties".to_owned(), true.into());
    }
    match fields.get_mut("additionalProperties") {
        Some(Value::Bool(true)) => {
            fields.remove("additionalProperties");
            fields.insert(ANYTHING.to_owned(), true.into());
        }
        Some(Value::Bool(false)) => {
            fields.remove("additionalProperties");
        }
        Some(values) => rewrite(values)?,
        None => {}
    }
    Ok(())
}

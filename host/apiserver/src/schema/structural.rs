//! The rules that make a schema structural, beyond what parsing needs to understand it.

use serde_json::{Map, Value};

use super::error::{FieldError, FieldReason};
use super::path::Path;
use super::{ListType, Schema, Type, prune, validate};
use crate::tree::Tree;

const NEVER: &[&str] = &[
    "$ref",
    "$schema",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "additionalItems",
];

/// Keywords that describe structure, and so may not stand in `allOf`, `anyOf`, `oneOf` and `not`.
const NOT_NESTED: &[&str] = &[
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Position of a node in its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    /// A field, an item, or the values of a map.
    Structure,
    /// A branch of `allOf`, `anyOf`, `oneOf` or `not`.
    Nested,
    /// A branch directly below an int-or-string node, where the two types may be named.
    NestedIntOrString,
}

impl Place {
    pub(super) fn is_nested(self) -> bool {
        matches!(self, Place::Nested | Place::NestedIntOrString)
    }
}

pub(super) fn forbidden(path: &Path<'_>, detail: &str) -> FieldError {
    FieldError { path: path.to_string(), reason: FieldReason::Forbidden, message: format!("Forbidden: {detail}") }
}

pub(super) fn required(path: &Path<'_>, detail: &str) -> FieldError {
    FieldError { path: path.to_string(), reason: FieldReason::Required, message: format!("Required value: {detail}") }
}

pub(super) fn invalid(path: &Path<'_>, shown: &str, detail: &str) -> FieldError {
    FieldError {
        path: path.to_string(),
        reason: FieldReason::Invalid,
        message: format!("Invalid value: {shown:?}: {detail}"),
    }
}

/// Checks the keywords of one node.
pub(super) fn check_keywords(node: &Map<String, Value>, place: Place, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in NEVER {
        if node.get(*key).is_some_and(|value| !value.is_null()) {
            errors.push(forbidden(&path.field(key), &format!("{key} is not supported")));
        }
    }
    if node.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
        errors.push(forbidden(
            &path.field("uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    if place.is_nested() {
        for key in NOT_NESTED {
            if node.get(*key).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false))) {
                errors.push(forbidden(
                    &path.field(key),
                    "must not be set inside allOf, anyOf, oneOf or not to be structural",
                ));
            }
        }
        if place == Place::Nested && node.get("type").is_some() {
            errors.push(forbidden(&path.field("type"), "must be empty to be structural"));
        }
    }
    if node.get("additionalProperties") == Some(&Value::Bool(false)) {
        errors.push(forbidden(&path.field("additionalProperties"), "must not be set to false"));
    }
    let filled = |key: &str| node.get(key).and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
    if filled("properties") && node.contains_key("additionalProperties") {
        errors.push(forbidden(
            &path.field("additionalProperties"),
            "additionalProperties and properties are mutual exclusive",
        ));
    }
    if node.get("items").is_some_and(Value::is_array) {
        errors.push(forbidden(&path.field("items"), "items must be a schema object and not an array"));
    }
}

/// Checks a parsed node.
pub(super) fn check_node(schema: &Schema, place: Place, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !place.is_nested() {
        if schema.ty == Type::Any && !(schema.preserve && place != Place::Root) {
            errors.push(required(&path.field("type"), "must not be empty for specified object fields"));
        }
        if place == Place::Root && schema.ty != Type::Any && schema.ty != Type::Object {
            errors.push(invalid(&path.field("type"), "", "must be object at the root"));
        }
        if schema.resource && place != Place::Root && schema.ty != Type::Object {
            errors.push(invalid(&path.field("type"), "", "must be object if x-kubernetes-embedded-resource is true"));
        }
        if schema.resource && place != Place::Root && schema.properties.is_empty() && !schema.preserve {
            errors.push(required(&path.field("properties"), "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"));
        }
    }
    check_list(schema, path, errors);
    if place == Place::Root || schema.resource {
        check_metadata(schema, path, errors);
    }
    if let Some(checks) = &schema.checks
        && !place.is_nested()
    {
        let branches = checks.all_of.iter().chain(&checks.any_of).chain(&checks.one_of).chain(checks.not.as_deref());
        for branch in branches {
            check_complete(schema, branch, path, errors);
        }
    }
}

fn check_list(schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if schema.list != ListType::Atomic && schema.ty != Type::Array {
        errors.push(invalid(&path.field("type"), "", "must be array if x-kubernetes-list-type is specified"));
    }
    match &schema.list {
        ListType::Atomic => {}
        ListType::Set => {
            let composite = schema.items.as_deref().is_some_and(|items| match items.ty {
                Type::Object => !items.atomic,
                Type::Array => items.list != ListType::Atomic,
                _ => false,
            });
            if composite {
                errors.push(invalid(&path.field("items"), "", "items of a set must be scalar or atomic"));
            }
        }
        ListType::Map(keys) => {
            let path = path.field("x-kubernetes-list-map-keys");
            if keys.is_empty() {
                errors.push(required(&path, "must not be empty if x-kubernetes-list-type is map"));
            }
            let Some(items) = schema.items.as_deref().filter(|items| items.ty == Type::Object) else {
                errors.push(invalid(&path, "", "items must be objects if x-kubernetes-list-type is map"));
                return;
            };
            for key in keys {
                match items.property(key) {
                    None => errors.push(invalid(&path, key, "entries must all be names of item properties")),
                    Some(field) if matches!(field.ty, Type::Object | Type::Array) => {
                        errors.push(invalid(&path, key, "must be a scalar type if x-kubernetes-list-type is map"));
                    }
                    Some(field) if field.default.is_none() && !items.required.iter().any(|name| name == key) => {
                        errors.push(required(&path, &format!("this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property: {key}")));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// Of `metadata` only the name and its prefix may be restricted.
fn check_metadata(schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(metadata) = schema.property("metadata") else { return };
    if metadata.ty != Type::Object {
        errors.push(invalid(&path.field("properties").key("metadata").field("type"), "", "must be object"));
    }
    for (name, _) in &metadata.properties {
        if !matches!(name.as_ref(), "name" | "generateName") {
            errors.push(forbidden(
                &path.field("properties").key("metadata").field("properties").key(name),
                "must not be specified: only metadata.name and metadata.generateName may be restricted",
            ));
        }
    }
}

/// A property that a logical branch names must be declared outside of it.
fn check_complete(schema: &Schema, branch: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, child) in &branch.properties {
        let path = path.field("properties");
        match schema.child(name) {
            Some(declared) => check_complete(declared, child, &path.key(name), errors),
            None => errors.push(required(&path.key(name), "because it is defined in a logical branch")),
        }
    }
    if let Some(child) = &branch.items {
        match &schema.items {
            Some(declared) => check_complete(declared, child, &path.field("items"), errors),
            None => errors.push(required(&path.field("items"), "because it is defined in a logical branch")),
        }
    }
}

/// A default must itself be a valid value without unknown fields.
pub(super) fn check_default(schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(value) = schema.default.as_deref() else { return };
    let path = path.field("default");
    if value.is_null() && schema.nullable {
        return;
    }
    let mut pruned = value.clone();
    for unknown in prune(schema, &mut pruned) {
        errors.push(invalid(&path, &unknown, "must not have unknown fields"));
    }
    let mut complete = pruned;
    // As large as any: whose request this is says nothing about the default.
    if super::default(schema, &mut complete, &Tree::uncharged()).is_err() {
        errors.push(invalid(&path, "", "takes too much memory with the defaults inside it"));
        return;
    }
    for error in validate(schema, &complete, None) {
        errors.push(FieldError { path: path.to_string(), reason: error.reason, message: error.message });
    }
}

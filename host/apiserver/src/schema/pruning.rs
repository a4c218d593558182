//! Dropping what a schema does not declare.

use serde_json::{Map, Value};

use super::path::Path;
use super::{Schema, object_meta};
use crate::tree::mention;

/// Drops undeclared fields from `object` and returns the paths of the first hundred, such as `spec.x` or `spec.list[0].y`.
///
/// `apiVersion`, `kind` and `metadata` of Kubernetes objects are always kept; within `metadata` only what every
/// object may carry. In built-in kinds nulls are dropped as well, silently.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    node(schema, object, &Path::ROOT, &mut dropped);
    dropped
}

fn node(schema: &Schema, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => object(schema, fields, path, dropped),
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    node(item_schema, item, &path.index(index), dropped);
                }
            }
        }
        _ => {}
    }
}

fn object(schema: &Schema, fields: &mut Map<String, Value>, path: &Path<'_>, dropped: &mut Vec<String>) {
    let implied = |name: &str| schema.resource && matches!(name, "apiVersion" | "kind" | "metadata");
    if schema.typed {
        fields.retain(|_, value| !value.is_null());
    }
    if !schema.preserve && schema.additional.is_none() {
        fields.retain(|name, _| {
            let keep = implied(name) || schema.property(name).is_some();
            if !keep {
                mention(dropped, &path.field(name));
            }
            keep
        });
    }
    for (name, value) in fields.iter_mut() {
        let path = path.field(name);
        if schema.resource && name == "metadata" {
            node(object_meta(), value, &path, dropped);
        } else if let Some(child) = schema.child(name) {
            node(child, value, &path, dropped);
        }
    }
}

//! Filling in what a schema declares as default.

use serde_json::Value;

use super::Schema;
use crate::tree::{Refused, Tree};

/// Sets absent fields of present objects to their defaults; a null where null is not allowed counts as absent if the
/// field has a default. What it adds is counted in `tree`: a list of a million empty objects may have a large default for each.
///
/// # Errors
/// When that is too much; the rest is as it was.
pub fn default(schema: &Schema, object: &mut Value, tree: &Tree) -> Result<(), Refused> {
    if !schema.has_defaults {
        return Ok(());
    }
    match object {
        Value::Object(fields) => {
            for (name, child) in &schema.properties {
                if !child.has_defaults || (schema.resource && name.as_ref() == "metadata") {
                    continue;
                }
                if let Some(value) = &child.default {
                    let absent = fields.get(name.as_ref()).is_none_or(|found| found.is_null() && !child.nullable);
                    if absent {
                        tree.field(name, fields.len())?;
                        fields.insert(name.to_string(), tree.copy(value)?);
                    }
                }
                if let Some(value) = fields.get_mut(name.as_ref()) {
                    default(child, value, tree)?;
                }
            }
            if let Some(child) = schema.additional.as_deref().filter(|child| child.has_defaults) {
                for (name, value) in fields.iter_mut() {
                    if schema.property(name).is_some() {
                        continue;
                    }
                    match &child.default {
                        Some(fallback) if value.is_null() && !child.nullable => *value = tree.copy(fallback)?,
                        _ => {}
                    }
                    default(child, value, tree)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = schema.items.as_deref() {
                for item in items {
                    match &child.default {
                        Some(fallback) if item.is_null() && !child.nullable => *item = tree.copy(fallback)?,
                        _ => {}
                    }
                    default(child, item, tree)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

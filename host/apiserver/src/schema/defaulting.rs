//! Filling in what a schema declares as default.

use serde_json::Value;

use super::Schema;

/// Sets absent fields of present objects to their defaults; a null where null is not allowed counts as absent if the
/// field has a default.
pub fn default(schema: &Schema, object: &mut Value) {
    if !schema.has_defaults {
        return;
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
                        fields.insert(name.to_string(), value.as_ref().clone());
                    }
                }
                if let Some(value) = fields.get_mut(name.as_ref()) {
                    default(child, value);
                }
            }
            if let Some(child) = schema.additional.as_deref().filter(|child| child.has_defaults) {
                for (name, value) in fields.iter_mut() {
                    if schema.property(name).is_some() {
                        continue;
                    }
                    match &child.default {
                        Some(fallback) if value.is_null() && !child.nullable => *value = fallback.as_ref().clone(),
                        _ => {}
                    }
                    default(child, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = schema.items.as_deref() {
                for item in items {
                    match &child.default {
                        Some(fallback) if item.is_null() && !child.nullable => *item = fallback.as_ref().clone(),
                        _ => {}
                    }
                    default(child, item);
                }
            }
        }
        _ => {}
    }
}

//! Nulls where null is not allowed.

use serde_json::Value;

use super::Schema;

/// Drops fields that are null although their schema does not allow it and has no default: they count as absent, as
/// manifests that say `field: null` expect. Fields with a default are left for [`default`](super::default).
pub(crate) fn drop_nulls(schema: &Schema, object: &mut Value) {
    match object {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(child) = schema.child(name) else { return true };
            if value.is_null() {
                return child.nullable || child.default.is_some() || child.preserve;
            }
            drop_nulls(child, value);
            true
        }),
        Value::Array(items) => {
            if let Some(child) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(child, item));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn only_nulls_that_the_schema_forbids_and_does_not_default_go() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "plain": {"type": "string"}, "nullable": {"type": "string", "nullable": true}, "defaulted": {"type": "string", "default": "x"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}}}))
        .unwrap();
        let mut object = json!({"plain": null, "nullable": null, "defaulted": null, "list": [{"a": null}, null]});
        drop_nulls(&schema, &mut object);
        assert_eq!(object, json!({"nullable": null, "defaulted": null, "list": [{}, null]}));
    }
}

//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

use serde_json::Value;

use crate::schema;

/// The object as it is stored on creation: pruned and defaulted. `None` when the schema rejects it.
///
/// # Errors
/// When it is no structural schema.
pub fn created(openapi_v3_schema: &Value, object: &Value) -> Result<Option<Value>, String> {
    let schema = schema::Schema::parse(openapi_v3_schema).map_err(|error| error.to_string())?;
    let mut object = object.clone();
    schema::prune(&schema, &mut object);
    schema::drop_nulls(&schema, &mut object);
    schema::default(&schema, &mut object);
    Ok(schema::validate(&schema, &object, None).is_empty().then_some(object))
}

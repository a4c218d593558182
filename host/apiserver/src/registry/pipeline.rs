//! Steps between the client's object and the stored one that all writes share.

use capwasm_object::meta;
use serde_json::Value;

use super::{FieldValidation, Locator, Registry, WriteOptions};
use crate::catalog::Resource;
use crate::schema::{self, FieldError, Schema};
use crate::status::{ApiError, ApiResult, Cause};
use crate::store::Encoded;
use crate::tree::Tree;

/// Deepest nesting of an object: as deep as the JSON parser follows, so that what is stored can be read again.
pub(crate) const NESTING: usize = 127;

/// Whether arrays and objects nest deeper than `levels`. Looks no deeper.
pub(crate) fn nests_beyond(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| nests_beyond(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| nests_beyond(field, levels - 1)),
        _ => false,
    }
}

pub(crate) fn too_deep() -> ApiError {
    ApiError::bad_request(format!("the object is nested deeper than {NESTING} levels"))
}

impl Registry {
    /// Checks shape and version of an incoming object, prunes it, and converts it to the storage version. Warnings are
    /// for the client.
    pub(super) fn incoming(
        &self,
        at: &Locator,
        object: Value,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> ApiResult<Value> {
        let object = shaped(at, object, options, warnings)?;
        self.to_storage(&at.resource, object)
    }

    /// A client's object in the storage version, pruned by the schema of that version: a converter may restore fields
    /// from an annotation that the client wrote.
    pub(super) fn to_storage(&self, resource: &Resource, object: Value) -> ApiResult<Value> {
        let mut object = self.conversion.convert(resource, object, &resource.storage)?;
        if let Some(schema) = resource.storage_schema.as_ref().filter(|_| resource.foreign()) {
            schema::prune(schema, &mut object);
            schema::drop_nulls(schema, &mut object);
        }
        Ok(object)
    }

    /// As [`Registry::incoming`] for a whole object, which is validated against the schema of its own version first: a
    /// converter may rely on it. `old` is the stored one in that version.
    pub(super) fn incoming_whole(
        &self,
        at: &Locator,
        object: Value,
        old: Option<&Value>,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> ApiResult<Value> {
        let resource = &at.resource;
        let mut object = shaped(at, object, options, warnings)?;
        if let Some(schema) = resource.schema.as_ref().filter(|_| resource.foreign()) {
            fill_in(schema, &mut object)?;
            refuse_invalid(at, schema::validate(schema, &object, old))?;
        }
        self.to_storage(resource, object)
    }

    /// A partial applied configuration, converted to the storage version.
    pub(super) fn partial(&self, at: &Locator, object: Value, options: &WriteOptions) -> ApiResult<Value> {
        // What it warns of was warned of when it was decoded, or is found again in the merged object.
        let object = shaped(at, object, options, &mut Vec::new())?;
        self.to_storage(&at.resource, object)
    }

    pub(super) fn validate(&self, at: &Locator, object: &Value, old: Option<&Value>) -> ApiResult<()> {
        let Some(schema) = &at.resource.storage_schema else { return Ok(()) };
        refuse_invalid(at, schema::validate(schema, object, old))
    }
}

/// The object checked against the path, and pruned by the schema of its version.
fn shaped(at: &Locator, mut object: Value, options: &WriteOptions, warnings: &mut Vec<String>) -> ApiResult<Value> {
    let resource = &at.resource;
    check_shape(at, &mut object)?;
    let Some(schema) = &resource.schema else { return Ok(object) };
    let unknown = schema::prune(schema, &mut object);
    if resource.custom() {
        schema::drop_nulls(schema, &mut object);
    }
    if !unknown.is_empty() {
        let texts = unknown.iter().map(|path| format!("unknown field \"{path}\""));
        match options.validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => warnings.extend(texts),
            FieldValidation::Strict => {
                let all = texts.collect::<Vec<_>>().join(", ");
                return Err(ApiError::bad_request(format!("strict decoding error: {all}")));
            }
        }
    }
    Ok(object)
}

/// Sets the defaults of the schema.
pub(super) fn fill_in(schema: &Schema, object: &mut Value) -> ApiResult<()> {
    let tree = Tree::default();
    schema::default(schema, object, &tree)
        .map_err(|refused| tree.refused().unwrap_or_else(|| ApiError::internal(refused.to_string())))
}

fn refuse_invalid(at: &Locator, errors: Vec<FieldError>) -> ApiResult<()> {
    if errors.is_empty() { Ok(()) } else { Err(invalid(at, errors.into_iter().map(cause).collect())) }
}

/// Largest object that is stored, in bytes. Requests are limited elsewhere, but many small patches could grow one
/// without end.
const OBJECT_LIMIT: usize = 3 << 20;

pub(super) fn check_size(encoded: &Encoded) -> ApiResult<()> {
    if encoded.len() <= OBJECT_LIMIT {
        return Ok(());
    }
    Err(ApiError::new(413, "RequestEntityTooLarge", format!("the object is larger than {OBJECT_LIMIT} bytes")))
}

fn cause(error: FieldError) -> Cause {
    Cause { reason: error.reason.as_str().to_owned(), message: error.message, field: error.path }
}

pub(super) fn invalid(at: &Locator, causes: Vec<Cause>) -> ApiError {
    ApiError::invalid(&at.resource.group, &at.resource.kind, &at.name, causes)
}

pub(crate) fn invalid_field(at: &Locator, reason: &str, field: &str, message: impl Into<String>) -> ApiError {
    invalid(at, vec![Cause { reason: reason.to_owned(), message: message.into(), field: field.to_owned() }])
}

/// The body must be of the kind and namespace that the path names; fills in what it leaves out.
fn check_shape(at: &Locator, object: &mut Value) -> ApiResult<()> {
    let (kind, version) = (at.resource.kind.as_str(), at.resource.api_version());
    let Some(root) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the request body must be a JSON object"));
    };
    for (field, expected) in [("kind", kind), ("apiVersion", version.as_str())] {
        match root.get(field).and_then(Value::as_str).unwrap_or_default() {
            "" => {
                root.insert(field.to_owned(), Value::from(expected));
            }
            given if given == expected => {}
            given => {
                let message =
                    format!("the {field} in the data ({given}) does not match the expected {field} ({expected})");
                return Err(ApiError::bad_request(message));
            }
        }
    }
    if root.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        return Err(ApiError::bad_request("metadata must be an object"));
    }
    if at.resource.namespaced {
        match meta::namespace(object) {
            "" => meta::set(object, "namespace", Value::from(at.namespace.as_str())),
            given if given == at.namespace => {}
            _ => {
                let message = "the namespace of the provided object does not match the namespace sent on the request";
                return Err(ApiError::bad_request(message));
            }
        }
    } else {
        meta::remove(object, "namespace");
    }
    Ok(())
}

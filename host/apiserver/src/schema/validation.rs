//! Validation of an object against its schema.

use serde_json::{Map, Value};

use super::checks::{Shown, error};
use super::error::{FieldError, FieldReason};
use super::lists::Continuation;
use super::path::Path;
use super::{Schema, Type, cel, format, lists, object_meta};

/// Errors reported at most, so that a hostile object gets no long answer.
const MAX_ERRORS: usize = 64;

/// All violations by `new`. With `old` (an update) unchanged values are not validated again, and transition rules run.
/// CEL rules run only on an object of the right shape.
pub fn validate(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(schema, new, old, &Path::ROOT, &mut errors);
    if schema.has_rules {
        let blocking = |error: &FieldError| {
            !matches!(error.reason, FieldReason::Invalid | FieldReason::NotSupported | FieldReason::Duplicate)
        };
        if errors.iter().any(blocking) {
            errors.push(FieldError {
                path: "<nil>".to_owned(),
                reason: FieldReason::Invalid,
                message:
                    "Invalid value: \"null\": some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation"
                        .to_owned(),
            });
        } else {
            cel::run(schema, new, old, &mut errors);
        }
    }
    errors
}

/// Validates one value and everything below.
pub(super) fn node(schema: &Schema, new: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if old == Some(new) || errors.len() >= MAX_ERRORS {
        return;
    }
    if new.is_null() {
        if !schema.nullable && !schema.typed && schema.ty != Type::Any {
            errors.push(wrong_type(schema, new, path));
        }
        return;
    }
    if !type_fits(schema.ty, new) {
        errors.push(wrong_type(schema, new, path));
        return;
    }
    if let Some(format) = &schema.format {
        check_format(format, new, path, errors);
    }
    if let Some(checks) = &schema.checks {
        checks.run(new, path, errors);
    }
    match new {
        Value::Object(fields) => object(schema, fields, old, path, errors),
        Value::Array(items) => {
            // Built-in kinds tolerate repeated items, such as variables of a container.
            if !schema.typed {
                lists::check(schema, items, path, errors);
            }
            if let Some(item_schema) = schema.items.as_deref() {
                let continuation = Continuation::new(schema, old);
                for (index, item) in items.iter().enumerate() {
                    let old = continuation.as_ref().and_then(|lists| lists.of(item));
                    node(item_schema, item, old, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn object(
    schema: &Schema,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for name in &schema.required {
        let missing = fields.get(name.as_ref()).is_none_or(|value| schema.typed && value.is_null());
        if missing {
            let path = path.field(name);
            errors.push(FieldError {
                path: path.to_string(),
                reason: FieldReason::Required,
                message: FieldReason::Required.lead().to_owned(),
            });
        }
    }
    let old = if schema.atomic { None } else { old };
    for (name, value) in fields {
        let old = old.and_then(|old| old.get(name));
        let path = path.field(name);
        // Built-in kinds declare it like any other field.
        if schema.resource && !schema.typed && name == "metadata" {
            node(object_meta(), value, old, &path, errors);
        }
        if let Some(child) = schema.child(name) {
            node(child, value, old, &path, errors);
        }
    }
}

fn type_fits(ty: Type, value: &Value) -> bool {
    match ty {
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => is_integer(value),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntOrString => value.is_string() || is_integer(value),
        Type::Quantity => value.is_string() || value.is_number(),
        Type::Any => true,
    }
}

/// JSON has one kind of number: `3.0` is an integer.
fn is_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        _ => false,
    }
}

fn wrong_type(schema: &Schema, value: &Value, path: &Path<'_>) -> FieldError {
    let expected = match schema.ty {
        Type::Object => "object",
        Type::Array => "array",
        Type::String | Type::Quantity => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::IntOrString => "integer,string",
        Type::Any => "any",
    };
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    error(
        path,
        FieldReason::TypeInvalid,
        format_args!("\"{actual}\": {path} in body must be of type {expected}: \"{actual}\""),
    )
}

fn check_format(format: &str, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let fits = match value {
        Value::Number(number) => format::number_fits(format, number),
        Value::String(text) => format::text_fits(format, text),
        _ => true,
    };
    if !fits {
        let shown = Shown(value);
        errors.push(error(
            path,
            FieldReason::Invalid,
            format_args!("{shown}: {path} in body must be of type {format}: {shown}"),
        ));
    }
}

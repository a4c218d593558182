//! Errors in a schema, and of an object against its schema.

use std::fmt;

/// A violation of a schema by an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Such as `spec.ports[0].name`; `<nil>` for the object itself.
    pub path: String,
    /// Machine-readable class; becomes `causes[].reason`.
    pub reason: FieldReason,
    /// Everything after the path, such as `Invalid value: 3: spec.n in body should be less than or equal to 2`.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The classes of field errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldReason {
    /// A required field is missing.
    Required,
    /// The value breaks a limit, a pattern or a rule.
    Invalid,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The value is not in `enum`.
    NotSupported,
    /// An item of a set, or the key of an item of a map, occurs twice.
    Duplicate,
    /// The text is longer than `maxLength`.
    TooLong,
    /// The list is longer than `maxItems`, or the map than `maxProperties`.
    TooMany,
    /// The field may not be set.
    Forbidden,
}

impl FieldReason {
    /// Reason of the cause in a `Status`, such as `FieldValueRequired`.
    pub fn as_str(self) -> &'static str {
        match self {
            FieldReason::Required => "FieldValueRequired",
            FieldReason::Invalid => "FieldValueInvalid",
            FieldReason::TypeInvalid => "FieldValueTypeInvalid",
            FieldReason::NotSupported => "FieldValueNotSupported",
            FieldReason::Duplicate => "FieldValueDuplicate",
            FieldReason::TooLong => "FieldValueTooLong",
            FieldReason::TooMany => "FieldValueTooMany",
            FieldReason::Forbidden => "FieldValueForbidden",
        }
    }

    /// Start of the message, such as `Invalid value`.
    pub(super) fn lead(self) -> &'static str {
        match self {
            FieldReason::Required => "Required value",
            FieldReason::Invalid | FieldReason::TypeInvalid => "Invalid value",
            FieldReason::NotSupported => "Unsupported value",
            FieldReason::Duplicate => "Duplicate value",
            FieldReason::TooLong => "Too long",
            FieldReason::TooMany => "Too many",
            FieldReason::Forbidden => "Forbidden",
        }
    }
}

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
pub struct SchemaError {
    /// Never empty; paths are relative to the schema, such as `properties[spec].type`.
    pub errors: Vec<FieldError>,
}

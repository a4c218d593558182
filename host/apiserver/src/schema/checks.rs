//! Value validations: limits, enumerations, patterns and the logical combinations.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

use regex::Regex;
use serde_json::{Number, Value};

use super::error::{FieldError, FieldReason};
use super::path::Path;
use super::{Schema, validation};

/// Value validations of a node, beside its type.
#[derive(Default)]
pub(crate) struct Checks {
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<Number>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) one_of_values: Option<Box<[Value]>>,
    pub(super) all_of: Box<[Schema]>,
    pub(super) any_of: Box<[Schema]>,
    pub(super) one_of: Box<[Schema]>,
    pub(super) not: Option<Box<Schema>>,
}

pub(crate) struct Bound {
    pub(super) value: Number,
    pub(super) exclusive: bool,
}

pub(crate) struct Pattern {
    pub(super) text: Box<str>,
    pub(super) regex: Arc<Regex>,
}

impl Checks {
    pub(super) fn is_empty(&self) -> bool {
        self.minimum.is_none()
            && self.maximum.is_none()
            && self.multiple_of.is_none()
            && self.min_length.is_none()
            && self.max_length.is_none()
            && self.pattern.is_none()
            && self.min_items.is_none()
            && self.max_items.is_none()
            && self.min_properties.is_none()
            && self.max_properties.is_none()
            && !self.unique_items
            && self.one_of_values.is_none()
            && self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.not.is_none()
    }

    /// Appends the violations of `value`.
    pub(super) fn run(&self, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        if let Some(values) = &self.one_of_values
            && !values.iter().any(|allowed| same(allowed, value))
        {
            errors.push(unsupported(path, value, values));
        }
        match value {
            Value::Number(number) => self.number(number, value, path, errors),
            Value::String(text) => self.text(text, value, path, errors),
            Value::Array(items) => self.array(items, path, errors),
            Value::Object(fields) => self.size_of_object(fields.len() as u64, path, errors),
            Value::Null | Value::Bool(_) => {}
        }
        self.logic(value, path, errors);
    }

    fn number(&self, number: &Number, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        if let Some(bound) = &self.maximum {
            let order = compare(number, &bound.value);
            if order == Ordering::Greater || (bound.exclusive && order == Ordering::Equal) {
                let or_equal = if bound.exclusive { "" } else { " or equal to" };
                errors.push(invalid(
                    path,
                    value,
                    format_args!("{path} in body should be less than{or_equal} {}", bound.value),
                ));
            }
        }
        if let Some(bound) = &self.minimum {
            let order = compare(number, &bound.value);
            if order == Ordering::Less || (bound.exclusive && order == Ordering::Equal) {
                let or_equal = if bound.exclusive { "" } else { " or equal to" };
                errors.push(invalid(
                    path,
                    value,
                    format_args!("{path} in body should be greater than{or_equal} {}", bound.value),
                ));
            }
        }
        if let Some(factor) = &self.multiple_of
            && !is_multiple(number, factor)
        {
            errors.push(invalid(path, value, format_args!("{path} in body should be a multiple of {factor}")));
        }
    }

    fn text(&self, text: &str, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        if self.max_length.is_some() || self.min_length.is_some() {
            let length = text.chars().count() as u64;
            if let Some(limit) = self.max_length.filter(|limit| length > *limit) {
                errors.push(error(path, FieldReason::TooLong, format_args!("may not be more than {limit} bytes")));
            }
            if let Some(limit) = self.min_length.filter(|limit| length < *limit) {
                errors.push(invalid(path, value, format_args!("{path} in body should be at least {limit} chars long")));
            }
        }
        if let Some(pattern) = &self.pattern
            && !pattern.regex.is_match(text)
        {
            errors.push(invalid(path, value, format_args!("{path} in body should match '{}'", pattern.text)));
        }
    }

    fn array(&self, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let count = items.len() as u64;
        if let Some(limit) = self.max_items.filter(|limit| count > *limit) {
            errors.push(error(path, FieldReason::TooMany, format_args!("{count}: must have at most {limit} items")));
        }
        if let Some(limit) = self.min_items.filter(|limit| count < *limit) {
            errors.push(error(
                path,
                FieldReason::Invalid,
                format_args!("{count}: {path} in body should have at least {limit} items"),
            ));
        }
        if self.unique_items {
            super::lists::check_set(items, path, errors);
        }
    }

    fn size_of_object(&self, count: u64, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        if let Some(limit) = self.max_properties.filter(|limit| count > *limit) {
            errors.push(error(path, FieldReason::TooMany, format_args!("{count}: must have at most {limit} items")));
        }
        if let Some(limit) = self.min_properties.filter(|limit| count < *limit) {
            errors.push(error(
                path,
                FieldReason::Invalid,
                format_args!("{count}: {path} in body should have at least {limit} properties"),
            ));
        }
    }

    fn logic(&self, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        for branch in &self.all_of {
            validation::node(branch, value, None, path, errors);
        }
        if !self.any_of.is_empty() && !self.any_of.iter().any(|branch| holds(branch, value)) {
            errors.push(logical(path, "must validate at least one schema (anyOf)"));
        }
        if !self.one_of.is_empty() {
            match self.one_of.iter().filter(|branch| holds(branch, value)).count() {
                1 => {}
                0 => errors.push(logical(path, "must validate one and only one schema (oneOf). Found none valid")),
                many => {
                    let text =
                        format!("must validate one and only one schema (oneOf). Found {many} valid alternatives");
                    errors.push(logical(path, &text));
                }
            }
        }
        if self.not.as_deref().is_some_and(|branch| holds(branch, value)) {
            errors.push(logical(path, "must not validate the schema (not)"));
        }
    }
}

/// Whether a value passes a branch of a logical combination.
fn holds(branch: &Schema, value: &Value) -> bool {
    let mut errors = Vec::new();
    validation::node(branch, value, None, &Path::ROOT, &mut errors);
    errors.is_empty()
}

/// Equality of JSON values in which `1` and `1.0` are one number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right) == Ordering::Equal,
        _ => left == right,
    }
}

fn compare(left: &Number, right: &Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn is_multiple(number: &Number, factor: &Number) -> bool {
    match (number.as_i64(), factor.as_i64()) {
        (_, Some(0)) => true,
        (Some(number), Some(factor)) => number.checked_rem(factor).is_none_or(|rest| rest == 0),
        _ => match (number.as_f64(), factor.as_f64()) {
            (Some(number), Some(factor)) if factor != 0.0 => {
                let quotient = number / factor;
                (quotient - quotient.round()).abs() < 1e-9
            }
            _ => true,
        },
    }
}

pub(super) fn error(path: &Path<'_>, reason: FieldReason, detail: std::fmt::Arguments<'_>) -> FieldError {
    FieldError { path: path.to_string(), reason, message: format!("{}: {detail}", reason.lead()) }
}

pub(super) fn invalid(path: &Path<'_>, value: &Value, detail: std::fmt::Arguments<'_>) -> FieldError {
    error(path, FieldReason::Invalid, format_args!("{}: {detail}", Shown(value)))
}

fn logical(path: &Path<'_>, text: &str) -> FieldError {
    error(path, FieldReason::Invalid, format_args!("\"\": \"{path}\" {text}"))
}

fn unsupported(path: &Path<'_>, value: &Value, allowed: &[Value]) -> FieldError {
    let mut list = String::new();
    for (index, value) in allowed.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(list, "{comma}{}", Shown(value));
    }
    error(path, FieldReason::NotSupported, format_args!("{}: supported values: {list}", Shown(value)))
}

/// A value as errors show it: scalars as JSON, cut when long; composites by the name of their type.
pub(super) struct Shown<'a>(pub(super) &'a Value);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::Null => f.write_str("\"null\""),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::String(text) if text.chars().count() > 256 => {
                write!(f, "{:?}", text.chars().take(256).chain("...".chars()).collect::<String>())
            }
            Value::String(text) => write!(f, "{text:?}"),
            Value::Array(_) => f.write_str("\"array\""),
            Value::Object(_) => f.write_str("\"object\""),
        }
    }
}

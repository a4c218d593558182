//! Rules for the differences between an older version and the hub, used in both directions.

use serde_json::{Map, Value};

use super::reference::{self, Form, Resolver};
use super::{ConversionError, path};
use crate::time::duration;

/// A difference between an older version and the hub. Paths are dotted, the older version's first; fields without a
/// rule are equal. A path inside another one must come first. All values are taken out before any is put in, so that
/// two rules may swap places.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The same value at another path.
    Move(&'static str, &'static str),
    /// A Go duration becomes integer seconds.
    Seconds(&'static str, &'static str),
    /// An ObjectReference becomes `{apiGroup, kind, name}`.
    Reference(&'static str, &'static str),
    /// An ObjectReference becomes `{apiVersion, kind, name}`.
    Template(&'static str, &'static str),
    /// An ObjectReference to a Node becomes `{name}`.
    Node(&'static str, &'static str),
    /// A map by name becomes a list of objects with `name`.
    Named(&'static str, &'static str),
    /// A map of arguments becomes a list of `{name, value}`.
    Arguments(&'static str, &'static str),
    /// An object with rules of its own.
    Within(&'static str, &'static str, &'static [Rule]),
    /// A list of objects with rules of their own.
    Each(&'static str, &'static str, &'static [Rule]),
    /// A field of the older version only.
    OnlyOld(&'static str),
    /// A field of the hub only.
    OnlyNew(&'static str),
    /// A field that may be empty or zero in the older version, which means absent, as the hub has it.
    Empty(&'static str),
    /// As `Empty`, for all objects and lists at any depth except those at (and in) the given paths, which have no list
    /// indices: there, empty has a meaning, or content belongs to the user.
    Tidy(&'static [&'static str]),
    /// The hub requires `key` in the object at `path`, where the older version implies `value`.
    Assume {
        /// Path of the object in the hub.
        path: &'static str,
        /// Field of the object.
        key: &'static str,
        /// Value implied by the older version.
        value: &'static str,
    },
    /// In the hub, the value at the first path is also at the second.
    Copy(&'static str, &'static str),
    /// Changes that other rules cannot express, applied after them.
    Adjust {
        /// Applied to the hub's object.
        new: fn(&mut Value),
        /// Applied to the older object.
        old: fn(&mut Value),
    },
    /// A field of the older version only, computed from the hub's object.
    Computed(&'static str, fn(&Value) -> Value),
}

/// Context of a conversion.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Resolver for references.
    pub resolver: Resolver<'a>,
}

/// Normalizes an older object for comparison: removes meaningless empty values, adds namespaces to references.
pub fn normalize(object: &mut Value, rules: &[Rule], scope: Scope<'_>) {
    for rule in rules {
        match *rule {
            Rule::Within(old, _, rules) => {
                if let Some(inner) = path::get_mut(object, old) {
                    normalize(inner, rules, scope);
                }
            }
            Rule::Each(old, _, rules) => {
                for item in path::get_mut(object, old).and_then(Value::as_array_mut).into_iter().flatten() {
                    normalize(item, rules, scope);
                }
            }
            Rule::Reference(old, _) | Rule::Template(old, _) => {
                if let Some(reference) = path::get_mut(object, old) {
                    reference::fill(reference, scope.namespace);
                }
            }
            _ => {}
        }
    }
    for rule in rules {
        match *rule {
            Rule::Empty(old) if path::get(object, old).is_some_and(is_empty) => remove(object, old),
            Rule::Tidy(keep) => tidy(object, keep),
            _ => {}
        }
    }
}

/// Converts an older object to the hub's form.
pub fn up(object: Value, rules: &[Rule]) -> Result<Value, ConversionError> {
    let mut rest = object;
    let mut placed = Vec::new();
    for rule in rules {
        match *rule {
            Rule::Move(old, new) => take(&mut rest, old, new, &mut placed, Ok)?,
            Rule::Seconds(old, new) => take(&mut rest, old, new, &mut placed, |value| match &value {
                Value::String(text) => duration::seconds(text)
                    .map(Value::from)
                    .ok_or_else(|| invalid(old, format!("{text:?} is not a duration like 1h30m"))),
                _ => Err(invalid(old, "a duration like 1h30m is wanted")),
            })?,
            Rule::Reference(old, new) => {
                take(&mut rest, old, new, &mut placed, |value| Ok(reference::up(Form::Contract, value)))?;
            }
            Rule::Template(old, new) => {
                take(&mut rest, old, new, &mut placed, |value| Ok(reference::up(Form::Template, value)))?;
            }
            Rule::Node(old, new) => {
                take(&mut rest, old, new, &mut placed, |value| Ok(reference::up(Form::Node, value)))?;
            }
            Rule::Named(old, new) => take(&mut rest, old, new, &mut placed, |value| list_of_named(old, value))?,
            Rule::Arguments(old, new) => take(&mut rest, old, new, &mut placed, |value| list_of_arguments(old, value))?,
            Rule::Within(old, new, rules) => {
                take(&mut rest, old, new, &mut placed, |value| inside(value, |value| up(value, rules)))?;
            }
            Rule::Each(old, new, rules) => {
                take(&mut rest, old, new, &mut placed, |value| each(value, |item| up(item, rules)))?;
            }
            Rule::OnlyOld(old) | Rule::Computed(old, _) => {
                path::take(&mut rest, old);
            }
            Rule::OnlyNew(_)
            | Rule::Empty(_)
            | Rule::Tidy(_)
            | Rule::Assume { .. }
            | Rule::Copy(..)
            | Rule::Adjust { .. } => {}
        }
    }
    place(&mut rest, placed)?;
    for rule in rules {
        match *rule {
            Rule::Assume { path, key, value } => {
                if let Some(Value::Object(map)) = path::get_mut(&mut rest, path)
                    && !map.contains_key(key)
                {
                    map.insert(key.to_owned(), value.into());
                }
            }
            Rule::Copy(from, to) => {
                if let Some(value) = path::get(&rest, from).cloned() {
                    path::put(&mut rest, to, value)?;
                }
            }
            Rule::Adjust { new, .. } => new(&mut rest),
            _ => {}
        }
    }
    Ok(rest)
}

/// Converts a hub object to the older form.
pub fn down(object: Value, rules: &[Rule], scope: Scope<'_>) -> Result<Value, ConversionError> {
    let mut computed = Vec::new();
    for rule in rules {
        if let Rule::Computed(old, value) = *rule {
            computed.push((old, value(&object)));
        }
    }
    let mut rest = object;
    let mut placed = Vec::new();
    for rule in rules {
        match *rule {
            Rule::Move(old, new) => take(&mut rest, new, old, &mut placed, Ok)?,
            Rule::Seconds(old, new) => take(&mut rest, new, old, &mut placed, |value| {
                value
                    .as_i64()
                    .map(|seconds| duration::text(seconds).into())
                    .ok_or_else(|| invalid(new, "a whole number of seconds is wanted"))
            })?,
            Rule::Reference(old, new) => take(&mut rest, new, old, &mut placed, |value| {
                Ok(reference::down(Form::Contract, value, scope.namespace, scope.resolver))
            })?,
            Rule::Template(old, new) => take(&mut rest, new, old, &mut placed, |value| {
                Ok(reference::down(Form::Template, value, scope.namespace, scope.resolver))
            })?,
            Rule::Node(old, new) => take(&mut rest, new, old, &mut placed, |value| {
                Ok(reference::down(Form::Node, value, scope.namespace, scope.resolver))
            })?,
            Rule::Named(old, new) => take(&mut rest, new, old, &mut placed, |value| Ok(map_of_named(value)))?,
            Rule::Arguments(old, new) => take(&mut rest, new, old, &mut placed, |value| Ok(map_of_arguments(value)))?,
            Rule::Within(old, new, rules) => {
                take(&mut rest, new, old, &mut placed, |value| inside(value, |value| down(value, rules, scope)))?;
            }
            Rule::Each(old, new, rules) => {
                take(&mut rest, new, old, &mut placed, |value| each(value, |item| down(item, rules, scope)))?;
            }
            Rule::OnlyNew(new) => {
                path::take(&mut rest, new);
            }
            Rule::OnlyOld(_)
            | Rule::Empty(_)
            | Rule::Tidy(_)
            | Rule::Assume { .. }
            | Rule::Copy(..)
            | Rule::Adjust { .. }
            | Rule::Computed(..) => {}
        }
    }
    place(&mut rest, placed)?;
    for (old, value) in computed {
        if !value.is_null() {
            path::put(&mut rest, old, value)?;
        }
    }
    for rule in rules {
        if let Rule::Adjust { old, .. } = *rule {
            old(&mut rest);
        }
    }
    Ok(rest)
}

type Placed = Vec<(&'static str, Value)>;

fn take(
    rest: &mut Value,
    from: &'static str,
    to: &'static str,
    placed: &mut Placed,
    change: impl FnOnce(Value) -> Result<Value, ConversionError>,
) -> Result<(), ConversionError> {
    if let Some(value) = path::take(rest, from) {
        let was_empty = is_empty_map(&value);
        let value = change(value)?;
        // As with parents: what the rules emptied goes, what was empty stays.
        if was_empty || !is_empty_map(&value) {
            placed.push((to, value));
        }
    }
    Ok(())
}

fn place(rest: &mut Value, placed: Placed) -> Result<(), ConversionError> {
    placed.into_iter().try_for_each(|(to, value)| path::put(rest, to, value))
}

/// Applies `change` to objects; other values are left to validation.
fn inside(
    value: Value,
    change: impl FnOnce(Value) -> Result<Value, ConversionError>,
) -> Result<Value, ConversionError> {
    if value.is_object() { change(value) } else { Ok(value) }
}

fn each(
    value: Value,
    mut change: impl FnMut(Value) -> Result<Value, ConversionError>,
) -> Result<Value, ConversionError> {
    match value {
        Value::Array(items) => {
            items.into_iter().map(|item| inside(item, &mut change)).collect::<Result<_, _>>().map(Value::Array)
        }
        other => Ok(other),
    }
}

fn list_of_named(at: &str, value: Value) -> Result<Value, ConversionError> {
    let Value::Object(map) = value else { return Err(invalid(at, "a map by name is wanted")) };
    map.into_iter()
        .map(|(name, value)| match value {
            Value::Object(mut item) => {
                item.insert("name".to_owned(), name.into());
                Ok(Value::Object(item))
            }
            _ => Err(invalid(at, format!("the value of {name:?} is not an object"))),
        })
        .collect::<Result<_, _>>()
        .map(Value::Array)
}

/// Entries without name, or with the name of a later one, do not fit into a map; the annotation preserves them.
fn map_of_named(value: Value) -> Value {
    let Value::Array(items) = value else { return value };
    let mut map = Map::new();
    for item in items {
        if let Value::Object(mut item) = item
            && let Some(Value::String(name)) = item.remove("name")
        {
            map.insert(name, Value::Object(item));
        }
    }
    Value::Object(map)
}

fn list_of_arguments(at: &str, value: Value) -> Result<Value, ConversionError> {
    let Value::Object(map) = value else { return Err(invalid(at, "a map of arguments is wanted")) };
    Ok(map
        .into_iter()
        .map(|(name, value)| {
            Value::Object(Map::from_iter([("name".to_owned(), name.into()), ("value".to_owned(), value)]))
        })
        .collect())
}

fn map_of_arguments(value: Value) -> Value {
    let Value::Array(items) = value else { return value };
    let mut map = Map::new();
    for item in items {
        if let Value::Object(mut item) = item
            && let Some(Value::String(name)) = item.remove("name")
        {
            map.insert(name, item.remove("value").unwrap_or_default());
        }
    }
    Value::Object(map)
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

/// Removes empty objects and lists, innermost first. `keep` is relative to `value`.
fn tidy(value: &mut Value, keep: &[&str]) {
    match value {
        Value::Object(map) => map.retain(|key, child| {
            if keep.contains(&key.as_str()) {
                return true;
            }
            let deeper: Vec<&str> =
                keep.iter().filter_map(|path| path.strip_prefix(key.as_str())?.strip_prefix('.')).collect();
            tidy(child, &deeper);
            !matches!(child, Value::Null) && !is_empty_container(child)
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, keep)),
        _ => {}
    }
}

fn is_empty_container(value: &Value) -> bool {
    is_empty_map(value) || value.as_array().is_some_and(Vec::is_empty)
}

/// Removes a value but no parents.
fn remove(object: &mut Value, at: &str) {
    let (parent, key) = match at.rsplit_once('.') {
        Some((parent, key)) => (path::get_mut(object, parent), key),
        None => (Some(object), at),
    };
    if let Some(Value::Object(map)) = parent {
        map.remove(key);
    }
}

fn invalid(path: &str, message: impl Into<String>) -> ConversionError {
    ConversionError::Value { path: path.to_owned(), message: message.into() }
}

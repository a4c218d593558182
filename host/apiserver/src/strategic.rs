//! Strategic merge patch for built-in kinds.
//!
//! Maps merge recursively and null deletes, as in a JSON merge patch. Lists are replaced unless the schema names a merge
//! key; then items are matched by that key. Directives inside the patch change that:
//!
//! - `$patch: delete | replace | merge` on a map or on an item of a merged list,
//! - `$retainKeys`: of the live map only these fields stay,
//! - `$deleteFromPrimitiveList/<field>`: values that leave a list of scalars,
//! - `$setElementOrder/<field>`: the order of the merged list; items that only the server has keep their place.

use serde_json::{Map, Value};

use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Why a strategic merge patch is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// The patch is no JSON object.
    #[error("a strategic merge patch must be a JSON object")]
    NotAnObject,
    /// An unknown value of `$patch`.
    #[error("unknown $patch type: {0}")]
    Directive(String),
    /// The value of a directive is no list, or has items of the wrong type.
    #[error("invalid value of directive {0}")]
    DirectiveValue(String),
    /// `$retainKeys` leaves out a field that the patch sets.
    #[error("$retainKeys list must contain all fields that are present in the patch: {0}")]
    NotRetained(String),
    /// An item of a merged list lacks the key.
    #[error("map does not contain declared merge key: {0}")]
    MissingKey(String),
    /// An item of a list that is merged by key is no object.
    #[error("the list {0} can only be patched with objects")]
    NotAnObjectItem(String),
}

/// Applies a patch to the live object, and returns the result.
pub fn merge(live: &Value, patch: &Value, schema: &Schema) -> Result<Value, StrategicError> {
    let patch = patch.as_object().ok_or(StrategicError::NotAnObject)?;
    let empty = Map::new();
    merge_map(live.as_object().unwrap_or(&empty), patch, Some(schema)).map(Value::Object)
}

fn merge_map(
    live: &Map<String, Value>,
    patch: &Map<String, Value>,
    schema: Option<&Schema>,
) -> Result<Map<String, Value>, StrategicError> {
    match patch.get(PATCH) {
        None => {}
        Some(Value::String(directive)) => match directive.as_str() {
            "merge" => {}
            "delete" => return Ok(Map::new()),
            "replace" => return Ok(without_directives(patch)),
            other => return Err(StrategicError::Directive(other.to_owned())),
        },
        Some(other) => return Err(StrategicError::Directive(other.to_string())),
    }
    let mut merged = live.clone();
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain(&mut merged, keys, patch)?;
    }
    for (name, value) in patch {
        let (field, list_directive) = match name.strip_prefix(DELETE_FROM).or_else(|| name.strip_prefix(SET_ORDER)) {
            Some(field) => (field, true),
            None => (name.as_str(), false),
        };
        if name == PATCH || name == RETAIN_KEYS {
            continue;
        }
        if list_directive {
            let directive_values = value.as_array().ok_or_else(|| StrategicError::DirectiveValue(name.clone()))?;
            // With the list itself in the patch, the directives are part of merging it.
            if !patch.contains_key(field) && merged.get(field).is_some_and(Value::is_array) {
                let order = name.starts_with(SET_ORDER).then_some(directive_values);
                let delete = name.starts_with(DELETE_FROM).then_some(directive_values);
                merge_field(&mut merged, field, &Value::Array(Vec::new()), schema, delete, order)?;
            }
            continue;
        }
        if value.is_null() {
            merged.remove(field);
            continue;
        }
        let list = |prefix: &str| patch.get(&format!("{prefix}{field}")).and_then(Value::as_array);
        merge_field(&mut merged, field, value, schema, list(DELETE_FROM), list(SET_ORDER))?;
    }
    Ok(merged)
}

fn merge_field(
    merged: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    schema: Option<&Schema>,
    delete: Option<&Vec<Value>>,
    order: Option<&Vec<Value>>,
) -> Result<(), StrategicError> {
    let schema = schema.and_then(|schema| schema.child(name));
    let result = match value {
        Value::Object(patch) => {
            let empty = Map::new();
            let live = merged.get(name).and_then(Value::as_object).unwrap_or(&empty);
            Value::Object(merge_map(live, patch, schema)?)
        }
        Value::Array(patch) => {
            let key = schema.and_then(|schema| schema.merge).and_then(|merge| merge.key);
            let live = merged.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            match key {
                None => Value::Array(patch.iter().map(clean).collect()),
                Some("") => Value::Array(merge_scalars(live, patch, delete, order)),
                Some(key) => Value::Array(merge_items(name, live, patch, key, order, schema)?),
            }
        }
        scalar => scalar.clone(),
    };
    merged.insert(name.to_owned(), result);
    Ok(())
}

fn retain(live: &mut Map<String, Value>, keys: &Value, patch: &Map<String, Value>) -> Result<(), StrategicError> {
    let keys = keys.as_array().ok_or_else(|| StrategicError::DirectiveValue(RETAIN_KEYS.to_owned()))?;
    let retained = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    for (name, value) in patch {
        if !name.starts_with('$') && !value.is_null() && !retained(name) {
            return Err(StrategicError::NotRetained(name.clone()));
        }
    }
    live.retain(|name, _| retained(name));
    Ok(())
}

fn merge_scalars(
    live: &[Value],
    patch: &[Value],
    delete: Option<&Vec<Value>>,
    order: Option<&Vec<Value>>,
) -> Vec<Value> {
    let mut merged: Vec<Value> = live.to_vec();
    for value in patch {
        if !merged.contains(value) {
            merged.push(value.clone());
        }
    }
    if let Some(delete) = delete {
        merged.retain(|value| !delete.contains(value) || patch.contains(value));
    }
    match order {
        Some(order) => reorder(merged, live, order, &|value| Some(value.clone())),
        None => merged,
    }
}

fn merge_items(
    list: &str,
    live: &[Value],
    patch: &[Value],
    key: &str,
    order: Option<&Vec<Value>>,
    schema: Option<&Schema>,
) -> Result<Vec<Value>, StrategicError> {
    let directive = |item: &Value| item.get(PATCH).and_then(Value::as_str).map(str::to_owned);
    let item_schema = schema.and_then(|schema| schema.items.as_deref());
    let replace = patch.iter().any(|item| directive(item).as_deref() == Some("replace"));
    if replace {
        let kept = patch.iter().filter(|item| directive(item).as_deref() != Some("replace") || item.get(key).is_some());
        return Ok(kept.map(clean).collect());
    }
    let mut merged: Vec<Value> = live.to_vec();
    for item in patch {
        let fields = item.as_object().ok_or_else(|| StrategicError::NotAnObjectItem(list.to_owned()))?;
        let identity = fields.get(key).ok_or_else(|| StrategicError::MissingKey(key.to_owned()))?;
        let place = merged.iter().position(|found| found.get(key) == Some(identity));
        match directive(item).as_deref() {
            Some("delete") => merged.retain(|found| found.get(key) != Some(identity)),
            None | Some("merge") => {
                let empty = Map::new();
                let old = place.and_then(|place| merged[place].as_object()).unwrap_or(&empty);
                let new = Value::Object(merge_map(old, fields, item_schema)?);
                match place {
                    Some(place) => merged[place] = new,
                    None => merged.push(new),
                }
            }
            Some(other) => return Err(StrategicError::Directive(other.to_owned())),
        }
    }
    Ok(match order {
        Some(order) => reorder(merged, live, order, &|item| item.get(key).cloned()),
        None => merged,
    })
}

/// Items named by `order` in that order; the others before the named item that they preceded on the server.
fn reorder(
    merged: Vec<Value>,
    live: &[Value],
    order: &[Value],
    identity: &dyn Fn(&Value) -> Option<Value>,
) -> Vec<Value> {
    let place_in = |list: &[Value], item: &Value| {
        let wanted = identity(item);
        wanted.as_ref().and_then(|_| list.iter().position(|other| identity(other) == wanted))
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place_in(order, item).is_some());
    named.sort_by_key(|item| place_in(order, item));
    others.sort_by_key(|item| place_in(live, item).unwrap_or(usize::MAX));
    let mut result = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    while let (Some(other), Some(next)) = (others.peek(), named.peek()) {
        let before = matches!((place_in(live, other), place_in(live, next)), (Some(other), Some(next)) if other < next);
        result.extend(if before { others.next() } else { named.next() });
    }
    result.extend(named);
    result.extend(others);
    result
}

/// A value of the patch without directives and nulls.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(without_directives(fields)),
        Value::Array(items) => Value::Array(items.iter().map(clean).collect()),
        scalar => scalar.clone(),
    }
}

fn without_directives(fields: &Map<String, Value>) -> Map<String, Value> {
    let is_directive = |name: &str| {
        name == PATCH || name == RETAIN_KEYS || name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER)
    };
    fields
        .iter()
        .filter(|(name, value)| !is_directive(name) && !value.is_null())
        .map(|(name, value)| (name.clone(), clean(value)))
        .collect()
}

#[cfg(test)]
mod tests;

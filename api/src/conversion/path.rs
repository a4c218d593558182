//! Values at dotted paths.

use serde_json::{Map, Value, map::Entry};

use super::ConversionError;

/// The value at `path`.
pub fn get<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |at, key| at.get(key))
}

/// As [`get`], mutable.
pub fn get_mut<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(object, |at, key| at.get_mut(key))
}

/// Removes and returns the value at `path`, with parents that become empty; null counts as absent.
pub fn take(object: &mut Value, path: &str) -> Option<Value> {
    let map = object.as_object_mut()?;
    let taken = match path.split_once('.') {
        None => map.remove(path),
        Some((key, rest)) => {
            let child = map.get_mut(key)?;
            let taken = take(child, rest);
            if taken.is_some() && child.as_object().is_some_and(Map::is_empty) {
                map.remove(key);
            }
            taken
        }
    };
    taken.filter(|value| !value.is_null())
}

/// Sets `value` at `path` and creates parents; a map is merged into an existing one.
pub fn put(object: &mut Value, path: &str, value: Value) -> Result<(), ConversionError> {
    let mut at = object;
    for key in path.split('.') {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else {
            return Err(ConversionError::Value {
                path: path.to_owned(),
                message: "a parent of it is not an object".to_owned(),
            });
        };
        at = map.entry(key).or_insert(Value::Null);
    }
    overlay(at, value);
    Ok(())
}

fn overlay(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                match under.entry(key) {
                    Entry::Occupied(mut entry) => overlay(entry.get_mut(), value),
                    Entry::Vacant(entry) => {
                        entry.insert(value);
                    }
                }
            }
        }
        (under, over) => *under = over,
    }
}

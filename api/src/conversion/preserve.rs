//! Preserves what a version cannot express in an annotation.

use capwasm_object::{json, meta};
use serde_json::{Map, Value, json};

use super::reference::Resolver;
use super::rule::{self, Scope};
use super::{ConversionError, DATA_ANNOTATION, HUB, Kind, OLD_DATA_ANNOTATION, Older, merge, path};

const METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];
const DEPRECATED: &str = "status.deprecated.v1beta1";

/// Converts an object from the hub to an older version.
pub fn down(kind: &Kind, older: &Older, hub: Value, resolver: Resolver<'_>) -> Result<Value, ConversionError> {
    let (mut head, body) = split(hub);
    let old_text = take_annotation(&mut head, OLD_DATA_ANNOTATION);
    // Whatever stands there describes another object.
    take_annotation(&mut head, DATA_ANNOTATION);
    let namespace = meta::namespace(&head).to_owned();
    let scope = Scope { namespace: &namespace, resolver };
    let shown = show(kind, older, &body, old_text.as_deref(), scope)?;
    if old_text.is_some() || read(kind, older, shown.clone(), scope)? != body {
        let mut data = Map::from_iter([
            ("apiVersion".to_owned(), Value::from(format!("{}/{HUB}", kind.group))),
            ("kind".to_owned(), kind.kind.into()),
        ]);
        if let Value::Object(body) = body {
            data.extend(body);
        }
        data.extend(old_text.map(|text| (OLD_DATA_ANNOTATION.to_owned(), text.into())));
        json::set(&mut head, &["metadata", "annotations", DATA_ANNOTATION], Value::Object(data).to_string());
    }
    Ok(join(kind, older.version, head, shown))
}

/// Converts an object from an older version to the hub.
pub fn up(kind: &Kind, older: &Older, object: Value, resolver: Resolver<'_>) -> Result<Value, ConversionError> {
    let (mut head, mut sent) = split(object);
    let data = take_annotation(&mut head, DATA_ANNOTATION);
    // It belongs to the hub's form alone.
    take_annotation(&mut head, OLD_DATA_ANNOTATION);
    let namespace = meta::namespace(&head).to_owned();
    let scope = Scope { namespace: &namespace, resolver };
    rule::normalize(&mut sent, older.rules, scope);
    let (body, old_text) = match data.map(|text| stored(kind, &text)).transpose()?.flatten() {
        Some((hub, old_text)) => {
            let mut shown = show(kind, older, &hub, old_text.as_deref(), scope)?;
            rule::normalize(&mut shown, older.rules, scope);
            if shown == sent {
                (hub, old_text)
            } else {
                let theirs = read(kind, older, sent.clone(), scope)?;
                let base = read(kind, older, shown, scope)?;
                let body = merge::merge(&hub, &base, &theirs);
                let old_text = unsaid(kind, older, &body, &sent, scope)?;
                (body, old_text)
            }
        }
        None => {
            let body = read(kind, older, sent.clone(), scope)?;
            let old_text = unsaid(kind, older, &body, &sent, scope)?;
            (body, old_text)
        }
    };
    if let Some(text) = old_text {
        json::set(&mut head, &["metadata", "annotations", OLD_DATA_ANNOTATION], text);
    }
    Ok(join(kind, HUB, head, body))
}

/// The older form of a hub's body, with preserved older pieces that are still valid.
fn show(
    kind: &Kind,
    older: &Older,
    hub: &Value,
    old_text: Option<&str>,
    scope: Scope<'_>,
) -> Result<Value, ConversionError> {
    let mut filled = hub.clone();
    if let Some(derived) = kind.derived {
        fill(&mut filled, derived(hub));
    }
    let mut plain = rule::down(filled, older.rules, scope)?;
    // Whatever no rule found a place for.
    path::take(&mut plain, "status.deprecated");
    Ok(match old_text.and_then(|text| pieces(kind, older, text)) {
        Some((was, is)) => merge::merge(&is, &was, &plain),
        None => plain,
    })
}

/// The hub's form of an older body, without annotations.
fn read(kind: &Kind, older: &Older, mut body: Value, scope: Scope<'_>) -> Result<Value, ConversionError> {
    rule::normalize(&mut body, older.rules, scope);
    let mut hub = rule::up(body, older.rules)?;
    path::take(&mut hub, "status.v1beta2");
    if let Some(derived) = kind.derived {
        let derived = derived(&hub);
        forget(&mut hub, &derived);
    }
    Ok(hub)
}

/// The parts of `sent` that the hub's body does not express, as text of the annotation.
fn unsaid(
    kind: &Kind,
    older: &Older,
    body: &Value,
    sent: &Value,
    scope: Scope<'_>,
) -> Result<Option<String>, ConversionError> {
    let mut said = show(kind, older, body, None, scope)?;
    rule::normalize(&mut said, older.rules, scope);
    if said == *sent {
        return Ok(None);
    }
    let (was, is) = merge::difference(&said, sent);
    let api_version = format!("{}/{}", kind.group, older.version);
    Ok(Some(json!({"apiVersion": api_version, "kind": kind.kind, "from": was, "to": is}).to_string()))
}

/// Parses a text of [`unsaid`]. Other texts are ignored: a read must not fail for an annotation, which is passed on
/// unchanged.
fn pieces(kind: &Kind, older: &Older, text: &str) -> Option<(Value, Value)> {
    let mut data: Value = serde_json::from_str(text).ok()?;
    let is_ours = meta::kind(&data) == kind.kind
        && json::text(&data, "/apiVersion")? == format!("{}/{}", kind.group, older.version);
    let mut piece = |key: &str| data.get_mut(key).filter(|piece| piece.is_object()).map(Value::take);
    let (was, is) = (piece("from")?, piece("to")?);
    is_ours.then_some((was, is))
}

/// The hub object that [`down`] preserved, with its older pieces; `None` if it is of another kind.
fn stored(kind: &Kind, text: &str) -> Result<Option<(Value, Option<String>)>, ConversionError> {
    let data: Value = serde_json::from_str(text).map_err(|error| ConversionError::Data(error.to_string()))?;
    let Value::Object(mut hub) = data else {
        return Err(ConversionError::Data("it is not an object".to_owned()));
    };
    // Upstream leaves the kind out at times.
    let differs = |key: &str, expected: &str| {
        hub.get(key).and_then(Value::as_str).is_some_and(|found| !found.is_empty() && found != expected)
    };
    let is_other = differs("kind", kind.kind) || differs("apiVersion", &format!("{}/{HUB}", kind.group));
    let old_text = match hub.remove(OLD_DATA_ANNOTATION) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    hub.retain(|key, _| !METADATA.contains(&key.as_str()));
    Ok((!is_other).then_some((Value::Object(hub), old_text)))
}

/// Overwrites stored values by derived ones; conditions by type.
fn fill(hub: &mut Value, derived: Value) {
    let Value::Object(derived) = derived else { return };
    for (key, value) in derived {
        let at = format!("{DEPRECATED}.{key}");
        let value = match (path::get(hub, &at), value) {
            (Some(Value::Array(stored)), Value::Array(derived)) => {
                let is_derived = |item: &Value| derived.iter().any(|new| new.get("type") == item.get("type"));
                let mut all: Vec<Value> = stored.iter().filter(|item| !is_derived(item)).cloned().collect();
                all.extend(derived);
                Value::Array(all)
            }
            (_, value) => value,
        };
        // A status that is not an object has nothing to derive from.
        let _ = path::put(hub, &at, value);
    }
}

/// Removes values that equal derived ones.
fn forget(hub: &mut Value, derived: &Value) {
    for (key, value) in derived.as_object().into_iter().flatten() {
        let at = format!("{DEPRECATED}.{key}");
        if let (Some(Value::Array(stored)), Value::Array(derived)) = (path::get_mut(hub, &at), value) {
            stored.retain(|item| !derived.contains(item));
        }
        if path::get(hub, &at).is_some_and(|stored| stored == value || stored.as_array().is_some_and(Vec::is_empty)) {
            path::take(hub, &at);
        }
    }
}

fn split(object: Value) -> (Value, Value) {
    let Value::Object(mut body) = object else { return (Value::Null, object) };
    let head = METADATA.iter().filter_map(|key| Some(((*key).to_owned(), body.remove(*key)?))).collect();
    (Value::Object(head), Value::Object(body))
}

fn join(kind: &Kind, version: &str, head: Value, body: Value) -> Value {
    let (Value::Object(mut object), Value::Object(body)) = (head, body) else { return Value::Null };
    object.insert("apiVersion".to_owned(), format!("{}/{version}", kind.group).into());
    object.extend(body);
    Value::Object(object)
}

/// Removes and returns an annotation, and the map if it was the last one.
fn take_annotation(head: &mut Value, key: &str) -> Option<String> {
    let metadata = head.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let taken = annotations.remove(key)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken.as_str().map(str::to_owned)
}

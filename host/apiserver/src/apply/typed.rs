//! Objects seen through their schema: what they own, how two differ, how they merge.
//!
//! Maps are granular unless the schema calls them atomic; lists are atomic unless it calls them a set or a map.
//! Where there is no schema, the same defaults hold.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::set::{Element, Set, sorted};
use crate::schema::{ListType, Schema, Type, object_meta};

#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: Set,
    pub(super) modified: Set,
    pub(super) removed: Set,
}

impl Comparison {
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

/// Why an object does not fit the list types of its schema.
pub(super) type Malformed = String;

/// The schema of a named field, and whether the schema declares it.
fn field<'a>(schema: Option<&'a Schema>, name: &str) -> (Option<&'a Schema>, bool) {
    let Some(schema) = schema else { return (None, false) };
    if schema.resource && name == "metadata" {
        return (Some(object_meta()), true);
    }
    match schema.property(name) {
        Some(property) => (known(property), true),
        None => {
            (schema.additional.as_deref().and_then(known), schema.resource && matches!(name, "apiVersion" | "kind"))
        }
    }
}

/// A schema that says nothing about structure is no schema.
fn known(schema: &Schema) -> Option<&Schema> {
    (schema.ty != Type::Any).then_some(schema)
}

fn items(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|schema| schema.items.as_deref()).and_then(known)
}

fn is_granular_map(schema: Option<&Schema>, value: &Value) -> bool {
    value.is_object() && !schema.is_some_and(|schema| schema.atomic)
}

fn is_granular_list(schema: Option<&Schema>, value: &Value) -> bool {
    value.is_array() && schema.is_some_and(|schema| schema.list != ListType::Atomic)
}

/// Path element of an item of a granular list.
fn identify(schema: Option<&Schema>, item: &Value) -> Result<Element, Malformed> {
    let Some(ListType::Map(keys)) = schema.map(|schema| &schema.list) else {
        return Ok(Element::Value(sorted(item)));
    };
    let fields =
        item.as_object().ok_or_else(|| "associative list with keys may not have non-map elements".to_owned())?;
    let mut identity = Map::new();
    for key in keys {
        let default = || items(schema).and_then(|items| items.property(key)).and_then(|field| field.default.as_deref());
        match fields.get(key.as_ref()).or_else(default) {
            Some(value) => identity.insert(key.to_string(), value.clone()),
            None => continue,
        };
    }
    if identity.is_empty() {
        let names = keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ");
        return Err(format!("associative list with keys has an element that omits all key fields [{names}]"));
    }
    Ok(Element::Key(sorted(&Value::Object(identity))))
}

pub(super) fn to_set(schema: Option<&Schema>, object: &Value) -> Set {
    let mut set = Set::default();
    collect(schema, object, &mut Vec::new(), &mut set);
    set
}

fn collect(schema: Option<&Schema>, value: &Value, path: &mut Vec<Element>, set: &mut Set) {
    match value {
        Value::Object(fields) if is_granular_map(schema, value) => {
            for (name, child) in fields {
                let (child_schema, declared) = field(schema, name);
                path.push(Element::Field(name.clone()));
                collect(child_schema, child, path, set);
                let hollow = child.is_null() || child.as_object().is_some_and(Map::is_empty);
                if hollow || !declared {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Value::Array(list) if is_granular_list(schema, value) => {
            for item in list {
                let Ok(element) = identify(schema, item) else { continue };
                path.push(element);
                collect(items(schema), item, path, set);
                set.insert(path);
                path.pop();
            }
        }
        _ => set.insert(path),
    }
}

/// Adds the declared fields on the way to the members of a set: they go when all below them goes.
pub(super) fn with_declared_parents(set: &Set, schema: Option<&Schema>) -> Set {
    let mut set = set.clone();
    add_parents(&mut set, schema);
    set
}

fn add_parents(set: &mut Set, schema: Option<&Schema>) {
    for (element, member, children) in set.steps_mut() {
        match element {
            Element::Field(name) => {
                let (child, declared) = field(schema, name);
                *member |= declared;
                add_parents(children, child);
            }
            Element::Key(_) | Element::Value(_) | Element::Index(_) => add_parents(children, items(schema)),
        }
    }
}

/// Replaces members inside of what the schema says is atomic by the atomic field itself.
pub(super) fn reconcile(set: &mut Set, schema: Option<&Schema>) {
    for (element, member, children) in set.steps_mut() {
        let child = match element {
            Element::Field(name) => field(schema, name).0,
            Element::Key(_) | Element::Value(_) | Element::Index(_) => items(schema),
        };
        if is_one_value(child) && !children.is_empty() {
            *children = Set::default();
            *member = true;
        } else {
            reconcile(children, child);
        }
    }
}

/// Whether a set in its `FieldsV1` form goes into what the schema has as one value: then [`reconcile`] has something to do.
pub(super) fn is_finer(fields: &Value, schema: Option<&Schema>) -> bool {
    fields.as_object().into_iter().flatten().any(|(key, inner)| {
        let child = match key.strip_prefix("f:") {
            Some(name) => field(schema, name).0,
            None => items(schema),
        };
        let below = || inner.as_object().is_some_and(|inner| inner.keys().any(|key| key != "."));
        is_one_value(child) && below() || is_finer(inner, child)
    })
}

fn is_one_value(schema: Option<&Schema>) -> bool {
    schema.is_some_and(|schema| schema.atomic || (schema.ty == Type::Array && schema.list == ListType::Atomic))
}

pub(super) fn compare(schema: Option<&Schema>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    differ(schema, Some(old), Some(new), &mut Vec::new(), &mut comparison);
    comparison
}

fn differ(
    schema: Option<&Schema>,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<Element>,
    out: &mut Comparison,
) {
    if old == new {
        return;
    }
    let empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    let filled = |value: Option<&Value>, granular: fn(Option<&Schema>, &Value) -> bool| {
        value.is_some_and(|value| granular(schema, value))
    };
    let maps = filled(old, is_granular_map) || filled(new, is_granular_map);
    let lists = filled(old, is_granular_list) || filled(new, is_granular_list);
    if (maps || lists) && !(empty(old) && empty(new)) {
        if maps {
            differ_maps(schema, old.and_then(Value::as_object), new.and_then(Value::as_object), path, out);
        }
        if lists {
            differ_lists(schema, old.and_then(Value::as_array), new.and_then(Value::as_array), path, out);
        }
        let composite =
            |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_array() || value.is_null());
        if composite(old) && composite(new) {
            match (old, new) {
                (None, _) => out.added.insert(path),
                (_, None) => out.removed.insert(path),
                _ => {}
            }
            return;
        }
    }
    match (old, new) {
        (None, _) => out.added.insert(path),
        (_, None) => out.removed.insert(path),
        _ => out.modified.insert(path),
    }
}

fn differ_maps(
    schema: Option<&Schema>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    path: &mut Vec<Element>,
    out: &mut Comparison,
) {
    let old_names = old.into_iter().flat_map(Map::keys);
    let new_names = new.into_iter().flat_map(Map::keys).filter(|name| !old.is_some_and(|old| old.contains_key(*name)));
    for name in old_names.chain(new_names) {
        path.push(Element::Field(name.clone()));
        differ(field(schema, name).0, old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)), path, out);
        path.pop();
    }
}

fn differ_lists(
    schema: Option<&Schema>,
    old: Option<&Vec<Value>>,
    new: Option<&Vec<Value>>,
    path: &mut Vec<Element>,
    out: &mut Comparison,
) {
    if let (Some(old), Some(new)) = (old, new)
        && is_aligned(schema, old, new)
    {
        for (old, new) in old.iter().zip(new).filter(|(old, new)| old != new) {
            let Ok(element) = identify(schema, new) else { continue };
            path.push(element);
            differ(items(schema), Some(old), Some(new), path, out);
            path.pop();
        }
        return;
    }
    let (old_order, old) = index(schema, old);
    let (new_order, new) = index(schema, new);
    let only_new = new_order.iter().filter(|element| !old.contains_key(*element));
    for element in old_order.iter().chain(only_new) {
        let (before, after) = (old.get(element), new.get(element));
        path.push(element.clone());
        match (before.map_or(0, Vec::len), after.map_or(0, Vec::len)) {
            (0 | 1, 0 | 1) => {
                let before = before.and_then(|values| values.first().copied());
                let after = after.and_then(|values| values.first().copied());
                differ(items(schema), before, after, path, out);
            }
            // Repeated items, which a list may hold from before it became a set, count as one leaf.
            (2.., 2..) if before != after => out.modified.insert(path),
            (2.., 2..) => {}
            (2.., _) => {
                differ(items(schema), None, after.and_then(|values| values.first().copied()), path, out);
                out.removed.insert(path);
            }
            (_, _) => {
                differ(items(schema), before.and_then(|values| values.first().copied()), None, path, out);
                out.added.insert(path);
            }
        }
        path.pop();
    }
}

/// Whether two keyed lists have the same items in the same order, none of them twice. Says no of long ones: it looks at all
/// pairs.
fn is_aligned(schema: Option<&Schema>, old: &[Value], new: &[Value]) -> bool {
    let Some(ListType::Map(keys)) = schema.map(|schema| &schema.list) else { return false };
    let same = |one: &Value, other: &Value| {
        let stated = |item: &Value, key: &str| item.get(key).is_some();
        keys.iter().all(|key| stated(one, key) && one.get(key.as_ref()) == other.get(key.as_ref()))
    };
    let twice = || new.iter().enumerate().any(|(at, item)| new[at + 1..].iter().any(|other| same(item, other)));
    old.len() == new.len() && old.len() <= 32 && old.iter().zip(new).all(|(old, new)| same(old, new)) && !twice()
}

fn index<'a>(
    schema: Option<&Schema>,
    list: Option<&'a Vec<Value>>,
) -> (Vec<Element>, HashMap<Element, Vec<&'a Value>>) {
    let mut order = Vec::new();
    let mut by_element: HashMap<Element, Vec<&Value>> = HashMap::new();
    for item in list.into_iter().flatten() {
        let Ok(element) = identify(schema, item) else { continue };
        let values = by_element.entry(element.clone()).or_default();
        if values.is_empty() {
            order.push(element);
        }
        values.push(item);
    }
    (order, by_element)
}

/// The live object with the applied one laid over it.
pub(super) fn merge(schema: Option<&Schema>, live: &Value, applied: &Value) -> Result<Value, Malformed> {
    match (live, applied) {
        (Value::Object(old), Value::Object(new)) if is_granular_map(schema, applied) => {
            let unchanged = old.iter().filter(|(name, _)| !new.contains_key(*name));
            let mut merged: Map<String, Value> = unchanged.map(|(name, value)| (name.clone(), value.clone())).collect();
            for (name, value) in new {
                let value = merge(field(schema, name).0, old.get(name).unwrap_or(&Value::Null), value);
                merged.insert(name.clone(), value.map_err(|error| below(name, &error))?);
            }
            Ok(Value::Object(merged))
        }
        (_, Value::Object(new)) if is_granular_map(schema, applied) => {
            // Nothing to merge with, but keyed lists inside must still be well-formed.
            let mut merged = Map::new();
            for (name, value) in new {
                let value = merge(field(schema, name).0, &Value::Null, value);
                merged.insert(name.clone(), value.map_err(|error| below(name, &error))?);
            }
            Ok(Value::Object(merged))
        }
        (_, Value::Array(new)) if is_granular_list(schema, applied) => {
            let none = Vec::new();
            merge_lists(schema, live.as_array().unwrap_or(&none), new)
        }
        // An explicit null does not erase what others put below.
        (Value::Object(_), Value::Null) if is_granular_map(schema, live) => Ok(live.clone()),
        (Value::Array(_), Value::Null) if is_granular_list(schema, live) => Ok(live.clone()),
        _ => Ok(applied.clone()),
    }
}

/// Prefixes an error with the field in which it occurred.
fn below(name: &str, error: &str) -> Malformed {
    let separator = if error.starts_with('.') { "" } else { ": " };
    format!(".{name}{separator}{error}")
}

/// Items that both sides have follow the applied order; items that only the live list has keep their place before
/// the shared item that followed them.
fn merge_lists(schema: Option<&Schema>, live: &[Value], applied: &[Value]) -> Result<Value, Malformed> {
    let live_ids = live.iter().map(|item| identify(schema, item)).collect::<Result<Vec<_>, _>>()?;
    let applied_ids = applied.iter().map(|item| identify(schema, item)).collect::<Result<Vec<_>, _>>()?;
    let mut in_applied = HashSet::new();
    for id in &applied_ids {
        if !in_applied.insert(id) {
            return Err(format!("duplicate entries for key {id}"));
        }
    }
    let mut by_id: HashMap<&Element, Option<&Value>> = HashMap::new();
    for (id, item) in live_ids.iter().zip(live) {
        // A repeated live item is not merged with the applied one.
        by_id.entry(id).and_modify(|found| *found = None).or_insert(Some(item));
    }
    let shared: Vec<&Element> = applied_ids.iter().filter(|id| by_id.contains_key(*id)).collect();
    let (mut next_shared, mut done) = (0, HashSet::new());
    let mut merged = Vec::with_capacity(live.len().max(applied.len()));
    let (mut at_live, mut at_applied) = (0, 0);
    while at_live < live.len() || at_applied < applied.len() {
        if at_live < live.len() && at_applied < applied.len() {
            let id = &live_ids[at_live];
            if id != &applied_ids[at_applied]
                && in_applied.contains(id)
                && shared.get(next_shared).is_some_and(|next| *next != id)
            {
                at_live += 1;
                continue;
            }
        }
        if at_live < live.len() {
            let id = &live_ids[at_live];
            if !in_applied.contains(id) {
                merged.push(live[at_live].clone());
                at_live += 1;
                continue;
            }
            if done.contains(id) || (at_applied < applied.len() && *id == applied_ids[at_applied]) {
                at_live += 1;
            }
        }
        if at_applied < applied.len() {
            let id = &applied_ids[at_applied];
            let item = &applied[at_applied];
            let old = by_id.get(id).copied().flatten().unwrap_or(&Value::Null);
            merged.push(merge(items(schema), old, item)?);
            if shared.get(next_shared).is_some_and(|next| *next == id) {
                next_shared += 1;
            }
            done.insert(id);
            at_applied += 1;
        } else if at_live < live.len() {
            // What is left of the live list was merged already.
            let id = &live_ids[at_live];
            if in_applied.contains(id) {
                at_live += 1;
            }
        }
    }
    Ok(Value::Array(merged))
}

pub(super) fn remove(schema: Option<&Schema>, value: &Value, set: &Set) -> Value {
    match value {
        Value::Object(fields) if is_granular_map(schema, value) => {
            let mut left = Map::new();
            for (name, child) in fields {
                let element = Element::Field(name.clone());
                if set.has(&element) {
                    continue;
                }
                let child = match set.below(&element) {
                    Some(below) => remove(field(schema, name).0, child, below),
                    None => child.clone(),
                };
                left.insert(name.clone(), child);
            }
            Value::Object(left)
        }
        Value::Array(list) if is_granular_list(schema, value) => {
            let mut left = Vec::with_capacity(list.len());
            for item in list {
                let Ok(element) = identify(schema, item) else {
                    left.push(item.clone());
                    continue;
                };
                if set.has(&element) {
                    continue;
                }
                left.push(match set.below(&element) {
                    Some(below) => remove(items(schema), item, below),
                    None => item.clone(),
                });
            }
            Value::Array(left)
        }
        _ => value.clone(),
    }
}

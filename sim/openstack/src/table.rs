//! Resources as JSON objects, in the order in which they were made.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

/// Resources of one kind by id. Fields whose name begins with `_` are the simulation's own and are never shown.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: BTreeMap<u64, Value>,
    places: HashMap<String, u64>,
    next: u64,
}

impl Table {
    /// Adds or replaces a resource; it has its id in `id`.
    pub fn insert(&mut self, resource: Value) {
        let id = text(&resource, "id").to_owned();
        let place = self.places.get(&id).copied().unwrap_or(self.next);
        self.next = self.next.max(place + 1);
        self.places.insert(id, place);
        self.rows.insert(place, resource);
    }

    pub fn get(&self, id: &str) -> Option<&Value> {
        self.places.get(id).and_then(|place| self.rows.get(place))
    }

    pub fn get_mut(&mut self, id: &str) -> Option<&mut Value> {
        let place = self.places.get(id)?;
        self.rows.get_mut(place)
    }

    pub fn remove(&mut self, id: &str) -> Option<Value> {
        let place = self.places.remove(id)?;
        self.rows.remove(&place)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.rows.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.rows.values_mut()
    }

    /// Ids of the resources for which `holds`.
    pub fn ids(&self, holds: impl Fn(&Value) -> bool) -> Vec<String> {
        self.iter().filter(|resource| holds(resource)).map(|resource| text(resource, "id").to_owned()).collect()
    }

    /// How many resources a project has.
    pub fn count(&self, project: &str) -> u64 {
        self.iter().filter(|resource| text(resource, "project_id") == project).count() as u64
    }
}

/// A field as text; empty when it is none.
pub(super) fn text<'a>(resource: &'a Value, field: &str) -> &'a str {
    resource[field].as_str().unwrap_or_default()
}

/// Elements of a field that is a list.
pub(super) fn items<'a>(resource: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    resource[field].as_array().into_iter().flatten()
}

/// Texts of a field that is a list.
pub(super) fn texts<'a>(resource: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    items(resource, field).filter_map(Value::as_str)
}

/// A resource without the simulation's own fields; with `fields` only these.
pub(super) fn shown(resource: &Value, fields: &[&str]) -> Value {
    let Some(all) = resource.as_object() else { return resource.clone() };
    let chosen =
        all.iter().filter(|(name, _)| !name.starts_with('_') && (fields.is_empty() || fields.contains(&name.as_str())));
    Value::Object(chosen.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Puts all of `from`'s fields into `into`.
pub(super) fn merge(into: &mut Value, from: Map<String, Value>) {
    if let Some(fields) = into.as_object_mut() {
        fields.extend(from);
    }
}

//! Entries of `metadata.managedFields`.

use serde_json::{Map, Value, json};

use super::set::Set;
use super::{Writer, typed};
use crate::schema::Schema;

/// More entries of non-apply writers than this are merged into one.
const MAX_UPDATERS: usize = 10;
/// Owner of what the oldest of too many writers owned.
const ANCIENT: &str = "ancient-changes";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One entry of `metadata.managedFields`.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) fields: Fields,
}

/// The fields of an entry: as JSON until they have to be parsed, since most writes touch few entries.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// `FieldsV1`; outdated once `read` is set.
    stored: Value,
    read: Option<Set>,
}

impl Fields {
    pub(super) fn read(&mut self) -> &mut Set {
        // What was stored was written by this server, so it can be read.
        self.read.get_or_insert_with(|| Set::from_fields_v1(&self.stored).unwrap_or_default())
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.read {
            Some(set) => set.is_empty(),
            None => self.stored.as_object().is_none_or(Map::is_empty),
        }
    }

    /// Whether the two sets have a member in common.
    pub(super) fn meets(&self, other: &Set) -> bool {
        match &self.read {
            Some(set) => {
                let mut common = set.clone();
                common.intersect(other);
                !common.is_empty()
            }
            None => other.meets(&self.stored),
        }
    }

    /// Removes the members of `other`. Returns whether there were any.
    pub(super) fn subtract(&mut self, other: &Set) -> bool {
        let meets = self.meets(other);
        if meets {
            self.read().subtract(other);
        }
        meets
    }

    /// Whether it has members inside of what the schema says is atomic.
    pub(super) fn is_finer(&self, schema: Option<&Schema>) -> bool {
        match &self.read {
            Some(_) => true,
            None => typed::is_finer(&self.stored, schema),
        }
    }
}

impl Entry {
    pub(super) fn of(writer: Writer<'_>, operation: Operation, object: &Value, fields: Set) -> Self {
        Self {
            manager: writer.manager.to_owned(),
            operation,
            api_version: object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned(),
            subresource: writer.subresource.unwrap_or_default().to_owned(),
            time: Some(writer.now.to_owned()),
            fields: Fields { stored: Value::Null, read: Some(fields) },
        }
    }

    /// Whether both entries belong to one owner: appliers stay the same in every version.
    pub(super) fn is_same_owner(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// `None` when it is no valid entry.
    fn decode(mut entry: Value) -> Option<Self> {
        let operation = match entry.get("operation")?.as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let mut take = |key: &str| entry.get_mut(key).map(Value::take);
        let mut text = |key: &str| match take(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (manager, api_version) = (text("manager").unwrap_or_default(), text("apiVersion").unwrap_or_default());
        let (subresource, time) = (text("subresource").unwrap_or_default(), text("time"));
        let fields = Fields { stored: take("fieldsV1").unwrap_or_else(|| json!({})), read: None };
        Some(Self { manager, operation, api_version, subresource, time, fields })
    }

    fn encode(mut self) -> Value {
        let mut json = Map::new();
        json.insert("manager".to_owned(), Value::String(self.manager));
        let operation = if self.operation == Operation::Apply { "Apply" } else { "Update" };
        json.insert("operation".to_owned(), json!(operation));
        json.insert("apiVersion".to_owned(), Value::String(self.api_version));
        if let Some(time) = self.time {
            json.insert("time".to_owned(), Value::String(time));
        }
        json.insert("fieldsType".to_owned(), json!("FieldsV1"));
        let fields = self.fields.read.take().map_or(self.fields.stored, |set| set.to_fields_v1());
        json.insert("fieldsV1".to_owned(), fields);
        if !self.subresource.is_empty() {
            json.insert("subresource".to_owned(), Value::String(self.subresource));
        }
        Value::Object(json)
    }
}

/// The stored entries; none when they cannot be decoded.
pub(super) fn stored(list: Value) -> Vec<Entry> {
    let Value::Array(list) = list else { return Vec::new() };
    list.into_iter().map(Entry::decode).collect::<Option<_>>().unwrap_or_default()
}

/// The entries that a client sent; `None` when one cannot be decoded.
pub(super) fn stated(list: &Value) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for entry in list.as_array()? {
        let mut entry = Entry::decode(entry.clone())?;
        entry.fields.read = Some(Set::from_fields_v1(&entry.fields.stored)?);
        match entries.iter_mut().find(|known| known.is_same_owner(&entry)) {
            Some(known) => known.fields.read().union(entry.fields.read()),
            None => entries.push(entry),
        }
    }
    Some(entries)
}

/// The entries as JSON in a stable order; null when there are none.
pub(super) fn list(mut entries: Vec<Entry>) -> Value {
    entries.retain(|entry| !entry.fields.is_empty());
    cap(&mut entries);
    entries.sort_by(|left, right| {
        (left.operation, &left.time, &left.manager, &left.api_version, &left.subresource).cmp(&(
            right.operation,
            &right.time,
            &right.manager,
            &right.api_version,
            &right.subresource,
        ))
    });
    if entries.is_empty() { Value::Null } else { entries.into_iter().map(Entry::encode).collect() }
}

/// Merges the oldest non-apply entries into one per version until few enough are left.
fn cap(entries: &mut Vec<Entry>) {
    let updaters = |entries: &[Entry]| entries.iter().filter(|entry| entry.operation == Operation::Update).count();
    while updaters(entries) > MAX_UPDATERS {
        let oldest = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.operation == Operation::Update && entry.manager != ANCIENT)
            .min_by(|(_, left), (_, right)| (&left.time, &left.manager).cmp(&(&right.time, &right.manager)))
            .map(|(index, _)| index);
        let Some(oldest) = oldest else { return };
        let mut old = entries.swap_remove(oldest);
        old.manager = ANCIENT.to_owned();
        old.subresource = String::new();
        match entries.iter_mut().find(|entry| entry.is_same_owner(&old)) {
            Some(ancient) => {
                ancient.fields.read().union(old.fields.read());
                ancient.time = ancient.time.take().max(old.time);
            }
            // The first merge only renames; the count falls from the second on.
            None => entries.push(old),
        }
    }
}

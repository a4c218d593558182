//! `metadata.managedFields`: who owns what.

use serde_json::{Map, Value, json};

use super::set::Set;

/// More entries of non-apply writers than this are merged into one.
const MAX_UPDATERS: usize = 10;
/// Owner of what the oldest of too many writers owned.
const ANCIENT: &str = "ancient-changes";

/// How an owner came to own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) fields: Set,
}

impl Entry {
    /// Whether both are one owner: appliers stay the same when they move to another version.
    pub(super) fn is_same_owner(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

/// Reads `managedFields`; `None` when an entry cannot be understood.
pub(super) fn decode(list: &Value) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for entry in list.as_array()? {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let fields = match entry.get("fieldsV1") {
            Some(fields) => Set::from_fields_v1(fields)?,
            None => Set::default(),
        };
        let entry = Entry {
            manager: text("manager"),
            operation,
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            fields,
        };
        match entries.iter_mut().find(|known| known.is_same_owner(&entry)) {
            Some(known) => known.fields.union(&entry.fields),
            None => entries.push(entry),
        }
    }
    Some(entries)
}

/// The entries of an object; none when it has none or when they cannot be understood.
pub(super) fn of(object: &Value) -> Vec<Entry> {
    object.pointer("/metadata/managedFields").and_then(decode).unwrap_or_default()
}

/// Writes the entries into an object, in the order that is stable between writes.
pub(super) fn store(object: &mut Value, mut entries: Vec<Entry>) {
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
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), entries.iter().map(encode).collect());
    }
}

fn encode(entry: &Entry) -> Value {
    let mut json = Map::new();
    json.insert("manager".to_owned(), json!(entry.manager));
    json.insert("operation".to_owned(), json!(if entry.operation == Operation::Apply { "Apply" } else { "Update" }));
    json.insert("apiVersion".to_owned(), json!(entry.api_version));
    if let Some(time) = &entry.time {
        json.insert("time".to_owned(), json!(time));
    }
    json.insert("fieldsType".to_owned(), json!("FieldsV1"));
    json.insert("fieldsV1".to_owned(), entry.fields.to_fields_v1());
    if !entry.subresource.is_empty() {
        json.insert("subresource".to_owned(), json!(entry.subresource));
    }
    Value::Object(json)
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
                ancient.fields.union(&old.fields);
                ancient.time = ancient.time.take().max(old.time);
            }
            // The first merge only renames; the count falls from the second on.
            None => entries.push(old),
        }
    }
}

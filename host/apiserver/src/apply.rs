//! Server-side apply and the ownership of fields.
//!
//! An object carries in `metadata.managedFields` which writer specified which field. An apply states everything its
//! writer wants: fields that it stated before and no longer states disappear unless another writer holds them, and
//! a field that another writer holds with another value is a conflict unless the apply is forced. Every other write
//! owns exactly what it changes. Which lists and maps are owned item by item comes from the schema.
//!
//! Entries of other API versions are compared by their paths as they are; fields that were renamed between versions
//! therefore count as different fields.
//!
//! The caller removes from the input what the endpoint ignores: `status` on the main endpoint of a kind with that
//! subresource. On `status` itself only `status` is owned.

mod managed;
mod set;
mod typed;

use std::fmt;

use serde_json::{Map, Value};

use self::managed::{Entry, Operation};
use self::set::Set;
use crate::schema::Schema;

/// Owner of what was there before anyone applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields that nobody owns, below `metadata`.
const UNOWNED_METADATA: &[&str] = &[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Why an apply is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other writers own fields that the apply would change.
    #[error("{}", conflicts_text(.0))]
    Conflicts(Vec<Conflict>),
    /// `metadata.managedFields` is not for appliers to state.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsStated,
    /// The object does not fit the list types of its schema.
    #[error("failed to create typed patch object: {0}")]
    Malformed(String),
}

/// A field of another writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The other writer.
    pub manager: String,
    /// The version through which it wrote.
    pub api_version: String,
    /// It applied too; otherwise it wrote in another way, and is told by version and time.
    pub applied: bool,
    /// The subresource through which it wrote; empty for the object itself.
    pub subresource: String,
    /// When it wrote.
    pub time: Option<String>,
    /// Such as `.spec.replicas`.
    pub field: String,
}

impl fmt::Display for Conflict {
    /// The message of the cause with reason `FieldManagerConflict`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "conflict with {:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if self.applied {
            return Ok(());
        }
        write!(f, " using {}", self.api_version)?;
        match &self.time {
            Some(time) => write!(f, " at {time}"),
            None => Ok(()),
        }
    }
}

fn conflicts_text(conflicts: &[Conflict]) -> String {
    match conflicts {
        [one] => format!("Apply failed with 1 conflict: {one}: {}", one.field),
        many => {
            let mut text = format!("Apply failed with {} conflicts:", many.len());
            let mut last = String::new();
            for conflict in many {
                let with = conflict.to_string();
                if with != last {
                    text.push_str(if last.is_empty() { " " } else { "\n" });
                    text.push_str(&with.replacen("conflict", "conflicts", 1));
                    text.push(':');
                    last = with;
                }
                text.push_str(&format!("\n- {}", conflict.field));
            }
            text
        }
    }
}

/// Applies a configuration. The result is what is to be stored, `managedFields` included; it equals `live` when the
/// apply changes nothing, so that the caller can leave the store alone. `now` is RFC 3339 in seconds.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    schema: Option<&Schema>,
    manager: &str,
    force: bool,
    subresource: Option<&str>,
    now: &str,
) -> Result<Value, ApplyError> {
    let stated = applied.pointer("/metadata/managedFields");
    if stated.is_some_and(|list| list.as_array().is_none_or(|list| !list.is_empty()) && !list.is_null()) {
        return Err(ApplyError::ManagedFieldsStated);
    }
    let empty = Value::Object(Map::new());
    let live = live.unwrap_or(&empty);
    let before = managed::of(live);
    let mut entries = before.clone();
    for entry in &mut entries {
        typed::reconcile(&mut entry.fields, schema);
    }
    let bare = without_managed_fields(live);
    if entries.is_empty() && bare.as_object().is_some_and(|fields| !fields.is_empty()) {
        let everything = owned(typed::compare(schema, &empty, &bare).added, None);
        entries.push(Entry {
            manager: BEFORE_FIRST_APPLY.to_owned(),
            operation: Operation::Update,
            api_version: api_version(live),
            subresource: String::new(),
            time: Some(now.to_owned()),
            fields: everything,
        });
    }
    let applied = without_managed_fields(applied);
    let mut own = Entry {
        manager: manager.to_owned(),
        operation: Operation::Apply,
        api_version: api_version(&applied),
        subresource: subresource.unwrap_or_default().to_owned(),
        time: Some(now.to_owned()),
        fields: owned(typed::to_set(schema, &applied), subresource),
    };
    let merged = typed::merge(schema, &bare, &applied).map_err(ApplyError::Malformed)?;
    let place = entries.iter().position(|entry| entry.is_same_owner(&own));
    let last = place.map(|place| entries.remove(place));
    let mut result = match &last {
        Some(last) => prune(schema, merged, &last.fields, &own.fields, &entries),
        None => merged,
    };
    let changes = typed::compare(schema, &bare, &result);
    give_up(&changes, &mut entries, force, subresource)?;
    if changes.is_empty() && last.is_some_and(|last| last.fields == own.fields && last.api_version == own.api_version) {
        // The same statement again: the time of the first one stays.
        own.time = before.iter().find(|entry| entry.is_same_owner(&own)).and_then(|entry| entry.time.clone());
    }
    entries.push(own);
    managed::store(&mut result, entries);
    Ok(result)
}

/// Records who owns what after a write that is no apply. `new` is what is to be stored; its `managedFields` are replaced.
/// Ownership of objects that nobody tracked (no `managedFields`) is not started by an update.
pub fn update(
    live: Option<&Value>,
    new: &mut Value,
    schema: Option<&Schema>,
    manager: &str,
    subresource: Option<&str>,
    now: &str,
) {
    let stated = if subresource.is_none() { new.pointer("/metadata/managedFields") } else { None };
    let reset = stated
        .and_then(Value::as_array)
        .is_some_and(|list| list.is_empty() || (list.len() == 1 && list[0].as_object().is_some_and(Map::is_empty)));
    if reset && live.is_some() {
        managed::store(new, Vec::new());
        return;
    }
    let before = live.map(managed::of).unwrap_or_default();
    let mut entries = match stated.and_then(managed::decode) {
        Some(entries) => entries,
        None => before.clone(),
    };
    if entries.is_empty() && live.is_some() {
        managed::store(new, entries);
        return;
    }
    for entry in &mut entries {
        typed::reconcile(&mut entry.fields, schema);
    }
    let empty = Value::Object(Map::new());
    let old = without_managed_fields(live.unwrap_or(&empty));
    let bare = without_managed_fields(new);
    let changes = typed::compare(schema, &old, &bare);
    let own = Entry {
        manager: manager.to_owned(),
        operation: Operation::Update,
        api_version: api_version(new),
        subresource: subresource.unwrap_or_default().to_owned(),
        time: Some(now.to_owned()),
        fields: Set::default(),
    };
    let place = entries.iter().position(|entry| entry.is_same_owner(&own));
    let mut mine = place.map(|place| entries.remove(place)).unwrap_or(own);
    take_from_others(&changes, &mut entries, subresource);
    mine.fields.subtract(&changes.removed);
    let mut gained = changes.added;
    gained.union(&changes.modified);
    let gained = owned(gained, subresource);
    if !gained.is_empty() {
        mine.time = Some(now.to_owned());
        mine.fields.union(&gained);
    }
    entries.push(mine);
    managed::store(new, entries);
}

/// Removes what the last statement held, this one does not, and nobody else holds.
fn prune(schema: Option<&Schema>, merged: Value, last: &Set, own: &Set, others: &[Entry]) -> Value {
    let mut let_go = last.clone();
    let_go.subtract(own);
    if let_go.is_empty() {
        return merged;
    }
    let with_parents = |set: &Set| typed::with_declared_parents(set, schema);
    let last = with_parents(last);
    let bare = typed::remove(schema, &merged, &last);
    let merged_set = with_parents(&typed::to_set(schema, &merged));
    let mut kept = with_parents(&typed::to_set(schema, &bare));
    kept.union(&with_parents(own));
    for other in others {
        kept.union(&with_parents(&other.fields));
    }
    let mut gone = merged_set.clone();
    gone.subtract(&kept);
    let with_owned = typed::remove(schema, &merged, &gone);
    // What nobody holds and the last statement did not hold either stays.
    let mut dropped = merged_set;
    dropped.subtract(&with_parents(&typed::to_set(schema, &with_owned)));
    dropped.intersect(&last);
    typed::remove(schema, &merged, &dropped)
}

/// Takes changed fields away from their owners, or reports them.
fn give_up(
    changes: &typed::Comparison,
    entries: &mut Vec<Entry>,
    force: bool,
    subresource: Option<&str>,
) -> Result<(), ApplyError> {
    if !force {
        let mut changed = changes.modified.clone();
        changed.union(&changes.added);
        let changed = owned(changed, subresource);
        let mut conflicts = Vec::new();
        for entry in entries.iter() {
            let mut common = entry.fields.clone();
            common.intersect(&changed);
            conflicts.extend(common.paths().into_iter().map(|field| Conflict {
                manager: entry.manager.clone(),
                api_version: entry.api_version.clone(),
                applied: entry.operation == Operation::Apply,
                subresource: entry.subresource.clone(),
                time: entry.time.clone(),
                field,
            }));
        }
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    take_from_others(changes, entries, subresource);
    Ok(())
}

fn take_from_others(changes: &typed::Comparison, entries: &mut Vec<Entry>, subresource: Option<&str>) {
    let mut lost = changes.modified.clone();
    lost.union(&changes.added);
    lost.union(&changes.removed);
    let lost = owned(lost, subresource);
    for entry in entries.iter_mut() {
        entry.fields.subtract(&lost);
    }
    entries.retain(|entry| !entry.fields.is_empty());
}

/// Without the fields that nobody owns; of the `status` subresource only `status` is left.
fn owned(mut set: Set, subresource: Option<&str>) -> Set {
    if subresource == Some("status") {
        set.keep_only("status");
        return set;
    }
    for name in ["apiVersion", "kind", "metadata"] {
        set.remove_member(name);
    }
    for name in UNOWNED_METADATA {
        set.remove_tree(&["metadata", name]);
    }
    set
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

fn api_version(object: &Value) -> String {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

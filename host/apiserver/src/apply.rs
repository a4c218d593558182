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

/// Field manager that gets the fields of an object nobody tracked before its first apply, named as upstream names it.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Members of `metadata` that never appear in `managedFields`.
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

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Field manager that owns it.
    pub manager: String,
    /// `apiVersion` of its entry in `managedFields`; empty for an applier, which stays the same in every version.
    pub api_version: String,
    /// The subresource through which it wrote; empty for the object itself.
    pub subresource: String,
    /// Path such as `.spec.replicas`.
    pub field: String,
}

impl fmt::Display for Conflict {
    /// The message of the cause with reason `FieldManagerConflict`, as `conflict.go` of apimachinery's `managedfields` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "conflict with {}", self.writer())
    }
}

impl Conflict {
    fn writer(&self) -> String {
        let mut writer = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            writer.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if !self.api_version.is_empty() {
            writer.push_str(&format!(" using {}", self.api_version));
        }
        writer
    }
}

fn conflicts_text(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: {one}: {}", one.field);
    }
    let writers = conflicts.chunk_by(|one, next| one.writer() == next.writer()).map(|same| {
        let fields: String = same.iter().map(|conflict| format!("\n- {}", conflict.field)).collect();
        format!("conflicts with {}:{fields}", same[0].writer())
    });
    format!("Apply failed with {} conflicts: {}", conflicts.len(), writers.collect::<Vec<_>>().join("\n"))
}

/// Attributes of a write that its entry in `managedFields` records.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// Field manager, such as `kubectl`.
    pub manager: &'a str,
    /// `status` or another subresource; `None` for the object itself.
    pub subresource: Option<&'a str>,
    /// Time of the write: RFC 3339 in seconds.
    pub now: &'a str,
}

/// `metadata.managedFields` after a write.
#[derive(Debug)]
pub struct Owners {
    /// The entries; null when there are none.
    pub list: Value,
    /// Whether the entries differ from those before the write.
    pub changed: bool,
}

/// Applies a configuration. `live`, `applied` and the result are without `managedFields`: those of the live object are
/// `owners`, and null when it has none. When the apply changes nothing, the result equals `live`, and the caller can leave the
/// store alone.
pub fn apply(
    live: Option<&Value>,
    owners: Value,
    applied: &Value,
    schema: Option<&Schema>,
    writer: Writer<'_>,
    force: bool,
) -> Result<(Value, Owners), ApplyError> {
    if applied.pointer("/metadata/managedFields").is_some() {
        return Err(ApplyError::ManagedFieldsStated);
    }
    let subresource = writer.subresource;
    let empty = Value::Object(Map::new());
    let live = live.unwrap_or(&empty);
    let mut entries = managed::stored(owners);
    let mut changed = reconcile(&mut entries, schema);
    if entries.is_empty() && live.as_object().is_some_and(|fields| !fields.is_empty()) {
        let everything = owned(typed::compare(schema, &empty, live).added, None);
        let unknown = Writer { manager: BEFORE_FIRST_APPLY, subresource: None, now: writer.now };
        entries.push(Entry::of(unknown, Operation::Update, live, everything));
        changed = true;
    }
    let stated = owned(typed::to_set(schema, applied), subresource);
    let merged = typed::merge(schema, live, applied).map_err(ApplyError::Malformed)?;
    let mut own = Entry::of(writer, Operation::Apply, applied, stated);
    let place = entries.iter().position(|entry| entry.is_same_owner(&own));
    let mut last = place.map(|place| entries.remove(place));
    let result = match &mut last {
        Some(last) => prune(schema, merged, last.fields.read(), own.fields.read(), &mut entries),
        None => merged,
    };
    let changes = typed::compare(schema, live, &result);
    changed |= give_up(&changes, &mut entries, force, subresource)?;
    let again = changes.is_empty()
        && last
            .as_mut()
            .is_some_and(|last| last.api_version == own.api_version && last.fields.read() == own.fields.read());
    match last.filter(|_| again) {
        // The same statement: the time of the first one stays.
        Some(last) => own.time = last.time,
        None => changed = true,
    }
    entries.push(own);
    Ok((result, Owners { list: managed::list(entries), changed }))
}

/// `managedFields` after a write that is no apply. The objects come without them: `owners` are those of the live object, `stated`
/// those that the client sent, or null. An update does not start to track an object without `managedFields`.
pub fn update(
    live: Option<&Value>,
    owners: Value,
    new: &Value,
    stated: &Value,
    schema: Option<&Schema>,
    writer: Writer<'_>,
) -> Owners {
    let subresource = writer.subresource;
    let stated = Some(stated).filter(|stated| subresource.is_none() && **stated != owners);
    let reset = stated
        .and_then(Value::as_array)
        .is_some_and(|list| list.is_empty() || (list.len() == 1 && list[0].as_object().is_some_and(Map::is_empty)));
    if reset && live.is_some() {
        return Owners { list: Value::Null, changed: true };
    }
    let stated = stated.and_then(managed::stated);
    let mut changed = stated.is_some();
    let mut entries = stated.unwrap_or_else(|| managed::stored(owners));
    if entries.is_empty() && live.is_some() {
        return Owners { list: Value::Null, changed };
    }
    changed |= reconcile(&mut entries, schema);
    let empty = Value::Object(Map::new());
    let changes = typed::compare(schema, live.unwrap_or(&empty), new);
    let own = Entry::of(writer, Operation::Update, new, Set::default());
    let place = entries.iter().position(|entry| entry.is_same_owner(&own));
    let mut mine = place.map(|place| entries.remove(place)).unwrap_or(own);
    changed |= take_from_others(&changes, &mut entries, subresource);
    changed |= mine.fields.subtract(&changes.removed);
    let mut gained = changes.added;
    gained.union(&changes.modified);
    let gained = owned(gained, subresource);
    if !gained.is_empty() {
        mine.time = Some(writer.now.to_owned());
        mine.fields.read().union(&gained);
        changed = true;
    }
    entries.push(mine);
    Owners { list: managed::list(entries), changed }
}

/// Coarsens entries where the schema has made lists or maps atomic since. Returns whether any changed.
fn reconcile(entries: &mut [Entry], schema: Option<&Schema>) -> bool {
    let mut changed = false;
    for entry in entries {
        if entry.fields.is_finer(schema) {
            typed::reconcile(entry.fields.read(), schema);
            changed = true;
        }
    }
    changed
}

/// Removes fields that this manager's last apply had, this one lacks, and nobody else owns.
fn prune(schema: Option<&Schema>, merged: Value, last: &Set, own: &Set, others: &mut [Entry]) -> Value {
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
        kept.union(&with_parents(other.fields.read()));
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

/// Takes changed fields away from their owners when forced, else reports them as conflicts. Returns whether there were
/// any.
fn give_up(
    changes: &typed::Comparison,
    entries: &mut Vec<Entry>,
    force: bool,
    subresource: Option<&str>,
) -> Result<bool, ApplyError> {
    if !force {
        let mut changed = changes.modified.clone();
        changed.union(&changes.added);
        let changed = owned(changed, subresource);
        let mut conflicts = Vec::new();
        for entry in entries.iter_mut().filter(|entry| entry.fields.meets(&changed)) {
            let mut common = entry.fields.read().clone();
            common.intersect(&changed);
            conflicts.extend(common.paths().into_iter().map(|field| Conflict {
                manager: entry.manager.clone(),
                api_version: match entry.operation {
                    Operation::Apply => String::new(),
                    Operation::Update => entry.api_version.clone(),
                },
                subresource: entry.subresource.clone(),
                field,
            }));
        }
        // A writer's conflicts stand together, and its fields stay in order.
        conflicts.sort_by_key(Conflict::writer);
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    Ok(take_from_others(changes, entries, subresource))
}

fn take_from_others(changes: &typed::Comparison, entries: &mut Vec<Entry>, subresource: Option<&str>) -> bool {
    if entries.is_empty() || changes.is_empty() {
        return false;
    }
    let mut lost = changes.modified.clone();
    lost.union(&changes.added);
    lost.union(&changes.removed);
    let lost = owned(lost, subresource);
    let mut taken = false;
    for entry in entries.iter_mut() {
        taken |= entry.fields.subtract(&lost);
    }
    entries.retain(|entry| !entry.fields.is_empty());
    taken
}

/// Drops what `managedFields` never lists; for the `status` subresource keeps only `status`.
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

#[cfg(test)]
mod tests;

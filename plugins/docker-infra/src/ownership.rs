//! Whose a container is, and when it is sure that none of an object's is left.
//!
//! A container carries the uid of the object that it was made for, and the object's kind, namespace and name. The uid alone
//! decides, but for one case: an object that was moved to another management cluster has another uid there. Then the
//! container's other label must name the object, and the object must name the container.

use capwasm_api::time;
use capwasm_sdk::{Context, Problem, object};
use serde_json::{Map, Value, json};

use crate::engine::{Container, Engine, EngineError};
use crate::kinds::{OBJECT_LABEL, UID_LABEL};

/// Reason of the condition while nobody knows whether the engine made something.
pub const UNANSWERED: &str = "CreationUnanswered";
/// How long after an object's deletion an engine may still make what it was asked for and did not answer.
const GRACE_SECONDS: u64 = 30;
/// How many containers a pass removes; no object has more than one but for a mistake.
const MOST_REMOVED: usize = 32;

/// `Kind/namespace/name`.
fn named(object: &Value) -> String {
    let kind = object::text(object, "/kind");
    format!("{kind}/{}/{}", object::namespace(object), object::name(object))
}

/// The labels that say whose a container is.
pub fn labels(object: &Value) -> Map<String, Value> {
    let labels = json!({UID_LABEL: object::uid(object), OBJECT_LABEL: named(object)});
    labels.as_object().cloned().unwrap_or_default()
}

/// Whether a container was made for an object; `names_it` says whether the object names the container.
pub fn is_ours(container: &Container, object: &Value, names_it: bool) -> bool {
    let uid = object::uid(object);
    (!uid.is_empty() && container.label(UID_LABEL) == Some(uid)) || is_moved(container, object, names_it)
}

/// Whether a container came with an object that was moved.
pub fn is_moved(container: &Container, object: &Value, names_it: bool) -> bool {
    names_it && container.label(UID_LABEL).is_some() && container.label(OBJECT_LABEL) == Some(named(object).as_str())
}

/// Removes every container of an object. `name` is that of the container that came with the object if it was moved, and
/// `names_it` says whether the object names that one. True when none is left, seen after the last removal.
pub fn remove(
    engine: &Engine<'_>,
    object: &Value,
    name: &str,
    names_it: impl Fn(&Container) -> bool,
) -> Result<bool, EngineError> {
    let left = || -> Result<Vec<String>, EngineError> {
        let mut ids = engine.containers_labelled(UID_LABEL, object::uid(object))?;
        if ids.is_empty() && !name.is_empty() {
            let moved = engine.container(name)?.filter(|found| is_moved(found, object, names_it(found)));
            ids.extend(moved.map(|found| found.id));
        }
        Ok(ids)
    };
    let ids = left()?;
    if ids.is_empty() {
        return Ok(true);
    }
    for id in ids.iter().take(MOST_REMOVED) {
        engine.remove(id)?;
    }
    Ok(left()?.is_empty())
}

/// A problem of a request that makes something: whether it did may be unknown.
pub fn unanswered(error: EngineError) -> Problem {
    if error.is_unanswered() { Problem::transient(UNANSWERED, error.to_string()) } else { error.into() }
}

/// Reason of the condition for a problem. Doubt stays until the container was seen: a later failure to look proves nothing.
pub fn reason(object: &Value, condition: &str, problem: &Problem, usual: &'static str) -> &'static str {
    if problem.reason == UNANSWERED || is_unanswered(object, condition) { UNANSWERED } else { usual }
}

fn is_unanswered(object: &Value, condition: &str) -> bool {
    object::condition(object, condition).is_some_and(|known| object::text(known, "/reason") == UNANSWERED)
}

/// Whether something that was asked for before the object's deletion may still come into being.
pub fn is_owed(cx: &Context<'_>, object: &Value, condition: &str) -> bool {
    let deleted = time::parse(object::text(object, "/metadata/deletionTimestamp")).unwrap_or_default();
    is_unanswered(object, condition) && cx.host.now_ms() / 1_000 < deleted + GRACE_SECONDS
}

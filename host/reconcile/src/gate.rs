//! Whether an object may be acted on at all: the part of that question that every kind shares.

use serde_json::Value;

use crate::meta;

/// What the next step with an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing may be done to it, neither now nor for its deletion.
    Paused,
    /// The finalizer has to be written before the first effect.
    AddFinalizer,
    /// It may be reconciled.
    Reconcile,
    /// It is being deleted and waits for us.
    Delete,
    /// It is being deleted and does not wait for us (any more).
    LetGo,
}

/// The gate for `object`, which we hold with `finalizer`. Pausing holds deletion too.
pub fn gate(object: &Value, finalizer: &str, paused: bool) -> Gate {
    match (meta::is_deleting(object), meta::has_finalizer(object, finalizer)) {
        (true, false) => Gate::LetGo,
        _ if paused => Gate::Paused,
        (true, true) => Gate::Delete,
        (false, false) => Gate::AddFinalizer,
        (false, true) => Gate::Reconcile,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_gate_follows_deletion_finalizer_and_pause() {
        let table = [
            ("new", false, false, false, Gate::AddFinalizer),
            ("held", false, true, false, Gate::Reconcile),
            ("paused before the finalizer", false, false, true, Gate::Paused),
            ("paused", false, true, true, Gate::Paused),
            ("deleting", true, true, false, Gate::Delete),
            ("deleting while paused", true, true, true, Gate::Paused),
            ("deleting, held by others", true, false, false, Gate::LetGo),
            ("deleting, held by others, paused", true, false, true, Gate::LetGo),
        ];
        for (row, deleting, held, paused, expected) in table {
            let mut object = json!({"metadata": {"finalizers": ["another"]}});
            if deleting {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            if held {
                meta::add_finalizer(&mut object, "ours");
            }
            assert_eq!(gate(&object, "ours", paused), expected, "{row}");
        }
    }
}

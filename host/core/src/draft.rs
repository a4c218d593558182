//! The reconciled object on its way from observed to desired.

use std::sync::Arc;

use capwasm_api::conditions::{self, Condition};
use capwasm_api::{defaults, json};
use jiff::Timestamp;
use serde_json::{Value, json};

/// What was observed, and the copy that a decision works on. The copy is defaulted first: where no webhook did, core's
/// first write persists the defaults.
pub(crate) struct Draft {
    observed: Arc<Value>,
    /// As it should be.
    pub(crate) desired: Value,
    now: Timestamp,
}

impl Draft {
    /// A draft that differs from `observed` by its defaults only.
    pub(crate) fn new(observed: &Arc<Value>, now: Timestamp) -> Draft {
        let mut desired = (**observed).clone();
        defaults::default(&mut desired, None);
        Draft { observed: observed.clone(), desired, now }
    }

    /// Adds a finalizer, unless deletion was asked for: then the server refuses new ones.
    pub(crate) fn finalizer(&mut self, finalizer: &str) {
        if json::is_deleting(&self.desired) || self.has_finalizer(finalizer) {
            return;
        }
        let list = json::map(&mut self.desired, &["metadata"]).entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(finalizer.into());
        }
    }

    /// Whether the finalizer is there.
    pub(crate) fn has_finalizer(&self, finalizer: &str) -> bool {
        json::items(&self.desired, "/metadata/finalizers").iter().any(|one| one.as_str() == Some(finalizer))
    }

    /// Sets a condition.
    pub(crate) fn condition(&mut self, condition: &Condition) {
        conditions::set(&mut self.desired, condition, self.now);
    }

    /// Sets a value; null removes it.
    pub(crate) fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        json::set(&mut self.desired, path, value);
    }

    /// Sets a time, unless there is one.
    pub(crate) fn set_once(&mut self, path: &[&str], time: Timestamp) {
        let pointer: String = path.iter().map(|key| format!("/{key}")).collect();
        if json::text(&self.desired, &pointer).is_none() {
            self.set(path, conditions::timestamp(time));
        }
    }

    /// Whether what differs in the status is news for nobody but people, apart from these fields of it.
    pub(crate) fn is_informational(&self, besides: &[&str]) -> bool {
        conditions::is_informational(&self.observed, &self.desired, besides)
    }

    /// The desired object. With `reconciled`, its status says that it is about the generation that the object has once the
    /// draft's own change of the spec is written, so that such a change does not cost a second write of the status.
    pub(crate) fn finish(mut self, reconciled: bool) -> Value {
        if reconciled {
            let generation = json::number(&self.observed, "/metadata/generation").unwrap_or(0);
            let changed = self.observed.get("spec") != self.desired.get("spec");
            self.set(&["status", "observedGeneration"], generation + i64::from(changed));
        }
        self.desired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_that_its_own_change_makes_is_observed_at_once() {
        let observed = Arc::new(json!({"metadata": {"generation": 3}, "spec": {"a": 1}}));
        assert_eq!(Draft::new(&observed, Timestamp::UNIX_EPOCH).finish(true)["status"]["observedGeneration"], 3);
        let mut draft = Draft::new(&observed, Timestamp::UNIX_EPOCH);
        draft.set(&["spec", "a"], 2);
        assert_eq!(draft.finish(true)["status"]["observedGeneration"], 4);
        assert_eq!(Draft::new(&observed, Timestamp::UNIX_EPOCH).finish(false).get("status"), None);
    }

    #[test]
    fn an_object_that_is_being_deleted_gets_no_finalizer() {
        let observed = Arc::new(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        let mut draft = Draft::new(&observed, Timestamp::UNIX_EPOCH);
        draft.finalizer("f");
        assert!(!draft.has_finalizer("f"));
    }
}

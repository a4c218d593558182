//! The reconciled object between observed and desired.

use std::sync::Arc;

use capwasm_api::conditions::{self, Condition};
use capwasm_api::defaults;
use capwasm_api::kinds::{Object, lay_over, view};
use capwasm_object::{json, meta};
use capwasm_reconcile::ReconcileError;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// The observed object, and a copy on which a decision works: spec and status are typed, and laid over the rest at the
/// end. The copy is defaulted first: without an admission webhook, core's first write persists the defaults.
pub(crate) struct Draft<'a, Spec, Status> {
    observed: Arc<Value>,
    /// Spec and status as observed.
    read: &'a Object<Spec, Status>,
    /// The desired object except spec and status.
    pub(crate) object: Value,
    /// The desired spec.
    pub(crate) spec: Spec,
    /// The desired status except conditions.
    pub(crate) status: Status,
    now: Timestamp,
}

pub(crate) fn read<T: DeserializeOwned>(object: &Value) -> Result<T, ReconcileError> {
    view(object).map_err(|error| ReconcileError::failed("InvalidObject", error.to_string()))
}

/// Typed view with defaults, for passes that need them before they decide. A status has no defaults, so it is not
/// copied for that.
pub(crate) fn read_defaulted<Spec, Status>(object: &Value) -> Result<Object<Spec, Status>, ReconcileError>
where
    Spec: DeserializeOwned + Default,
    Status: DeserializeOwned + Default,
{
    let fields = object.as_object().into_iter().flatten().filter(|(name, _)| *name != "status");
    let mut defaulted: Value = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    defaults::default(&mut defaulted, None);
    let Object { metadata, spec, status: IgnoredAny } = read(&defaulted)?;
    let Object::<IgnoredAny, Status> { status, .. } = read(object)?;
    Ok(Object { metadata, spec, status })
}

impl<'a, Spec, Status> Draft<'a, Spec, Status>
where
    Spec: Serialize + Clone + PartialEq,
    Status: Serialize + Clone + PartialEq,
{
    /// A draft that differs from `observed` by defaults only; `read` is the typed view of it.
    pub(crate) fn new(observed: &Arc<Value>, read: &'a Object<Spec, Status>, now: Timestamp) -> Self {
        let mut object = (**observed).clone();
        defaults::default(&mut object, None);
        let (spec, status) = (read.spec.clone(), read.status.clone());
        Draft { observed: observed.clone(), read, object, spec, status, now }
    }

    /// Adds a finalizer, unless the object is being deleted: the server refuses new ones then.
    pub(crate) fn finalizer(&mut self, finalizer: &str) {
        if !meta::is_deleting(&self.object) {
            meta::add_finalizer(&mut self.object, finalizer);
        }
    }

    pub(crate) fn annotate(&mut self, key: &str, value: String) {
        json::set(&mut self.object, &["metadata", "annotations", key], value);
    }

    pub(crate) fn condition(&mut self, condition: &Condition) {
        conditions::set(&mut self.object, condition, self.now);
    }

    /// Writes the present spec into `object`, for copies of it with fields that the typed view lacks.
    pub(crate) fn lay_spec(&mut self) {
        if self.spec != self.read.spec {
            lay_over(field(&mut self.object, "spec"), &self.read.spec, &self.spec);
        }
    }

    /// The desired object. With `reconciled`, `status.observedGeneration` anticipates the draft's own change of the
    /// spec, which saves a second write of the status.
    pub(crate) fn finish(mut self, reconciled: bool) -> Value {
        self.lay_spec();
        if self.status != self.read.status {
            lay_over(field(&mut self.object, "status"), &self.read.status, &self.status);
        }
        if reconciled {
            let generation = json::number(&self.observed, "/metadata/generation").unwrap_or(0);
            let changed = self.observed.get("spec") != self.object.get("spec");
            json::set(&mut self.object, &["status", "observedGeneration"], generation + i64::from(changed));
        }
        self.object
    }
}

/// A field of the object, created if missing.
fn field<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    json::map(object, &[]).entry(name).or_insert(Value::Null)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_api::kinds::{Machine, view};
    use serde_json::json;

    fn machine(metadata: Value) -> (Arc<Value>, Machine) {
        let observed = Arc::new(json!({"metadata": metadata, "spec": {"clusterName": "c", "new": 1}}));
        (observed.clone(), view(&observed).unwrap())
    }

    #[test]
    fn the_generation_that_its_own_change_makes_is_observed_at_once() {
        let (observed, read) = machine(json!({"generation": 3}));
        let draft = || Draft::new(&observed, &read, Timestamp::UNIX_EPOCH);
        assert_eq!(draft().finish(true)["status"], json!({"observedGeneration": 3}));
        let mut changed = draft();
        changed.spec.provider_id = Some("p://m".to_owned());
        changed.status.phase = "Running".to_owned();
        let changed = changed.finish(true);
        assert_eq!(changed["status"], json!({"observedGeneration": 4, "phase": "Running"}));
        assert_eq!(changed["spec"], json!({"clusterName": "c", "new": 1, "providerID": "p://m"}));
        assert_eq!(draft().finish(false), *observed);
    }

    #[test]
    fn an_object_that_is_being_deleted_gets_no_finalizer() {
        let (observed, read) = machine(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        let mut draft = Draft::new(&observed, &read, Timestamp::UNIX_EPOCH);
        draft.finalizer("f");
        assert!(!meta::has_finalizer(&draft.object, "f"));
    }
}

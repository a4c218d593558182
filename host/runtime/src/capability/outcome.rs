//! `outcome`: collects what should be. Writes need a grant for their kind; one that has none becomes an operation that
//! fails in its place, because these functions have no way to answer `denied`.

use std::time::Duration;

use serde_json::Value;
use wasmtime::component::{HasData, Linker};
use wasmtime::{Result, bail};

use crate::bindings::{outcome, types};
use crate::capability::names;
use crate::capability::scope::{Scope, not_granted};
use crate::failure::Stop;
use crate::grants::covers;
use crate::outcome::{Condition, Event, ObjectRef, Operation, Outcome, Place, group};
use crate::refused::Refused;

/// What was collected, and how much more may be.
pub(crate) struct Collector {
    outcome: Outcome,
    used: u64,
    limit: u64,
}

/// What an entry costs besides its text: ten million empty events must not fit into any limit.
const ENTRY_BYTES: usize = 128;

impl Collector {
    pub(crate) fn new(limit: u64) -> Self {
        Collector { outcome: Outcome::default(), used: 0, limit }
    }

    /// Charges bytes of outcome or answer; passing the limit ends the call.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Stop> {
        self.used = self.used.saturating_add(bytes as u64);
        if self.used > self.limit { Err(Stop::Result) } else { Ok(()) }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        self.outcome
    }
}

/// What `outcome` sees.
pub(crate) struct OutcomeView<'a> {
    pub(crate) collector: &'a mut Collector,
    pub(crate) scope: &'a Scope,
}

struct HasOutcome;

impl HasData for HasOutcome {
    type Data<'a> = OutcomeView<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> OutcomeView<'_>) -> Result<()> {
    outcome::add_to_linker::<T, HasOutcome>(linker, view)
}

impl OutcomeView<'_> {
    fn charge(&mut self, texts: &[&str]) -> Result<()> {
        let bytes = texts.iter().map(|text| text.len()).sum::<usize>() + ENTRY_BYTES;
        Ok(self.collector.charge(bytes)?)
    }

    /// As [`OutcomeView::charge`], with all texts of an object's name: each may be as long as the guest's memory.
    fn charge_for(&mut self, target: &types::ObjectRef, texts: &[&str]) -> Result<()> {
        let namespace = target.namespace.as_deref().unwrap_or_default();
        let named = [&target.api_version, &target.kind, namespace, &target.name];
        self.collector.charge(named.iter().map(|text| text.len()).sum())?;
        self.charge(texts)
    }

    fn writable(&self, place: Place, target: &ObjectRef) -> std::result::Result<(), Refused> {
        names::object(target)?;
        let (api_version, kind) = (&target.api_version, &target.kind);
        match place {
            Place::Management => self.scope.write(api_version, kind, target.namespace.as_deref()),
            Place::Workload if covers(&self.scope.grants().workload_writes, group(api_version), kind) => Ok(()),
            Place::Workload => Err(not_granted("workloadWrites", api_version, kind)),
        }
    }

    /// Adds the operation, or its refusal when its target is not granted.
    fn operate(
        &mut self,
        key: String,
        place: Place,
        target: ObjectRef,
        operation: impl FnOnce(String, ObjectRef) -> Operation,
    ) {
        let operation = match self.writable(place, &target) {
            Ok(()) => operation(key, target),
            Err(refused) => Operation::Refused { key, refused },
        };
        self.collector.outcome.operations.push(operation);
    }
}

/// Broken JSON is a bug of the guest, so it traps, and the trap's text says which call it was.
fn parse(call: &str, text: &str) -> Result<Value> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => bail!("outcome.{call}: expected a JSON object"),
        Err(error) => bail!("outcome.{call}: not JSON: {error}"),
    }
}

/// Names the object that a whole JSON object is.
fn reference(call: &str, object: &Value) -> Result<ObjectRef> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    match (text("/apiVersion"), text("/kind"), text("/metadata/name")) {
        (Some(api_version), Some(kind), Some(name)) => {
            Ok(ObjectRef { api_version, kind, namespace: text("/metadata/namespace"), name })
        }
        _ => bail!("outcome.{call}: the object needs apiVersion, kind and metadata.name"),
    }
}

impl outcome::Host for OutcomeView<'_> {
    fn set_status(&mut self, fields: String) -> Result<()> {
        self.charge(&[&fields])?;
        self.collector.outcome.status.push(parse("set-status", &fields)?);
        Ok(())
    }

    fn set_own(&mut self, fields: String) -> Result<()> {
        self.charge(&[&fields])?;
        self.collector.outcome.own.push(parse("set-own", &fields)?);
        Ok(())
    }

    fn set_condition(&mut self, name: String, status: Option<bool>, reason: String, message: String) -> Result<()> {
        self.charge(&[&name, &reason, &message])?;
        self.collector.outcome.conditions.push(Condition { name, status, reason, message });
        Ok(())
    }

    fn emit_event(&mut self, warning: bool, reason: String, message: String) -> Result<()> {
        self.charge(&[&reason, &message])?;
        self.collector.outcome.events.push(Event { warning, reason, message });
        Ok(())
    }

    fn wake_after(&mut self, ms: u64) -> Result<()> {
        let after = Duration::from_millis(ms);
        let earliest = self.collector.outcome.wake_after.map_or(after, |at| at.min(after));
        self.collector.outcome.wake_after = Some(earliest);
        Ok(())
    }

    fn wake_when_applied(&mut self) -> Result<()> {
        self.collector.outcome.wake_when_applied = true;
        Ok(())
    }

    fn create(&mut self, key: String, place: types::Place, object: String) -> Result<()> {
        self.charge(&[&key, &object])?;
        let (place, object) = (place.into(), parse("create", &object)?);
        let target = reference("create", &object)?;
        self.operate(key, place, target, |key, _| Operation::Create { key, place, object });
        Ok(())
    }

    fn apply(&mut self, key: String, place: types::Place, object: String) -> Result<()> {
        self.charge(&[&key, &object])?;
        let (place, object) = (place.into(), parse("apply", &object)?);
        let target = reference("apply", &object)?;
        self.operate(key, place, target, |key, _| Operation::Apply { key, place, object });
        Ok(())
    }

    fn patch(&mut self, key: String, place: types::Place, target: types::ObjectRef, merge: String) -> Result<()> {
        self.charge_for(&target, &[&key, &merge])?;
        let (place, merge) = (place.into(), parse("patch", &merge)?);
        self.operate(key, place, target.into(), |key, target| Operation::Patch { key, place, target, merge });
        Ok(())
    }

    fn set_condition_of(
        &mut self,
        key: String,
        target: types::ObjectRef,
        name: String,
        status: Option<bool>,
        reason: String,
        message: String,
    ) -> Result<()> {
        self.charge_for(&target, &[&key, &name, &reason, &message])?;
        let condition = Condition { name, status, reason, message };
        self.operate(key, Place::Management, target.into(), |key, target| Operation::SetConditionOf {
            key,
            target,
            condition,
        });
        Ok(())
    }

    fn delete(
        &mut self,
        key: String,
        place: types::Place,
        target: types::ObjectRef,
        uid: Option<String>,
    ) -> Result<()> {
        self.charge_for(&target, &[&key, uid.as_deref().unwrap_or_default()])?;
        let place = place.into();
        self.operate(key, place, target.into(), |key, target| Operation::Delete { key, place, target, uid });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::bindings::outcome::Host;
    use crate::grants::Grants;
    use capwasm_api::descriptor::KindPattern;
    use serde_json::json;
    use std::sync::Arc;

    fn scope() -> Scope {
        let grants = Grants {
            writes: vec![KindPattern { group: String::new(), kind: "Secret".into() }],
            workload_writes: vec![KindPattern { group: String::new(), kind: "ConfigMap".into() }],
            ..Grants::default()
        };
        Scope::new(Arc::new(r#"{"metadata":{"namespace":"ns"}}"#.into()), Arc::new(grants))
    }

    fn object(kind: &str, namespace: &str) -> String {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace}}).to_string()
    }

    #[test]
    fn ungranted_writes_become_refusals_in_their_place() {
        let (scope, mut collector) = (scope(), Collector::new(1 << 20));
        let mut view = OutcomeView { collector: &mut collector, scope: &scope };
        let (management, workload) = (types::Place::Management, types::Place::Workload);
        view.create("a".into(), management, object("Secret", "ns")).unwrap();
        view.create("b".into(), management, object("Secret", "other")).unwrap();
        view.create("c".into(), management, object("ConfigMap", "ns")).unwrap();
        view.apply("d".into(), workload, object("ConfigMap", "kube-system")).unwrap();
        view.apply("e".into(), workload, object("Secret", "kube-system")).unwrap();
        let outcome = collector.into_outcome();
        let refused: Vec<_> = outcome
            .operations
            .iter()
            .map(|operation| (operation.key(), matches!(operation, Operation::Refused { .. })))
            .collect();
        assert_eq!(refused, [("a", false), ("b", true), ("c", true), ("d", false), ("e", true)]);
    }

    #[test]
    fn broken_json_traps_with_the_name_of_the_call() {
        let (scope, mut collector) = (scope(), Collector::new(1 << 20));
        let mut view = OutcomeView { collector: &mut collector, scope: &scope };
        let error = view.set_status("[]".into()).unwrap_err();
        assert_eq!(error.to_string(), "outcome.set-status: expected a JSON object");
        let error = view.create("k".into(), types::Place::Management, "{}".into()).unwrap_err();
        assert_eq!(error.to_string(), "outcome.create: the object needs apiVersion, kind and metadata.name");
    }

    #[test]
    fn the_size_of_an_outcome_is_bounded_even_when_its_texts_are_empty() {
        let (scope, mut collector) = (scope(), Collector::new(10 * ENTRY_BYTES as u64));
        let mut view = OutcomeView { collector: &mut collector, scope: &scope };
        for _ in 0..10 {
            view.emit_event(false, String::new(), String::new()).unwrap();
        }
        let error = view.emit_event(false, String::new(), String::new()).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(Stop::Result)));
    }

    #[test]
    fn every_text_of_a_target_counts_for_the_size_of_an_outcome() {
        let scope = scope();
        let long = || "x".repeat(1_000);
        let short =
            || types::ObjectRef { api_version: "v1".into(), kind: "Secret".into(), namespace: None, name: "x".into() };
        let targets = [
            ("api version", types::ObjectRef { api_version: long(), ..short() }),
            ("kind", types::ObjectRef { kind: long(), ..short() }),
            ("namespace", types::ObjectRef { namespace: Some(long()), ..short() }),
            ("name", types::ObjectRef { name: long(), ..short() }),
        ];
        let exceeded = |call: &dyn Fn(&mut OutcomeView<'_>) -> Result<()>| {
            let mut collector = Collector::new(1_000);
            let mut view = OutcomeView { collector: &mut collector, scope: &scope };
            call(&mut view).is_err_and(|error| matches!(error.downcast_ref(), Some(Stop::Result)))
        };
        let (management, none) = (types::Place::Management, String::new);
        for (what, target) in targets {
            assert!(exceeded(&|view| view.patch(none(), management, target.clone(), "{}".into())), "patch: {what}");
            assert!(exceeded(&|view| view.delete(none(), management, target.clone(), None)), "delete: {what}");
            let condition = |view: &mut OutcomeView<'_>| {
                view.set_condition_of(none(), target.clone(), none(), None, none(), none())
            };
            assert!(exceeded(&condition), "set-condition-of: {what}");
        }
        assert!(exceeded(&|view| view.delete(none(), management, short(), Some(long()))), "delete: uid");
    }

    #[test]
    fn the_earliest_wish_to_wake_wins() {
        let (scope, mut collector) = (scope(), Collector::new(1 << 20));
        let mut view = OutcomeView { collector: &mut collector, scope: &scope };
        for ms in [500, 200, 900] {
            view.wake_after(ms).unwrap();
        }
        assert_eq!(collector.into_outcome().wake_after, Some(Duration::from_millis(200)));
    }
}

//! The decision about an object: the steps that every kind shares. The kind's own part is a [`Subject`].
//!
//! 1. Without the Cluster, nothing ([`Needs`] says which kinds can do without one, and when).
//! 2. While it or its Cluster is paused, only the `Paused` condition is written.
//! 3. It goes ([`Subject::delete`]), until nothing waits any more: then the finalizer is released, and no status is written that
//!    nobody could read.
//! 4. Or it is kept ([`Subject::keep`]), with a finalizer.
//! 5. Conditions and counters ([`Subject::report`]), and how it all ended.

use std::sync::Arc;
use std::time::Duration;

use capwasm_api::conditions::{Condition, Status, is_informational};
use capwasm_api::contract::{BootstrapConfig, Milestone};
use capwasm_api::kinds::Object;
use capwasm_api::names::{condition, reason};
use capwasm_object::{json, meta};
use capwasm_reconcile::{Action, Operation, Plan, Target, Verdict};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::draft::Draft;
use crate::external::External;
use crate::{ownership, paused};

/// When a kind needs its Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Also for its deletion.
    Always,
    /// Except for its deletion.
    ToBeKept,
}

/// The observed object.
pub(crate) struct Found<'a, Spec, Status> {
    pub(crate) object: &'a Arc<Value>,
    /// Typed view of `object`.
    pub(crate) typed: &'a Object<Spec, Status>,
    /// Its Cluster, if it exists; a Cluster is its own.
    pub(crate) cluster: Option<&'a Value>,
    /// Time of the pass.
    pub(crate) now: Timestamp,
}

/// Why a deletion is not complete: reason and message of the condition `Deleting`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// A constant of [`reason`].
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Wait {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Wait {
        Wait { reason, message: message.into() }
    }
}

/// Course of the pass, for conditions.
pub(crate) enum Course<T> {
    /// The object stays; the result of [`Subject::keep`].
    Kept(T),
    /// The object is being deleted.
    Going(Wait),
}

impl<T> Course<T> {
    pub(crate) fn deleting(&self) -> Condition {
        match self {
            Course::Kept(_) => Condition::new(condition::DELETING, false, reason::NOT_DELETING),
            Course::Going(wait) => Condition::new(condition::DELETING, true, wait.reason).message(wait.message.clone()),
        }
    }
}

/// Observed state of an object of one kind, and the kind's own steps of the decision.
pub(crate) trait Subject: Sized {
    type Spec: Serialize + Clone + PartialEq;
    type Status: Serialize + Clone + PartialEq;
    /// Result of [`keep`](Subject::keep) for [`report`](Subject::report).
    type Kept;

    /// Finalizer of the kind; `None`: its controller does nothing on deletion.
    const FINALIZER: Option<&'static str>;
    const NEEDS: Needs;
    /// Fields of the status and types of conditions that summarise other objects for people, and on which nobody acts.
    const SUMS: &'static [&'static str];

    fn found(&self) -> Found<'_, Self::Spec, Self::Status>;

    /// The steps for an object that is not being deleted.
    fn keep(decision: &mut Decision<'_, Self>, cluster: &Value) -> Self::Kept;

    /// The next step of a deletion, which follows from what exists, so that every pass may be the first. `None` when
    /// only the plan's operations are left.
    fn delete(decision: &mut Decision<'_, Self>) -> Option<Wait>;

    fn report(decision: &mut Decision<'_, Self>, course: Course<Self::Kept>);

    /// The object for comparison when a status may wait: as observed, unless a kind knows better.
    fn before(_decision: &Decision<'_, Self>) -> Option<Value> {
        None
    }

    /// Whether the status may wait; `is_informational` is the general rule.
    fn may_wait(&self, is_informational: bool) -> bool {
        is_informational
    }
}

/// A plan in the making.
pub(crate) struct Decision<'a, S: Subject> {
    pub(crate) observed: &'a S,
    pub(crate) draft: Draft<'a, S::Spec, S::Status>,
    pub(crate) plan: Plan,
    /// The Cluster, if it exists.
    cluster: Option<&'a Value>,
    /// The first problem; later steps still run.
    failure: Option<(&'static str, String)>,
    /// Keep the last status: too little was observed.
    stands: bool,
}

pub(crate) fn decide<S: Subject>(observed: &S) -> Plan {
    let Found { object, typed, cluster, now } = observed.found();
    let deleting = typed.metadata.is_deleting();
    if deleting && S::FINALIZER.is_none() {
        return Plan::nothing();
    }
    if cluster.is_none() && S::NEEDS == Needs::Always {
        return without_cluster(object);
    }
    let mut draft = Draft::new(object, typed, now);
    let paused = paused::condition(object, cluster);
    draft.condition(&paused);
    if paused.status == Status::True {
        return Plan { desired: Some(draft.finish(false)), ..Plan::nothing() };
    }
    let mut decision = Decision { observed, draft, plan: Plan::nothing(), cluster, failure: None, stands: false };
    let course = if deleting {
        match S::delete(&mut decision) {
            Some(wait) => Course::Going(wait),
            None => return decision.release(),
        }
    } else {
        let Some(cluster) = cluster else { return without_cluster(object) };
        if let Some(finalizer) = S::FINALIZER {
            decision.draft.finalizer(finalizer);
        }
        Course::Kept(S::keep(&mut decision, cluster))
    };
    if decision.stands {
        let desired = Some(decision.draft.finish(false));
        return Plan { desired, verdict: Verdict::Waiting, ..decision.plan };
    }
    S::report(&mut decision, course);
    decision.conclude(deleting)
}

/// Nothing to do; reading the Cluster wakes the object when it appears.
fn without_cluster(object: &Value) -> Plan {
    let message = format!("Cluster {} does not exist", json::text(object, "/spec/clusterName").unwrap_or_default());
    Plan { verdict: failed("NoCluster", message), ..Plan::nothing() }
}

fn failed(reason: &str, message: String) -> Verdict {
    Verdict::Failed { reason: reason.to_owned(), message, retry_after: None, backoff: false }
}

impl<'a, S: Subject> Decision<'a, S> {
    fn release(self) -> Plan {
        let held = S::FINALIZER.filter(|finalizer| meta::has_finalizer(&self.draft.object, finalizer));
        Plan { release: held.map(str::to_owned).into_iter().collect(), ..self.plan }
    }

    fn conclude(self, deleting: bool) -> Plan {
        let before = S::before(&self);
        let Decision { observed, draft, mut plan, failure, .. } = self;
        let reconciled = failure.is_none();
        plan.verdict = match failure {
            Some((reason, message)) => failed(reason, message),
            None if deleting => Verdict::Waiting,
            None => Verdict::Done,
        };
        let desired = draft.finish(reconciled);
        let before = before.as_ref().unwrap_or(observed.found().object);
        plan.status_may_wait = observed.may_wait(is_informational(before, &desired, S::SUMS));
        plan.desired = Some(desired);
        plan
    }

    /// Records a problem; the first one is reported.
    pub(crate) fn fail(&mut self, reason: &'static str, message: impl Into<String>) {
        self.failure.get_or_insert((reason, message.into()));
    }

    /// Keeps the last status.
    pub(crate) fn stand(&mut self) {
        self.stands = true;
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.observed.found().typed.metadata.is_deleting()
    }

    /// Runs again after this time or earlier.
    pub(crate) fn wake_after(&mut self, time: Duration) {
        self.plan.wake_after = Some(self.plan.wake_after.map_or(time, |earlier| earlier.min(time)));
    }

    /// Adds a write to another object of the management cluster.
    pub(crate) fn operation(&mut self, key: impl Into<String>, action: Action) {
        self.plan.operations.push(Operation::management(key, action));
    }

    /// Deletes an object, unless it is being deleted already.
    pub(crate) fn delete(&mut self, object: &Value) {
        if !meta::is_deleting(object) {
            let uid = json::text(object, "/metadata/uid").map(str::to_owned);
            let action = Action::Delete { target: Target::of(object), uid, propagation: None };
            self.operation(format!("delete {} {}", meta::kind(object), meta::name(object)), action);
        }
    }

    /// Deletes the referenced object, unless another object of this kind controls it. Returns what still exists, or may
    /// exist, as text: later steps have to wait for it.
    pub(crate) fn delete_external<T>(&mut self, external: &External<T>) -> Option<String> {
        let own = self.observed.found();
        let (kind, uid) = (meta::kind(own.object), own.typed.metadata.uid.as_str());
        match external {
            External::Found { object, .. } if ownership::is_of_another(object, kind, uid) => None,
            External::Found { object, .. } => {
                self.delete(object);
                Some(format!("{} {}", meta::kind(object), meta::name(object)))
            }
            External::Unserved(message) => Some(message.clone()),
            External::Missing | External::NotInstalled(_) => None,
        }
    }

    /// Adds `owner` to an object of the cluster, in place of owners with the uids in `replaced`.
    pub(crate) fn adopt(&mut self, key: impl Into<String>, object: &Value, owner: &Value, replaced: &[&str]) {
        if meta::is_deleting(object) {
            return;
        }
        match ownership::adopt(object, owner, self.cluster.map_or("", meta::name), replaced) {
            Ok(Some(action)) => self.operation(key, action),
            Ok(None) => {}
            Err(foreign) => self.fail("ForeignOwner", foreign.to_string()),
        }
    }

    /// Waits for a missing object, unless it had reported success `before`: then it was lost, which is a failure. Not
    /// while the referring object is deleted.
    pub(crate) fn miss<T>(&mut self, external: &External<T>, before: bool, lost: &str) {
        match external.unusable_kind() {
            _ if self.is_deleting() => {}
            Some(message) => self.fail("Unserved", message),
            None if before => self.fail("Lost", lost),
            None => {}
        }
    }

    /// Name of the bootstrap data Secret, once it exists.
    pub(crate) fn bootstrap_data(&mut self, external: &External<BootstrapConfig>) -> Option<String> {
        let External::Found { object, contract, report } = external else {
            if let Some(message) = external.unusable_kind() {
                self.fail("Unserved", message);
            }
            return None;
        };
        if report.created && report.secret_name.is_none() {
            let flag = BootstrapConfig::flag(*contract);
            let message = format!("{} {flag} is true, but status.dataSecretName is empty", meta::kind(object));
            self.fail("NoDataSecretName", message);
        }
        report.secret_name.clone().filter(|_| report.created)
    }
}

//! The decision about an object: the same steps for every kind, around what is the kind's own.
//!
//! 1. Without the Cluster, nothing ([`Needs`] says which kinds can do without one, and when).
//! 2. While it or its Cluster is paused, only that is said.
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

/// When a kind can do nothing without its Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Ever: not even go.
    Always,
    /// While it is kept: it can go without.
    ToBeKept,
}

/// The reconciled object as a pass found it.
pub(crate) struct Found<'a, Spec, Status> {
    /// As the cache has it.
    pub(crate) object: &'a Arc<Value>,
    /// The same in types.
    pub(crate) typed: &'a Object<Spec, Status>,
    /// Its Cluster; a Cluster is its own.
    pub(crate) cluster: Option<&'a Value>,
    /// When the pass began.
    pub(crate) now: Timestamp,
}

/// Why the deletion of an object cannot end yet: a reason of its condition `Deleting`, and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// One of [`reason`].
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
}

impl Wait {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Wait {
        Wait { reason, message: message.into() }
    }
}

/// How an object fares, for its conditions.
pub(crate) enum Course<T> {
    /// It is kept, and this was found out on the way.
    Kept(T),
    /// It goes.
    Going(Wait),
}

impl<T> Course<T> {
    /// The condition `Deleting`.
    pub(crate) fn deleting(&self) -> Condition {
        match self {
            Course::Kept(_) => Condition::new(condition::DELETING, false, reason::NOT_DELETING),
            Course::Going(wait) => Condition::new(condition::DELETING, true, wait.reason).message(wait.message.clone()),
        }
    }
}

/// What was observed of an object of one kind, and what the kind makes of it.
pub(crate) trait Subject: Sized {
    /// Its spec, typed.
    type Spec: Serialize + Clone + PartialEq;
    /// Its status, typed.
    type Status: Serialize + Clone + PartialEq;
    /// What [`keep`](Subject::keep) finds out for [`report`](Subject::report).
    type Kept;

    /// The finalizer that holds it until it is taken down. A kind without one is never taken down by its controller.
    const FINALIZER: Option<&'static str>;
    /// When it needs its Cluster.
    const NEEDS: Needs;
    /// Fields of its status, and types of conditions, that sum up what stands elsewhere: for people, and nobody acts on them.
    const SUMS: &'static [&'static str];

    /// The object itself.
    fn found(&self) -> Found<'_, Self::Spec, Self::Status>;

    /// What is done for an object that stays.
    fn keep(decision: &mut Decision<'_, Self>, cluster: &Value) -> Self::Kept;

    /// Deletes what is due now. What is there decides what is next, so every pass may be the first. `None` when nothing waits any
    /// more: what is left is in the plan.
    fn delete(decision: &mut Decision<'_, Self>) -> Option<Wait>;

    /// Sets counters, phase and conditions.
    fn report(decision: &mut Decision<'_, Self>, course: Course<Self::Kept>);

    /// The object as it was before what is no news happened; as it was observed, unless a kind knows more.
    fn before(_decision: &Decision<'_, Self>) -> Option<Value> {
        None
    }

    /// Whether the status may wait, though, or is due at once, whatever is in it.
    fn may_wait(&self, is_informational: bool) -> bool {
        is_informational
    }
}

/// What is collected on the way to a plan.
pub(crate) struct Decision<'a, S: Subject> {
    /// What was observed.
    pub(crate) observed: &'a S,
    /// The object as it should be.
    pub(crate) draft: Draft<'a, S::Spec, S::Status>,
    /// What is done besides.
    pub(crate) plan: Plan,
    /// The Cluster, where it is there.
    cluster: Option<&'a Value>,
    /// The first thing that is wrong; later steps still run.
    failure: Option<(&'static str, String)>,
    /// What was said last stands: too little is seen to say more.
    stands: bool,
}

/// What should be, given what was observed.
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

/// The read of the Cluster wakes the object when it appears.
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

    /// Something is wrong; of several such things the first is told.
    pub(crate) fn fail(&mut self, reason: &'static str, message: impl Into<String>) {
        self.failure.get_or_insert((reason, message.into()));
    }

    /// Nothing more is said than what was said last.
    pub(crate) fn stand(&mut self) {
        self.stands = true;
    }

    /// Whether deletion was asked for.
    pub(crate) fn is_deleting(&self) -> bool {
        self.observed.found().typed.metadata.is_deleting()
    }

    /// Run again after this time, or earlier if something else wants that.
    pub(crate) fn wake_after(&mut self, time: Duration) {
        self.plan.wake_after = Some(self.plan.wake_after.map_or(time, |earlier| earlier.min(time)));
    }

    /// A write to another object of the management cluster.
    pub(crate) fn operation(&mut self, key: impl Into<String>, action: Action) {
        self.plan.operations.push(Operation::management(key, action));
    }

    /// Deletes an object, unless that was asked for before.
    pub(crate) fn delete(&mut self, object: &Value) {
        if !meta::is_deleting(object) {
            let uid = json::text(object, "/metadata/uid").map(str::to_owned);
            let action = Action::Delete { target: Target::of(object), uid, propagation: None };
            self.operation(format!("delete {} {}", meta::kind(object), meta::name(object)), action);
        }
    }

    /// Deletes what a reference leads to, unless another object of this one's kind controls it. In words, what is or may be still
    /// there: what comes after it must not go before it.
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

    /// Makes `owner` an owner of an object of the cluster, in place of those with the uids in `replaced`.
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

    /// An object that is not there is waited for, unless it had reported success `before`: then it was lost. Whoever goes does not
    /// miss it.
    pub(crate) fn miss<T>(&mut self, external: &External<T>, before: bool, lost: &str) {
        match external.unusable_kind() {
            _ if self.is_deleting() => {}
            Some(message) => self.fail("Unserved", message),
            None if before => self.fail("Lost", lost),
            None => {}
        }
    }

    /// Name of the Secret with the bootstrap data, once there are any.
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

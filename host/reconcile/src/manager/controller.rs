//! A controller: its keys, and the pass over one of them.

use std::{
    collections::{BTreeMap, HashMap},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use capwasm_contract::{Event, Refusal};
use capwasm_object::meta;
use futures::FutureExt;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use super::{
    Claim, Scheduler, Shared,
    worker_slots::{WorkerSlot, WorkerSlots},
};
use crate::{
    apply::Applied,
    cache::{Cache, CacheError, Mark, Written},
    fair_queue::Flow,
    interests::ControllerId,
    kind::{ClusterId, Key, Kind, Source},
    metrics::{ControllerLabel, QueueLabels, ResultLabels},
    plan::{Plan, Results, Verdict},
    queue::{Outcome, Run},
    reconciler::{Pass, ReconcileError, Reconciler},
    status_delay,
    trace::trace_id,
    view::View,
};

/// Ends a pass whose time is up: whatever it waits for, others wait for its slot.
async fn within(
    deadline: Option<Duration>,
    pass: impl Future<Output = Result<Plan, ReconcileError>>,
) -> Result<Plan, ReconcileError> {
    let Some(deadline) = deadline else { return pass.await };
    tokio::time::timeout(deadline, pass).await.unwrap_or_else(|_| {
        let message =
            format!("the pass did not end within {} s: something that it read was too slow", deadline.as_secs());
        Err(ReconcileError::failed("PassTimedOut", message))
    })
}

/// How often a key that waits for a workload cluster's cache checks whether the cluster is still connected.
const CONNECTION_LOOK: Duration = Duration::from_secs(1);

pub(super) struct Controller {
    shared: Arc<Shared>,
    id: ControllerId,
    name: String,
    kind: Kind,
    reconciler: RwLock<Arc<dyn Reconciler>>,
    scheduler: Arc<Scheduler>,
    slots: WorkerSlots,
    /// Results of operations, for the key's next pass.
    results: Mutex<HashMap<Key, Results>>,
    /// Since when a status that may wait has not been written.
    status_delayed_since: Mutex<HashMap<Key, Instant>>,
    passes: TaskTracker,
    stopping: CancellationToken,
}

enum Ended {
    Plan(Box<(Plan, Applied)>),
    Failed(ReconcileError),
    Panicked,
}

impl Controller {
    pub(super) fn start(
        shared: &Arc<Shared>,
        kind: Kind,
        reconciler: Arc<dyn Reconciler>,
        slots: &WorkerSlots,
    ) -> Arc<Self> {
        let name = reconciler.name().to_owned();
        let scheduler = Arc::new(Scheduler::new(&name, shared.options.rates, &shared.metrics));
        let id = shared.interests.register(scheduler.clone());
        shared.executor.initial_finalizers().set(&kind, reconciler.finalizers());
        let controller = Arc::new(Self {
            shared: shared.clone(),
            id,
            name,
            kind: kind.clone(),
            reconciler: RwLock::new(reconciler),
            scheduler,
            slots: slots.clone(),
            results: Mutex::default(),
            status_delayed_since: Mutex::default(),
            passes: TaskTracker::new(),
            stopping: shared.stopping.child_token(),
        });
        controller.tell_limit();
        // Subscribed before looking, so that no object is missed in between.
        shared.interests.subscribe(id, shared.cache.source(), &kind);
        shared.cache.start(&kind);
        controller.trigger_all();
        // Among its own passes, so that stopping also waits for one that is just being started.
        controller.passes.spawn(shared.tasks.track_future(controller.clone().work()));
        controller
    }

    pub(super) fn replace(&self, reconciler: Arc<dyn Reconciler>) {
        self.shared.executor.initial_finalizers().set(&self.kind, reconciler.finalizers());
        *self.reconciler.write() = reconciler;
    }

    pub(super) fn resize(&self, slots: usize) {
        self.slots.resize(slots);
        self.tell_limit();
    }

    fn tell_limit(&self) {
        let label = ControllerLabel { controller: self.name.clone() };
        let limit = i64::try_from(self.slots.count()).unwrap_or(i64::MAX);
        self.shared.metrics.limit.get_or_create(&label).set(limit);
    }

    pub(super) fn trigger_all(&self) {
        for (namespace, name) in self.shared.cache.names(&self.kind) {
            self.scheduler.add_resync(&Key::new(&self.kind, &namespace, &name));
        }
    }

    pub(super) async fn stop(&self) {
        self.shared.executor.initial_finalizers().set(&self.kind, Vec::new());
        self.stopping.cancel();
        self.passes.close();
        self.passes.wait().await;
        self.shared.interests.unregister(self.id);
        self.slots.forget(|claim| claim.controller == self.id);
        while self.scheduler.granted().is_some() {}
        for (key, group) in self.scheduler.drain_waiting() {
            self.leave(&self.claim(&key), &group);
        }
    }

    /// Starts passes until stopped. Each is a task; keys that wait for a slot are not.
    async fn work(self: Arc<Self>) {
        loop {
            while let Some((key, rank)) = self.scheduler.ready() {
                self.slots.ask(self.flow(&key), self.claim(&key), rank);
            }
            while let Some((run, slot)) = self.scheduler.granted() {
                let Some(run) = run else { continue };
                let controller = self.clone();
                let guarded = async move { controller.run_guarded(run, slot).await };
                self.passes.spawn(self.shared.tasks.track_future(guarded));
            }
            if !self.scheduler.changed(&self.stopping).await {
                return;
            }
        }
    }

    /// The flow in which a key competes for slots; see [`Reconciler::divided_by`].
    fn flow(&self, key: &Key) -> Flow {
        let reconciler = self.reconciler.read().clone();
        let label = reconciler.divided_by()?;
        let value = self.shared.cache.label(&self.kind, &key.namespace, &key.name, label);
        Some(format!("{}/{}", key.namespace, value.as_deref().unwrap_or_default()).into())
    }

    /// Runs a pass; a panic does not leave the key running for ever.
    async fn run_guarded(&self, run: Run<Key>, slot: WorkerSlot) {
        let key = run.key.clone();
        let mut group = None;
        if AssertUnwindSafe(self.run(run, slot, &mut group)).catch_unwind().await.is_err() {
            tracing::error!(controller = self.name, %key, "run panicked outside the reconciler");
            group.iter().for_each(|group: &String| self.leave(&self.claim(&key), group));
            self.scheduler.done(&key, Outcome::Backoff, &[]);
        }
    }

    /// `entered` becomes the exclusion group that is held.
    async fn run(&self, run: Run<Key>, slot: WorkerSlot, entered: &mut Option<String>) {
        let key = &run.key;
        let claim = self.claim(key);
        let waited_for = self.scheduler.take_waiting_for(key);
        let reconciler = self.reconciler.read().clone();
        let object = match self.shared.cache.get(&self.kind, &key.namespace, &key.name).await {
            Ok(Some(object)) => object,
            gone_or_unknown => {
                waited_for.iter().for_each(|group| self.leave(&claim, group));
                return self.skip(key, gone_or_unknown.err());
            }
        };
        let group = reconciler.exclusion(&object);
        if let Some(other) = waited_for.filter(|waited_for| Some(waited_for) != group.as_ref()) {
            self.leave(&claim, &other);
        }
        if let Some(group) = group {
            if !self.enter_or_park(&claim, &group) {
                return;
            }
            *entered = Some(group);
        }
        let started = Instant::now();
        let now = Timestamp::now();
        let trace_id = trace_id(object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default(), now);
        let span = tracing::info_span!("pass", controller = self.name, %key, trace_id = &*trace_id);
        let ended = self.pass(&run, &reconciler, object, now, &trace_id).instrument(span).await;
        drop(slot);
        let (outcome, wrote) = self.conclude(key, ended, started).await;
        entered.take().iter().for_each(|group| self.leave(&claim, group));
        self.scheduler.done(key, outcome, &wrote);
    }

    /// Ends a run without an object.
    fn skip(&self, key: &Key, error: Option<CacheError>) {
        let Some(error) = error else {
            self.shared.interests.forget(self.id, key);
            self.results.lock().remove(key);
            self.status_delayed_since.lock().remove(key);
            return self.scheduler.done(key, Outcome::Forget, &[]);
        };
        tracing::debug!(controller = self.name, %key, %error, "object cannot be read");
        self.scheduler.done(key, Outcome::Backoff, &[]);
    }

    async fn pass(
        &self,
        run: &Run<Key>,
        reconciler: &Arc<dyn Reconciler>,
        object: Arc<Value>,
        now: Timestamp,
        trace_id: &str,
    ) -> Ended {
        let key = &run.key;
        let label = ControllerLabel { controller: self.name.clone() };
        let active = self.shared.metrics.active.get_or_create_owned(&label);
        active.inc();
        let reading = self.shared.interests.begin(self.id, key);
        let view = View::new(&self.shared.cache, &self.shared.interests, reading);
        let pass = Pass {
            key,
            object: object.clone(),
            view: &view,
            attempt: run.attempt,
            results: self.results.lock().remove(key).unwrap_or_default(),
            now,
            trace_id,
        };
        // A reconciler shares nothing mutable with us, so a panic leaves nothing of ours half done.
        let decided = AssertUnwindSafe(within(reconciler.deadline(), reconciler.reconcile(&pass))).catch_unwind().await;
        let ended = match decided {
            Ok(Ok(mut plan)) => {
                plan.wake_after = plan.wake_after.into_iter().chain(view.look_again()).min();
                // Only a completed pass has read all that its decision depends on.
                self.shared.interests.finish(reading);
                let applied = self.apply(key, &object, &mut plan).instrument(tracing::info_span!("apply")).await;
                Ended::Plan(Box::new((plan, applied)))
            }
            Ok(Err(error)) => Ended::Failed(error),
            Err(_) => Ended::Panicked,
        };
        if let Some(event) = self.report(&ended) {
            self.shared.executor.record(&self.name, &object, event);
        }
        active.dec();
        ended
    }

    /// Applies the plan. A status that may wait is left for a later pass.
    async fn apply(&self, key: &Key, object: &Value, plan: &mut Plan) -> Applied {
        let before = self.status_delayed_since.lock().get(key).copied();
        let deleting = meta::is_deleting(object);
        let left = status_delay::remaining(plan, deleting, before, Instant::now());
        let applied = self.shared.executor.apply(&self.name, key, object, plan, left.is_some()).await;
        if applied.status_delayed {
            let now = Instant::now();
            let since = status_delay::since(before, applied.wrote_own(key), now);
            self.status_delayed_since.lock().insert(key.clone(), since);
            let left = status_delay::remaining(plan, deleting, Some(since), now).unwrap_or_default();
            plan.wake_after = plan.wake_after.into_iter().chain(Some(left)).min();
        } else if !applied.conflict && applied.failure.is_none() {
            self.status_delayed_since.lock().remove(key);
        }
        applied
    }

    /// Waits for the caches, and says when the key runs next, and which versions of objects the pass made.
    async fn conclude(&self, key: &Key, ended: Ended, started: Instant) -> (Outcome, Vec<u64>) {
        let seconds = started.elapsed().as_secs_f64();
        let (outcome, wrote) = match ended {
            Ended::Plan(ended) => {
                let (plan, applied) = *ended;
                let outcome = self.outcome(&plan, &applied);
                if !applied.results.is_empty() {
                    self.results.lock().insert(key.clone(), applied.results);
                }
                let made = applied.written.iter().filter_map(|one| match one.mark {
                    Mark::Version(version) => Some(version),
                    Mark::Gone(_) => None,
                });
                let made = applied.own_versions.iter().copied().chain(made).collect();
                self.caught_up(applied.written).await;
                (outcome, made)
            }
            Ended::Failed(_) | Ended::Panicked => (Outcome::Backoff, Vec::new()),
        };
        self.measure(outcome, seconds, started);
        (outcome, wrote)
    }

    fn outcome(&self, plan: &Plan, applied: &Applied) -> Outcome {
        let operation_conflict =
            applied.failed_operation().is_some_and(|(_, error)| error.refusal == Refusal::Conflict);
        if applied.conflict || operation_conflict {
            return Outcome::Conflict;
        }
        if applied.failure.is_some() || applied.failed_operation().is_some() {
            return Outcome::Backoff;
        }
        let jitter = 0.9 + 0.2 * rand::random::<f64>();
        let resync = self.shared.options.resync.mul_f64(jitter);
        let at_the_latest = plan.wake_after.map_or(resync, |after| after.min(resync));
        match &plan.verdict {
            Verdict::Failed { retry_after: Some(after), .. } => Outcome::RetryAfter((*after).min(at_the_latest)),
            Verdict::Failed { backoff: true, .. } => Outcome::Backoff,
            _ if plan.wake_when_applied => Outcome::Again,
            Verdict::Failed { .. } => Outcome::RetryAfter(at_the_latest),
            Verdict::Done | Verdict::Waiting => Outcome::Done(at_the_latest),
        }
    }

    /// Logs a failure, and returns an event for users.
    fn report(&self, ended: &Ended) -> Option<Event> {
        match ended {
            Ended::Panicked => {
                tracing::error!("pass panicked");
                let label = ControllerLabel { controller: self.name.clone() };
                self.shared.metrics.panics.get_or_create(&label).inc();
                Some(Event::warning("ReconcilePanic", "The reconciler panicked; see the log of the host."))
            }
            Ended::Failed(error) => {
                tracing::warn!(error = error as &dyn std::error::Error, "pass failed");
                match error {
                    ReconcileError::Failed { reason, message } => Some(Event::warning(reason, message)),
                    ReconcileError::Read(_) => None,
                }
            }
            Ended::Plan(ended) => {
                let (plan, applied) = &**ended;
                if let Some(error) = &applied.failure {
                    tracing::warn!(%error, "unable to write the object");
                    return Some(Event::warning("WriteFailed", error.to_string()));
                }
                if let Some((operation, error)) = applied.failed_operation() {
                    tracing::warn!(operation, %error, "operation failed");
                    return Some(Event::warning("OperationFailed", format!("{operation}: {error}")));
                }
                let Verdict::Failed { reason, message, .. } = &plan.verdict else { return None };
                tracing::info!(reason, message, "reconcile did not succeed");
                Some(Event::warning(reason, message))
            }
        }
    }

    /// Waits until the caches show what was written, or the process ends.
    async fn caught_up(&self, written: Vec<Written>) {
        let mut by_source = BTreeMap::<Source, Vec<Written>>::new();
        for one in written {
            by_source.entry(one.source.clone()).or_default().push(one);
        }
        let waiting = async {
            for (source, written) in &by_source {
                match source {
                    Source::Management => self.shared.cache.caught_up(written).await,
                    // A cluster that is not connected (any more) has no cache that could be behind.
                    Source::Workload(cluster) => {
                        while let Ok(cache) = self.shared.workloads.cache(cluster).await {
                            tokio::select! {
                                () = cache.caught_up(written) => break,
                                () = self.replaced(cluster, &cache) => {}
                            }
                        }
                    }
                }
            }
        };
        self.shared.draining.run_until_cancelled(waiting).await;
    }

    /// Waits until `cache` is no longer the cluster's: that of a lost server shows no write.
    async fn replaced(&self, cluster: &ClusterId, cache: &Cache) {
        loop {
            tokio::time::sleep(CONNECTION_LOOK).await;
            match self.shared.workloads.cache(cluster).await {
                Ok(now) if now.is(cache) => {}
                _ => return,
            }
        }
    }

    fn measure(&self, outcome: Outcome, seconds: f64, started: Instant) {
        let (metrics, controller) = (&self.shared.metrics, self.name.clone());
        let result = match outcome {
            Outcome::Done(_) | Outcome::Forget => "success",
            Outcome::Again => "requeue",
            Outcome::Conflict => "requeue",
            Outcome::RetryAfter(_) => "requeue_after",
            Outcome::Backoff => "error",
        };
        metrics.reconciles.get_or_create(&ResultLabels { controller: controller.clone(), result }).inc();
        let label = ControllerLabel { controller: controller.clone() };
        if outcome == Outcome::Backoff {
            metrics.errors.get_or_create(&label).inc();
        }
        metrics.seconds.get_or_create(&label).observe(seconds);
        let queue = QueueLabels { name: controller.clone(), controller };
        metrics.worked.get_or_create(&queue).observe(started.elapsed().as_secs_f64());
    }

    fn enter_or_park(&self, claim: &Claim, group: &str) -> bool {
        // Parked first: whoever leaves the group right now must find a parked key to wake.
        self.scheduler.park(&claim.key, group);
        if !self.shared.exclusion.enter(group, claim) {
            return false;
        }
        self.scheduler.resume(&claim.key);
        true
    }

    fn leave(&self, claim: &Claim, group: &str) {
        if let Some(next) = self.shared.exclusion.leave(group, claim) {
            next.scheduler.unpark(&next.key);
        }
    }

    fn claim(&self, key: &Key) -> Claim {
        Claim { controller: self.id, scheduler: self.scheduler.clone(), key: key.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pass_ends_at_its_deadline() {
        let ended = within(Some(Duration::from_millis(1)), std::future::pending()).await;
        assert!(matches!(ended, Err(ReconcileError::Failed { reason, .. }) if reason == "PassTimedOut"));
        let without = within(None, async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Plan::nothing())
        });
        assert!(without.await.is_ok());
    }
}

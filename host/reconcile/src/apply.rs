//! From a plan to requests: the only place of the host that writes to an API server.
//!
//! Order: finalizers added together with own metadata and spec (one patch); operations one after the other, the first
//! failure stops the rest; status; events; the released finalizers, only when all went well. Nothing is sent where
//! nothing differs. What was written is handed back, so that the key waits until its caches show it.

pub(crate) mod diff;
mod events;
mod initial_finalizers;
mod operation;
mod refusal;
mod ssa_cache;

use std::sync::Arc;

use async_trait::async_trait;
use capwasm_contract::{Event, Refusal, Refused};
use capwasm_object::meta;
use serde_json::Value;

pub(crate) use self::initial_finalizers::InitialFinalizers;
use self::{events::Recorder, operation::Writer, ssa_cache::SsaCache};
use crate::{
    cache::{Cache, Mark, Written},
    kind::{ClusterId, Key, Source},
    metrics::Metrics,
    plan::{Place, Plan, Results},
};

/// On objects without owner references: the uid of the object that they were created for.
pub const CREATED_FOR: &str = "capwasm.dev/created-for";

/// Connections to workload clusters, for the operations that go there.
#[async_trait]
pub trait Workloads: Send + Sync {
    /// The cache (and through it the client) of a connected cluster.
    async fn cache(&self, cluster: &ClusterId) -> Result<Cache, Unavailable>;
}

/// A workload cluster cannot be reached just now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cluster} is not connected: {message}")]
pub struct Unavailable {
    /// The cluster.
    pub cluster: ClusterId,
    /// Why.
    pub message: String,
}

/// For hosts without workload clusters.
#[derive(Clone, Copy, Debug)]
pub struct NoWorkloads;

#[async_trait]
impl Workloads for NoWorkloads {
    async fn cache(&self, cluster: &ClusterId) -> Result<Cache, Unavailable> {
        Err(Unavailable { cluster: cluster.clone(), message: "this host has no workload clusters".to_owned() })
    }
}

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// How the operations ended.
    pub results: Results,
    /// What the caches have to show before the key may run again.
    pub written: Vec<Written>,
    /// What the plan was decided on has changed meanwhile: decide again.
    pub conflict: bool,
    /// The own object could not be written, for another reason than a conflict.
    pub failure: Option<Refused>,
    /// There is a status that was not written, because it may wait.
    pub status_delayed: bool,
}

impl Applied {
    /// Whether the reconciled object itself was written, which is that of `key`.
    pub(crate) fn wrote_own(&self, key: &Key) -> bool {
        self.written.iter().any(|one| {
            one.source == Source::Management
                && one.kind == key.kind
                && (&one.namespace, &one.name) == (&key.namespace, &key.name)
        })
    }

    /// The first operation that failed.
    pub fn failed_operation(&self) -> Option<(&str, &Refused)> {
        self.results.iter().find_map(|(key, result)| Some((key.as_str(), result.as_ref().err()?)))
    }
}

/// Writes plans.
pub struct Executor {
    management: Cache,
    workloads: Arc<dyn Workloads>,
    metrics: Arc<Metrics>,
    recorder: Recorder,
    ssa_cache: SsaCache,
    initial_finalizers: InitialFinalizers,
}

impl Executor {
    /// Writes to `management` and to the clusters of `workloads`. Needs a running tokio runtime: events are written in
    /// the background.
    pub fn new(management: Cache, workloads: Arc<dyn Workloads>, metrics: Arc<Metrics>) -> Self {
        let recorder = Recorder::start(management.requests().clone(), metrics.clone());
        Self {
            management,
            workloads,
            metrics,
            recorder,
            ssa_cache: SsaCache::default(),
            initial_finalizers: InitialFinalizers::default(),
        }
    }

    /// Writes what differs between `observed`, which is the object of `key`, and the plan, in the name of `controller`. With
    /// `delay_status`, the status is left as it is, unless an operation fails.
    pub async fn apply(
        &self,
        controller: &str,
        key: &Key,
        observed: &Value,
        plan: &Plan,
        delay_status: bool,
    ) -> Applied {
        let mut applied = Applied::default();
        for event in &plan.events {
            self.recorder.record(controller, observed, event.clone());
        }
        // What the object is now, as far as our own writes have told.
        let mut live = observed.clone();
        let writer = self.writer(controller, &self.management);
        let own = plan.desired.as_ref().and_then(|desired| diff::own_patch(observed, desired, &plan.release));
        if let Some(patch) = own
            && !self.write_own(&writer, key, None, &patch, &mut live, &mut applied).await
        {
            return applied;
        }
        self.run_operations(controller, observed, plan, &mut applied).await;
        let desired = match applied.failed_operation() {
            Some(_) => plan.fallback.as_ref().or(plan.desired.as_ref()),
            None => plan.desired.as_ref(),
        };
        let status = desired.and_then(|desired| diff::status_patch(observed, desired, &live));
        applied.status_delayed = delay_status && status.is_some() && applied.failed_operation().is_none();
        if let Some(patch) = status.filter(|_| !applied.status_delayed)
            && !self.write_own(&writer, key, Some("status"), &patch, &mut live, &mut applied).await
        {
            return applied;
        }
        if applied.failed_operation().is_none()
            && let Some(patch) = diff::release_patch(&live, &plan.release)
        {
            self.write_own(&writer, key, None, &patch, &mut live, &mut applied).await;
        }
        applied
    }

    /// What objects of each kind are created with.
    pub(crate) fn initial_finalizers(&self) -> &InitialFinalizers {
        &self.initial_finalizers
    }

    /// Records an event outside a plan: for passes that came to none.
    pub fn record(&self, controller: &str, about: &Value, event: Event) {
        self.recorder.record(controller, about, event);
    }

    /// Waits until all recorded events are written.
    pub async fn flush(&self) {
        self.recorder.flush().await;
    }

    /// Patches the reconciled object. Returns whether the plan goes on.
    async fn write_own(
        &self,
        writer: &Writer<'_>,
        key: &Key,
        subresource: Option<&'static str>,
        patch: &Value,
        live: &mut Value,
        applied: &mut Applied,
    ) -> bool {
        let uid = meta::uid(live);
        // An object that took the name meanwhile has another uid, which the server refuses to change.
        let mut patch = patch.clone();
        patch["metadata"]["uid"] = Value::String(uid.to_owned());
        match writer.merge(&key.kind, &key.namespace, &key.name, subresource, &patch).await {
            Ok(answer) => {
                let mark = if meta::is_deleting(&answer) && meta::finalizers(&answer).next().is_none() {
                    Some(Mark::Gone(uid.into()))
                } else {
                    meta::revision(&answer).map(Mark::Version)
                };
                applied.written.extend(mark.map(|mark| written(Source::Management, key, mark)));
                *live = answer;
                true
            }
            Err(error) => {
                match error.refusal {
                    Refusal::Conflict => applied.conflict = true,
                    // Gone meanwhile: its deletion will reach the cache, and nothing is left to do.
                    Refusal::NotFound => {}
                    _ => applied.failure = Some(error),
                }
                if applied.failure.is_none() {
                    applied.written.extend(self.catch_up_mark(&self.management, key, live).await);
                }
                false
            }
        }
    }

    /// Neighbours that set conditions of one object are one request.
    async fn run_operations(&self, controller: &str, observed: &Value, plan: &Plan, applied: &mut Applied) {
        for operations in
            plan.operations.chunk_by(|one, next| one.place == next.place && operation::is_one_write(one, next))
        {
            let Some(operation) = operations.first() else { continue };
            let result = match self.cache_of(&operation.place).await {
                Ok(cache) => {
                    let writer = self.writer(controller, &cache);
                    writer
                        .run(observed, operations.iter().map(|operation| &operation.action), &mut applied.written)
                        .await
                }
                Err(unavailable) => {
                    Err(Refused::new(Refusal::Unavailable, "ClusterNotConnected", unavailable.to_string()))
                }
            };
            let failed = result.is_err();
            applied.results.extend(operations.iter().map(|operation| (operation.key.clone(), result.clone())));
            if failed {
                return;
            }
        }
    }

    /// After a conflict: the state that the cache has to reach before deciding again makes sense.
    async fn catch_up_mark(&self, cache: &Cache, key: &Key, last: &Value) -> Option<Written> {
        let mark = match cache.get_live(&key.kind, &key.namespace, &key.name).await {
            Ok(Some(live)) => meta::revision(&live).map(Mark::Version),
            Ok(None) => Some(Mark::Gone(meta::uid(last).into())),
            // Then the next try meets the same conflict, which backs off.
            Err(_) => None,
        };
        mark.map(|mark| written(cache.source().clone(), key, mark))
    }

    async fn cache_of(&self, place: &Place) -> Result<Cache, Unavailable> {
        match place {
            Place::Management => Ok(self.management.clone()),
            Place::Workload(cluster) => self.workloads.cache(cluster).await,
        }
    }

    fn writer<'a>(&'a self, controller: &'a str, cache: &'a Cache) -> Writer<'a> {
        Writer {
            controller,
            cache,
            metrics: &self.metrics,
            ssa_cache: &self.ssa_cache,
            initial_finalizers: &self.initial_finalizers,
        }
    }
}

fn written(source: Source, key: &Key, mark: Mark) -> Written {
    Written { source, kind: key.kind.clone(), namespace: key.namespace.clone(), name: key.name.clone(), mark }
}

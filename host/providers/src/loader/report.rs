//! Result of one pass over a WasmProvider, and the status, events and metrics that follow.

use std::path::Path;
use std::time::{Duration, Instant};

use capwasm_api::conditions::{self, Condition, timestamp};
use capwasm_object::json;
use capwasm_reconcile::{Event, Operation, Pass, Plan, ReconcileError, Verdict};
use capwasm_runtime::Provider;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::source::Wanted;
use super::{Loader, Refusal, Serving};
use crate::generation::{Figures, Generation};
use crate::metrics::SwapMetrics;
use crate::wasm_provider::history::{Candidate, History, ROLLED_BACK, Record, Rehearsal, WAITING};

/// How often figures of calls are written to the status.
const FIGURES: Duration = Duration::from_secs(30);

/// Folders of the host, for messages.
pub(super) struct Folders<'a> {
    pub(super) components: &'a Path,
    pub(super) recordings: Option<&'a Path>,
}

/// Result of one pass.
pub(super) struct Report {
    /// Active, previous and candidate components.
    pub(super) history: History,
    /// `metadata.generation` of the object.
    pub(super) generation: i64,
    /// Why the wanted component does not serve.
    refusal: Option<Refusal>,
    /// Writes of CRDs that come first.
    pub(super) installing: Option<Vec<Operation>>,
    /// Whether the component that serves is `spec.update.pin`.
    pub(super) pinned: bool,
    /// When to run again at the latest.
    pub(super) again: Option<Duration>,
    events: Vec<Event>,
}

impl Report {
    pub(super) fn new(object: &Value, history: History) -> Self {
        let generation = json::number(object, "/metadata/generation").unwrap_or_default();
        Report { history, generation, refusal: None, installing: None, pinned: false, again: None, events: Vec::new() }
    }

    /// Records a refusal; with `of`, as the candidate of the history.
    pub(super) fn refuse(&mut self, refusal: Refusal, of: Option<(&Wanted, Timestamp)>) {
        if let Some((wanted, now)) = of {
            let component = Record {
                digest: wanted.digest.clone(),
                artifact: wanted.artifact.clone(),
                since: timestamp(now),
                reason: refusal.reason.to_owned(),
                ..Record::default()
            };
            let (message, generation) = (refusal.message.clone(), self.generation);
            self.history.hold(Candidate { component, message, generation, rehearsal: None });
        }
        self.refusal = Some(refusal);
    }

    /// Records a candidate that waits for approval or a rehearsal.
    pub(super) fn hold(
        &mut self,
        now: Timestamp,
        wanted: Option<&Wanted>,
        provider: Option<std::sync::Arc<Provider>>,
        reason: &str,
        message: String,
        rehearsal: Option<Rehearsal>,
    ) {
        let (Some(wanted), Some(provider)) = (wanted, provider) else { return };
        let component = Record { reason: reason.to_owned(), ..record(now, &provider, wanted.artifact.clone()) };
        let known = self.history.candidate.as_ref();
        if known.is_none_or(|known| {
            (&known.component.digest, known.component.reason.as_str()) != (&component.digest, reason)
        }) {
            self.events.push(Event::normal(reason, format!("{}: {message}", named(&component))));
        }
        self.history.hold(Candidate { component, message, generation: self.generation, rehearsal });
    }

    /// Records the rollback of the active component.
    pub(super) fn give_up(&mut self, now: Timestamp) {
        let Some(active) = self.history.active.clone() else { return };
        let message =
            "its calls trapped again and again soon after it came to serve; another digest or a change of the spec \
                       is tried again"
                .to_owned();
        self.events.push(Event::warning(ROLLED_BACK, format!("{} is given up: {message}", named(&active))));
        let component = Record { since: timestamp(now), reason: ROLLED_BACK.to_owned(), ..active };
        self.history.hold(Candidate { component, message, generation: self.generation, rehearsal: None });
    }

    /// Records the component that serves.
    pub(super) fn serves(
        &mut self,
        now: Timestamp,
        provider: &Provider,
        artifact: Option<String>,
        reason: &str,
        limit: usize,
    ) {
        let component = Record { reason: reason.to_owned(), ..record(now, provider, artifact) };
        let before = self.history.active.clone();
        let known = self.history.previous.iter().chain(&before).find(|record| record.digest == component.digest);
        let artifact = component.artifact.clone().or_else(|| known?.artifact.clone());
        self.history.serve(Record { artifact, ..component.clone() }, limit);
        match before {
            Some(before) if before.digest == component.digest => {}
            Some(before) => {
                let message = format!("{} serves instead of {}", named(&component), named(&before));
                self.events.push(Event::normal(reason, message));
            }
            None => self.events.push(Event::normal("Serving", format!("{} serves", named(&component)))),
        }
    }

    /// Counts changes of the history.
    pub(super) fn count(&self, swaps: &SwapMetrics, provider: &str, before: &History) {
        let given_up =
            |history: &History| history.candidate.as_ref().is_some_and(|c| c.component.reason == ROLLED_BACK);
        if self.history.active() != before.active() {
            let back = given_up(&self.history) && !given_up(before);
            let result = if before.active.is_none() { "started" } else { "swapped" };
            swaps.count(provider, if back { "rolled_back" } else { result });
        }
        let state = |history: &History| {
            history.candidate.as_ref().map(|c| (c.component.digest.clone(), c.component.reason.clone()))
        };
        if let Some((_, reason)) = state(&self.history).filter(|now| state(before).as_ref() != Some(now)) {
            match reason.as_str() {
                ROLLED_BACK => {}
                reason if WAITING.contains(&reason) => swaps.count(provider, "held"),
                _ => swaps.count(provider, "refused"),
            }
        }
    }

    /// Why the wanted component will not serve unless somebody changes something.
    pub(super) fn hopeless(&self) -> Option<String> {
        let refusal = self.refusal.as_ref().filter(|refusal| refusal.lasting)?;
        Some(format!("{}: {}", refusal.reason, refusal.message))
    }

    /// The plan with status, events and operations.
    pub(super) fn plan(
        self,
        pass: &Pass<'_>,
        serving: Option<&Generation>,
        (figures, again): (Option<Figures>, Option<Duration>),
        folders: Folders<'_>,
    ) -> Result<Plan, ReconcileError> {
        let mut desired = (*pass.object).clone();
        if let Some(generation) = serving {
            describe(&mut desired, &generation.provider);
        }
        self.history
            .write(&mut desired)
            .map_err(|error| ReconcileError::failed("StatusInvalid", format!("unable to write the status: {error}")))?;
        if let Some(figures) = figures {
            json::set(&mut desired, &["status", "calls"], written(figures));
        }
        json::set(&mut desired, &["status", "providerFolder"], folders.components.display().to_string());
        let recordings = folders.recordings.map_or(Value::Null, |folder| folder.display().to_string().into());
        json::set(&mut desired, &["status", "recordingsFolder"], recordings);
        json::set(&mut desired, &["status", "observedGeneration"], self.generation);
        let missing = self.refusal.as_ref().map(|refusal| &refusal.missing).filter(|missing| !missing.is_empty());
        json::set(&mut desired, &["status", "missingGrants"], missing.map_or(Value::Null, |missing| json!(missing)));
        for condition in self.conditions(serving.is_some()) {
            conditions::set(&mut desired, &condition, pass.now);
        }
        let mut plan =
            Plan { events: self.events, wake_after: self.again.into_iter().chain(again).min(), ..Plan::default() };
        if let Some(refusal) = self.refusal {
            let Refusal { reason, message, lasting, .. } = refusal;
            plan.verdict = Verdict::Failed { reason: reason.to_owned(), message, retry_after: None, backoff: !lasting };
        }
        if let Some(operations) = self.installing {
            plan.wake_when_applied = !operations.is_empty();
            plan.operations = operations;
            plan.verdict = Verdict::Waiting;
            // A CRD is served soon after it is stored; nothing else tells when.
            plan.wake_after = Some(Duration::from_millis(200));
        }
        plan.desired = Some(desired);
        Ok(plan)
    }

    /// `Ready`: whether a component serves. `UpToDate`: whether it is the source's.
    fn conditions(&self, serves: bool) -> [Condition; 2] {
        let both = |ready: Condition| [ready.clone(), ready.named("UpToDate")];
        let held = |reason: &str, message: &str| {
            let late = Condition::new("UpToDate", false, reason).message(message);
            [Condition::new("Ready", true, "Serving"), late]
        };
        match (&self.refusal, &self.installing, &self.history.candidate) {
            (Some(refusal), _, _) if serves => {
                let message = format!("{}; the previous generation serves", refusal.message);
                let ready = Condition::new("Ready", true, refusal.reason).message(message);
                [ready, Condition::new("UpToDate", false, refusal.reason).message(&refusal.message)]
            }
            (Some(refusal), _, _) => both(Condition::new("Ready", false, refusal.reason).message(&refusal.message)),
            (None, Some(_), _) => {
                [Condition::new("Ready", serves, "InstallingCRDs"), Condition::new("UpToDate", false, "InstallingCRDs")]
            }
            (None, None, _) if self.pinned => held("Pinned", "spec.update.pin says what serves"),
            (None, None, Some(candidate)) => held(&candidate.component.reason, &candidate.message),
            (None, None, None) => both(Condition::new("Ready", serves, "Serving")),
        }
    }
}

impl Loader {
    /// The figures to write, and when to do so next: the status keeps its figures for [`FIGURES`].
    pub(super) fn figures(&self, name: &str, serving: Option<&Serving>) -> (Option<Figures>, Option<Duration>) {
        let Some(serving) = serving else { return (None, None) };
        // Before looking, so that no call after it goes unseen. A host at rest looks no more.
        serving.generation.health.await_call(true);
        let figures = serving.generation.health.figures();
        let mut providers = self.providers.lock();
        let Some(loaded) = providers.get_mut(name) else { return (None, None) };
        match loaded.figures {
            Some((at, known)) if known != figures && at.elapsed() < FIGURES => {
                serving.generation.health.await_call(false);
                (Some(known), Some(FIGURES.saturating_sub(at.elapsed())))
            }
            Some((_, known)) if known == figures => (Some(known), None),
            _ => {
                loaded.figures = Some((Instant::now(), figures));
                (Some(figures), None)
            }
        }
    }
}

fn record(now: Timestamp, provider: &Provider, artifact: Option<String>) -> Record {
    let descriptor = provider.descriptor();
    Record {
        digest: provider.digest().to_owned(),
        version: descriptor.version.clone(),
        contract: descriptor.contract.clone(),
        artifact,
        since: timestamp(now),
        reason: String::new(),
    }
}

/// Digest and version, for messages.
fn named(record: &Record) -> String {
    if record.version.is_empty() { record.digest.clone() } else { format!("{} ({})", record.digest, record.version) }
}

fn written(figures: Figures) -> Value {
    json!({
        "count": figures.count, "failed": figures.failed, "traps": figures.traps,
        "medianMicroseconds": figures.median_microseconds, "memoryPeakBytes": figures.memory_peak_bytes,
    })
}

/// Writes descriptor fields of the component that serves to the status.
fn describe(object: &mut Value, provider: &Provider) {
    let descriptor = provider.descriptor();
    let kinds: Vec<Value> = descriptor
        .kinds
        .iter()
        .map(|kind| {
            let mut told = json!({"group": kind.group, "kind": kind.kind, "version": kind.version, "role": kind.role});
            if kind.admission {
                told["admission"] = json!(json::text(&kind.crd, "/spec/names/plural"));
            }
            told
        })
        .collect();
    let status = json::map(object, &["status"]);
    status.insert("digest".into(), provider.digest().into());
    status.insert("version".into(), descriptor.version.clone().into());
    status.insert("contract".into(), descriptor.contract.clone().into());
    status.insert("sizeBytes".into(), provider.size().into());
    status.insert("kinds".into(), kinds.into());
    status.insert("converts".into(), provider.converts().into());
}

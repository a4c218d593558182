//! Reconciles WasmProviders: what their source has becomes controllers for its kinds.
//!
//! ```text
//! source ─► digest ─► decide (pure) ─► load (validated, compiled) ─► wants against grants ─► CRDs widened ─► rehearsal, approval
//!                                                                                                                     │
//!                      what served: calls in flight finish on it, and it is kept ◄── controllers started or replaced ◄─┘
//! ```
//!
//! A failure at any step leaves what serves serving, with the reason on the object.

mod bring;
pub(crate) mod files;
mod report;
mod source;
pub(crate) mod vouching;
mod waiting;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use capwasm_fence::Fence;
use capwasm_object::{json, meta};
use capwasm_reconcile::{
    Action, ControllerHandle, Interests, Kind, Manager, Operation, Pass, Plan, ReconcileError, Reconciler, Selector,
    Target, Verdict, WorkerSlots,
};
use capwasm_remote::Remote;
use capwasm_runtime::{Grants, Limits, Provider, Runtime};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

pub use self::files::{FolderWatch, ProviderFiles};
use self::report::{Folders, Report};
use self::source::{Pulled, Wanted};
use self::vouching::Vouched;
use self::waiting::{Rehearsing, Waiting};
use crate::artifacts::Artifacts;
use crate::components::Components;
use crate::conversion::Conversions;
use crate::crd;
use crate::generation::{Figures, Generation, calls_token};
use crate::lifecycle::{self, Situation, Step};
use crate::metrics::{CallMetrics, SwapMetrics};
use crate::record::Recordings;
use crate::rehearse::Judgement;
use crate::wasm_provider::history::{History, ROLLED_BACK, Rehearsal};
use crate::wasm_provider::{FINALIZER, Spec, UpdatePolicy};

/// Dependencies of a [`Loader`].
pub struct LoaderDependencies {
    /// Loads and compiles components.
    pub runtime: Arc<Runtime>,
    /// Runs the controllers.
    pub manager: Manager,
    /// Wakes WasmProviders: the manager's own.
    pub interests: Arc<Interests>,
    /// Connections to workload clusters.
    pub remote: Remote,
    /// What requests of guests have to pass that may change something.
    pub fence: Fence,
    /// The provider folder, for sources of kind `file`.
    pub files: ProviderFiles,
    /// Registry client and signature verification; without it sources of kind `oci` are refused.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Whether unsigned components are refused.
    pub require_signatures: bool,
    /// Store of components that serve or served; without it they are kept in memory only.
    pub components: Option<Components>,
    /// Recorded calls for rehearsals; without it `RehearseFirst` needs an approval.
    pub recordings: Option<Recordings>,
    /// Conversion and admission. Without it CRDs serve their storage version only.
    pub conversions: Option<Arc<Conversions>>,
    /// Metrics of calls.
    pub calls: CallMetrics,
    /// Metrics of updates.
    pub swaps: SwapMetrics,
    /// What this process found of WasmProviders.
    pub found: watch::Sender<Found>,
}

/// WasmProviders by name: those that serve in this process, whose CRDs are established, and for the others why they never will unless
/// somebody changes something.
pub type Found = BTreeMap<String, Result<(), String>>;

/// Reconciler of WasmProviders.
pub struct Loader {
    dependencies: LoaderDependencies,
    /// By name of the WasmProvider.
    providers: Mutex<HashMap<String, Loaded>>,
}

/// State of one WasmProvider in this process.
#[derive(Default)]
struct Loaded {
    /// Compiled components with their limits.
    components: Vec<(Limits, Arc<Provider>)>,
    /// A component that was refused for good, with its limits.
    refused: Option<(String, Limits, Refusal)>,
    /// Who signed components, by digest.
    vouched: HashMap<String, Vouched>,
    /// The last pull.
    pulled: Option<Pulled>,
    /// The candidate that is being rehearsed.
    waiting: Option<Waiting>,
    serving: Option<Serving>,
    /// Controllers by kind, at the version of the component.
    controllers: HashMap<Kind, ControllerHandle>,
    /// Concurrency limit that these controllers share.
    slots: Option<WorkerSlots>,
    /// The last figures of calls that were written, and when.
    figures: Option<(Instant, Figures)>,
}

impl Loaded {
    fn component(&self, digest: &str) -> Option<&(Limits, Arc<Provider>)> {
        self.components.iter().find(|(_, provider)| provider.digest() == digest)
    }
}

/// The generation that serves, and the terms from which it was made.
#[derive(Clone)]
struct Serving {
    generation: Arc<Generation>,
    terms: Terms,
}

/// The part of a WasmProvider's spec that applies to every component.
#[derive(Clone, Debug, PartialEq)]
struct Terms {
    grants: Grants,
    limits: Limits,
    /// JSON text of `spec.configuration` with Secrets.
    configuration: String,
    record: bool,
    /// Whether the next component is rehearsed on recordings of this one.
    rehearsed: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Refusal {
    reason: &'static str,
    message: String,
    /// Wanted capabilities without grants, for `status.missingGrants`.
    missing: Vec<String>,
    /// Whether only another component or spec helps, so that it is not tried again before.
    lasting: bool,
}

impl Refusal {
    fn lasting(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), missing: Vec::new(), lasting: true }
    }

    fn passing(reason: &'static str, message: impl Into<String>) -> Self {
        Self { lasting: false, ..Self::lasting(reason, message) }
    }
}

/// Outcome of bringing a component into service.
enum Progress {
    /// It serves; with what would keep it from coming to serve now. Capabilities that are not granted any more are denied.
    Serving(Arc<Provider>, Option<Refusal>),
    /// CRDs must be written or established first.
    Installing(Vec<Operation>),
    Refused(Refusal),
}

/// Outcome of rehearsing or waiting for approval.
enum Considered {
    /// It may serve.
    Take,
    /// It has to wait.
    Hold {
        reason: &'static str,
        message: String,
        rehearsed: Option<Rehearsal>,
        /// When to look again, if nothing wakes the WasmProvider.
        again: Option<Duration>,
    },
    Refused(Refusal),
}

impl Loader {
    /// A loader without providers.
    pub fn new(dependencies: LoaderDependencies) -> Self {
        Self { dependencies, providers: Mutex::default() }
    }

    /// One pass: decides which component should serve, and brings it into service.
    async fn advance(&self, pass: &Pass<'_>, report: &mut Report) -> Result<(), ReconcileError> {
        let name = pass.key.name.as_str();
        let spec: Spec = match serde_json::from_value(pass.object.get("spec").cloned().unwrap_or_default()) {
            Ok(spec) => spec,
            Err(error) => {
                report.refuse(Refusal::lasting("InvalidSpec", format!("spec: {error}")), None);
                return Ok(());
            }
        };
        let configuration = match self.configuration(pass, &spec).await? {
            Ok(configuration) => configuration,
            Err(refusal) => {
                report.refuse(refusal, None);
                return Ok(());
            }
        };
        let terms = Terms {
            grants: spec.grants.clone(),
            limits: spec.limits.clone(),
            configuration,
            record: spec.record,
            rehearsed: spec.update.policy != UpdatePolicy::Immediate,
        };
        let pinned = spec.update.pin.clone();
        let mut looked = match &pinned {
            Some(digest) => Ok(self.pinned(pass, &spec, digest).await?),
            None => self.look(pass, &spec).await?,
        };
        if let Ok(Wanted { digest, vouched, .. }) = &mut looked
            && let Some(vouched) = vouched.take()
        {
            self.vouch(name, digest, vouched).await;
        }
        report.again = looked.as_ref().ok().and_then(|wanted| wanted.again);
        let wanted = looked.as_ref().ok();

        let history = report.history.clone();
        let serving = self.serving(name);
        let traps = serving.as_ref().is_some_and(|serving| {
            serving.generation.health.failed_probation()
                && Some(serving.generation.provider.digest()) == history.active()
        });
        let previous = if traps { self.trusted_previous(name, &spec, &history).await } else { None };
        let situation = Situation {
            wanted: wanted.map(|wanted| wanted.digest.as_str()),
            pinned: pinned.is_some(),
            active: history.active(),
            previous,
            rejected: history.rejected(report.generation),
            traps,
            policy: spec.update.policy,
            approved: spec.update.approve.as_deref(),
        };
        let step = lifecycle::decide(&situation);
        if let Step::Serve(_) | Step::RollBack(_) | Step::Leave(_) = step {
            self.rehearse_no_more(name);
        }
        let mut reason = if history.active.is_some() { "Swapped" } else { "Installed" };
        let target = match step {
            Step::Serve(digest) => Some(digest),
            Step::Stay | Step::Leave(_) => situation.active,
            Step::RollBack(to) => {
                reason = ROLLED_BACK;
                report.give_up(pass.now);
                Some(to)
            }
            Step::Rehearse(digest) | Step::AskFor(digest) => {
                let bytes = wanted.and_then(|wanted| wanted.bytes.as_deref());
                match self.consider(pass, &spec, &terms, &history, digest, bytes).await? {
                    Considered::Take => Some(digest),
                    Considered::Hold { reason, message, rehearsed, again } => {
                        report.again = report.again.into_iter().chain(again).min();
                        report.hold(pass.now, wanted, self.known(name, digest), reason, message, rehearsed);
                        situation.active
                    }
                    Considered::Refused(refusal) => {
                        self.rehearse_no_more(name);
                        report.refuse(refusal, wanted.map(|wanted| (wanted, pass.now)));
                        situation.active
                    }
                }
            }
        };
        if let (Step::Stay, Err(refusal)) = (step, &looked) {
            report.refuse(refusal.clone(), None);
        }
        let Some(target) = target else { return Ok(()) };
        let bytes = wanted.filter(|wanted| wanted.digest == target).and_then(|wanted| wanted.bytes.as_deref());
        // One that somebody asked for, or that the host itself went back to, is not on probation.
        let probation = matches!(step, Step::Serve(_) | Step::Rehearse(_)) && pinned.is_none();
        match self.bring(pass, &spec, &terms, &history, target, bytes, probation).await? {
            Progress::Serving(provider, concern) => {
                let artifact =
                    wanted.filter(|wanted| wanted.digest == target).and_then(|wanted| wanted.artifact.clone());
                report.serves(pass.now, &provider, artifact, reason, spec.history_limit);
                report.pinned = pinned.is_some();
                match concern {
                    // What is wrong with the source says more of it.
                    Some(concern) if looked.is_err() && concern.missing.is_empty() => {}
                    Some(concern) => report.refuse(concern, None),
                    None if situation.wanted == Some(target) => report.history.candidate = None,
                    None => {}
                }
            }
            Progress::Installing(operations) => report.installing = Some(operations),
            Progress::Refused(refusal) => {
                let of = wanted.filter(|wanted| wanted.digest == target && situation.active != Some(target));
                report.refuse(refusal, of.map(|wanted| (wanted, pass.now)));
                self.fall_back(pass, &spec, &terms, &history, target, report).await?;
            }
        }
        Ok(())
    }

    /// The component that `spec.update.pin` names. When no trusted key vouches for it as far as is known, its source is asked: it may have
    /// been signed again.
    async fn pinned(&self, pass: &Pass<'_>, spec: &Spec, digest: &str) -> Result<Wanted, ReconcileError> {
        if self.trusts(&pass.key.name, spec, digest).await.is_err()
            && let Ok(found) = self.look(pass, spec).await?
            && found.digest == digest
        {
            return Ok(found);
        }
        Ok(Wanted::kept(digest))
    }

    /// When the next component is refused and nothing serves yet, which is so after a start of the host, serves the one
    /// that served last.
    async fn fall_back(
        &self,
        pass: &Pass<'_>,
        spec: &Spec,
        terms: &Terms,
        history: &History,
        refused: &str,
        report: &mut Report,
    ) -> Result<(), ReconcileError> {
        let Some(active) = history.active().filter(|active| *active != refused) else { return Ok(()) };
        if self.serving(&pass.key.name).is_some() {
            return Ok(());
        }
        match self.bring(pass, spec, terms, history, active, None, false).await? {
            Progress::Serving(..) => {}
            Progress::Installing(operations) => report.installing = Some(operations),
            Progress::Refused(refusal) => {
                tracing::warn!(
                    provider = pass.key.name,
                    digest = active,
                    reason = refusal.message,
                    "what served last cannot serve"
                );
            }
        }
        Ok(())
    }

    /// Loads and checks a component, and rehearses it or asks for approval.
    async fn consider(
        &self,
        pass: &Pass<'_>,
        spec: &Spec,
        terms: &Terms,
        history: &History,
        digest: &str,
        bytes: Option<&[u8]>,
    ) -> Result<Considered, ReconcileError> {
        let name = pass.key.name.as_str();
        let provider = match self.component(name, spec, digest, bytes).await {
            Ok(provider) => provider,
            Err(refusal) => return Ok(Considered::Refused(refusal)),
        };
        if let Err(refusal) = bring::check(name, &provider, spec) {
            return Ok(Considered::Refused(refusal));
        }
        if let Err(refusal) = self.crds(pass, &provider, history.served(digest)).await? {
            return Ok(Considered::Refused(refusal));
        }
        let approve = format!("approve it with `capwasm provider approve {name}` or spec.update.approve: {digest}");
        let hold = |reason, why: &str, rehearsed| Considered::Hold {
            reason,
            message: format!("{why}{approve}"),
            rehearsed,
            again: None,
        };
        let first = spec.update.policy == UpdatePolicy::RehearseFirst;
        let (told, judgement) = match self.rehearsing(pass, terms, &provider, history).await {
            Rehearsing::Never if first => return Ok(hold("AwaitingApproval", "this host rehearses nothing; ", None)),
            Rehearsing::Never => return Ok(hold("AwaitingApproval", "", None)),
            Rehearsing::NotYet => {
                let (reason, why) = match first {
                    true => ("NothingRecorded", "nothing serves yet whose calls could be rehearsed; "),
                    false => ("AwaitingApproval", ""),
                };
                let (message, rehearsed) = (format!("{why}{approve}"), waiting::kept(history, digest));
                return Ok(Considered::Hold { reason, message, rehearsed, again: Some(waiting::SOON) });
            }
            Rehearsing::Since(told, judgement) => (told, judgement),
        };
        let rehearsed = told.rehearsal;
        Ok(match judgement {
            _ if !first => hold("AwaitingApproval", "", Some(rehearsed)),
            Judgement::Same => Considered::Take,
            Judgement::TooFew => {
                let why = waiting::too_few(rehearsed.calls);
                hold("NothingRecorded", &why, Some(rehearsed))
            }
            Judgement::Differs => {
                let Rehearsal { calls, differences, .. } = rehearsed;
                let why = format!("{differences} of {calls} rehearsed calls did not come to the same; ");
                hold("RehearsalDiffers", &why, Some(rehearsed))
            }
        })
    }

    fn serving(&self, name: &str) -> Option<Serving> {
        self.providers.lock().get(name)?.serving.clone()
    }

    /// A loaded component.
    fn known(&self, name: &str, digest: &str) -> Option<Arc<Provider>> {
        Some(self.providers.lock().get(name)?.component(digest)?.1.clone())
    }

    /// Removes components that the status no longer names.
    fn tidy(&self, name: &str, before: &History, report: &Report, wanted: Option<&str>) {
        let after = report.history.digests();
        let needed = |digest: &str| after.contains(&digest) || wanted == Some(digest);
        if let Some(components) = &self.dependencies.components {
            before.digests().into_iter().filter(|digest| !needed(digest)).for_each(|digest| components.remove(digest));
        }
        if let Some(loaded) = self.providers.lock().get_mut(name) {
            let serving = loaded.serving.as_ref().map(|serving| serving.generation.provider.digest().to_owned());
            loaded.vouched.retain(|digest, _| needed(digest) || serving.as_ref() == Some(digest));
            loaded
                .components
                .retain(|(_, provider)| needed(provider.digest()) || serving.as_deref() == Some(provider.digest()));
        }
    }

    async fn stop(&self, name: &str) {
        if let Some(conversions) = &self.dependencies.conversions {
            conversions.leave(name);
        }
        self.dependencies.found.send_if_modified(|found| found.remove(name).is_some());
        let loaded = self.providers.lock().remove(name);
        for controller in loaded.into_iter().flat_map(|loaded| loaded.controllers.into_values()) {
            controller.stop().await;
        }
    }

    /// Deletes the CRDs if `spec.removeCRDs` says so, while controllers can still remove finalizers; then stops the
    /// controllers.
    async fn remove(&self, pass: &Pass<'_>, held: bool) -> Result<Plan, ReconcileError> {
        let name = pass.key.name.as_str();
        if held && json::flag(&pass.object, "/spec/removeCRDs") == Some(true) {
            let kind = pass.view.kind_at("apiextensions.k8s.io/v1", "CustomResourceDefinition").await?;
            let left = pass.view.list(&kind, None, &Selector::labels([(crd::PROVIDER, name)])).await?;
            if !left.is_empty() {
                let gone = |crd: &Arc<Value>| {
                    let target = Target::new(&kind, "", meta::name(crd));
                    let action = Action::Delete { target, uid: Some(meta::uid(crd).to_owned()), propagation: None };
                    Operation::management(meta::name(crd), action)
                };
                let operations = left.iter().filter(|crd| !meta::is_deleting(crd)).map(gone).collect();
                return Ok(Plan { operations, verdict: Verdict::Waiting, ..Plan::default() });
            }
        }
        self.stop(name).await;
        if let Some(recordings) = &self.dependencies.recordings {
            recordings.forget(name);
        }
        if let Some(components) = &self.dependencies.components {
            History::of(&pass.object).digests().into_iter().for_each(|digest| components.remove(digest));
        }
        let release = if held { vec![FINALIZER.to_owned()] } else { Vec::new() };
        Ok(Plan { release, ..Plan::default() })
    }
}

#[async_trait]
impl Reconciler for Loader {
    fn name(&self) -> &str {
        "wasmprovider"
    }

    /// Pulling and compiling have limits of their own.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let name = pass.key.name.as_str();
        let held =
            json::items(&pass.object, "/metadata/finalizers").iter().any(|entry| entry.as_str() == Some(FINALIZER));
        if meta::is_deleting(&pass.object) {
            return self.remove(pass, held).await;
        }
        if !held {
            return Ok(Plan::finalize(&pass.object, FINALIZER));
        }
        pass.view.note(calls_token(name));
        let before = History::of(&pass.object);
        let mut report = Report::new(&pass.object, before.clone());
        self.advance(pass, &mut report).await?;
        report.count(&self.dependencies.swaps, name, &before);
        if report.installing.is_none() {
            let pulled =
                self.providers.lock().get(name).and_then(|loaded| Some(loaded.pulled.as_ref()?.digest().to_owned()));
            self.tidy(name, &before, &report, pulled.as_deref());
        }
        let serving = self.serving(name);
        if serving.is_none()
            && let Some(why) = report.hopeless()
        {
            self.dependencies
                .found
                .send_if_modified(|found| found.insert(name.to_owned(), Err(why.clone())) != Some(Err(why)));
        }
        let figures = self.figures(name, serving.as_ref());
        let folders = Folders {
            components: self.dependencies.files.path(),
            recordings: self.dependencies.recordings.as_ref().and_then(Recordings::folder),
        };
        report.plan(pass, serving.as_ref().map(|serving| &*serving.generation), figures, folders)
    }
}

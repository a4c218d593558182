//! Reconciles WasmProviders: a file in the provider folder becomes controllers for its kinds.
//!
//! ```text
//! file ─► digest ─► load (validated, compiled) ─► wants against grants ─► CRDs installed ─► controllers started or replaced
//! ```
//!
//! A failure at any step leaves what serves serving, with the reason on the object.

mod files;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_api::conditions::{self, Condition};
use capwasm_api::descriptor::Role;
use capwasm_api::json;
use capwasm_reconcile::{
    Action, ControllerHandle, Event, Kind, Manager, Operation, Pass, Plan, ReconcileError, Reconciler, Target, Verdict,
};
use capwasm_remote::Remote;
use capwasm_runtime::{HttpClient, Limits, Provider, Runtime};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub use self::files::ProviderFiles;
use crate::conversion::Conversions;
use crate::crd::{self, Serving, Step};
use crate::generation::Generation;
use crate::metrics::CallMetrics;
use crate::reads::chain;
use crate::reconciler::ProviderReconciler;
use crate::wasm_provider::{self, FINALIZER, Spec};

/// Loads providers and runs their controllers.
pub struct Loader {
    runtime: Arc<Runtime>,
    manager: Manager,
    remote: Remote,
    files: ProviderFiles,
    conversions: Option<Arc<Conversions>>,
    metrics: CallMetrics,
    /// By name of the WasmProvider.
    providers: Mutex<HashMap<String, Loaded>>,
}

/// What is known of one WasmProvider.
#[derive(Default)]
struct Loaded {
    /// The last component that was compiled, and with which limits.
    component: Option<(Limits, Arc<Provider>)>,
    /// What serves: digest and spec that it was made of.
    serving: Option<(String, Spec)>,
    /// Controllers by kind, at the version in which its objects are handed to the provider.
    controllers: HashMap<Kind, ControllerHandle>,
}

/// Why a provider does not serve (in its newest form).
struct Refusal {
    reason: &'static str,
    message: String,
    /// Wants without grants, for `status.missingGrants`.
    missing: Vec<String>,
}

/// One look at a WasmProvider.
enum Progress {
    /// It serves.
    Serving(Arc<Provider>),
    /// CRDs have to be written or served first.
    Installing(Vec<Operation>),
    /// It cannot.
    Refused(Refusal),
}

impl Loader {
    /// Loads from `files` and starts controllers in `manager`. Its CRDs serve several versions only where
    /// the API server asks `conversions`, which what is loaded is added to.
    pub fn new(
        runtime: Arc<Runtime>,
        manager: Manager,
        remote: Remote,
        files: ProviderFiles,
        conversions: Option<Arc<Conversions>>,
        metrics: CallMetrics,
    ) -> Self {
        Self { runtime, manager, remote, files, conversions, metrics, providers: Mutex::default() }
    }

    async fn progress(&self, pass: &Pass<'_>) -> Result<Progress, ReconcileError> {
        let refused = |reason, message| Ok(Progress::Refused(Refusal { reason, message, missing: Vec::new() }));
        let name = pass.key.name.as_str();
        let spec: Spec = match serde_json::from_value(pass.object.get("spec").cloned().unwrap_or_default()) {
            Ok(spec) => spec,
            Err(error) => return refused("InvalidSpec", format!("spec: {error}")),
        };
        let provider = match self.component(name, &spec).await {
            Ok(provider) => provider,
            Err((reason, message)) => return refused(reason, message),
        };
        let descriptor = provider.descriptor();
        if descriptor.name != name {
            let message = format!("the component calls itself {:?}; name its WasmProvider the same", descriptor.name);
            return refused("NameMismatch", message);
        }
        let missing = wasm_provider::missing_grants(descriptor, &spec);
        if !missing.is_empty() {
            let message = format!("not granted: {}", missing.join("; "));
            return Ok(Progress::Refused(Refusal { reason: "MissingGrants", message, missing }));
        }
        let crds = pass.view.kind_at("apiextensions.k8s.io/v1", "CustomResourceDefinition").await?;
        let client_config = self.conversions.as_ref().and_then(|conversions| conversions.client_config());
        let serving = match (&client_config, &self.conversions) {
            (Some(config), _) => Serving::Webhook(config),
            (None, Some(_)) => Serving::All,
            (None, None) => Serving::Stored,
        };
        let (mut operations, mut installed, mut waits) = (Vec::new(), Vec::new(), false);
        for wanted in crd::of_provider(descriptor, serving) {
            let crd_name = json::name(&wanted).to_owned();
            let live = pass.view.get_live(&crds, "", &crd_name).await?;
            match crd::decide(&wanted, live.as_ref()) {
                Step::Create(crd) => operations.push(Operation::management(crd_name, Action::Create(crd))),
                Step::Patch(merge) => operations.push(Operation::management(
                    crd_name.clone(),
                    Action::Patch {
                        target: Target::new(&crds, "", &crd_name),
                        merge,
                        resource_version: None,
                        subresource: None,
                    },
                )),
                Step::Wait => waits = true,
                Step::Installed => installed.extend(live),
                Step::Foreign(why) => return refused("CRDConflict", why),
            }
        }
        // None of its CRDs is somebody else's. One that is installed in a moment can be read in its other versions from then on.
        if let Some(conversions) = &self.conversions {
            conversions.offer(&provider);
        }
        if waits || !operations.is_empty() {
            return Ok(Progress::Installing(operations));
        }
        if let Err(error) = self.serve(pass, name, &spec, &provider, &installed).await? {
            return refused("InvalidGrants", error);
        }
        Ok(Progress::Serving(provider))
    }

    /// The component in the file, compiled once per digest and limits.
    async fn component(&self, name: &str, spec: &Spec) -> Result<Arc<Provider>, (&'static str, String)> {
        let bytes = self.files.read(&spec.source.file).await.map_err(|error| ("SourceUnreadable", chain(&error)))?;
        let digest = files::digest(&bytes);
        let known = self.providers.lock().get(name).and_then(|loaded| loaded.component.clone());
        if let Some((limits, provider)) = known
            && limits == spec.limits
            && provider.digest() == digest
        {
            return Ok(provider);
        }
        let provider =
            self.runtime.load(&bytes, spec.limits.clone()).await.map_err(|error| ("LoadFailed", chain(&error)))?;
        self.providers.lock().entry(name.to_owned()).or_default().component =
            Some((spec.limits.clone(), provider.clone()));
        Ok(provider)
    }

    /// Starts controllers, or gives running ones the new generation. An inner error is a grant that makes no sense.
    async fn serve(
        &self,
        pass: &Pass<'_>,
        name: &str,
        spec: &Spec,
        provider: &Arc<Provider>,
        crds: &[Value],
    ) -> Result<Result<(), String>, ReconcileError> {
        let serves = |loaded: &Loaded| {
            loaded.serving.as_ref().is_some_and(|(digest, old)| digest == provider.digest() && old == spec)
        };
        if self.providers.lock().get(name).is_some_and(serves) {
            return Ok(Ok(()));
        }
        let grants = Arc::new(spec.grants.clone());
        let http = match HttpClient::new(&grants, &spec.limits) {
            Ok(http) => Arc::new(http),
            Err(error) => return Ok(Err(chain(&error))),
        };
        let configuration = spec.configuration.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string);
        let generation = Arc::new(Generation {
            provider: provider.clone(),
            grants,
            http,
            metrics: self.metrics.clone(),
            configuration,
        });
        let mut kinds: Vec<(Kind, Arc<dyn Reconciler>)> = Vec::new();
        for kind in provider.descriptor().kinds.iter().filter(|kind| kind.role != Role::Template) {
            let resolved = pass.view.kind_at(&format!("{}/{}", kind.group, kind.version), &kind.kind).await?;
            let crd = crds.iter().find(|crd| {
                json::text(crd, "/spec/group") == Some(&kind.group)
                    && json::text(crd, "/spec/names/kind") == Some(&kind.kind)
            });
            let reconciler = ProviderReconciler::new(
                generation.clone(),
                kind.clone(),
                crd.unwrap_or(&kind.crd),
                self.remote.clone(),
            );
            kinds.push((resolved, Arc::new(reconciler)));
        }
        let wanted: Vec<Kind> = kinds.iter().map(|(kind, _)| kind.clone()).collect();
        let left = self.providers.lock().get_mut(name).map(|loaded| leave(&mut loaded.controllers, &wanted));
        for controller in left.into_iter().flatten() {
            controller.stop().await;
        }
        let mut providers = self.providers.lock();
        let loaded = providers.entry(name.to_owned()).or_default();
        for (kind, reconciler) in kinds {
            match loaded.controllers.get(&kind) {
                Some(controller) => controller.replace(reconciler),
                None => {
                    let concurrency = usize::try_from(spec.limits.concurrency).unwrap_or(1).max(1);
                    loaded.controllers.insert(kind.clone(), self.manager.add(kind, reconciler, concurrency));
                }
            }
        }
        if let Some(conversions) = &self.conversions {
            conversions.serve(provider);
        }
        loaded.serving = Some((provider.digest().to_owned(), spec.clone()));
        Ok(Ok(()))
    }

    async fn stop(&self, name: &str) {
        if let Some(conversions) = &self.conversions {
            conversions.leave(name);
        }
        let loaded = self.providers.lock().remove(name);
        for controller in loaded.into_iter().flat_map(|loaded| loaded.controllers.into_values()) {
            controller.stop().await;
        }
    }

    fn serves(&self, name: &str) -> bool {
        self.providers.lock().get(name).is_some_and(|loaded| loaded.serving.is_some())
    }
}

#[async_trait]
impl Reconciler for Loader {
    fn name(&self) -> &str {
        "wasmprovider"
    }

    async fn reconcile(&self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        let name = pass.key.name.as_str();
        let held =
            json::items(&pass.object, "/metadata/finalizers").iter().any(|entry| entry.as_str() == Some(FINALIZER));
        if json::is_deleting(&pass.object) {
            self.stop(name).await;
            let release = if held { vec![FINALIZER.to_owned()] } else { Vec::new() };
            return Ok(Plan { release, ..Plan::default() });
        }
        if !held {
            return Ok(crate::write_back::finalize(&pass.object, FINALIZER));
        }
        let progress = self.progress(pass).await?;
        let mut desired = (*pass.object).clone();
        let mut plan = Plan::nothing();
        let ready = match &progress {
            Progress::Serving(provider) => {
                describe(&mut desired, provider);
                if !conditions::is_true(&pass.object, "Ready") {
                    plan.events.push(Event::normal(
                        "Serving",
                        format!("{} {} serves", provider.digest(), provider.descriptor().version),
                    ));
                }
                Condition::new("Ready", true, "Serving")
            }
            Progress::Installing(_) => Condition::new("Ready", self.serves(name), "InstallingCRDs"),
            Progress::Refused(refusal) => {
                let kept = if self.serves(name) { "; the previous generation serves" } else { "" };
                Condition::new("Ready", self.serves(name), refusal.reason).message(format!("{}{kept}", refusal.message))
            }
        };
        conditions::set(&mut desired, &ready, pass.now);
        json::set(
            &mut desired,
            &["status", "observedGeneration"],
            pass.object.pointer("/metadata/generation").cloned().unwrap_or_default(),
        );
        match progress {
            Progress::Serving(_) => json::set(&mut desired, &["status", "missingGrants"], Value::Null),
            Progress::Installing(operations) => {
                plan.wake_when_applied = !operations.is_empty();
                plan.operations = operations;
                plan.verdict = Verdict::Waiting;
                // A CRD is served soon after it is stored; nothing else tells when.
                plan.wake_after = Some(std::time::Duration::from_millis(200));
            }
            Progress::Refused(Refusal { reason, message, missing }) => {
                let missing = if missing.is_empty() { Value::Null } else { json!(missing) };
                json::set(&mut desired, &["status", "missingGrants"], missing);
                plan.verdict = Verdict::Failed { reason: reason.to_owned(), message, retry_after: None, backoff: true };
            }
        }
        plan.desired = Some(desired);
        Ok(plan)
    }
}

/// Takes out the controllers of kinds that are not wanted (at that version) any more: they would go on calling the
/// generation that is replaced, beside those of the new one.
fn leave<C>(controllers: &mut HashMap<Kind, C>, wanted: &[Kind]) -> Vec<C> {
    controllers.extract_if(|kind, _| !wanted.contains(kind)).map(|(_, controller)| controller).collect()
}

/// What serves, into the status.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_of_kinds_and_versions_that_are_not_served_any_more_are_left() {
        let kind = |group: &str, version: &str| Kind::new(group, version, "Thing", "things", true);
        let mut controllers = HashMap::from([(kind("a", "v1"), "a"), (kind("b", "v1"), "b"), (kind("c", "v1"), "c")]);
        let mut left = leave(&mut controllers, &[kind("a", "v1"), kind("b", "v2")]);
        left.sort_unstable();
        assert_eq!(left, ["b", "c"], "another version of a kind needs a watch of its own");
        assert_eq!(controllers.into_values().collect::<Vec<_>>(), ["a"]);
    }
}

//! From a digest to running controllers: load, check, widen CRDs, switch.

use std::sync::Arc;
use std::time::Instant;

use capwasm_object::{json, meta};
use capwasm_reconcile::{Action, Kind, Operation, Pass, ReconcileError, Reconciler, Target, WorkerSlots};
use capwasm_runtime::{HttpClient, Provider};
use serde_json::Value;

use super::{Loader, Progress, Refusal, Serving, Terms};
use crate::crd::{self, Serving as Versions, Step};
use crate::generation::{Generation, Health};
use crate::reads::chain;
use crate::reconciler::ProviderReconciler;
use crate::wasm_provider::history::History;
use crate::wasm_provider::{self, Spec};

/// CRDs of a component compared with the installed ones.
pub(super) struct Crds {
    operations: Vec<Operation>,
    installed: Vec<Value>,
    /// Whether one is not established yet.
    waits: bool,
}

/// Checks name and grants.
pub(super) fn check(name: &str, provider: &Provider, spec: &Spec) -> Result<(), Refusal> {
    let descriptor = provider.descriptor();
    if descriptor.name != name {
        let message = format!("the component calls itself {:?}; name its WasmProvider the same", descriptor.name);
        return Err(Refusal::lasting("NameMismatch", message));
    }
    let missing = wasm_provider::missing_grants(descriptor, spec);
    if missing.is_empty() { Ok(()) } else { Err(missing_grants(missing)) }
}

fn missing_grants(missing: Vec<String>) -> Refusal {
    let message = format!("not granted: {}", missing.join("; "));
    Refusal { missing, ..Refusal::lasting("MissingGrants", message) }
}

impl Loader {
    /// Brings a component into service, as far as CRDs allow at present.
    #[expect(clippy::too_many_arguments, reason = "what is known of one look")]
    pub(super) async fn bring(
        &self,
        pass: &Pass<'_>,
        spec: &Spec,
        terms: &Terms,
        history: &History,
        digest: &str,
        bytes: Option<&[u8]>,
        probation: bool,
    ) -> Result<Progress, ReconcileError> {
        let name = pass.key.name.as_str();
        let serves = self.serving(name).is_some_and(|serving| serving.generation.provider.digest() == digest);
        let mut concern = None;
        if let Err(refusal) = self.trusts(name, spec, digest).await {
            // What serves goes on, under the terms of now.
            if !serves {
                return Ok(Progress::Refused(refusal));
            }
            concern = Some(refusal);
        }
        let provider = match self.component(name, spec, digest, bytes).await {
            Ok(provider) => provider,
            Err(refusal) => return Ok(Progress::Refused(refusal)),
        };
        if let Err(refusal) = check(name, &provider, spec) {
            // What is taken away from a provider that serves is denied to it at once.
            if refusal.missing.is_empty() || !serves {
                return Ok(Progress::Refused(refusal));
            }
            concern = Some(refusal);
        }
        let crds = match self.crds(pass, &provider, history.served(digest)).await? {
            Ok(crds) => crds,
            Err(refusal) => return Ok(Progress::Refused(refusal)),
        };
        // None of its CRDs is somebody else's. One that is installed in a moment can be read in its other versions from then on.
        if let Some(conversions) = &self.dependencies.conversions {
            conversions.offer(&provider);
        }
        if crds.waits || !crds.operations.is_empty() {
            return Ok(Progress::Installing(crds.operations));
        }
        Ok(match self.serve(pass, terms, &provider, &crds.installed, probation).await? {
            Ok(()) => Progress::Serving(provider, concern),
            Err(error) => Progress::Refused(Refusal::lasting("InvalidGrants", error)),
        })
    }

    /// A component, compiled once per digest and limits; `bytes` or the store provides it.
    pub(super) async fn component(
        &self,
        name: &str,
        spec: &Spec,
        digest: &str,
        bytes: Option<&[u8]>,
    ) -> Result<Arc<Provider>, Refusal> {
        if let Some(loaded) = self.providers.lock().get(name) {
            if let Some((_, provider)) = loaded.component(digest).filter(|(limits, _)| *limits == spec.limits) {
                return Ok(provider.clone());
            }
            if let Some((of, limits, refusal)) = &loaded.refused
                && of == digest
                && *limits == spec.limits
            {
                return Err(refusal.clone());
            }
        }
        let kept = match (bytes, &self.dependencies.components) {
            (Some(_), _) => Vec::new(),
            (None, Some(components)) => {
                components.get(digest).await.map_err(|error| Refusal::passing("ComponentMissing", chain(&error)))?
            }
            (None, None) => {
                return Err(Refusal::passing("ComponentMissing", format!("component {digest} is not kept any more")));
            }
        };
        let bytes = bytes.unwrap_or(&kept);
        let provider = match self.dependencies.runtime.load(bytes, spec.limits.clone()).await {
            Ok(provider) => provider,
            Err(error) => {
                let refusal = Refusal { lasting: error.is_final(), ..Refusal::lasting("LoadFailed", chain(&error)) };
                if refusal.lasting {
                    self.providers.lock().entry(name.to_owned()).or_default().refused =
                        Some((digest.to_owned(), spec.limits.clone(), refusal.clone()));
                }
                return Err(refusal);
            }
        };
        if let Some(components) = self.dependencies.components.as_ref().filter(|components| !components.has(digest))
            && let Err(error) = components.put(digest, bytes.to_vec()).await
        {
            // It serves all the same; only a rollback to it would need its source.
            tracing::warn!(provider = name, digest, error = chain(&error), "unable to keep the component");
        }
        let mut providers = self.providers.lock();
        let loaded = providers.entry(name.to_owned()).or_default();
        loaded.components.retain(|(_, known)| known.digest() != digest);
        loaded.components.push((spec.limits.clone(), provider.clone()));
        Ok(provider)
    }

    /// Compares the component's CRDs with the installed ones. An inner error refuses the component.
    pub(super) async fn crds(
        &self,
        pass: &Pass<'_>,
        provider: &Provider,
        served: bool,
    ) -> Result<Result<Crds, Refusal>, ReconcileError> {
        let kind = pass.view.kind_at("apiextensions.k8s.io/v1", "CustomResourceDefinition").await?;
        let client_config = self.dependencies.conversions.as_ref().and_then(|conversions| conversions.client_config());
        let versions = match (&client_config, &self.dependencies.conversions) {
            (Some(config), _) => Versions::Webhook(config),
            (None, Some(_)) => Versions::All,
            (None, None) => Versions::Stored,
        };
        let mut crds = Crds { operations: Vec::new(), installed: Vec::new(), waits: false };
        for wanted in crd::of_provider(provider.descriptor(), versions) {
            let name = meta::name(&wanted).to_owned();
            let live = pass.view.get_live(&kind, "", &name).await?;
            match crd::decide(&wanted, live.as_ref(), served) {
                Step::Create(crd) => crds.operations.push(Operation::management(name, Action::Create(crd))),
                Step::Patch(merge) => {
                    let target = Target::new(&kind, "", &name);
                    let action = Action::Patch { target, merge, resource_version: None, subresource: None };
                    crds.operations.push(Operation::management(name, action));
                }
                Step::Wait => crds.waits = true,
                Step::Installed => crds.installed.extend(live),
                Step::Foreign(why) => return Ok(Err(Refusal::lasting("CRDConflict", why))),
                Step::Narrows(why) => return Ok(Err(Refusal::lasting("CRDNarrowed", why))),
            }
        }
        Ok(Ok(crds))
    }

    /// Starts controllers, or switches running ones to the new generation: passes in flight finish on the old one, and
    /// their keys run again only then. An inner error is an invalid grant.
    async fn serve(
        &self,
        pass: &Pass<'_>,
        terms: &Terms,
        provider: &Arc<Provider>,
        crds: &[Value],
        probation: bool,
    ) -> Result<Result<(), String>, ReconcileError> {
        let name = pass.key.name.as_str();
        let before = self.serving(name);
        let same = |serving: &Serving| serving.generation.provider.digest() == provider.digest();
        if before.as_ref().is_some_and(|serving| same(serving) && serving.terms == *terms) {
            return Ok(Ok(()));
        }
        let grants = Arc::new(terms.grants.clone());
        let http = match HttpClient::new(&grants, &terms.limits) {
            Ok(http) => Arc::new(http.fenced(self.dependencies.fence.clone())),
            Err(error) => return Ok(Err(chain(&error))),
        };
        let health = match &before {
            Some(serving) if same(serving) => serving.generation.health.clone(),
            Some(serving) if probation => Arc::new(Health::on_probation(&serving.generation.health, Instant::now())),
            _ => Arc::new(Health::new()),
        };
        let generation = Arc::new(Generation {
            provider: provider.clone(),
            grants,
            http,
            metrics: self.dependencies.calls.clone(),
            configuration: terms.configuration.clone(),
            recorder: self
                .dependencies
                .recordings
                .as_ref()
                .and_then(|recordings| recordings.recorder(name, terms.record, terms.rehearsed)),
            health,
            interests: self.dependencies.interests.clone(),
        });
        let kinds = self.reconcilers(pass, &generation, crds).await?;
        let wanted: Vec<Kind> = kinds.iter().map(|(kind, _)| kind.clone()).collect();
        let left = self.providers.lock().get_mut(name).map(|loaded| leave(&mut loaded.controllers, &wanted));
        for controller in left.into_iter().flatten() {
            controller.stop().await;
        }
        let mut providers = self.providers.lock();
        let loaded = providers.entry(name.to_owned()).or_default();
        let concurrency = usize::try_from(terms.limits.concurrency).unwrap_or(usize::MAX);
        let slots = loaded.slots.get_or_insert_with(|| WorkerSlots::new(concurrency)).clone();
        // Fewer before a component that has fewer places serves, more after: so its passes never wait for one.
        slots.resize(concurrency.min(slots.count()));
        for (kind, reconciler) in kinds {
            match loaded.controllers.get(&kind) {
                Some(controller) => controller.replace(reconciler),
                None => {
                    let controller = self.dependencies.manager.add_to(&slots, kind.clone(), reconciler);
                    loaded.controllers.insert(kind, controller);
                }
            }
        }
        loaded.controllers.values().for_each(|controller| controller.resize(concurrency));
        if let Some(conversions) = &self.dependencies.conversions {
            conversions.serve(provider);
        }
        loaded.serving = Some(Serving { generation, terms: terms.clone() });
        self.dependencies.found.send_if_modified(|found| found.insert(name.to_owned(), Ok(())) != Some(Ok(())));
        Ok(Ok(()))
    }

    /// A reconciler for each kind except templates.
    async fn reconcilers(
        &self,
        pass: &Pass<'_>,
        generation: &Arc<Generation>,
        crds: &[Value],
    ) -> Result<Vec<(Kind, Arc<dyn Reconciler>)>, ReconcileError> {
        let mut kinds: Vec<(Kind, Arc<dyn Reconciler>)> = Vec::new();
        for kind in &generation.provider.descriptor().kinds {
            let crd = crds.iter().find(|crd| {
                json::text(crd, "/spec/group") == Some(&kind.group)
                    && json::text(crd, "/spec/names/kind") == Some(&kind.kind)
            });
            let (crd, remote) = (crd.unwrap_or(&kind.crd), self.dependencies.remote.clone());
            if let Some(reconciler) = ProviderReconciler::new(generation.clone(), kind.clone(), crd, remote) {
                let resolved = pass.view.kind_at(&format!("{}/{}", kind.group, kind.version), &kind.kind).await?;
                kinds.push((resolved, Arc::new(reconciler)));
            }
        }
        Ok(kinds)
    }
}

/// Removes and returns the controllers of kinds or versions that are no longer served: they would call the old
/// generation.
fn leave<C>(controllers: &mut std::collections::HashMap<Kind, C>, wanted: &[Kind]) -> Vec<C> {
    controllers.extract_if(|kind, _| !wanted.contains(kind)).map(|(_, controller)| controller).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

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

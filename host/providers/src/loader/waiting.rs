//! A component that waits: rehearsed on what is recorded when it comes, and from then on with every call of the one that serves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capwasm_contract::descriptor::Role;
use capwasm_reconcile::{Pass, Selector, View};
use capwasm_runtime::{Grants, Limits, Provider};

use super::{Loader, Terms};
use crate::generation::calls_token;
use crate::rehearse::{ENOUGH, Judgement, LiveReads, Ongoing, Population, Subject, Told, With, judge, object_name};
use crate::wasm_provider::history::{History, Rehearsal};

/// When to look again for something that serves: it comes up in the same pass, and nothing else wakes it.
pub(super) const SOON: Duration = Duration::from_secs(5);

/// A component that waits, and its rehearsal.
pub(super) struct Waiting {
    of: Of,
    ongoing: Arc<Ongoing>,
}

/// What a rehearsal is of; another one starts from nothing. Nothing else of the spec makes a component do otherwise in it.
#[derive(Clone, Debug, PartialEq)]
struct Of {
    candidate: String,
    serves: String,
    grants: Grants,
    limits: Limits,
}

/// How far a rehearsal has come.
pub(super) enum Rehearsing {
    /// This host rehearses nothing.
    Never,
    /// Nothing serves whose calls could be rehearsed.
    NotYet,
    /// This came of it.
    Since(Told, Judgement),
}

impl Loader {
    /// Starts the rehearsal of a component, or looks how it goes.
    pub(super) async fn rehearsing(
        &self,
        pass: &Pass<'_>,
        terms: &Terms,
        provider: &Arc<Provider>,
        history: &History,
    ) -> Rehearsing {
        let name = pass.key.name.as_str();
        let Some(recordings) = &self.dependencies.recordings else { return Rehearsing::Never };
        let Some(serving) = self.serving(name) else { return Rehearsing::NotYet };
        let serves = serving.generation.provider.digest().to_owned();
        let of = Of {
            candidate: provider.digest().to_owned(),
            serves: serves.clone(),
            grants: terms.grants.clone(),
            limits: terms.limits.clone(),
        };
        let (known, first) = {
            let providers = self.providers.lock();
            let waiting = providers.get(name).and_then(|loaded| loaded.waiting.as_ref());
            (waiting.filter(|waiting| waiting.of == of).map(|waiting| waiting.ongoing.clone()), waiting.is_none())
        };
        let ongoing = match known {
            Some(ongoing) => ongoing,
            None => {
                self.rehearse_no_more(name);
                let generation = capwasm_object::json::number(&pass.object, "/metadata/generation").unwrap_or_default();
                let before = if first { seen_to_differ(history, provider.digest(), generation) } else { None };
                let with = With {
                    grants: Some(Arc::new(terms.grants.clone())),
                    // As recorded: what another configuration changes is not the candidate's doing.
                    configuration: None,
                    live: Some(LiveReads::new(pass.view.cache(), self.dependencies.remote.clone())),
                };
                let subject = Subject {
                    name: name.to_owned(),
                    candidate: provider.clone(),
                    with,
                    serves,
                    before,
                    wakes: calls_token(name),
                };
                let ongoing = Ongoing::start(subject, recordings.clone(), self.dependencies.interests.clone()).await;
                let ongoing = Arc::new(ongoing);
                self.providers.lock().entry(name.to_owned()).or_default().waiting =
                    Some(Waiting { of, ongoing: ongoing.clone() });
                ongoing
            }
        };
        let population = population(pass, &serving.generation.provider).await;
        let told = ongoing.told(population.clone());
        let judgement = judge(&told.standing, &population);
        Rehearsing::Since(told, judgement)
    }

    /// Ends the rehearsal of whatever waited.
    pub(super) fn rehearse_no_more(&self, name: &str) {
        let ended = self.providers.lock().get_mut(name).and_then(|loaded| loaded.waiting.take());
        drop(ended);
    }
}

/// The objects whose calls count. Nobody is woken when there are others: each of them is called, and that is told.
async fn population(pass: &Pass<'_>, provider: &Provider) -> Population {
    let view = View::unremembered(pass.view.cache());
    let mut objects = BTreeSet::new();
    for kind in provider.descriptor().kinds.iter().filter(|kind| kind.role != Role::Template) {
        let found = async {
            let kind = view.kind_at(&format!("{}/{}", kind.group, kind.version), &kind.kind).await?;
            view.list(&kind, None, &Selector::everything()).await
        };
        match found.await {
            Ok(found) if objects.len() + found.len() < ENOUGH => {
                objects.extend(found.iter().map(|object| object_name(object)))
            }
            // Where nobody can say how many there are, they are too many to wait for each of them.
            _ => return Population::Many,
        }
    }
    Population::Few(objects)
}

/// What the status says of a rehearsal of this component.
pub(super) fn kept(history: &History, digest: &str) -> Option<Rehearsal> {
    let candidate = history.candidate.as_ref().filter(|candidate| candidate.component.digest == digest)?;
    candidate.rehearsal.clone()
}

/// What an earlier process saw differ, if neither the component nor the object has changed since then: a start of the host makes no
/// component better.
fn seen_to_differ(history: &History, digest: &str, generation: i64) -> Option<Rehearsal> {
    let candidate = history.candidate.as_ref().filter(|candidate| candidate.generation == generation)?;
    let waits = candidate.waits_for_approval();
    kept(history, digest).filter(|rehearsal| waits && rehearsal.differences > 0)
}

/// Why it waits, in words.
pub(super) fn too_few(calls: usize) -> String {
    format!(
        "no call was recorded when it came; {calls} since then came to the same, {ENOUGH} of them or one for each object let it serve; "
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wasm_provider::history::{Candidate, Record};

    fn history(digest: &str, reason: &str, generation: i64, differences: usize) -> History {
        let component = Record { digest: digest.into(), reason: reason.into(), ..Record::default() };
        let rehearsal = Some(Rehearsal { calls: 9, differences, summary: "moved".into() });
        let candidate = Candidate { component, message: String::new(), generation, rehearsal };
        History { candidate: Some(candidate), ..History::default() }
    }

    #[test]
    fn what_was_seen_to_differ_counts_until_component_or_spec_change() {
        let rows = [
            ("as it was", history("a", "RehearsalDiffers", 3, 2), true),
            ("another spec", history("a", "RehearsalDiffers", 2, 2), false),
            ("another component", history("b", "RehearsalDiffers", 3, 2), false),
            ("nothing differed", history("a", "NothingRecorded", 3, 0), false),
            ("it waits for a person, and differs", history("a", "AwaitingApproval", 3, 2), true),
            ("it served and was given up", history("a", "RolledBack", 3, 2), false),
        ];
        for (name, history, expected) in rows {
            assert_eq!(seen_to_differ(&history, "a", 3).is_some(), expected, "{name}");
        }
        assert_eq!(seen_to_differ(&History::default(), "a", 3), None);
    }
}

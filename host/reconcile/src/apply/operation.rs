//! One write: how each action is carried out, and when it is none.

use capwasm_contract::{Refusal, Refused};
use capwasm_object::{conditions, merge_patch, meta, owners};
use jiff::Timestamp;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};

use super::{CREATED_FOR, InitialFinalizers, diff, refusal, ssa_cache::SsaCache, written};
use crate::{
    cache::{Cache, Mark, Written},
    kind::{Key, Kind, Source},
    metrics::{Metrics, WriteLabels},
    plan::{Action, Operation, Propagation, Target},
};

/// How often setting a condition on another's object is tried against concurrent writers.
const CONDITION_TRIES: usize = 4;

/// Writes to one API server in the name of one controller.
pub(super) struct Writer<'a> {
    pub(super) controller: &'a str,
    pub(super) cache: &'a Cache,
    pub(super) metrics: &'a Metrics,
    pub(super) ssa_cache: &'a SsaCache,
    pub(super) initial_finalizers: &'a InitialFinalizers,
}

/// Whether both set conditions of the same object.
pub(super) fn is_one_write(one: &Operation, next: &Operation) -> bool {
    match (&one.action, &next.action) {
        (Action::SetCondition { target, .. }, Action::SetCondition { target: other, .. }) => target == other,
        _ => false,
    }
}

impl Writer<'_> {
    /// Carries out one action, or several that are one write, for the object `owner`, and adds what it wrote to `done`.
    pub(super) async fn run<'p>(
        &self,
        owner: &Value,
        mut actions: impl Iterator<Item = &'p Action>,
        done: &mut Vec<Written>,
    ) -> Result<(), Refused> {
        let Some(action) = actions.next() else { return Ok(()) };
        match action {
            Action::Create(object) => self.create(owner, object, done).await,
            Action::Apply { object, manager, force } => self.apply(object, manager, *force, done).await,
            Action::Patch { target, merge, resource_version, subresource } => {
                self.patch(target, merge, resource_version.as_deref(), *subresource, done).await
            }
            Action::Delete { target, uid, propagation } => {
                self.delete(target, uid.as_deref(), *propagation, done).await
            }
            Action::SetCondition { target, condition } => {
                let more = actions.filter_map(|action| match action {
                    Action::SetCondition { condition, .. } => Some(condition),
                    _ => None,
                });
                let conditions: Vec<&Value> = std::iter::once(condition).chain(more).collect();
                self.set_conditions(target, &conditions, done).await
            }
            Action::Evict { target, grace_period } => self.evict(target, *grace_period).await,
        }
    }

    /// A merge patch. Kinds without a status subresource take the status with the rest.
    pub(super) async fn merge(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        subresource: Option<&'static str>,
        patch: &Value,
    ) -> Result<Value, Refused> {
        let requests = self.cache.requests();
        let verb = if subresource.is_some() { "patch_status" } else { "patch" };
        let answer = requests.merge(kind, namespace, name, subresource, patch).await;
        match self.counted(verb, kind, answer) {
            Err(error) if error.refusal == Refusal::NotFound && subresource == Some("status") => {
                self.counted("patch", kind, requests.merge(kind, namespace, name, None, patch).await)
            }
            answer => answer,
        }
    }

    async fn create(&self, owner: &Value, object: &Value, done: &mut Vec<Written>) -> Result<(), Refused> {
        let kind = self.kind_of(object).await?;
        let mut object = object.clone();
        if owners::references(&object).is_empty() {
            object["metadata"]["annotations"][CREATED_FOR] = json!(meta::uid(owner));
        }
        if *self.cache.source() == Source::Management {
            self.initial_finalizers.add_to(&kind, &mut object);
        }
        let key = Key::of(&kind, &object);
        let answer = self.cache.requests().create(&kind, &key.namespace, &object).await;
        match self.counted("create", &kind, answer) {
            Ok(created) => {
                self.wrote(&Key::of(&kind, &created), &created, done);
                Ok(())
            }
            Err(error) if error.refusal == Refusal::AlreadyExists => self.adopt(&key, &object, error, done).await,
            // It may have happened: a next pass that does not know would make another.
            Err(error) if error.refusal == Refusal::Unavailable => {
                self.adopt(&key, &object, error.clone(), done).await.map_err(|_| error)
            }
            Err(error) => Err(error),
        }
    }

    /// An object of that name exists, or may. It is ours when an earlier pass of the same owner made it.
    async fn adopt(&self, key: &Key, wanted: &Value, exists: Refused, done: &mut Vec<Written>) -> Result<(), Refused> {
        let Some(found) = self.cache.get_live(&key.kind, &key.namespace, &key.name).await? else {
            return Err(Refused { refusal: Refusal::Conflict, ..exists });
        };
        self.wrote(key, &found, done);
        let conflict = |reason: &str, message: String| {
            Err(Refused { refusal: Refusal::Conflict, reason: reason.to_owned(), message })
        };
        if !is_ours(&found, wanted) {
            return conflict("OwnedByAnother", format!("{key} exists and was not made for this object"));
        }
        if meta::is_deleting(&found) {
            return conflict("Terminating", format!("{key} exists and is being deleted"));
        }
        Ok(())
    }

    async fn apply(&self, object: &Value, manager: &str, force: bool, done: &mut Vec<Written>) -> Result<(), Refused> {
        let kind = self.kind_of(object).await?;
        let (key, source) = (Key::of(&kind, object), self.cache.source());
        let known = self.cache.known(&kind, &key.namespace, &key.name);
        if let Some(known) = &known
            && self.ssa_cache.has(source, &key, manager, object, known.version)
        {
            return Ok(());
        }
        let requests = self.cache.requests();
        let answer = requests.apply(&kind, &key.namespace, &key.name, manager, force, object).await;
        let applied = self.counted("apply", &kind, answer)?;
        if let Some(version) = meta::revision(&applied) {
            self.ssa_cache.add(source, &key, manager, object, version);
        }
        self.wrote(&key, &applied, done);
        Ok(())
    }

    async fn patch(
        &self,
        target: &Target,
        merge: &Value,
        resource_version: Option<&str>,
        subresource: Option<&'static str>,
        done: &mut Vec<Written>,
    ) -> Result<(), Refused> {
        let key = self.key_of(target).await?;
        if let Some(held) = self.held(&key).await
            && merge_patch::is_in(&held, merge)
        {
            return Ok(());
        }
        let mut patch = merge.clone();
        if let Some(version) = resource_version {
            patch["metadata"]["resourceVersion"] = json!(version);
        }
        match self.merge(&key.kind, &key.namespace, &key.name, subresource, &patch).await {
            Ok(answer) => {
                self.wrote(&key, &answer, done);
                Ok(())
            }
            Err(error) => {
                if error.refusal == Refusal::Conflict
                    && let Ok(Some(live)) = self.cache.get_live(&key.kind, &key.namespace, &key.name).await
                {
                    // The next pass has to see what stood in the way.
                    self.wrote(&key, &live, done);
                }
                Err(error)
            }
        }
    }

    async fn delete(
        &self,
        target: &Target,
        uid: Option<&str>,
        propagation: Option<Propagation>,
        done: &mut Vec<Written>,
    ) -> Result<(), Refused> {
        let key = match self.key_of(target).await {
            // A kind that is gone has taken its objects with it.
            Err(error) if error.refusal == Refusal::NotFound => return Ok(()),
            key => key?,
        };
        let known = self.cache.known(&key.kind, &key.namespace, &key.name);
        if known.as_ref().is_some_and(|known| known.deleting && uid.is_none_or(|uid| *known.uid == *uid)) {
            return Ok(());
        }
        let parameters = DeleteParams {
            propagation_policy: propagation.map(|propagation| match propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
                Propagation::Orphan => PropagationPolicy::Orphan,
            }),
            preconditions: uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        let answer = self.cache.requests().delete(&key.kind, &key.namespace, &key.name, &parameters).await;
        match self.counted("delete", &key.kind, answer) {
            Ok(answer) if answer["kind"] == "Status" => {
                let gone = uid
                    .or_else(|| answer.pointer("/details/uid").and_then(Value::as_str))
                    .map(|uid| Mark::Gone(uid.into()))
                    .or_else(|| known.map(|known| Mark::Gone(known.uid)));
                done.extend(gone.map(|mark| written(self.cache.source().clone(), &key, mark)));
                Ok(())
            }
            Ok(deleting) => {
                self.wrote(&key, &deleting, done);
                Ok(())
            }
            Err(error) if error.refusal == Refusal::NotFound => Ok(()),
            // The precondition failed: what has the name now is another object.
            Err(error) if error.refusal == Refusal::Conflict && uid.is_some() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn set_conditions(&self, target: &Target, wanted: &[&Value], done: &mut Vec<Written>) -> Result<(), Refused> {
        let key = self.key_of(target).await?;
        let mut outcome = Err(Refused {
            refusal: Refusal::Conflict,
            reason: "Conflict".to_owned(),
            message: format!("{key} kept changing"),
        });
        for _ in 0..CONDITION_TRIES {
            let Some(live) = self.cache.get_live(&key.kind, &key.namespace, &key.name).await? else {
                return Err(Refused {
                    refusal: Refusal::NotFound,
                    reason: "NotFound".to_owned(),
                    message: format!("{key} does not exist"),
                });
            };
            let held = live.pointer("/status/conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let now = Timestamp::now().strftime("%FT%TZ").to_string();
            let mut conditions = held.to_vec();
            for condition in wanted {
                conditions::put(&mut conditions, (*condition).clone(), &now);
            }
            if conditions == held {
                return Ok(());
            }
            let mut patch = json!({"status": {"conditions": conditions}});
            diff::guard(&mut patch, &live);
            match self.merge(&key.kind, &key.namespace, &key.name, Some("status"), &patch).await {
                Ok(answer) => {
                    self.wrote(&key, &answer, done);
                    return Ok(());
                }
                Err(error) if error.refusal == Refusal::Conflict => outcome = Err(error),
                Err(error) => return Err(error),
            }
        }
        outcome
    }

    async fn evict(&self, target: &Target, grace_period: Option<i64>) -> Result<(), Refused> {
        let key = self.key_of(target).await?;
        let mut eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
        });
        if let Some(seconds) = grace_period {
            eviction["deleteOptions"] = json!({"gracePeriodSeconds": seconds});
        }
        let requests = self.cache.requests();
        let answer = requests.create_subresource(&key.kind, &key.namespace, &key.name, "eviction", &eviction).await;
        match self.counted("evict", &key.kind, answer) {
            Err(error) if error.refusal == Refusal::NotFound => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// The whole object as the cache has it, if it watches the kind already.
    async fn held(&self, key: &Key) -> Option<Value> {
        if self.cache.holds_metadata_only(&key.kind) {
            return None;
        }
        self.cache.known(&key.kind, &key.namespace, &key.name)?;
        let held = self.cache.get(&key.kind, &key.namespace, &key.name).await.ok()??;
        Some(Value::clone(&held))
    }

    async fn kind_of(&self, object: &Value) -> Result<Kind, Refused> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        Ok(self.cache.kind_at(text("apiVersion"), text("kind")).await?)
    }

    async fn key_of(&self, target: &Target) -> Result<Key, Refused> {
        let kind = self.cache.kind_at(&target.api_version, &target.kind).await?;
        let namespace = if kind.namespaced { target.namespace.as_str() } else { "" };
        Ok(Key::new(&kind, namespace, &target.name))
    }

    fn wrote(&self, key: &Key, answer: &Value, done: &mut Vec<Written>) {
        let mark = meta::revision(answer).map(Mark::Version);
        done.extend(mark.map(|mark| written(self.cache.source().clone(), key, mark)));
    }

    fn counted(&self, verb: &'static str, kind: &Kind, answer: Result<Value, kube::Error>) -> Result<Value, Refused> {
        let answer = answer.map_err(refusal::of_request);
        self.metrics.count_write(&WriteLabels {
            controller: self.controller.to_owned(),
            verb,
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            place: match self.cache.source() {
                Source::Management => "management",
                Source::Workload(_) => "workload",
            },
            outcome: match &answer {
                Ok(_) => "ok",
                Err(error) if matches!(error.refusal, Refusal::Conflict | Refusal::AlreadyExists) => "conflict",
                Err(_) => "error",
            },
        });
        answer
    }
}

/// Whether `found` was made for the same owner as `wanted`.
fn is_ours(found: &Value, wanted: &Value) -> bool {
    let created_for = |object: &Value| {
        object["metadata"]["annotations"][CREATED_FOR].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned)
    };
    owners::references(wanted)
        .iter()
        .filter_map(|owner| owner["uid"].as_str())
        .any(|uid| !uid.is_empty() && owners::is_owned_by(found, uid))
        || (created_for(wanted).is_some() && created_for(wanted) == created_for(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_what_shares_an_owner_or_was_created_for_the_same() {
        let owned = |uid: &str| json!({"metadata": {"ownerReferences": [{"uid": uid}]}});
        let made = |uid: &str| json!({"metadata": {"annotations": {CREATED_FOR: uid}}});
        let both = json!({"metadata": {"ownerReferences": [{"uid": "0"}, {"uid": "a"}]}});
        let table = [
            ("same owner", owned("a"), owned("a"), true),
            ("one shared owner", both, owned("a"), true),
            ("another owner", owned("b"), owned("a"), false),
            ("made for the same", made("a"), made("a"), true),
            ("made for another", made("b"), made("a"), false),
            ("nobody's", json!({"metadata": {}}), made("a"), false),
            ("empty uids prove nothing", made(""), made(""), false),
        ];
        for (row, found, wanted, expected) in table {
            assert_eq!(is_ours(&found, &wanted), expected, "{row}");
        }
    }
}

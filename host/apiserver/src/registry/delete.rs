//! Deletion, at once or when the last finalizer is gone.

use bytes::Bytes;
use capwasm_object::meta;
use serde_json::{Value, json};

use super::{Locator, Registry, Written, strategy};
use crate::catalog::Resource;
use crate::request::Query;
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Encoded, Record, StoreError};
use crate::turn;

const RETRIES: usize = 16;
/// Finalizers that tell the garbage collector what to do with dependents.
pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of a deletion, from body and query.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub revision: Option<String>,
    pub dry_run: bool,
}

impl DeleteOptions {
    pub fn parse(query: &Query, body: Option<&Value>) -> ApiResult<Self> {
        let text = |pointer: &str| body.and_then(|b| b.pointer(pointer)).and_then(Value::as_str).map(str::to_owned);
        let policy = text("/propagationPolicy").or_else(|| query.get("propagationPolicy").map(str::to_owned));
        let orphan = body.and_then(|b| b.get("orphanDependents")).and_then(Value::as_bool);
        let orphan = orphan.or_else(|| query.get("orphanDependents").map(|_| query.flag("orphanDependents")));
        let invalid = |message: String| {
            ApiError::new(
                422,
                "Invalid",
                format!("DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: {message}"),
            )
        };
        let propagation = match (policy.as_deref(), orphan) {
            (Some(_), Some(_)) => {
                return Err(invalid(
                    "Invalid value: orphanDependents and deletionPropagation cannot be both set".into(),
                ));
            }
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some(other), _) => {
                let message = format!(
                    "Unsupported value: \"{other}\": supported values: \"Background\", \"Foreground\", \"Orphan\""
                );
                return Err(invalid(message));
            }
            (None, None) => None,
        };
        let dry_run = body
            .and_then(|b| b.get("dryRun"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let dry_run = super::options::dry_run(dry_run.chain(query.all("dryRun")))?;
        Ok(Self {
            propagation,
            uid: text("/preconditions/uid"),
            revision: text("/preconditions/resourceVersion"),
            dry_run,
        })
    }

    fn check(&self, at: &Locator, live: &Value) -> ApiResult<()> {
        let conflict = |what: &str, asked: &str, found: &str| {
            let why = format!("Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}");
            Err(ApiError::conflict(&at.resource.group, &at.resource.plural, &at.name, &why))
        };
        match (&self.uid, &self.revision) {
            (Some(uid), _) if uid != meta::uid(live) => conflict("UID", uid, meta::uid(live)),
            (_, Some(revision)) if revision != meta::resource_version(live) => {
                conflict("ResourceVersion", revision, meta::resource_version(live))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) enum Deleted {
    /// Last state of an object that is gone.
    Gone(Bytes),
    /// Present state of an object that waits for finalizers.
    Pending(Bytes),
}

impl Registry {
    /// Deletes an object.
    pub async fn delete(&self, at: &Locator, options: &DeleteOptions) -> ApiResult<Deleted> {
        for _ in 0..RETRIES {
            let record = self.read(&at.key())?.ok_or_else(|| at.not_found())?;
            turn::long(record.data.len()).await;
            if let Some(deleted) = self.try_delete(at, options, &record).await? {
                return Ok(deleted);
            }
        }
        Err(at.modified())
    }

    async fn try_delete(&self, at: &Locator, options: &DeleteOptions, record: &Record) -> ApiResult<Option<Deleted>> {
        let live = super::parse(&record.data)?;
        let _held = turn::hold(&live)?;
        options.check(at, &live)?;
        strategy::check_delete(at)?;
        let mut new = live.clone();
        let finalizers = finalizers(&live, options.propagation);
        meta::set_finalizers(&mut new, finalizers);
        let waits = meta::finalizers(&new).next().is_some() || strategy::holds(at, &new);
        if waits && !meta::is_deleting(&live) {
            meta::set(&mut new, "deletionTimestamp", json!(self.stamp()));
            meta::set(&mut new, "deletionGracePeriodSeconds", json!(0));
            if meta::generation(&live) > 0 {
                meta::set(&mut new, "generation", json!(meta::generation(&live) + 1));
            }
            strategy::mark_deleted(at, &mut new);
        }
        if options.dry_run || waits && super::same(&new, &live) {
            let data = self.show(&at.resource, &record.data, record.revision)?;
            return Ok(Some(if waits { Deleted::Pending(data) } else { Deleted::Gone(data) }));
        }
        let change = Change {
            key: at.key(),
            expected: Some(record.revision),
            previous: Some(record.data.clone()),
            value: Encoded::of(&new),
            delete: !waits,
        };
        match self.commit(&at.resource, change).await {
            Ok(event) => {
                self.written(&at.resource)?;
                let data = self.show(&at.resource, &event.data, event.revision)?;
                Ok(Some(if waits { Deleted::Pending(data) } else { Deleted::Gone(data) }))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes one finalizer; the object is deleted if it was the last.
    pub async fn remove_finalizer(&self, at: &Locator, finalizer: &str) -> ApiResult<Written> {
        let options = super::WriteOptions::internal("garbage-collector");
        let release = |object: &mut Value| {
            let kept = meta::finalizers(object).filter(|f| *f != finalizer).map(str::to_owned).collect();
            meta::set_finalizers(object, kept);
            meta::remove(object, "resourceVersion");
        };
        self.update(at, super::Part::Main, &options, &super::Edit::Own(&release)).await
    }

    /// Deletes every object that matches; one that is gone meanwhile is skipped. Returns what was listed.
    pub async fn delete_collection(
        &self,
        resource: &std::sync::Arc<Resource>,
        request: &super::ListRequest,
        options: &DeleteOptions,
    ) -> ApiResult<super::Page> {
        let page = self.list(resource, request).await?;
        for (key, _) in &page.items {
            let at = Locator::new(resource, key.namespace(), key.name());
            match self.delete(&at, options).await {
                Err(error) if error.code != 404 => return Err(error),
                _ => {}
            }
        }
        Ok(page)
    }
}

/// The finalizers after a deletion: the explicit policy wins over what the object has.
fn finalizers(live: &Value, policy: Option<Propagation>) -> Vec<String> {
    let mut kept: Vec<String> = meta::finalizers(live).map(str::to_owned).collect();
    // Asking again while it is pending changes nothing unless the policy is explicit.
    if let Some(policy) = policy {
        kept.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
        match policy {
            Propagation::Background => {}
            Propagation::Foreground => kept.push(FOREGROUND.to_owned()),
            Propagation::Orphan => kept.push(ORPHAN.to_owned()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_policy_wins_over_the_finalizers_of_the_object() {
        let object = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
        type Row = (&'static str, &'static [&'static str], Option<Propagation>, &'static [&'static str]);
        let rows: [Row; 5] = [
            ("no policy keeps all", &["a", "orphan"], None, &["a", "orphan"]),
            ("background drops both", &["a", "orphan", "foregroundDeletion"], Some(Propagation::Background), &["a"]),
            ("foreground", &["a"], Some(Propagation::Foreground), &["a", "foregroundDeletion"]),
            ("foreground replaces orphan", &["orphan"], Some(Propagation::Foreground), &["foregroundDeletion"]),
            ("orphan", &[], Some(Propagation::Orphan), &["orphan"]),
        ];
        for (name, present, policy, expected) in rows {
            assert_eq!(finalizers(&object(present), policy), expected, "{name}");
        }
    }
}

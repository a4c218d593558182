//! Updates: PUT, every patch and every subresource are one edit of the newest version, retried until it fits.

use serde_json::{Value, json};

use super::{Locator, Registry, WriteOptions, Written, create, pipeline, same, strategy};
use crate::apply;
use crate::meta;
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Encoded, Record, StoreError};

/// How often an edit is decided anew when others write at the same time.
const RETRIES: usize = 16;

/// Which part of the object a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Main,
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// Conditions of a CertificateSigningRequest.
    Approval,
}

impl Part {
    /// Name of the subresource, as field ownership records it.
    pub fn subresource(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Status => Some("status"),
            Self::Finalize => Some("finalize"),
            Self::Approval => Some("approval"),
        }
    }
}

/// What an edit made of the object.
pub(crate) struct Edited {
    pub object: Value,
    /// Whether field ownership is settled already (apply) or follows from the difference.
    pub tracked: bool,
    /// Whether the object is in the storage version already.
    pub stored: bool,
}

impl From<Value> for Edited {
    fn from(object: Value) -> Self {
        Self { object, tracked: false, stored: false }
    }
}

impl Registry {
    /// Edits an object. `edit` gets the newest version as the client sees it, `None` when there is no object; what it then
    /// returns is created.
    pub async fn update(
        &self,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        edit: impl Fn(Option<Value>) -> ApiResult<Edited> + Send + Sync,
    ) -> ApiResult<Written> {
        for _ in 0..RETRIES {
            let Some(record) = self.read(&at.key())? else {
                let edited = edit(None)?;
                if part != Part::Main {
                    return Err(at.not_found());
                }
                if !meta::uid(&edited.object).is_empty() {
                    let why = "Precondition failed: UID in precondition does not match, there is no such object";
                    return Err(ApiError::conflict(&at.resource.group, &at.resource.plural, &at.name, why));
                }
                let mut warnings = Vec::new();
                let incoming = match edited.stored {
                    true => edited.object,
                    false => self.incoming_whole(at, edited.object, None, options, &mut warnings)?,
                };
                match self.insert(at, incoming, options, edited.tracked).await {
                    Err(error) if error.reason == "AlreadyExists" => continue,
                    other => {
                        let mut written = other?;
                        written.warnings.extend(warnings);
                        return Ok(written);
                    }
                }
            };
            if let Some(written) = self.attempt(at, part, options, &record, &edit).await? {
                return Ok(written);
            }
        }
        Err(at.modified())
    }

    /// One try on one version; `None` when another write came first.
    async fn attempt(
        &self,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        record: &Record,
        edit: &(impl Fn(Option<Value>) -> ApiResult<Edited> + Send + Sync),
    ) -> ApiResult<Option<Written>> {
        let resource = &at.resource;
        let seen = self.decode(resource, &record.data)?;
        // Held against only where the client's version is another than the stored one.
        let before = (part == Part::Main && resource.foreign()).then(|| seen.clone());
        let edited = edit(Some(seen))?;
        check_identity(at, &edited.object, record.revision)?;
        let mut warnings = Vec::new();
        // All rules see the storage version, also of an object that was stored when the storage version was another.
        let live = self.conversion.convert(resource, super::parse(&record.data)?, &resource.storage)?;
        let incoming = match (edited.stored, &before) {
            (true, _) => edited.object,
            (false, Some(old)) => self.incoming_whole(at, edited.object, Some(old), options, &mut warnings)?,
            (false, None) => self.incoming(at, edited.object, options, &mut warnings)?,
        };
        let mut new = merge_part(at, part, &live, incoming);
        if !meta::uid(&new).is_empty() && meta::uid(&new) != meta::uid(&live) {
            let why = format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                meta::uid(&new),
                meta::uid(&live)
            );
            return Err(ApiError::conflict(&resource.group, &resource.plural, &at.name, &why));
        }
        keep_system_fields(&mut new, &live);
        if part == Part::Main {
            new = self.admit(at, new, Some(&live), options).await?;
            keep_system_fields(&mut new, &live);
            strategy::prepare(self, at, &mut new, Some(&live));
        }
        if resource.generation && part == Part::Main && spec_differs(resource.custom() && !resource.status, &new, &live)
        {
            meta::set(&mut new, "generation", json!(meta::generation(&live) + 1));
        }
        if !edited.tracked {
            let schema = resource.storage_schema.as_deref();
            apply::update(Some(&live), &mut new, schema, &options.manager, part.subresource(), &self.stamp());
        }
        if same(&new, &live) {
            let data = self.show(resource, &record.data, record.revision)?;
            return Ok(Some(Written { data, created: false, warnings }));
        }
        check_finalizers(at, &new, &live)?;
        create::check_metadata(at, &new)?;
        self.validate(at, &new, Some(&live))?;
        strategy::validate(at, &new, Some(&live))?;
        if part == Part::Main {
            warnings.extend(self.approve(at, &new, Some(&live), options).await?);
        }
        // The last finalizer of a deleted object is gone: so is the object.
        let gone = meta::deleting(&live) && meta::finalizers(&new).is_empty() && !strategy::holds(at, &new);
        if options.dry_run {
            let data = self.show(resource, &super::to_bytes(&new), u64::MAX)?;
            return Ok(Some(Written { data, created: false, warnings }));
        }
        let value = Encoded::of(&new);
        pipeline::check_size(&value)?;
        let change = Change {
            key: at.key(),
            expected: Some(record.revision),
            previous: Some(record.data.clone()),
            value,
            delete: gone,
        };
        match self.store.write(&self.keyspace, change).await {
            Ok(event) => {
                self.written(resource)?;
                Ok(Some(Written { data: self.show(resource, &event.data, event.revision)?, created: false, warnings }))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The object must be the one that the path names, and its revision, if it has one, the newest.
fn check_identity(at: &Locator, object: &Value, revision: u64) -> ApiResult<()> {
    let name = meta::name(object);
    if !name.is_empty() && name != at.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", at.name);
        return Err(ApiError::bad_request(message));
    }
    match meta::text(object, "resourceVersion") {
        "" | "0" => Ok(()),
        given => match given.parse::<u64>() {
            Ok(given) if given == revision => Ok(()),
            Ok(_) => Err(at.modified()),
            Err(_) => {
                let message = format!("Invalid value: \"{given}\": must be a number");
                Err(pipeline::invalid_field(at, "FieldValueInvalid", "metadata.resourceVersion", message))
            }
        },
    }
}

/// The live object with that part taken from `incoming` which the request may change.
fn merge_part(at: &Locator, part: Part, live: &Value, incoming: Value) -> Value {
    let take = |mut onto: Value, from: &Value, field: &str| {
        if let Some(root) = onto.as_object_mut() {
            match from.get(field) {
                Some(value) => {
                    root.insert(field.to_owned(), value.clone());
                }
                None => {
                    root.remove(field);
                }
            }
        }
        onto
    };
    match part {
        Part::Main if at.resource.status => take(incoming, live, "status"),
        Part::Main => incoming,
        Part::Status | Part::Approval => {
            let mut new = take(live.clone(), &incoming, "status");
            meta::copy(&mut new, &incoming, "managedFields");
            // Kubelets label and annotate their nodes through the status.
            if !at.resource.custom() {
                meta::copy(&mut new, &incoming, "labels");
                meta::copy(&mut new, &incoming, "annotations");
            }
            new
        }
        Part::Finalize => {
            let mut new = live.clone();
            new["spec"]["finalizers"] = incoming.pointer("/spec/finalizers").cloned().unwrap_or_else(|| json!([]));
            new
        }
    }
}

/// What no client may set.
fn keep_system_fields(new: &mut Value, live: &Value) {
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "selfLink",
    ] {
        meta::copy(new, live, field);
    }
}

/// Whether anything differs that generation counts.
fn spec_differs(with_status: bool, new: &Value, live: &Value) -> bool {
    let counts = |field: &str| field != "metadata" && (with_status || field != "status");
    let (Some(new), Some(live)) = (new.as_object(), live.as_object()) else { return false };
    new.iter().any(|(field, value)| counts(field) && live.get(field) != Some(value))
        || live.keys().any(|field| counts(field) && !new.contains_key(field))
}

/// Nothing may delay a deletion that was not there to delay it from the start.
fn check_finalizers(at: &Locator, new: &Value, live: &Value) -> ApiResult<()> {
    if !meta::deleting(live) {
        return Ok(());
    }
    let known = meta::finalizers(live);
    let added: Vec<&str> = meta::finalizers(new).into_iter().filter(|finalizer| !known.contains(finalizer)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
    );
    Err(pipeline::invalid_field(at, "FieldValueForbidden", "metadata.finalizers", message))
}

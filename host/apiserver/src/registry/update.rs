//! Updates: PUT, patches and subresources are edits of the newest version, retried on conflicts.

use capwasm_object::meta;
use serde_json::{Value, json};

use super::{Edit, Locator, Registry, WriteOptions, Written, create, pipeline, same, strategy};
use crate::apply::{self, Owners, Writer};
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Encoded, Record, StoreError};
use crate::turn;

/// Attempts when others write at the same time.
const RETRIES: usize = 16;

/// The part of the object that a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// Conditions of a CertificateSigningRequest.
    Approval,
}

impl Part {
    pub fn subresource(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Status => Some("status"),
            Self::Finalize => Some("finalize"),
            Self::Approval => Some("approval"),
        }
    }
}

impl Registry {
    /// Edits an object.
    pub async fn update(
        &self,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        edit: &Edit<'_>,
    ) -> ApiResult<Written> {
        for _ in 0..RETRIES {
            let record = self.read(&at.key())?;
            turn::long(record.as_ref().map_or(0, |record| record.data.len())).await;
            let written = match record {
                Some(record) => self.attempt(at, part, options, &record, edit).await?,
                None => self.attempt_new(at, part, options, edit).await?,
            };
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(at.modified())
    }

    /// Creates the object; `None` when another write came first.
    async fn attempt_new(
        &self,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        edit: &Edit<'_>,
    ) -> ApiResult<Option<Written>> {
        let Edit::Apply { configuration, creation } = edit else { return Err(at.not_found()) };
        creation.clone()?;
        let (object, owners) = self.apply_configuration(at, part, options, (None, Value::Null), configuration)?;
        if part != Part::Main {
            return Err(at.not_found());
        }
        if !meta::uid(&object).is_empty() {
            let why = "Precondition failed: UID in precondition does not match, there is no such object";
            return Err(ApiError::conflict(&at.resource.group, &at.resource.plural, &at.name, why));
        }
        let mut warnings = Vec::new();
        let incoming = match at.resource.foreign() {
            true => object,
            false => {
                let object = self.conversion.convert(&at.resource, object, &at.resource.api_version())?;
                self.incoming_whole(at, object, None, options, &mut warnings)?
            }
        };
        match self.insert(at, incoming, options, Some(owners)).await {
            Err(error) if error.reason == "AlreadyExists" => Ok(None),
            other => {
                let mut written = other?;
                written.warnings.extend(warnings);
                Ok(Some(written))
            }
        }
    }

    /// The object after an edit that is no apply, in the storage version; `live` is the object in that version without
    /// `managedFields`, which are `owners`.
    fn edited(
        &self,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        (record, live, owners): (&Record, &Value, &Value),
        edit: &Edit<'_>,
        warnings: &mut Vec<String>,
    ) -> ApiResult<Value> {
        let resource = &at.resource;
        let mut seen = match edit {
            // Nothing of what is there goes into it.
            Edit::Replace(_) if !resource.foreign() => Value::Null,
            _ if resource.foreign() => {
                let mut seen = self.decode(resource, &record.data)?;
                meta::remove(&mut seen, "managedFields");
                seen
            }
            _ => self.conversion.present(resource, live.clone())?,
        };
        // Held against only where the client's version is another than the stored one.
        let before = (part == Part::Main && resource.foreign()).then(|| seen.clone());
        if edit.states_owners() && !seen.is_null() {
            meta::give(&mut seen, "managedFields", owners.clone());
        }
        let object = edit.of(at, seen)?;
        check_identity(at, &object, record.revision)?;
        match &before {
            Some(old) => self.incoming_whole(at, object, Some(old), options, warnings),
            None => self.incoming(at, object, options, warnings),
        }
    }

    /// One attempt on one version; `None` when another write came first.
    async fn attempt(
        &self,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        record: &Record,
        edit: &Edit<'_>,
    ) -> ApiResult<Option<Written>> {
        let resource = &at.resource;
        let mut warnings = Vec::new();
        // All rules see the storage version, also of an object that was stored when the storage version was another. None of them
        // looks at `managedFields`, which are apart until they are written.
        let mut live = self.conversion.convert(resource, super::parse(&record.data)?, &resource.storage)?;
        let _held = turn::hold(&live)?;
        let owners = meta::take(&mut live, "managedFields");
        let (incoming, ownership) = match edit {
            Edit::Apply { configuration, .. } => {
                let applied = (Some(&live), owners);
                let (object, owners) = self.apply_configuration(at, part, options, applied, configuration)?;
                check_identity(at, &object, record.revision)?;
                let incoming = match resource.foreign() {
                    true => object,
                    false => {
                        let object = self.conversion.convert(resource, object, &resource.api_version())?;
                        self.incoming(at, object, options, &mut warnings)?
                    }
                };
                (incoming, Ownership::Settled(owners))
            }
            edit => {
                let seen = (record, &live, &owners);
                (self.edited(at, part, options, seen, edit, &mut warnings)?, Ownership::Before(owners))
            }
        };
        // Before the parts that this write leaves alone are taken from the live object, whose uid is its own.
        check_uid(at, meta::uid(&incoming), meta::uid(&live))?;
        let mut new = merge_part(at, part, &live, incoming);
        let stated = meta::take(&mut new, "managedFields");
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
        let owners = match ownership {
            Ownership::Settled(owners) => owners,
            Ownership::Before(owners) => {
                let (schema, now) = (resource.storage_schema.as_deref(), self.stamp());
                let writer = Writer { manager: &options.manager, subresource: part.subresource(), now: &now };
                apply::update(Some(&live), owners, &new, &stated, schema, writer)
            }
        };
        if !owners.changed && same(&new, &live) {
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
        let gone = meta::is_deleting(&live) && meta::finalizers(&new).next().is_none() && !strategy::holds(at, &new);
        meta::give(&mut new, "managedFields", owners.list);
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
        match self.commit(resource, change).await {
            Ok(event) => {
                self.written(resource)?;
                Ok(Some(Written { data: self.show(resource, &event.data, event.revision)?, created: false, warnings }))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// `managedFields` during an edit.
enum Ownership {
    /// Settled by an apply.
    Settled(Owners),
    /// As they were; what becomes of them follows from what differs in the end.
    Before(Value),
}

/// The name must match the path; the `resourceVersion`, if set, the stored one.
fn check_identity(at: &Locator, object: &Value, revision: u64) -> ApiResult<()> {
    let name = meta::name(object);
    if !name.is_empty() && name != at.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", at.name);
        return Err(ApiError::bad_request(message));
    }
    match meta::resource_version(object) {
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

/// Refuses a write that is meant for an earlier object of the same name.
fn check_uid(at: &Locator, wanted: &str, live: &str) -> ApiResult<()> {
    if wanted.is_empty() || wanted == live {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {live}");
    Err(ApiError::conflict(&at.resource.group, &at.resource.plural, &at.name, &why))
}

/// The live object with the changeable part taken from `incoming`.
fn merge_part(at: &Locator, part: Part, live: &Value, mut incoming: Value) -> Value {
    match part {
        // Most edits are made on a copy that has it.
        Part::Main if at.resource.status && incoming.get("status") != live.get("status") => {
            if let Some(root) = incoming.as_object_mut() {
                match live.get("status") {
                    Some(status) => root.insert("status".to_owned(), status.clone()),
                    None => root.remove("status"),
                };
            }
        }
        Part::Main => {}
        Part::Status | Part::Approval => {
            // Kubelets label and annotate their nodes through the status.
            let kept: &[&str] = if at.resource.custom() { &[] } else { &["labels", "annotations"] };
            let kept: Vec<(&str, Value)> =
                kept.iter().map(|field| (*field, meta::take(&mut incoming, field))).collect();
            // Most of it came from the live object, and is not made again.
            if let (Some(root), Some(live)) = (incoming.as_object_mut(), live.as_object()) {
                root.retain(|field, _| field == "status" || live.contains_key(field));
                for (field, value) in live.iter().filter(|(field, _)| *field != "status") {
                    if root.get(field) != Some(value) {
                        root.insert(field.clone(), value.clone());
                    }
                }
            }
            for (field, value) in kept {
                meta::remove(&mut incoming, field);
                meta::give(&mut incoming, field, value);
            }
        }
        Part::Finalize => {
            let finalizers = incoming.pointer("/spec/finalizers").cloned().unwrap_or_else(|| json!([]));
            incoming = live.clone();
            incoming["spec"]["finalizers"] = finalizers;
        }
    }
    incoming
}

/// Restores the fields that only the server sets.
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
        if new.get("metadata").and_then(|new| new.get(field)) != live.get("metadata").and_then(|live| live.get(field)) {
            meta::copy(new, live, field);
        }
    }
}

/// Whether `metadata.generation` has to grow.
fn spec_differs(with_status: bool, new: &Value, live: &Value) -> bool {
    let counts = |field: &str| field != "metadata" && (with_status || field != "status");
    let (Some(new), Some(live)) = (new.as_object(), live.as_object()) else { return false };
    new.iter().any(|(field, value)| counts(field) && live.get(field) != Some(value))
        || live.keys().any(|field| counts(field) && !new.contains_key(field))
}

/// No finalizer may be added to an object that is being deleted.
fn check_finalizers(at: &Locator, new: &Value, live: &Value) -> ApiResult<()> {
    if !meta::is_deleting(live) {
        return Ok(());
    }
    let added: Vec<&str> = meta::finalizers(new).filter(|finalizer| !meta::has_finalizer(live, finalizer)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
    );
    Err(pipeline::invalid_field(at, "FieldValueForbidden", "metadata.finalizers", message))
}

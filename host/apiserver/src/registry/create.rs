//! Creation.

use std::sync::Arc;

use capwasm_object::{meta, owners};
use serde_json::{Value, json};

use super::{DeleteOptions, Locator, Registry, WriteOptions, Written, naming, pipeline, strategy};
use crate::apply::{self, Owners, Writer};
use crate::catalog::Resource;
use crate::status::{ApiError, ApiResult, Cause};
use crate::store::{Change, Encoded, Event, StoreError};
use crate::turn;

/// Names tried for one `generateName`.
const TRIES: usize = 8;

impl Registry {
    /// Creates an object from a request body.
    pub async fn create(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> ApiResult<Written> {
        let base = meta::text(&object, "generateName").to_owned();
        let given = meta::name(&object).to_owned();
        if given.is_empty() && base.is_empty() {
            let at = Locator::new(resource, namespace, "");
            return Err(pipeline::invalid_field(
                &at,
                "FieldValueRequired",
                "metadata.name",
                "Required value: name or generateName is required",
            ));
        }
        let tries = if given.is_empty() { TRIES } else { 1 };
        let mut tried = 0;
        loop {
            let name = if given.is_empty() { naming::generate(&base) } else { given.clone() };
            let at = Locator::new(resource, namespace, &name);
            let mut warnings = Vec::new();
            tried += 1;
            // The last try may have the object itself.
            let body = if tried == tries { std::mem::take(&mut object) } else { object.clone() };
            let incoming = self.incoming_whole(&at, body, None, options, &mut warnings)?;
            match self.insert(&at, incoming, options, None).await {
                Ok(mut written) => {
                    written.warnings.extend(warnings);
                    return Ok(written);
                }
                Err(error) if error.reason == "AlreadyExists" && tried < tries => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Stores a new object that is in the storage version. `owners` are its `managedFields` when they are settled already.
    pub(super) async fn insert(
        &self,
        at: &Locator,
        mut object: Value,
        options: &WriteOptions,
        owners: Option<Owners>,
    ) -> ApiResult<Written> {
        let resource = &at.resource;
        if !meta::resource_version(&object).is_empty() {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        if resource.namespaced && !options.internal {
            self.check_namespace(at)?;
        }
        if resource.terminating {
            let message = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::new(405, "MethodNotAllowed", message));
        }
        // What exists is told before what is wrong with the new object, as upstream's storage has it for generated names only;
        // the common case saves a full validation.
        if self.read(&at.key())?.is_some() {
            return Err(ApiError::already_exists(&resource.group, &resource.plural, &at.name));
        }
        let stated = meta::take(&mut object, "managedFields");
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
            meta::remove(&mut object, field);
        }
        meta::set(&mut object, "name", json!(at.name));
        meta::set(&mut object, "uid", json!(naming::uid()));
        meta::set(&mut object, "creationTimestamp", json!(self.stamp()));
        if resource.generation {
            meta::set(&mut object, "generation", json!(1));
        }
        if resource.status
            && let Some(root) = object.as_object_mut()
        {
            root.remove("status");
        }
        strategy::prepare_create(at, &mut object, options);
        let mut object = self.admit(at, object, None, options).await?;
        strategy::prepare(self, at, &mut object, None);
        check_metadata(at, &object)?;
        self.validate(at, &object, None)?;
        strategy::validate(at, &object, None)?;
        let warnings = self.approve(at, &object, None, options).await?;
        let owners = owners.unwrap_or_else(|| {
            let schema = resource.storage_schema.as_deref();
            let now = self.stamp();
            let writer = Writer { manager: &options.manager, subresource: None, now: &now };
            apply::update(None, Value::Null, &object, &stated, schema, writer)
        });
        meta::give(&mut object, "managedFields", owners.list);
        let encoded = Encoded::of(&object);
        pipeline::check_size(&encoded)?;
        let (data, revision) = if options.dry_run {
            // A dry run has no revision; clients see the object without one.
            (super::to_bytes(&object), u64::MAX)
        } else {
            let change = Change { key: at.key(), expected: None, previous: None, value: encoded, delete: false };
            match self.commit(resource, change).await {
                Ok(event) => (event.data.clone(), event.revision),
                Err(StoreError::Conflict { .. }) => {
                    return Err(ApiError::already_exists(&resource.group, &resource.plural, &at.name));
                }
                Err(error) => return Err(error.into()),
            }
        };
        self.written(resource)?;
        if resource.namespaced && !options.internal && !options.dry_run {
            self.take_back_if_homeless(at).await?;
        }
        Ok(Written { data: self.show(resource, &data, revision)?, created: true, warnings })
    }

    /// Writes a change of an object of `resource`, so that it can be followed by [`Registry::written`].
    pub(super) async fn commit(&self, resource: &Resource, change: Change) -> Result<Arc<Event>, StoreError> {
        if is_crd(resource) {
            // What follows is long. Whoever is refused a place for it has written nothing yet.
            turn::long(usize::MAX).await;
        }
        self.store.write(&self.keyspace, change).await
    }

    /// Must be called after a write to `resource`.
    pub(super) fn written(&self, resource: &Resource) -> ApiResult<()> {
        // Of all of them, one writer after the other.
        if is_crd(resource) { self.reload_catalog() } else { Ok(()) }
    }

    /// Deletes the object again when its namespace went between the check and the write, since nobody else would.
    async fn take_back_if_homeless(&self, at: &Locator) -> ApiResult<()> {
        let namespace = self.locate("", "namespaces", "", &at.namespace)?;
        if self.read(&namespace.key())?.is_some() {
            return Ok(());
        }
        match self.delete(at, &DeleteOptions::default()).await {
            Err(error) if error.code != 404 => Err(error),
            _ => Err(namespace.not_found()),
        }
    }

    /// The namespace must exist and not be terminating.
    fn check_namespace(&self, at: &Locator) -> ApiResult<()> {
        let namespace = self.locate("", "namespaces", "", &at.namespace)?;
        let Some(found) = self.find(&namespace)? else { return Err(namespace.not_found()) };
        if meta::is_deleting(&found) {
            let why =
                format!("unable to create new content in namespace {} because it is being terminated", at.namespace);
            let qualified = &at.resource.store;
            let error = ApiError::forbidden(format!("{qualified} \"{}\" is forbidden: {why}", at.name));
            let message = format!("namespace {} is being terminated", at.namespace);
            return Err(error.about(&at.resource.group, &at.resource.plural, &at.name).cause(
                "NamespaceTerminating",
                message,
                "metadata.namespace",
            ));
        }
        Ok(())
    }
}

/// Rules for `metadata` that hold for every kind.
pub(super) fn check_metadata(at: &Locator, object: &Value) -> ApiResult<()> {
    let mut causes: Vec<Cause> = naming::check(&at.resource, &at.name).into_iter().collect();
    let mut wrong =
        |field: String, message: String| causes.push(Cause { reason: "FieldValueInvalid".into(), message, field });
    for map in ["labels", "annotations"] {
        for (key, value) in meta::field(object, map).as_object().into_iter().flatten() {
            if !value.is_string() {
                wrong(
                    format!("metadata.{map}"),
                    format!("Invalid value: {value}: the value of {key} must be a string"),
                );
            }
        }
    }
    for finalizer in meta::finalizers(object) {
        if finalizer.is_empty() || finalizer.contains(char::is_whitespace) {
            wrong(
                "metadata.finalizers".to_owned(),
                format!("Invalid value: \"{finalizer}\": name part must be non-empty"),
            );
        }
    }
    let owners = owners::all(object).collect::<Vec<_>>();
    for (index, owner) in owners.iter().enumerate() {
        for (field, value) in
            [("apiVersion", owner.api_version), ("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)]
        {
            if value.is_empty() {
                wrong(
                    format!("metadata.ownerReferences[{index}].{field}"),
                    format!("Invalid value: \"\": {field} must not be empty"),
                );
            }
        }
    }
    if owners.iter().filter(|owner| owner.controls).count() > 1 {
        let message = "Invalid value: Only one reference can have Controller set to true".to_owned();
        wrong("metadata.ownerReferences".to_owned(), message);
    }
    if causes.is_empty() { Ok(()) } else { Err(pipeline::invalid(at, causes)) }
}

fn is_crd(resource: &Resource) -> bool {
    resource.is("apiextensions.k8s.io", "customresourcedefinitions")
}

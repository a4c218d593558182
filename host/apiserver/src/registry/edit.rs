//! Edits: from the newest version of an object to the one to be stored.

use capwasm_object::{merge_patch, meta};
use serde_json::{Value, json};

use super::{Locator, Part, Registry, WriteOptions};
use crate::apply::{self, ApplyError, Owners, Writer};
use crate::bounded_patch::BoundedPatch;
use crate::status::{ApiError, ApiResult};
use crate::strategic;

/// A change of an object. It is decided anew on every version that another write brings meanwhile.
pub(crate) enum Edit<'a> {
    /// PUT.
    Replace(Value),
    /// RFC 6902.
    Json(BoundedPatch),
    /// RFC 7386.
    Merge(Value),
    /// A merge patch that joins lists by the keys of the schema.
    Strategic(Value),
    /// Server-side apply of `configuration`, the one edit that may create the object; `creation` is an error for a user
    /// who may only patch.
    Apply { configuration: Value, creation: ApiResult<()> },
    /// An update by the server itself.
    Own(&'a (dyn Fn(&mut Value) + Send + Sync)),
    /// An edit of the object's `Scale`.
    Scale(&'a Edit<'a>),
}

impl Edit<'_> {
    /// Whether it may change `managedFields` itself.
    pub(super) fn states_owners(&self) -> bool {
        match self {
            Self::Replace(document) | Self::Merge(document) | Self::Strategic(document) => {
                !meta::field(document, "managedFields").is_null()
            }
            Self::Json(_) => true,
            Self::Apply { .. } | Self::Own(_) | Self::Scale(_) => false,
        }
    }

    /// The edited object; `object` is in the version of the request. Not for an apply: see
    /// [`Registry::apply_configuration`].
    pub(super) fn of(&self, at: &Locator, mut object: Value) -> ApiResult<Value> {
        match self {
            Self::Replace(new) => {
                return Ok(new.clone());
            }
            Self::Json(patch) => patch.apply(&mut object)?,
            Self::Merge(patch) if patch.is_object() => merge_patch::apply(&mut object, patch),
            Self::Merge(_) => return Err(ApiError::bad_request("a merge patch must be a JSON object")),
            Self::Strategic(patch) => {
                let schema = at.resource.schema.as_deref();
                let schema = schema.ok_or_else(|| ApiError::unsupported_media_type("application/merge-patch+json"))?;
                object = strategic::merge(&object, patch, schema)
                    .map_err(|error| ApiError::new(422, "Invalid", error.to_string()))?;
            }
            Self::Own(change) => change(&mut object),
            Self::Scale(edit) => super::scale::rescale(at, &mut object, edit)?,
            Self::Apply { .. } => {
                return Err(ApiError::unsupported_media_type(
                    "application/json-patch+json, application/merge-patch+json",
                ));
            }
        }
        Ok(object)
    }
}

impl Registry {
    /// Server-side apply, in the storage version: field ownership is recorded in it. `live` is in the storage version, and so is
    /// the result; both are without their `managedFields`.
    pub(super) fn apply_configuration(
        &self,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        (live, owners): (Option<&Value>, Value),
        configuration: &Value,
    ) -> ApiResult<(Value, Owners)> {
        let resource = &at.resource;
        if !meta::field(configuration, "managedFields").is_null() {
            return Err(ApiError::bad_request(ApplyError::ManagedFieldsStated.to_string()));
        }
        let version = resource.api_version();
        let states = |field: &str| configuration.get(field).and_then(Value::as_str).unwrap_or_default();
        if states("apiVersion") != version || states("kind") != resource.kind {
            return Err(ApiError::bad_request(format!(
                "the applied object must be of apiVersion {version} and kind {}",
                resource.kind
            )));
        }
        let mut applied = configuration.clone();
        meta::remove(&mut applied, "managedFields");
        if meta::name(&applied).is_empty() {
            meta::set(&mut applied, "name", json!(at.name));
        }
        // What the endpoint ignores is not owned either.
        if part == Part::Main
            && resource.status
            && let Some(root) = applied.as_object_mut()
        {
            root.remove("status");
        }
        let applied = match resource.foreign() {
            true => self.partial(at, applied, options)?,
            false => self.conversion.convert(resource, applied, &resource.storage)?,
        };
        let schema = resource.storage_schema.as_deref();
        let now = self.stamp();
        let writer = Writer { manager: &options.manager, subresource: part.subresource(), now: &now };
        apply::apply(live, owners, &applied, schema, writer, options.force).map_err(refused)
    }
}

/// Status of a refused apply. As upstream, a conflict does not name the object.
fn refused(error: ApplyError) -> ApiError {
    let message = error.to_string();
    let ApplyError::Conflicts(conflicts) = error else { return ApiError::bad_request(message) };
    let refused = ApiError::new(409, "Conflict", message);
    conflicts
        .iter()
        .fold(refused, |refused, conflict| refused.cause("FieldManagerConflict", conflict.to_string(), &conflict.field))
}

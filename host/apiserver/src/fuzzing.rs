//! Internals for the fuzz targets in `fuzz/`. Not a stable API.

use capwasm_object::meta;
use serde_json::Value;

use crate::apply::{self, ApplyError, Writer};
use crate::bounded_patch::BoundedPatch;
use crate::handler::decode;
use crate::schema::{self, Schema};
use crate::tree::Tree;

/// The object as it is stored on creation: pruned and defaulted. `None` when the schema rejects it.
///
/// # Errors
/// When it is no structural schema.
pub fn created(openapi_v3_schema: &Value, object: &Value) -> Result<Option<Value>, String> {
    let schema = schema::Schema::parse(openapi_v3_schema).map_err(|error| error.to_string())?;
    let mut object = object.clone();
    schema::prune(&schema, &mut object);
    schema::drop_nulls(&schema, &mut object);
    schema::default(&schema, &mut object, &Tree::default()).map_err(|error| error.to_string())?;
    Ok(schema::validate(&schema, &object, None).is_empty().then_some(object))
}

/// Reads a request body of this content type: whether it is taken, and the bytes that its values were counted as.
#[must_use]
pub fn body(content_type: &str, body: &[u8]) -> (bool, usize) {
    let tree = Tree::default();
    let taken = decode::counted(content_type, body, &tree).is_ok();
    (taken, tree.bytes())
}

/// The bytes that the evaluation of one CEL rule may hold.
pub const CEL_HELD: usize = schema::CEL_HELD;

/// A parsed schema.
pub struct Structure(Schema);

impl Structure {
    /// Parses a structural schema.
    ///
    /// # Errors
    /// When it is none, or has a rule that does not compile.
    pub fn parse(openapi_v3_schema: &Value) -> Result<Self, String> {
        Schema::parse(openapi_v3_schema).map(Self).map_err(|error| error.to_string())
    }

    /// What an object breaks of its schema and rules.
    #[must_use]
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        schema::validate(&self.0, object, old).iter().map(ToString::to_string).collect()
    }

    /// Server-side apply by one manager; the object comes and goes with its `managedFields`. The truth beside it: whether anything
    /// changed.
    ///
    /// # Errors
    /// `Some` for conflicts with other managers, `None` for a configuration that is refused.
    pub fn apply(
        &self,
        live: Option<&Value>,
        applied: &Value,
        manager: &str,
        force: bool,
    ) -> Result<(Value, bool), Option<String>> {
        let mut bare = live.cloned();
        let owners = bare.as_mut().map_or(Value::Null, |bare| meta::take(bare, "managedFields"));
        let writer = Writer { manager, subresource: None, now: "2026-01-01T00:00:00Z" };
        let result = apply::apply(bare.as_ref(), owners, applied, Some(&self.0), writer, force);
        let (mut object, owners) = result.map_err(|error| match error {
            ApplyError::Conflicts(_) => Some(error.to_string()),
            ApplyError::ManagedFieldsStated | ApplyError::Malformed(_) => None,
        })?;
        let changed = owners.changed || bare.as_ref() != Some(&object);
        meta::give(&mut object, "managedFields", owners.list);
        Ok((object, changed))
    }
}

/// A JSON patch (RFC 6902) applied to an object.
///
/// # Errors
/// When it is none, or cannot be carried out.
pub fn json_patched(object: &Value, patch: &str) -> Result<Value, String> {
    let patch: json_patch::Patch = serde_json::from_str(patch).map_err(|error| error.to_string())?;
    let mut object = object.clone();
    let patch = BoundedPatch::try_from(patch).map_err(|error| error.to_string())?;
    patch.apply(&mut object).map_err(|error| error.to_string())?;
    Ok(object)
}

/// A strategic merge patch applied to an object of a built-in kind.
///
/// # Errors
/// When it is none, or the kind is unknown.
pub fn strategically_merged(api_version: &str, kind: &str, object: &Value, patch: &Value) -> Result<Value, String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let schema = schema::of_kind(group, version, kind).ok_or("there is no such kind")?;
    crate::strategic::merge(object, patch, schema).map_err(|error| error.to_string())
}

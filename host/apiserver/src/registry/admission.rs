//! Admission: the hooks of the configuration, and its admitter in place of webhooks.

use capwasm_object::meta;
use serde_json::Value;

use super::{
    Locator, Registry, WriteOptions, conversion, nests_beyond,
    pipeline::{NESTING, fill_in},
    too_deep,
};
use crate::config::{GroupKind, NotAdmitted};
use crate::schema;
use crate::status::{ApiError, ApiResult, Cause};

/// `Retry-After` in seconds, when an admitter is unavailable.
const RETRY_AFTER: u32 = 1;
/// Warnings of one write, and bytes of each, that reach the client.
const WARNINGS: usize = 20;
const WARNING_BYTES: usize = 256;

impl Registry {
    /// Schema defaults, then hooks and the admitter, which may change or refuse the object.
    pub(super) async fn admit(
        &self,
        at: &Locator,
        mut object: Value,
        old: Option<&Value>,
        options: &WriteOptions,
    ) -> ApiResult<Value> {
        let resource = &at.resource;
        if let Some(schema) = &resource.storage_schema {
            fill_in(schema, &mut object)?;
        }
        let kind = GroupKind::new(&resource.group, &resource.kind);
        for (_, hook) in self.config.admission.iter().filter(|(known, _)| *known == kind) {
            object = hook(&object, old).map_err(|denied| {
                let message =
                    format!("admission webhook \"{}.in-process\" denied the request: {denied}", resource.singular);
                ApiError::forbidden(message).about(&resource.group, &resource.kind, &at.name)
            })?;
        }
        let Some(admitter) = self.config.admitter.as_ref().filter(|_| asked(at, &object, options)) else {
            return Ok(object);
        };
        match admitter.default(&kind, &object, old).await.map_err(|error| refused(at, error))? {
            Some(changed) => accepted(at, object, changed),
            None => Ok(object),
        }
    }

    /// Validates an object that fits the schema. Returns warnings for the client.
    pub(super) async fn approve(
        &self,
        at: &Locator,
        object: &Value,
        old: Option<&Value>,
        options: &WriteOptions,
    ) -> ApiResult<Vec<String>> {
        let Some(admitter) = self.config.admitter.as_ref().filter(|_| asked(at, object, options)) else {
            return Ok(Vec::new());
        };
        let kind = GroupKind::new(&at.resource.group, &at.resource.kind);
        let warnings = admitter.validate(&kind, object, old).await.map_err(|error| refused(at, error))?;
        Ok(warnings.into_iter().take(WARNINGS).map(|warning| one_line(&warning)).collect())
    }
}

/// Whether the admitter is asked. Objects that are being deleted must be able to go, whatever is wrong with them.
fn asked(at: &Locator, object: &Value, options: &WriteOptions) -> bool {
    at.resource.custom() && !options.internal && !meta::is_deleting(object)
}

/// The admitter's object, with everything that it may not change taken from `before`.
fn accepted(at: &Locator, mut before: Value, mut changed: Value) -> ApiResult<Value> {
    let resource = &at.resource;
    let same = |field: &str| before.get(field) == changed.get(field);
    if !same("apiVersion") || !same("kind") {
        return Err(refused(at, NotAdmitted::Failed("it answered another version or kind".to_owned())));
    }
    if nests_beyond(&changed, NESTING) {
        return Err(too_deep());
    }
    conversion::keep_metadata(&mut changed, before["metadata"].take());
    if resource.status
        && let Some(root) = changed.as_object_mut()
    {
        match before.get_mut("status").map(Value::take) {
            Some(status) => root.insert("status".to_owned(), status),
            None => root.remove("status"),
        };
    }
    if let Some(schema) = &resource.storage_schema {
        schema::prune(schema, &mut changed);
        schema::drop_nulls(schema, &mut changed);
        fill_in(schema, &mut changed)?;
    }
    Ok(changed)
}

fn refused(at: &Locator, error: NotAdmitted) -> ApiError {
    let resource = &at.resource;
    let webhook = format!("{}.{}", resource.plural, resource.group);
    let denied = format!("admission webhook \"{webhook}\" denied the request: {error}");
    let failed = format!("failed calling webhook \"{webhook}\": {error}");
    let error = match error {
        NotAdmitted::Invalid { reason, message } => {
            let mut error = ApiError::new(422, "Invalid", denied);
            error.causes = vec![Cause { reason, message, field: String::new() }];
            error
        }
        NotAdmitted::Forbidden(_) => ApiError::forbidden(denied),
        NotAdmitted::Unavailable(_) => ApiError::new(503, "ServiceUnavailable", failed).retry_after(RETRY_AFTER),
        NotAdmitted::Failed(_) => ApiError::internal(failed),
    };
    error.about(&resource.group, &resource.kind, &at.name)
}

/// A warning as it fits into a header.
fn one_line(warning: &str) -> String {
    let line: String = warning.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let end = line.floor_char_boundary(WARNING_BYTES);
    line[..end].to_owned()
}

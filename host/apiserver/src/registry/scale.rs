//! The `scale` subresource.

use capwasm_object::{meta, selector::Selector};
use serde_json::{Value, json};

use super::{Edit, Locator, Part, Registry, WriteOptions, Written};
use crate::catalog::Scale;
use crate::status::{ApiError, ApiResult};

/// The value at a dotted path such as `.spec.replicas`.
fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(object, |value, part| value.get(part))
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let slot = path.split('.').filter(|part| !part.is_empty()).fold(object, |slot, part| {
        if !slot.is_object() {
            *slot = json!({});
        }
        &mut slot[part]
    });
    *slot = value;
}

pub(crate) fn view(scale: &Scale, object: &Value) -> Value {
    let number = |path: &str| at_path(object, path).and_then(Value::as_i64).unwrap_or(0);
    let metadata: serde_json::Map<String, Value> = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), object.get("metadata")?.get(field)?.clone())))
        .collect();
    let mut status = json!({"replicas": number(&scale.status_replicas)});
    if let Some(selector) = scale.selector.as_deref().and_then(|path| at_path(object, path)) {
        status["selector"] = json!(selector_text(selector));
    }
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": number(&scale.spec_replicas)}, "status": status})
}

/// A selector as text, whether stored as such (CRDs) or as a `LabelSelector` (built-in kinds).
fn selector_text(selector: &Value) -> String {
    match selector.as_str() {
        Some(text) => text.to_owned(),
        None => Selector::of(selector).map(|selector| selector.to_string()).unwrap_or_default(),
    }
}

impl Registry {
    /// The `Scale` of an object.
    pub fn get_scale(&self, at: &Locator) -> ApiResult<Value> {
        let scale = at.resource.scale.as_ref().ok_or_else(ApiError::no_such_path)?;
        Ok(view(scale, &self.find(at)?.ok_or_else(|| at.not_found())?))
    }

    /// Edits the `Scale` of an object, and thereby its replicas.
    pub async fn update_scale(&self, at: &Locator, options: &WriteOptions, edit: &Edit<'_>) -> ApiResult<Value> {
        let scale = at.resource.scale.as_ref().ok_or_else(ApiError::no_such_path)?;
        let Written { data, .. } = self.update(at, Part::Main, options, &Edit::Scale(edit)).await?;
        Ok(view(scale, &super::parse(&data)?))
    }
}

/// Sets the replicas, and the `resourceVersion` if there is one, that `edit` gives the object's `Scale`.
pub(super) fn rescale(at: &Locator, object: &mut Value, edit: &Edit<'_>) -> ApiResult<()> {
    let scale = at.resource.scale.as_ref().ok_or_else(ApiError::no_such_path)?;
    let edited = edit.of(at, view(scale, object))?;
    let replicas = edited.pointer("/spec/replicas").cloned().unwrap_or_else(|| json!(0));
    if replicas.as_i64().is_none_or(|number| number < 0) {
        let message = format!("Invalid value: {replicas}: must be greater than or equal to 0");
        return Err(super::invalid_field(at, "FieldValueInvalid", "spec.replicas", message));
    }
    set_path(object, &scale.spec_replicas, replicas);
    match meta::resource_version(&edited) {
        "" => meta::remove(object, "resourceVersion"),
        asked => meta::set(object, "resourceVersion", json!(asked)),
    }
    Ok(())
}

//! POST, PUT, PATCH and DELETE.

use std::sync::Arc;

use http::{StatusCode, header};
use serde_json::{Value, json};

use super::decode::{self, essence};
use super::dispatch::{Call, Reply};
use super::{authorization, read};
use crate::apply::{self, ApplyError};
use crate::catalog::Resource;
use crate::meta;
use crate::registry::{
    DeleteOptions, Deleted, Edited, ListRequest, Locator, NESTING, Part, Registry, WriteOptions, Written,
    invalid_field, nests_beyond, parse, too_deep,
};
use crate::request::Target;
use crate::selector::LabelSelector;
use crate::status::{ApiError, ApiResult};
use crate::strategic;

/// Most operations in one JSON patch.
const PATCH_OPERATIONS: usize = 10_000;
/// Most bytes that the `copy` and `move` operations of one JSON patch may take.
const PATCH_COPIES: usize = 3 << 20;

fn options(call: &Call) -> ApiResult<WriteOptions> {
    WriteOptions::parse(&call.query, call.header(header::USER_AGENT), &call.identity)
}

fn reply(written: Written, mut warnings: Vec<String>) -> Reply {
    warnings.extend(written.warnings);
    let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    Reply::json(written.data).code(code).warn(warnings)
}

pub(super) async fn create(
    registry: &Registry,
    call: &Call,
    resource: &Arc<Resource>,
    namespace: &str,
) -> ApiResult<Reply> {
    let options = options(call)?;
    let mut warnings = Vec::new();
    let object =
        decode::object(call.header(header::CONTENT_TYPE), &call.body)?.checked(options.validation, &mut warnings)?;
    Ok(reply(registry.create(resource, namespace, object, &options).await?, warnings))
}

pub(super) async fn replace(registry: &Registry, call: &Call, at: &Locator, part: Part) -> ApiResult<Reply> {
    let options = options(call)?;
    let mut warnings = Vec::new();
    let object =
        decode::object(call.header(header::CONTENT_TYPE), &call.body)?.checked(options.validation, &mut warnings)?;
    if at.resource.custom() && part == Part::Main && meta::revision(&object).is_none() {
        let message = "Invalid value: 0: must be specified for an update";
        return Err(invalid_field(at, "FieldValueInvalid", "metadata.resourceVersion", message));
    }
    let edit = |live: Option<Value>| {
        let live = live.ok_or_else(|| at.not_found())?;
        let mut object = object.clone();
        // Who leaves the field out keeps what is known of ownership.
        if meta::field(&object, "managedFields").is_null() {
            meta::copy(&mut object, &live, "managedFields");
        }
        Ok(object.into())
    };
    Ok(reply(registry.update(at, part, &options, edit).await?, warnings))
}

/// The document of a patch request.
enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl Patch {
    fn parse(call: &Call, at: &Locator, options: &WriteOptions, warnings: &mut Vec<String>) -> ApiResult<Self> {
        let kind = essence(call.header(header::CONTENT_TYPE));
        let document = |warnings: &mut Vec<String>| decode::json(&call.body)?.checked(options.validation, warnings);
        match kind {
            "application/json-patch+json" => {
                let patch: json_patch::Patch = serde_json::from_slice(&call.body)
                    .map_err(|error| ApiError::bad_request(format!("unable to decode the JSON patch: {error}")))?;
                if patch.0.len() > PATCH_OPERATIONS {
                    return Err(ApiError::new(
                        413,
                        "RequestEntityTooLarge",
                        format!("a JSON patch may have at most {PATCH_OPERATIONS} operations"),
                    ));
                }
                Ok(Self::Json(patch))
            }
            "application/merge-patch+json" => Ok(Self::Merge(document(warnings)?)),
            "application/strategic-merge-patch+json" if !at.resource.custom() => {
                Ok(Self::Strategic(document(warnings)?))
            }
            "application/apply-patch+yaml" => {
                if call.query.get("fieldManager").is_none() {
                    return Err(ApiError::bad_request(
                        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
                    ));
                }
                let object = decode::object(kind, &call.body)?.checked(options.validation, warnings)?;
                Ok(Self::Apply(object))
            }
            _ if at.resource.custom() => Err(ApiError::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(ApiError::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml",
            )),
        }
    }

    /// The object that the patch makes of `live`.
    fn apply(
        &self,
        registry: &Registry,
        at: &Locator,
        part: Part,
        options: &WriteOptions,
        live: Option<Value>,
    ) -> ApiResult<Edited> {
        match self {
            Self::Apply(applied) => apply_configuration(registry, at, part, options, live.as_ref(), applied),
            Self::Json(patch) => {
                let mut object = live.ok_or_else(|| at.not_found())?;
                apply_operations(&mut object, patch)?;
                Ok(object.into())
            }
            Self::Merge(patch) => {
                let mut object = live.ok_or_else(|| at.not_found())?;
                if !patch.is_object() {
                    return Err(ApiError::bad_request("a merge patch must be a JSON object"));
                }
                json_patch::merge(&mut object, patch);
                Ok(object.into())
            }
            Self::Strategic(patch) => {
                let object = live.ok_or_else(|| at.not_found())?;
                let schema = at
                    .resource
                    .schema
                    .as_deref()
                    .ok_or_else(|| ApiError::unsupported_media_type("application/merge-patch+json"))?;
                let merged = strategic::merge(&object, patch, schema)
                    .map_err(|error| ApiError::new(422, "Invalid", error.to_string()))?;
                Ok(merged.into())
            }
        }
    }
}

/// Applies a JSON patch. A few `copy` operations could double an object again and again, and `copy` and `move` nest it ever
/// deeper, so what they take is limited, and so is the depth at which it lands.
fn apply_operations(object: &mut Value, patch: &json_patch::Patch) -> ApiResult<()> {
    use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let mut taken = 0;
    for operation in &patch.0 {
        let (path, value) = match operation {
            Add(add) => (&add.path, Some(&add.value)),
            Replace(replace) => (&replace.path, Some(&replace.value)),
            Copy(copy) => (&copy.path, object.pointer(copy.from.as_str())),
            Move(from) => (&from.path, object.pointer(from.from.as_str())),
            Remove(remove) => (&remove.path, None),
            Test(test) => (&test.path, None),
        };
        if matches!(operation, Copy(_) | Move(_)) {
            taken += value.map_or(0, |value| value.to_string().len());
            if taken > PATCH_COPIES {
                let message = format!("a JSON patch may copy and move at most {PATCH_COPIES} bytes");
                return Err(ApiError::new(413, "RequestEntityTooLarge", message));
            }
        }
        let depth = path.as_str().matches('/').count();
        if value.is_some_and(|value| depth > NESTING || nests_beyond(value, NESTING - depth)) {
            return Err(too_deep());
        }
        json_patch::patch(object, std::slice::from_ref(operation)).map_err(|error| {
            let message = format!("the server rejected our request due to an error in our request: {error}");
            ApiError::new(422, "Invalid", message)
        })?;
    }
    Ok(())
}

/// Server-side apply. Works on the storage version, in which field ownership is recorded.
fn apply_configuration(
    registry: &Registry,
    at: &Locator,
    part: Part,
    options: &WriteOptions,
    live: Option<&Value>,
    applied: &Value,
) -> ApiResult<Edited> {
    if !meta::field(applied, "managedFields").is_null() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let version = at.resource.api_version();
    if applied.get("apiVersion").and_then(Value::as_str) != Some(&version)
        || applied.get("kind").and_then(Value::as_str) != Some(&at.resource.kind)
    {
        return Err(ApiError::bad_request(format!(
            "the applied object must be of apiVersion {version} and kind {}",
            at.resource.kind
        )));
    }
    let mut applied = applied.clone();
    if meta::name(&applied).is_empty() {
        meta::set(&mut applied, "name", json!(at.name));
    }
    // What the endpoint ignores is not owned either.
    if part == Part::Main
        && at.resource.status
        && let Some(root) = applied.as_object_mut()
    {
        root.remove("status");
    }
    let storage = &at.resource.storage;
    let stored = at.resource.foreign();
    let applied = match stored {
        true => registry.partial(at, applied, options)?,
        false => registry.conversion.convert(&at.resource, applied, storage)?,
    };
    let live = live.map(|live| registry.to_storage(&at.resource, live.clone())).transpose()?;
    let schema = at.resource.storage_schema.as_deref();
    let now = registry.config.clock.stamp();
    let object =
        apply::apply(live.as_ref(), &applied, schema, &options.manager, options.force, part.subresource(), &now)
            .map_err(|error| apply_error(at, error))?;
    let object = if stored { object } else { registry.conversion.convert(&at.resource, object, &version)? };
    Ok(Edited { object, tracked: true, stored })
}

fn apply_error(at: &Locator, error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let plural =
                if conflicts.len() == 1 { "1 conflict".to_owned() } else { format!("{} conflicts", conflicts.len()) };
            let texts: Vec<String> = conflicts
                .iter()
                .map(|conflict| {
                    format!("conflict with \"{}\" using {}: {}", conflict.manager, conflict.api_version, conflict.field)
                })
                .collect();
            let message = format!("Apply failed with {plural}: {}", texts.join("\n"));
            let mut error =
                ApiError::new(409, "Conflict", message).about(&at.resource.group, &at.resource.plural, &at.name);
            for (conflict, text) in conflicts.iter().zip(texts) {
                error = error.cause("FieldManagerConflict", text, &conflict.field);
            }
            error
        }
        other => ApiError::bad_request(other.to_string()),
    }
}

/// The object as authorisation sees it.
fn target(at: &Locator) -> Target {
    Target {
        group: at.resource.group.clone(),
        version: at.resource.version.clone(),
        plural: at.resource.plural.clone(),
        namespace: Some(at.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(at.name.clone()),
        subresource: None,
    }
}

pub(super) async fn patch(registry: &Registry, call: &Call, at: &Locator, part: Part) -> ApiResult<Reply> {
    let options = options(call)?;
    let mut warnings = Vec::new();
    let patch = Patch::parse(call, at, &options, &mut warnings)?;
    let edit = |live: Option<Value>| {
        // Who may only change what is there must not make anything.
        if live.is_none() && matches!(patch, Patch::Apply(_)) {
            authorization::resource(registry, &call.identity, "create", &target(at))?;
        }
        patch.apply(registry, at, part, &options, live)
    };
    let written = registry.update(at, part, &options, edit).await?;
    Ok(reply(written, warnings))
}

pub(super) async fn scale(registry: &Registry, call: &Call, at: &Locator, verb: &str) -> ApiResult<Reply> {
    let options = options(call)?;
    let mut warnings = Vec::new();
    let scale = match verb {
        "get" => registry.get_scale(at)?,
        "update" => {
            let object = decode::object(call.header(header::CONTENT_TYPE), &call.body)?
                .checked(options.validation, &mut warnings)?;
            registry.update_scale(at, &options, |_| Ok(object.clone().into())).await?
        }
        "patch" => {
            let patch = match Patch::parse(call, at, &options, &mut warnings)? {
                // A Scale has no lists, so both merges are the same.
                Patch::Strategic(document) => Patch::Merge(document),
                Patch::Apply(_) => {
                    return Err(ApiError::unsupported_media_type(
                        "application/json-patch+json, application/merge-patch+json",
                    ));
                }
                patch => patch,
            };
            registry.update_scale(at, &options, |live| patch.apply(registry, at, Part::Main, &options, live)).await?
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(Reply::value(&scale).warn(warnings))
}

fn delete_options(call: &Call) -> ApiResult<DeleteOptions> {
    let body = if call.body.is_empty() {
        None
    } else {
        Some(decode::object(call.header(header::CONTENT_TYPE), &call.body)?.object)
    };
    DeleteOptions::parse(&call.query, body.as_ref())
}

pub(super) async fn delete(registry: &Registry, call: &Call, at: &Locator) -> ApiResult<Reply> {
    match registry.delete(at, &delete_options(call)?).await? {
        Deleted::Pending(data) => Ok(Reply::json(data)),
        Deleted::Gone(data) => {
            let object = parse(&data)?;
            let details = json!({"name": at.name, "group": at.resource.group, "kind": at.resource.plural, "uid": meta::uid(&object)});
            Ok(Reply::value(
                &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
            ))
        }
    }
}

pub(super) async fn delete_collection(
    registry: &Registry,
    call: &Call,
    resource: &Arc<Resource>,
    namespace: Option<&str>,
) -> ApiResult<Reply> {
    let request = ListRequest::parse(&call.query, resource, namespace)?;
    let page = registry.delete_collection(resource, &request, &delete_options(call)?).await?;
    let metadata = json!({"resourceVersion": page.revision.to_string()});
    Ok(Reply::json(read::join(
        &resource.api_version(),
        &resource.list_kind,
        &metadata,
        page.items.iter().map(|(_, data)| data),
    )))
}

/// Evicts a pod: deletes it unless a PodDisruptionBudget forbids. Without a kubelet there is no grace period.
pub(super) async fn evict(registry: &Registry, call: &Call, at: &Locator) -> ApiResult<Reply> {
    let body = decode::object(call.header(header::CONTENT_TYPE), &call.body)?.object;
    let pod = registry.find(at)?.ok_or_else(|| at.not_found())?;
    let budgets = registry.in_store("policy", "poddisruptionbudgets")?;
    let request = ListRequest { namespace: Some(at.namespace.clone()), ..ListRequest::default() };
    for (key, data) in registry.list(&budgets, &request).await?.items {
        let budget = parse(&data)?;
        if covers(&budget, &pod)
            && budget.pointer("/status/disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0) <= 0
        {
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            let why = format!("The disruption budget {} does not allow another disruption", key.name());
            return Err(ApiError::new(429, "TooManyRequests", message)
                .cause("DisruptionBudget", why, "")
                .retry_after(10));
        }
    }
    let options = DeleteOptions::parse(&call.query, body.get("deleteOptions"))?;
    registry.delete(at, &options).await?;
    Ok(Reply::value(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
        .code(StatusCode::CREATED))
}

/// Whether a budget's selector selects the pod.
fn covers(budget: &Value, pod: &Value) -> bool {
    let Some(selector) = budget.pointer("/spec/selector") else { return false };
    let text = crate::registry::selector_text(selector);
    LabelSelector::parse(&text).is_ok_and(|selector| selector.matches(pod.pointer("/metadata/labels")))
}

//! POST, PUT, PATCH and DELETE.

use std::sync::Arc;

use capwasm_object::{meta, selector};
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::decode::{self, essence};
use super::dispatch::{Call, Reply};
use super::{authorization, read};
use crate::catalog::Resource;
use crate::registry::{
    DeleteOptions, Deleted, Edit, ListRequest, Locator, Part, Registry, WriteOptions, Written, invalid_field, parse,
};
use crate::request::Target;
use crate::status::{ApiError, ApiResult};
use crate::turn;

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
    Ok(reply(registry.update(at, part, &options, &Edit::Replace(object)).await?, warnings))
}

async fn edit(
    registry: &Registry,
    call: &Call,
    at: &Locator,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> ApiResult<Edit<'static>> {
    let kind = essence(call.header(header::CONTENT_TYPE));
    let document = |warnings: &mut Vec<String>| decode::json(&call.body)?.checked(options.validation, warnings);
    match kind {
        "application/json-patch+json" => {
            let patch = serde_json::from_value::<json_patch::Patch>(decode::json(&call.body)?.object)
                .map_err(|error| ApiError::bad_request(format!("unable to decode the JSON patch: {error}")))?;
            Ok(Edit::Json(patch.try_into()?))
        }
        "application/merge-patch+json" => Ok(Edit::Merge(document(warnings)?)),
        "application/strategic-merge-patch+json" if !at.resource.custom() => Ok(Edit::Strategic(document(warnings)?)),
        "application/apply-patch+yaml" => {
            if call.query.get("fieldManager").is_none() {
                return Err(ApiError::bad_request(
                    "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
                ));
            }
            let configuration = decode::object(kind, &call.body)?.checked(options.validation, warnings)?;
            let creation = authorization::resource(registry, &call.identity, "create", &target(at)).await;
            Ok(Edit::Apply { configuration, creation })
        }
        _ if at.resource.custom() => Err(ApiError::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        _ => Err(ApiError::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml",
        )),
    }
}

/// The object as authorisation expects it.
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
    let edit = edit(registry, call, at, &options, &mut warnings).await?;
    Ok(reply(registry.update(at, part, &options, &edit).await?, warnings))
}

pub(super) async fn scale(registry: &Registry, call: &Call, at: &Locator, verb: &str) -> ApiResult<Reply> {
    let options = options(call)?;
    let mut warnings = Vec::new();
    let edit = match verb {
        "get" => return Ok(Reply::value(&registry.get_scale(at)?)),
        "update" => {
            let scale = decode::object(call.header(header::CONTENT_TYPE), &call.body)?;
            Edit::Replace(scale.checked(options.validation, &mut warnings)?)
        }
        "patch" => match edit(registry, call, at, &options, &mut warnings).await? {
            // A Scale has no lists, so both merges are the same.
            Edit::Strategic(document) => Edit::Merge(document),
            edit => edit,
        },
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(Reply::value(&registry.update_scale(at, &options, &edit).await?).warn(warnings))
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
            turn::long(data.len()).await;
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
    let items = page.items.into_iter().map(|(_, data)| data).collect();
    Ok(read::document(&resource.api_version(), &resource.list_kind, &metadata, items))
}

/// Evicts a pod: deletes it unless a PodDisruptionBudget forbids. Without a kubelet there is no grace period.
pub(super) async fn evict(registry: &Registry, call: &Call, at: &Locator) -> ApiResult<Reply> {
    let body = decode::object(call.header(header::CONTENT_TYPE), &call.body)?.object;
    let pod = registry.find(at)?.ok_or_else(|| at.not_found())?;
    let budgets = registry.in_store("policy", "poddisruptionbudgets")?;
    let request = ListRequest { namespace: Some(at.namespace.clone()), ..ListRequest::default() };
    for (key, data) in registry.list(&budgets, &request).await?.items {
        turn::long(data.len()).await;
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
    selector::selects(selector, pod.pointer("/metadata/labels"))
}

//! GET: objects, lists and watches, in the form that the client asked for.

use bytes::Bytes;
use capwasm_object::meta;
use futures::StreamExt as _;
use http::header;
use serde_json::{Value, json};

use super::dispatch::{Call, Reply};
use super::negotiation::{self, Form};
use super::{Body, stream};
use crate::catalog::Resource;
use crate::registry::{Filter, ListRequest, Locator, Registry, WatchRequest, parse};
use crate::status::{ApiError, ApiResult};
use crate::table::{self, Column, IncludeObject};
use crate::turn;

/// Parses `includeObject`.
pub(super) fn include_object(call: &Call) -> ApiResult<IncludeObject> {
    match call.query.get("includeObject") {
        None | Some("Metadata") => Ok(IncludeObject::Metadata),
        Some("Object") => Ok(IncludeObject::Object),
        Some("None") => Ok(IncludeObject::None),
        Some(other) => Err(ApiError::bad_request(format!("unrecognized includeObject value: \"{other}\""))),
    }
}

pub(super) fn columns(resource: &Resource) -> Vec<Column> {
    table::columns_for(&resource.group, &resource.version, &resource.kind, resource.columns.as_ref())
}

pub(super) fn partial(object: &[u8]) -> ApiResult<Value> {
    #[derive(serde::Deserialize)]
    struct Partial {
        #[serde(default)]
        metadata: Value,
    }
    let Partial { metadata } = serde_json::from_slice(object).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}))
}

pub(super) async fn get(registry: &Registry, call: &Call, at: &Locator) -> ApiResult<Reply> {
    let form = negotiation::form(call.header(header::ACCEPT))?;
    registry.wait_for(call.query.get("resourceVersion").and_then(|revision| revision.parse().ok())).await?;
    let data = registry.get(at, form != Form::Json).await?;
    match form {
        Form::Json => Ok(Reply::json(data)),
        Form::Metadata => Ok(Reply::value(&partial(&data)?)),
        Form::Table => {
            let object = parse(&data)?;
            let revision = meta::resource_version(&object).to_owned();
            let now = registry.config.clock.stamp();
            let mut table = table::render(&columns(&at.resource), &[object], &now, true, include_object(call)?);
            table["metadata"] = json!({"resourceVersion": revision});
            Ok(Reply::value(&table))
        }
    }
}

pub(super) async fn list(
    registry: &Registry,
    call: &Call,
    resource: &Resource,
    namespace: Option<&str>,
) -> ApiResult<Reply> {
    let form = negotiation::form(call.header(header::ACCEPT))?;
    let request = ListRequest::parse(&call.query, resource, namespace)?;
    let page = registry.list(resource, &request).await?;
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some(next) = &page.next {
        metadata["continue"] = json!(next);
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    if form != Form::Json {
        turn::long(page.items.iter().map(|(_, data)| data.len()).sum()).await;
    }
    let items = page.items.into_iter().map(|(_, data)| data);
    match form {
        Form::Json => Ok(document(&resource.api_version(), &resource.list_kind, &metadata, items.collect())),
        Form::Metadata => {
            let items = items.map(|data| Ok(Bytes::from(partial(&data)?.to_string()))).collect::<ApiResult<_>>()?;
            Ok(document("meta.k8s.io/v1", "PartialObjectMetadataList", &metadata, items))
        }
        Form::Table => {
            let (columns, now, include) = (columns(resource), registry.config.clock.stamp(), include_object(call)?);
            // One after the other: an object takes many times its text while it is a row.
            let row = |data: Bytes| {
                let row = Bytes::from(table::row(&columns, &parse(&data)?, &now, include).to_string());
                turn::charge(row.len())?;
                ApiResult::Ok(row)
            };
            let rows = items.map(row).collect::<ApiResult<_>>()?;
            let definitions = Value::Array(table::definitions(&columns));
            let head = format!(
                "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"columnDefinitions\":{definitions},\"rows\":["
            );
            Ok(Reply { body: Body::list(&head, rows, "]}"), ..Reply::json(Bytes::new()) })
        }
    }
}

/// A list document around items that are JSON already.
pub(super) fn document(api_version: &str, kind: &str, metadata: &Value, items: Vec<Bytes>) -> Reply {
    let head = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[");
    Reply { body: Body::list(&head, items, "]}"), ..Reply::json(Bytes::new()) }
}

pub(super) async fn watch(
    registry: &Registry,
    call: &Call,
    resource: &std::sync::Arc<Resource>,
    namespace: Option<&str>,
    name: Option<&str>,
) -> ApiResult<Reply> {
    let form = negotiation::form(call.header(header::ACCEPT))?;
    let mut request = WatchRequest::parse(&call.query, resource, namespace)?;
    if let Some(name) = name {
        request.filter = Filter::named(name)?;
    }
    let encoder = stream::Encoder::new(registry, call, resource, form)?;
    let body = match registry.watch(resource, &request).await {
        Ok(watching) => {
            let end = call.shutdown.clone().cancelled_owned();
            Body::stream(stream::frames(watching, encoder, turn::current()?).take_until(Box::pin(end)))
        }
        // Clients look for this inside the stream, and begin anew with a list.
        Err(error) if error.code == 410 => Body::whole(stream::error_frame(&error)),
        Err(error) => return Err(error),
    };
    Ok(Reply { body, ..Reply::json(Bytes::new()) })
}

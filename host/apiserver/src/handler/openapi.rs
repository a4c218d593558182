//! `/openapi/v3`: an index of documents, one per group and version.

use std::sync::Arc;

use bytes::Bytes;
use http::{StatusCode, header};
use serde_json::{Map, Value, json};

use super::discovery::{cached, digest};
use super::dispatch::{Call, Reply};
use crate::catalog::{Catalog, Resource};
use crate::openapi::{self, PublishedKind};
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::turn;

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn render(catalog: &Catalog, group: &str, version: &str) -> Option<Bytes> {
    let resources = catalog.version(group, version)?;
    Some(cached(catalog, &path(group, version), || {
        let published: Vec<PublishedKind<'_>> = resources.values().map(published).collect();
        openapi::document(group, version, &published).to_string().into()
    }))
}

fn published(resource: &Arc<Resource>) -> PublishedKind<'_> {
    PublishedKind {
        group: &resource.group,
        version: &resource.version,
        kind: &resource.kind,
        plural: &resource.plural,
        namespaced: resource.namespaced,
        builtin: !resource.custom(),
        schema: resource.schema.as_deref(),
        status: resource.status,
        scale: resource.scale.is_some(),
    }
}

/// Changes when the document may have changed, and does not need the document.
fn tag(catalog: &Catalog, group: &str, version: &str) -> String {
    let custom =
        catalog.version(group, version).is_some_and(|resources| resources.values().any(|resource| resource.custom()));
    let stamp = if custom { catalog.stamp } else { 0 };
    digest(format!("{group}/{version}/{stamp}/{}", env!("CARGO_PKG_VERSION")).as_bytes())
}

pub(super) fn index(registry: &Registry) -> Reply {
    let catalog = registry.catalog();
    let mut paths = Map::new();
    for (group, versions) in catalog.groups() {
        for (version, _) in versions {
            let path = path(group, version);
            let url = format!("/openapi/v3/{path}?hash={}", tag(&catalog, group, version));
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    Reply::value(&Value::from(Map::from_iter([("paths".to_owned(), Value::Object(paths))])))
}

pub(super) async fn document(registry: &Registry, call: &Call, path: &str) -> ApiResult<Reply> {
    let (group, version) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => (String::new(), (*version).to_owned()),
        ["apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
        _ => return Err(ApiError::no_such_path()),
    };
    let catalog = registry.catalog();
    let etag = format!("\"{}\"", tag(&catalog, &group, &version));
    if call.header(header::IF_NONE_MATCH) == etag {
        return Ok(Reply { etag: Some(etag), ..Reply::json(Bytes::new()).code(StatusCode::NOT_MODIFIED) });
    }
    // As long as the schemas of all kinds together.
    turn::long(usize::MAX).await;
    let document = render(&catalog, &group, &version).ok_or_else(ApiError::no_such_path)?;
    Ok(Reply { etag: Some(etag), ..Reply::json(document) })
}

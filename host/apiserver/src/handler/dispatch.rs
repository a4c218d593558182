//! A request from authorisation over routing to its response.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::negotiation::DiscoveryForm;
use super::{Body, authorization, discovery, negotiation, openapi, port_forward, read, reviews, write};
use crate::catalog::{Origin, Resource};
use crate::identity::Identity;
use crate::registry::{Locator, Registry};
use crate::request::{Query, Route, Target};
use crate::status::{ApiError, ApiResult};
use crate::turn;

pub(crate) struct Call {
    pub method: Method,
    pub path: String,
    pub route: Route,
    pub query: Query,
    pub headers: HeaderMap,
    /// Empty until the request is [authorised](authorize).
    pub body: Bytes,
    pub identity: Identity,
    pub shutdown: CancellationToken,
    /// The connection, for protocol upgrades. HTTP/1.1 only, and not in-process.
    pub upgrade: Option<OnUpgrade>,
}

impl Call {
    pub fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

pub(crate) struct Reply {
    pub code: StatusCode,
    pub content_type: &'static str,
    pub body: Body,
    pub warnings: Vec<String>,
    pub etag: Option<String>,
    /// Headers that do not follow from the other fields.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Reply {
    pub fn json(bytes: impl Into<Bytes>) -> Self {
        Self {
            code: StatusCode::OK,
            content_type: "application/json",
            body: Body::whole(bytes.into()),
            warnings: Vec::new(),
            etag: None,
            headers: Vec::new(),
        }
    }

    pub fn value(value: &Value) -> Self {
        Self::json(value.to_string())
    }

    pub fn code(mut self, code: StatusCode) -> Self {
        self.code = code;
        self
    }

    pub fn warn(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        for warning in self.warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                headers.append(header::WARNING, value);
            }
        }
        headers.extend(self.headers);
        if let Some(value) = self.etag.and_then(|etag| HeaderValue::from_str(&etag).ok()) {
            headers.insert(header::ETAG, value);
        }
        response
    }
}

pub(crate) fn document(code: StatusCode, document: &Value) -> Response<Body> {
    Reply::value(document).code(code).into_response()
}

pub(crate) fn refuse(error: &ApiError) -> Response<Body> {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Reply::value(&error.to_status()).code(code).into_response();
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(crate) async fn handle(registry: &Registry, call: Call) -> Response<Body> {
    let started = std::time::Instant::now();
    let (method, path, user) = (call.method.clone(), call.path.clone(), call.identity.user.clone());
    let response = match route(registry, call).await {
        Ok(reply) => reply.into_response(),
        Err(error) => {
            if error.code >= 500 {
                tracing::warn!(%method, path, user, code = error.code, message = error.message, "request failed");
            }
            refuse(&error)
        }
    };
    tracing::debug!(%method, path, user, status = response.status().as_u16(), elapsed = ?started.elapsed(), "request");
    response
}

/// Whether the sender may do what the request says before its body: method and path. Must come before [`handle`].
pub(crate) async fn authorize(registry: &Registry, call: &Call) -> ApiResult<()> {
    if let Route::Resource(target) = &call.route {
        let verb = verb(call, target).ok_or_else(ApiError::method_not_allowed)?;
        return authorization::resource(registry, &call.identity, verb, target).await;
    }
    authorization::path(registry, &call.identity, &call.method, &call.path)?;
    if matches!(call.method, Method::GET | Method::HEAD) { Ok(()) } else { Err(ApiError::method_not_allowed()) }
}

async fn route(registry: &Registry, call: Call) -> ApiResult<Reply> {
    turn::long(call.body.len()).await;
    match &call.route {
        Route::Health => match registry.store.trouble() {
            // A start would not help.
            Some(trouble) if !call.path.starts_with("/livez") => Err(ApiError::new(503, "ServiceUnavailable", trouble)),
            _ => {
                Ok(Reply { content_type: "text/plain; charset=utf-8", ..Reply::json(health(registry.store.damaged())) })
            }
        },
        Route::Root => Ok(Reply::value(&discovery::paths(&registry.catalog()))),
        Route::Version => Ok(Reply::value(&version_info(&registry.config.git_version))),
        Route::CoreVersions => match negotiation::discovery(call.header(header::ACCEPT)) {
            DiscoveryForm::Legacy => Ok(Reply::value(&discovery::core_versions(&registry.config.advertised))),
            DiscoveryForm::Aggregated(version) => Ok(discovery::aggregated(registry, &call, version, true)),
        },
        Route::Groups => match negotiation::discovery(call.header(header::ACCEPT)) {
            DiscoveryForm::Legacy => Ok(Reply::value(&discovery::groups(&registry.catalog()))),
            DiscoveryForm::Aggregated(version) => Ok(discovery::aggregated(registry, &call, version, false)),
        },
        Route::Group(group) => discovery::group(&registry.catalog(), group)
            .map(|group| Reply::value(&group))
            .ok_or_else(ApiError::no_such_path),
        Route::Resources { group, version } => discovery::resources(&registry.catalog(), group, version)
            .map(|list| Reply::value(&list))
            .ok_or_else(ApiError::no_such_path),
        Route::OpenApiIndex => Ok(openapi::index(registry)),
        Route::OpenApi(path) => openapi::document(registry, &call, path).await,
        Route::Resource(target) => resource(registry, &call, target).await,
        Route::Unknown => Err(ApiError::no_such_path()),
    }
}

/// What probes are told of a server that serves. Damage is no reason to take it away: all else is served, and a start mends nothing.
fn health(damaged: usize) -> String {
    match damaged {
        0 => "ok".to_owned(),
        _ => format!(
            "ok, but {damaged} objects are damaged in the store: stop the server, then `capwasm apiserver repair`"
        ),
    }
}

/// What `/version` says of a server of a Kubernetes version.
pub fn version_info(version: &str) -> Value {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    json!({
        "major": major, "minor": minor, "gitVersion": version, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// Verb for authorisation; `None` for a method that no resource takes on such a path.
fn verb(call: &Call, target: &Target) -> Option<&'static str> {
    let item = target.name.is_some();
    Some(match (&call.method, item) {
        (&Method::GET | &Method::HEAD, _) if call.query.flag("watch") && target.subresource.is_none() => "watch",
        (&Method::GET | &Method::HEAD, true) => "get",
        (&Method::GET | &Method::HEAD, false) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return None,
    })
}

async fn resource(registry: &Registry, call: &Call, target: &Target) -> ApiResult<Reply> {
    let verb = verb(call, target).ok_or_else(ApiError::method_not_allowed)?;
    let catalog = registry.catalog();
    let resource = catalog.find(&target.group, &target.version, &target.plural).ok_or_else(ApiError::no_such_path)?;
    if !resource.namespaced && target.namespace.is_some() {
        return Err(ApiError::no_such_path());
    }
    if resource.origin == Origin::Virtual {
        return if verb == "create" {
            reviews::answer(registry, call, resource).await
        } else {
            Err(ApiError::method_not_allowed())
        };
    }
    let mut reply = match (&target.name, &target.subresource) {
        (None, _) => collection(registry, call, target, resource, verb).await,
        (Some(name), subresource) => {
            if resource.namespaced && target.namespace.is_none() {
                return Err(ApiError::no_such_path());
            }
            let at = Locator::new(resource, target.namespace.as_deref().unwrap_or_default(), name);
            match subresource.as_deref() {
                None => item(registry, call, &at, verb).await,
                Some(subresource) => self::subresource(registry, call, &at, verb, subresource).await,
            }
        }
    }?;
    reply.warnings.extend(resource.deprecation.clone());
    Ok(reply)
}

async fn collection(
    registry: &Registry,
    call: &Call,
    target: &Target,
    resource: &std::sync::Arc<Resource>,
    verb: &str,
) -> ApiResult<Reply> {
    let namespace = target.namespace.as_deref();
    match verb {
        "list" => read::list(registry, call, resource, namespace).await,
        "watch" => read::watch(registry, call, resource, namespace, None).await,
        "create" if !resource.namespaced || namespace.is_some() => {
            write::create(registry, call, resource, namespace.unwrap_or_default()).await
        }
        "deletecollection" => write::delete_collection(registry, call, resource, namespace).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

async fn item(registry: &Registry, call: &Call, at: &Locator, verb: &str) -> ApiResult<Reply> {
    use crate::registry::Part;
    match verb {
        "get" => read::get(registry, call, at).await,
        "watch" => {
            let namespace = at.resource.namespaced.then_some(at.namespace.as_str());
            read::watch(registry, call, &at.resource, namespace, Some(&at.name)).await
        }
        "update" => write::replace(registry, call, at, Part::Main).await,
        "patch" => write::patch(registry, call, at, Part::Main).await,
        "delete" => write::delete(registry, call, at).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

async fn subresource(registry: &Registry, call: &Call, at: &Locator, verb: &str, name: &str) -> ApiResult<Reply> {
    use crate::registry::Part;
    let part = match name {
        "status" if at.resource.status => Part::Status,
        "scale" if at.resource.scale.is_some() => return write::scale(registry, call, at, verb).await,
        "eviction" if at.resource.subresources.contains(&"eviction") && verb == "create" => {
            return write::evict(registry, call, at).await;
        }
        "portforward" if at.resource.subresources.contains(&"portforward") => {
            return match verb {
                "get" | "create" => port_forward::answer(registry, call, at),
                _ => Err(ApiError::method_not_allowed()),
            };
        }
        "finalize" if at.resource.subresources.contains(&"finalize") => Part::Finalize,
        "approval" if at.resource.subresources.contains(&"approval") => Part::Approval,
        _ => return Err(ApiError::no_such_path()),
    };
    match verb {
        "get" => read::get(registry, call, at).await,
        "update" => write::replace(registry, call, at, part).await,
        "patch" => write::patch(registry, call, at, part).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

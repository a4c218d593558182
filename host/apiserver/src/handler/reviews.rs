//! Reviews, which are answered and never stored: SelfSubjectReview, SubjectAccessReview, TokenReview and the like.

use http::{StatusCode, header};
use serde_json::{Value, json};

use super::authorization::{self, Wish};
use super::dispatch::{Call, Reply};
use super::{authentication, decode};
use crate::catalog::Resource;
use crate::identity::Identity;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

pub(super) async fn answer(registry: &Registry, call: &Call, resource: &Resource) -> ApiResult<Reply> {
    let mut review = decode::object(call.header(header::CONTENT_TYPE), &call.body)?.object;
    if !review.is_object() {
        return Err(ApiError::bad_request("the request body must be a JSON object"));
    }
    review["kind"] = json!(resource.kind);
    review["apiVersion"] = json!(resource.api_version());
    let spec = review.get("spec").cloned().unwrap_or_else(|| json!({}));
    review["status"] = match resource.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": user_info(&call.identity)}),
        "TokenReview" => token(registry, &spec)?,
        "SelfSubjectAccessReview" => access(registry, &call.identity, &spec).await?,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let groups: Vec<&str> = spec["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            access(registry, &Identity::new(spec["user"].as_str().unwrap_or_default(), &groups), &spec).await?
        }
        "SelfSubjectRulesReview" => rules(&call.identity),
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(Reply::value(&review).code(StatusCode::CREATED))
}

fn user_info(identity: &Identity) -> Value {
    json!({"username": identity.user, "groups": identity.groups})
}

fn token(registry: &Registry, spec: &Value) -> ApiResult<Value> {
    let found = authentication::bearer(registry, spec["token"].as_str().unwrap_or_default())?;
    Ok(found.map_or_else(
        || json!({"authenticated": false}),
        |identity| json!({"authenticated": true, "user": user_info(&identity)}),
    ))
}

async fn access(registry: &Registry, identity: &Identity, spec: &Value) -> ApiResult<Value> {
    if let Some(attributes) = spec.get("nonResourceAttributes").filter(|a| a.is_object()) {
        let method = if attributes["verb"] == "get" { http::Method::GET } else { http::Method::POST };
        let allowed =
            authorization::path(registry, identity, &method, attributes["path"].as_str().unwrap_or_default()).is_ok();
        return Ok(json!({"allowed": allowed}));
    }
    let text = |field: &str| spec["resourceAttributes"][field].as_str().unwrap_or_default();
    let resource = match text("subresource") {
        "" => text("resource").to_owned(),
        subresource => format!("{}/{subresource}", text("resource")),
    };
    let wish = Wish {
        verb: text("verb"),
        group: text("group"),
        resource: &resource,
        namespace: text("namespace"),
        name: text("name"),
    };
    Ok(json!({"allowed": authorization::allowed(registry, identity, &wish).await?}))
}

/// What `kubectl auth can-i --list` shows. Complete for `system:masters` only.
fn rules(identity: &Identity) -> Value {
    if identity.is_in(crate::identity::MASTERS) {
        let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        return json!({"resourceRules": all, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}], "incomplete": false});
    }
    json!({"resourceRules": [], "nonResourceRules": [], "incomplete": true, "evaluationError": "rules are evaluated per request and not listed"})
}

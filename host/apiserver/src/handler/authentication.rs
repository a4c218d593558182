//! Authentication: a client certificate, a bearer token, or anonymous.

use http::{HeaderMap, Method, header};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::identity::{BOOTSTRAPPERS, Identity};
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

/// Identifies the sender. A wrong token is refused even on anonymous paths, and so is impersonation.
pub(crate) fn authenticate(
    registry: &Registry,
    certificate: Option<&Identity>,
    headers: &HeaderMap,
    method: &Method,
    path: &str,
) -> ApiResult<Identity> {
    // Done as who asks instead, it would be done with rights that were meant to be laid down.
    if headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Err(ApiError::forbidden("this server does not support impersonation"));
    }
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = authorization
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    if let Some(token) = token {
        return bearer(registry, token)?.ok_or_else(ApiError::unauthorized);
    }
    if let Some(identity) = certificate {
        return Ok(identity.clone());
    }
    let open = &registry.config.auth.anonymous_paths;
    if matches!(*method, Method::GET | Method::HEAD) && open.iter().any(|allowed| allowed == path) {
        return Ok(Identity::anonymous());
    }
    Err(ApiError::unauthorized())
}

/// `None` when the token is unknown.
pub(super) fn bearer(registry: &Registry, token: &str) -> ApiResult<Option<Identity>> {
    let auth = &registry.config.auth;
    if let Some((_, identity)) = auth.tokens.iter().find(|(known, _)| equal(known, token)) {
        return Ok(Some(identity.clone()));
    }
    if auth.bootstrap_tokens { bootstrap(registry, token) } else { Ok(None) }
}

/// Compares secrets by their digests, so that timing says nothing about the known one.
fn equal(known: &str, given: &str) -> bool {
    Sha256::digest(known) == Sha256::digest(given)
}

/// Splits `abcdef.0123456789abcdef`.
fn split(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let legal = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    (legal(id, 6) && legal(secret, 16)).then_some((id, secret))
}

fn bootstrap(registry: &Registry, token: &str) -> ApiResult<Option<Identity>> {
    let Some((id, secret)) = split(token) else { return Ok(None) };
    let at = registry.locate("", "secrets", "kube-system", &format!("bootstrap-token-{id}"))?;
    let Some(object) = registry.find(&at)? else { return Ok(None) };
    Ok(identify(&object, id, secret, registry.config.clock.now()))
}

/// The user of a bootstrap token Secret, if the token is right, meant for authentication and not expired.
fn identify(object: &Value, id: &str, secret: &str, now: jiff::Timestamp) -> Option<Identity> {
    let data = |field: &str| {
        let encoded = object.pointer(&format!("/data/{field}"))?.as_str()?;
        String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
    };
    if object["type"] != "bootstrap.kubernetes.io/token"
        || !object.pointer("/metadata/deletionTimestamp").is_none_or(Value::is_null)
    {
        return None;
    }
    if data("token-id")? != id
        || !equal(&data("token-secret")?, secret)
        || data("usage-bootstrap-authentication")? != "true"
    {
        return None;
    }
    if let Some(expiry) = data("expiration")
        && expiry.parse::<jiff::Timestamp>().ok()? <= now
    {
        return None;
    }
    let extra = data("auth-extra-groups").unwrap_or_default();
    let mut groups = vec![BOOTSTRAPPERS];
    groups.extend(extra.split(',').map(str::trim).filter(|group| group.starts_with("system:bootstrappers:")));
    Some(Identity::new(format!("system:bootstrap:{id}"), &groups))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn secret(change: impl Fn(&mut Value)) -> Value {
        let encode = |text: &str| json!(STANDARD.encode(text));
        let mut object = json!({"type": "bootstrap.kubernetes.io/token", "metadata": {}, "data": {
            "token-id": encode("abcdef"), "token-secret": encode("0123456789abcdef"), "usage-bootstrap-authentication": encode("true"),
            "expiration": encode("2026-06-01T00:00:00Z"), "auth-extra-groups": encode("system:bootstrappers:kubeadm:default-node-token,system:masters")}});
        change(&mut object);
        object
    }

    #[test]
    fn bootstrap_tokens_count_only_while_they_are_right_and_young() {
        let encode = |text: &str| json!(STANDARD.encode(text));
        let at = |time: &str| time.parse::<jiff::Timestamp>().unwrap();
        let ask = |object: &Value, time: &str| identify(object, "abcdef", "0123456789abcdef", at(time));
        let good = ask(&secret(|_| ()), "2026-05-01T00:00:00Z").unwrap();
        assert_eq!(good.user, "system:bootstrap:abcdef");
        assert!(good.is_in("system:bootstrappers:kubeadm:default-node-token"));
        assert!(!good.is_in("system:masters"), "a Secret cannot make masters");
        assert_eq!(ask(&secret(|_| ()), "2026-06-01T00:00:00Z"), None, "expired");
        assert_eq!(
            ask(&secret(|s| s["data"]["token-secret"] = encode("x")), "2026-05-01T00:00:00Z"),
            None,
            "wrong secret"
        );
        assert_eq!(
            ask(&secret(|s| s["data"]["usage-bootstrap-authentication"] = encode("false")), "2026-05-01T00:00:00Z"),
            None,
            "other use"
        );
        assert_eq!(ask(&secret(|s| s["type"] = json!("Opaque")), "2026-05-01T00:00:00Z"), None, "other type");
        assert_eq!(split("ABCDEF.0123456789abcdef"), None);
    }
}

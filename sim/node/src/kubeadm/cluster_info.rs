//! ConfigMap `cluster-info` in `kube-public`, the public half of discovery: a kubeconfig, and for each bootstrap token a
//! signature by which its holder knows that the kubeconfig is genuine (a detached JWS, HMAC-SHA256 with the token's secret).

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kubeadm::objects::split_token;
use crate::rest::{Rest, RestError};

/// Path of the ConfigMap.
pub const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const TOKEN_TYPE: &str = "bootstrap.kubernetes.io/token";
const KUBECONFIG: &str = "kubeconfig";
const SIGNATURE: &str = "jws-kubeconfig-";

/// Creates the ConfigMap, without signatures.
pub(super) async fn publish(rest: &Rest, server: &str, authority: &str) -> Result<(), String> {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {}, "contexts": [], "users": [], "current-context": "",
        "clusters": [{ "name": "", "cluster": {
            "server": server, "certificate-authority-data": STANDARD.encode(authority),
        } }],
    });
    let text = serde_saphyr::to_string(&kubeconfig).map_err(|error| format!("unable to write YAML: {error}"))?;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cluster-info", "namespace": "kube-public" },
        "data": { KUBECONFIG: text },
    });
    rest.ensure("/api/v1/namespaces/kube-public/configmaps", &map).await.map_err(|error| error.to_string())?;
    Ok(())
}

/// The detached signature `header..signature` of a text with a token.
fn signature(text: &str, id: &str, secret: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes())))
}

/// Whether the ConfigMap is signed with this token; `None` while there is no signature of it.
///
/// # Errors
/// When the signature is another's, or the kubeconfig was changed.
pub(super) fn verify(map: &Value, token: &str) -> Result<Option<()>, String> {
    let (id, secret) = split_token(token)?;
    let text = map["data"][KUBECONFIG].as_str().ok_or("there is no kubeconfig key in the cluster-info ConfigMap")?;
    let Some(given) = map["data"][format!("{SIGNATURE}{id}")].as_str() else { return Ok(None) };
    let wrong =
        || "failed to verify JWS signature of received cluster info object, can't trust this API Server".to_owned();
    let (header, rest) = given.split_once('.').ok_or_else(wrong)?;
    let tag = rest.strip_prefix('.').and_then(|tag| URL_SAFE_NO_PAD.decode(tag).ok()).ok_or_else(wrong)?;
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::verify(&key, signed.as_bytes(), &tag).map(Some).map_err(|_| wrong())
}

/// What the bootstrap signer and the token cleaner have to do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Chores {
    /// Keys of the ConfigMap to set, or to remove.
    signatures: Vec<(String, Option<String>)>,
    expired: Vec<String>,
    /// When the next one expires.
    next: Option<Timestamp>,
}

fn chores(map: Option<&Value>, secrets: &[Value], now: Timestamp) -> Chores {
    let mut chores = Chores::default();
    let mut wanted = Vec::new();
    let text = map.and_then(|map| map["data"][KUBECONFIG].as_str());
    for secret in secrets.iter().filter(|secret| secret["type"] == TOKEN_TYPE) {
        let data = |field: &str| {
            let encoded = secret["data"][field].as_str()?;
            String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
        };
        match data("expiration").map(|text| text.parse::<Timestamp>()) {
            Some(Ok(end)) if end <= now => {
                chores.expired.extend(secret["metadata"]["name"].as_str().map(str::to_owned));
                continue;
            }
            Some(Ok(end)) => chores.next = Some(chores.next.map_or(end, |next| next.min(end))),
            // Whoever wrote it meant it to end: it is not good for anything.
            Some(Err(_)) => continue,
            None => {}
        }
        if let (Some(text), Some(id), Some(key), Some("true")) =
            (text, data("token-id"), data("token-secret"), data("usage-bootstrap-signing").as_deref())
        {
            wanted.push((format!("{SIGNATURE}{id}"), signature(text, &id, &key)));
        }
    }
    let fields = map.and_then(|map| map["data"].as_object());
    let present = |name: &str| fields.and_then(|fields| fields.get(name)).and_then(Value::as_str);
    let stale = fields.into_iter().flat_map(|fields| fields.keys()).filter(|name| name.starts_with(SIGNATURE));
    let stale: Vec<_> = stale.filter(|name| !wanted.iter().any(|(wanted, _)| wanted == *name)).cloned().collect();
    chores.signatures.extend(stale.into_iter().map(|name| (name, None)));
    chores.signatures.extend(
        wanted.into_iter().filter(|(name, text)| present(name) != Some(text)).map(|(name, text)| (name, Some(text))),
    );
    chores
}

/// Signs the ConfigMap with all tokens and removes expired ones, as bootstrap signer and token cleaner do. Returns when the
/// next token expires.
///
/// # Errors
/// See [`RestError`].
pub async fn maintain(rest: &Rest) -> Result<Option<Timestamp>, RestError> {
    let map = rest.get(PATH).await?;
    let query = format!("{SECRETS}?fieldSelector=type%3D{}", TOKEN_TYPE.replace('/', "%2F"));
    let list = rest.get(&query).await?.unwrap_or_default();
    let secrets = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let chores = chores(map.as_ref(), secrets, Timestamp::now());
    if !chores.signatures.is_empty() {
        let data: serde_json::Map<String, Value> =
            chores.signatures.into_iter().map(|(name, text)| (name, json!(text))).collect();
        rest.merge(PATH, &json!({ "data": data })).await?;
    }
    for name in chores.expired {
        rest.delete(&format!("{SECRETS}/{name}")).await?;
    }
    Ok(chores.next)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn secret(id: &str, signing: &str, expiration: &str) -> Value {
        let mut data = json!({});
        let given = [
            ("token-id", id),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-signing", signing),
            ("expiration", expiration),
        ];
        for (name, text) in given {
            data[name] = json!(STANDARD.encode(text));
        }
        json!({ "type": TOKEN_TYPE, "metadata": { "name": format!("bootstrap-token-{id}") }, "data": data })
    }

    #[test]
    fn a_signature_of_the_token_is_believed_and_no_other() {
        let mut map = json!({ "data": { "kubeconfig": "text" } });
        let token = "abcdef.0123456789abcdef";
        assert_eq!(verify(&map, token), Ok(None));
        map["data"]["jws-kubeconfig-abcdef"] = json!(signature("text", "abcdef", "0123456789abcdef"));
        assert_eq!(verify(&map, token), Ok(Some(())));
        assert!(verify(&map, "abcdef.ffffffffffffffff").is_err());
        map["data"]["kubeconfig"] = json!("changed");
        assert!(verify(&map, token).is_err());
    }

    #[test]
    fn tokens_are_signed_for_as_long_as_they_are_there_and_good() {
        let now: Timestamp = "2026-05-01T00:00:00Z".parse().unwrap();
        let later = "2026-06-01T00:00:00Z";
        let secrets = [
            secret("aaaaaa", "true", later),
            secret("bbbbbb", "false", later),
            secret("cccccc", "true", "2026-04-01T00:00:00Z"),
            secret("dddddd", "true", "nonsense"),
        ];
        let map = json!({ "data": { "kubeconfig": "text", "jws-kubeconfig-gone00": "x" } });
        let todo = chores(Some(&map), &secrets, now);
        let keys: Vec<(&str, bool)> =
            todo.signatures.iter().map(|(key, text)| (key.as_str(), text.is_some())).collect();
        assert_eq!(keys, [("jws-kubeconfig-gone00", false), ("jws-kubeconfig-aaaaaa", true)]);
        assert_eq!(todo.expired, ["bootstrap-token-cccccc"]);
        assert_eq!(todo.next, Some(later.parse().unwrap()));
        let done = json!({ "data": { "kubeconfig": "text", "jws-kubeconfig-aaaaaa": todo.signatures[1].1 } });
        assert!(chores(Some(&done), &secrets[..1], now).signatures.is_empty());
    }
}

//! How a joining machine finds and trusts the API server: `discovery` of a JoinConfiguration.
//!
//! What the user gave is respected. Otherwise it is a bootstrap token with the endpoint and the hash of the cluster's CA,
//! remembered in the KubeadmConfig, so that a repeated pass uses the same token: it stands there before it lets anybody in.
//! A control plane gives it to the KubeadmConfigs that it makes; into others the bootstrap provider writes it.

use capwasm_sdk::{Host, object};
use serde_json::{Map, Value, json};

/// What a token is made of.
pub const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
/// Letters of a token before and after its point: its id, and its secret.
pub const LENGTHS: [u32; 2] = [6, 16];

/// Whether the hash of the cluster's CA has to be filled in, or the CA itself.
pub fn wants_ca(given: &Map<String, Value>) -> bool {
    match given.get("file") {
        Some(file) => {
            let insecure = file.pointer("/kubeConfig/cluster/insecureSkipTLSVerify").and_then(Value::as_bool);
            file.get("kubeConfig").is_some_and(Value::is_object)
                && object::text(file, "/kubeConfig/cluster/certificateAuthorityData").is_empty()
                // Nobody reads a kubeconfig with an authority that is not to be asked.
                && insecure != Some(true)
        }
        None => given.get("bootstrapToken").is_none_or(|token| !has(token, "caCertHashes") && !is_unsafe(token)),
    }
}

/// Whether the endpoint of the Cluster has to be filled in.
pub fn wants_endpoint(given: &Map<String, Value>) -> bool {
    match given.get("file") {
        Some(file) => {
            file.get("kubeConfig").is_some_and(Value::is_object)
                && object::text(file, "/kubeConfig/cluster/server").is_empty()
        }
        None => given.get("bootstrapToken").is_none_or(|token| !has(token, "apiServerEndpoint")),
    }
}

/// A `discovery` with all that it needs. `new_token` is drawn only when there is none.
pub fn complete(
    given: &Map<String, Value>,
    endpoint: &str,
    ca_hash: Option<&str>,
    new_token: impl FnOnce() -> String,
) -> Map<String, Value> {
    let mut discovery = given.clone();
    if given.contains_key("file") {
        return discovery;
    }
    let known = given.get("bootstrapToken").cloned().unwrap_or_else(|| json!({}));
    let mut token = known.as_object().cloned().unwrap_or_default();
    if !has(&known, "apiServerEndpoint") {
        token.insert("apiServerEndpoint".into(), json!(endpoint));
    }
    if !has(&known, "token") {
        token.insert("token".into(), json!(new_token()));
    }
    if let Some(hash) = ca_hash.filter(|_| !has(&known, "caCertHashes") && !is_unsafe(&known)) {
        token.insert("caCertHashes".into(), json!([hash]));
    }
    discovery.insert("bootstrapToken".into(), Value::Object(token));
    discovery
}

/// A new token: `abcdef.0123456789abcdef`.
pub fn new_token(host: &dyn Host) -> String {
    LENGTHS.map(|length| host.random_token(ALPHABET, length)).join(".")
}

/// The same `discovery` with another token.
pub fn with_token(mut discovery: Map<String, Value>, token: &str) -> Map<String, Value> {
    if let Some(Value::Object(known)) = discovery.get_mut("bootstrapToken") {
        known.insert("token".into(), json!(token));
    }
    discovery
}

/// The token of a `discovery`, if it uses one.
pub fn token(given: &Map<String, Value>) -> Option<&str> {
    if given.contains_key("file") {
        return None;
    }
    given.get("bootstrapToken")?.get("token")?.as_str().filter(|token| !token.is_empty())
}

fn has(token: &Value, key: &str) -> bool {
    match token.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        _ => false,
    }
}

fn is_unsafe(token: &Value) -> bool {
    token.get("unsafeSkipCAVerification").and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn discovery_is_completed_once_and_what_the_user_gave_is_respected() {
        let full = json!({"token": "new", "apiServerEndpoint": "e:6443", "caCertHashes": ["sha256:h"]});
        for (what, given, token, ca, endpoint) in [
            ("nothing given", json!({}), full.clone(), true, true),
            ("an empty token", json!({"bootstrapToken": {"token": ""}}), full.clone(), true, true),
            ("what an earlier pass persisted", json!({"bootstrapToken": full}), full.clone(), false, false),
            (
                "the user's endpoint",
                json!({"bootstrapToken": {"apiServerEndpoint": "mine:1"}}),
                json!({"token": "new", "apiServerEndpoint": "mine:1", "caCertHashes": ["sha256:h"]}),
                true,
                false,
            ),
            (
                "the user's token",
                json!({"bootstrapToken": {"token": "mine", "apiServerEndpoint": "mine:1", "caCertHashes": ["sha256:m"]}}),
                json!({"token": "mine", "apiServerEndpoint": "mine:1", "caCertHashes": ["sha256:m"]}),
                false,
                false,
            ),
            (
                "no verification wanted",
                json!({"bootstrapToken": {"unsafeSkipCAVerification": true}}),
                json!({"token": "new", "apiServerEndpoint": "e:6443", "unsafeSkipCAVerification": true}),
                false,
                true,
            ),
            ("a file", json!({"file": {"kubeConfigPath": "/k"}}), Value::Null, false, false),
            (
                "a described file",
                json!({"file": {"kubeConfigPath": "/k", "kubeConfig": {"user": {}}}}),
                Value::Null,
                true,
                true,
            ),
            (
                "a described file that trusts anybody",
                json!({"file": {"kubeConfig": {"cluster": {"server": "https://s", "insecureSkipTLSVerify": true}}}}),
                Value::Null,
                false,
                false,
            ),
            (
                "a described file with its authority",
                json!({"file": {"kubeConfig": {"cluster": {"certificateAuthorityData": "eA=="}}}}),
                Value::Null,
                false,
                true,
            ),
            (
                "a described file with its server",
                json!({"file": {"kubeConfigPath": "/k", "kubeConfig": {"cluster": {"server": "https://s"}}}}),
                Value::Null,
                true,
                false,
            ),
        ] {
            let given = given.as_object().unwrap();
            assert_eq!((wants_ca(given), wants_endpoint(given)), (ca, endpoint), "{what}");
            let completed = complete(given, "e:6443", wants_ca(given).then_some("sha256:h"), || "new".into());
            assert_eq!(completed.get("bootstrapToken").cloned().unwrap_or_default(), token, "{what}");
            let twice = complete(&completed, "other:1", Some("other"), || panic!("{what}: a token is drawn once"));
            assert_eq!(twice, completed, "{what}");
        }
    }
}

//! How a joining machine finds and trusts the API server: `discovery` of a JoinConfiguration.
//!
//! What the user gave is respected. Otherwise it is a bootstrap token with the endpoint and the hash of the cluster's CA,
//! remembered in the KubeadmConfig, so that a repeated pass uses the same token.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{Problem, object};
use serde_json::{Map, Value, json};

use crate::cloud_config::WriteFile;
use crate::yaml;

/// Whether a `discovery` can be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// As it is.
    Complete,
    /// Only once this `bootstrapToken` was written into the KubeadmConfig.
    Persist(Map<String, Value>),
}

/// Whether the hash of the cluster's CA has to be filled in, or the CA itself.
pub fn wants_ca(given: &Map<String, Value>) -> bool {
    match given.get("file") {
        Some(file) => file.get("kubeConfig").is_some_and(Value::is_object),
        None => given.get("bootstrapToken").is_none_or(|token| !has(token, "caCertHashes") && !is_unsafe(token)),
    }
}

/// Fills in what is missing. `new_token` is drawn only when there is none.
pub fn decide(
    given: &Map<String, Value>,
    endpoint: &str,
    ca_hash: Option<&str>,
    new_token: impl FnOnce() -> String,
) -> Plan {
    if given.contains_key("file") {
        return Plan::Complete;
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
    if known.as_object() == Some(&token) { Plan::Complete } else { Plan::Persist(token) }
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

/// The kubeconfig of a file discovery, where the user described it instead of placing the file himself.
pub fn kubeconfig(
    given: &Map<String, Value>,
    endpoint: &str,
    ca_pem: Option<&str>,
) -> Result<Option<WriteFile>, Problem> {
    let Some(file) = given.get("file") else {
        return Ok(None);
    };
    let Some(wanted) = file.get("kubeConfig").filter(|wanted| wanted.is_object()) else {
        return Ok(None);
    };
    let path = object::text(file, "/kubeConfigPath");
    if path.is_empty() {
        return Err(Problem::invalid(
            "InvalidDiscovery",
            "discovery.file.kubeConfigPath must say where the kubeconfig goes",
        ));
    }
    let server = match object::text(wanted, "/cluster/server") {
        "" => format!("https://{endpoint}"),
        server => server.to_owned(),
    };
    let authority = match object::text(wanted, "/cluster/certificateAuthorityData") {
        "" => ca_pem.map(|pem| STANDARD.encode(pem)).unwrap_or_default(),
        data => data.to_owned(),
    };
    let cluster = present([
        ("server", json!(server)),
        ("certificate-authority-data", json!(authority)),
        ("insecure-skip-tls-verify", at(wanted, "/cluster/insecureSkipTLSVerify")),
        ("proxy-url", at(wanted, "/cluster/proxyURL")),
        ("tls-server-name", at(wanted, "/cluster/tlsServerName")),
    ]);
    let exec = match wanted.pointer("/user/exec") {
        None => Value::Null,
        Some(exec) => {
            let version = match object::text(exec, "/apiVersion") {
                "" => "client.authentication.k8s.io/v1",
                version => version,
            };
            present([
                ("apiVersion", json!(version)),
                ("command", at(exec, "/command")),
                ("args", at(exec, "/args")),
                ("env", at(exec, "/env")),
                ("provideClusterInfo", at(exec, "/provideClusterInfo")),
                // Nobody sits at a machine that boots.
                ("interactiveMode", json!("Never")),
            ])
        }
    };
    let user = present([("auth-provider", at(wanted, "/user/authProvider")), ("exec", exec)]);
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": cluster}],
        "users": [{"name": "default", "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    });
    Ok(Some(WriteFile::of_root(path, "0640", yaml::document(&document))))
}

fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}

fn present<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let kept = fields.into_iter().filter(|(_, value)| !value.is_null() && value.as_str() != Some(""));
    Value::Object(kept.map(|(key, value)| (key.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn discovery_is_completed_once_and_what_the_user_gave_is_respected() {
        let full = json!({"token": "new", "apiServerEndpoint": "e:6443", "caCertHashes": ["sha256:h"]});
        for (what, given, persisted) in [
            ("nothing given", json!({}), Some(full.clone())),
            ("an empty token", json!({"bootstrapToken": {"token": ""}}), Some(full.clone())),
            ("what an earlier pass persisted", json!({"bootstrapToken": full}), None),
            (
                "the user's endpoint",
                json!({"bootstrapToken": {"apiServerEndpoint": "mine:1"}}),
                Some(json!({"token": "new", "apiServerEndpoint": "mine:1", "caCertHashes": ["sha256:h"]})),
            ),
            (
                "the user's token",
                json!({"bootstrapToken": {"token": "mine", "apiServerEndpoint": "mine:1", "caCertHashes": ["sha256:m"]}}),
                None,
            ),
            (
                "no verification wanted",
                json!({"bootstrapToken": {"unsafeSkipCAVerification": true}}),
                Some(json!({"token": "new", "apiServerEndpoint": "e:6443", "unsafeSkipCAVerification": true})),
            ),
            ("a file", json!({"file": {"kubeConfigPath": "/k"}}), None),
        ] {
            let given = given.as_object().unwrap();
            let hash = wants_ca(given).then_some("sha256:h");
            let expected = persisted.map_or(Plan::Complete, |token| Plan::Persist(token.as_object().unwrap().clone()));
            assert_eq!(decide(given, "e:6443", hash, || "new".into()), expected, "{what}");
        }
    }

    #[test]
    fn a_described_kubeconfig_becomes_a_file_with_the_clusters_own_endpoint_and_ca() {
        let given = json!({"file": {"kubeConfigPath": "/k", "kubeConfig": {"user": {"exec": {"command": "login", "args": ["a"]}}}}});
        let file = kubeconfig(given.as_object().unwrap(), "e:6443", Some("pem")).unwrap().unwrap();
        let read: Value = serde_saphyr::from_str(&file.content).unwrap();
        assert_eq!(
            read["clusters"][0]["cluster"],
            json!({"server": "https://e:6443", "certificate-authority-data": "cGVt"})
        );
        assert_eq!(
            read["users"][0]["user"]["exec"],
            json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "args": ["a"], "interactiveMode": "Never"})
        );
        assert_eq!(
            kubeconfig(json!({"file": {"kubeConfigPath": "/k"}}).as_object().unwrap(), "e", None).unwrap(),
            None
        );
    }
}

//! How a joining machine finds and trusts the API server: `discovery` of a JoinConfiguration.
//!
//! What the user gave is respected. Otherwise it is a bootstrap token with the endpoint and the hash of the cluster's CA,
//! remembered in the KubeadmConfig, so that a repeated pass uses the same token: the host writes the KubeadmConfig before
//! it lets the token in.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{Problem, object};
use serde_json::{Map, Value, json};

use crate::userdata::WriteFile;
use crate::yaml;

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

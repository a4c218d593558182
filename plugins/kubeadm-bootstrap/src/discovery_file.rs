//! The kubeconfig with which a machine finds the API server, where the user describes it: `discovery.file` of a
//! JoinConfiguration.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{Problem, object};
use serde_json::{Map, Value, json};

use crate::userdata::WriteFile;
use capwasm_yaml::write;

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
    Ok(Some(WriteFile::of_root(path, "0640", write::document(&document))))
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

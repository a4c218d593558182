//! Approves and signs certificate requests with the signer that the configuration names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::config::SigningRequest;
use crate::identity::Identity;
use crate::registry::{Edit, Part, Registry, WriteOptions};
use crate::status::ApiResult;

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) async fn reconcile(registry: &Registry, name: &str) -> ApiResult<()> {
    let Some(signer) = &registry.config.signer else { return Ok(()) };
    let at = registry.locate("certificates.k8s.io", "certificatesigningrequests", "", name)?;
    let Some(csr) = registry.find(&at)? else { return Ok(()) };
    let has = |kind: &str| {
        csr.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten().any(|c| c["type"] == kind)
    };
    if csr.pointer("/status/certificate").is_some() || has("Denied") || has("Failed") {
        return Ok(());
    }
    let pem = csr["spec"]["request"]
        .as_str()
        .and_then(|text| STANDARD.decode(text).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let request = SigningRequest {
        csr_pem: pem.unwrap_or_default(),
        signer: csr["spec"]["signerName"].as_str().unwrap_or_default().to_owned(),
        requester: Identity {
            user: csr["spec"]["username"].as_str().unwrap_or_default().to_owned(),
            groups: texts(&csr["spec"]["groups"]),
        },
        usages: texts(&csr["spec"]["usages"]),
    };
    let (kind, reason, message, certificate) = match signer.sign(&request) {
        Ok(None) => return Ok(()),
        Ok(Some(certificate)) => {
            ("Approved", "AutoApproved", "Auto approving kubelet client certificate.".to_owned(), Some(certificate))
        }
        Err(why) => ("Failed", "SigningFailed", why, None),
    };
    let now = registry.config.clock.stamp();
    let sign = |object: &mut Value| {
        if !object["status"].is_object() {
            object["status"] = json!({});
        }
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|condition| condition["type"] != kind);
        conditions.push(json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": now, "lastTransitionTime": now}));
        object["status"]["conditions"] = json!(conditions);
        if let Some(certificate) = &certificate {
            object["status"]["certificate"] = json!(STANDARD.encode(certificate));
        }
    };
    match registry.update(&at, Part::Status, &WriteOptions::internal("csr-signer"), &Edit::Own(&sign)).await {
        Err(error) if error.code != 404 => Err(error),
        _ => Ok(()),
    }
}

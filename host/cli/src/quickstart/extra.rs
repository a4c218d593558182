//! `--provider` and `--sample`: a provider of the user's, and objects to see that it works.

use anyhow::{Context, Result};
use capwasm_api::conditions;
use capwasm_contract::descriptor::{Descriptor, Role};
use capwasm_object::{json, meta};
use serde_json::Value;

use super::progress::Progress;
use super::sample;

/// Waits until all sample objects of the providers' kinds are provisioned.
pub async fn settled(
    client: &kube::Client,
    manifests: &str,
    providers: &[Descriptor],
    progress: &Progress,
) -> Result<()> {
    for document in sample::documents(manifests)? {
        let Some(role) = role(&document, providers) else { continue };
        let (kind, name) = (meta::kind(&document), meta::name(&document));
        let api = sample::api_of(client, &document)?;
        let done = |object: Option<&kube::api::DynamicObject>| {
            object.is_some_and(|object| is_settled(role, &serde_json::json!({"status": object.data.get("status")})))
        };
        kube::runtime::wait::await_condition(api, name, done)
            .await
            .with_context(|| format!("unable to watch {kind} {name}"))?;
        progress.say(&format!("{kind} {name}: ready"));
    }
    Ok(())
}

/// Sample objects that are not provisioned, and why, as text.
pub async fn unsettled(client: &kube::Client, manifests: &str, providers: &[Descriptor]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for document in sample::documents(manifests)? {
        let Some(role) = role(&document, providers) else { continue };
        let (kind, name) = (meta::kind(&document), meta::name(&document));
        let object = sample::api_of(client, &document)?.get_opt(name).await?;
        let object = object.map(serde_json::to_value).transpose()?.unwrap_or_default();
        if !is_settled(role, &object) {
            let why = conditions::get(&object, "Ready").map(|ready| format!("{}: {}", ready.reason, ready.message));
            lines.push(format!("{kind} {name}: {}", why.unwrap_or_else(|| "nothing says why".to_owned())));
        }
    }
    Ok(lines)
}

/// The role of a document's kind, if one of the providers reconciles it.
fn role(document: &Value, providers: &[Descriptor]) -> Option<Role> {
    let group = json::text(document, "/apiVersion")?.split_once('/')?.0;
    let kinds = providers.iter().flat_map(|provider| &provider.kinds);
    let found = kinds.into_iter().find(|kind| kind.group == group && kind.kind == meta::kind(document));
    found.map(|kind| kind.role).filter(|role| *role != Role::Template)
}

fn is_settled(role: Role, object: &Value) -> bool {
    match role {
        // Whether it is available it says by itself, if at all.
        Role::ControlPlane => json::flag(object, "/status/initialization/controlPlaneInitialized") == Some(true),
        _ => conditions::is_true(object, "Ready"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_of_the_providers_reconciled_kinds_are_waited_for() {
        let kind = |role: &str, kind: &str| json!({"role": role, "group": "g.example", "kind": kind, "version": "v1", "crd": {}});
        let kinds = [kind("controller", "A"), kind("template", "T"), kind("control-plane", "P")];
        let provider: Descriptor =
            serde_json::from_value(json!({"name": "p", "version": "1", "contract": "0.1", "kinds": kinds})).unwrap();
        let of = |version: &str, kind: &str| {
            role(&json!({"apiVersion": version, "kind": kind}), std::slice::from_ref(&provider))
        };
        assert_eq!(of("g.example/v1", "A"), Some(Role::Controller));
        assert_eq!(of("g.example/v1", "T"), None);
        assert_eq!(of("h.example/v1", "A"), None);
        assert_eq!(of("v1", "A"), None);
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert!(is_settled(Role::Controller, &ready) && !is_settled(Role::ControlPlane, &ready));
        let initialized = json!({"status": {"initialization": {"controlPlaneInitialized": true}}});
        assert!(is_settled(Role::ControlPlane, &initialized));
    }
}

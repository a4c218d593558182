//! Webhook configurations: the kinds for which the API server calls the webhook.

use capwasm_providers::AdmittedKind;
use serde_json::{Value, json};

use super::address::Address;

/// Name of both configurations.
pub const NAME: &str = "capwasm";
/// Path of conversions.
pub const CONVERT: &str = "/convert";
/// Path of defaulting.
pub const DEFAULT: &str = "/admit/default";
/// Path of validation.
pub const VALIDATE: &str = "/admit/validate";

/// Longer than a provider may take, shorter than clients wait.
const TIMEOUT_SECONDS: u32 = 15;

/// Kind of a webhook configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Defaulting.
    Mutating,
    /// Validation.
    Validating,
}

impl Kind {
    /// Kind in the API.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Mutating => "MutatingWebhookConfiguration",
            Kind::Validating => "ValidatingWebhookConfiguration",
        }
    }
}

/// The configuration for server-side apply, with a webhook for each kind.
pub fn of(kind: Kind, admitted: &[AdmittedKind], address: &Address, bundle: &str) -> Value {
    let path = match kind {
        Kind::Mutating => DEFAULT,
        Kind::Validating => VALIDATE,
    };
    let mut client_config = address.client_config(path, bundle);
    // An applied configuration says what there is, and nothing of what is not.
    if let Some(fields) = client_config.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    let webhooks: Vec<Value> = admitted.iter().map(|admitted| webhook(kind, admitted, &client_config)).collect();
    let metadata = json!({"name": NAME});
    let mut wanted =
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.name(), "metadata": metadata});
    // An API server takes an empty list for a change each time that it is applied.
    if !webhooks.is_empty() {
        wanted["webhooks"] = webhooks.into();
    }
    wanted
}

fn webhook(kind: Kind, admitted: &AdmittedKind, client_config: &Value) -> Value {
    let mut webhook = json!({
        "name": format!("{}.{}", admitted.plural, admitted.group),
        "clientConfig": client_config,
        "rules": [{
            "apiGroups": [admitted.group], "apiVersions": [admitted.version], "resources": [admitted.plural],
            "operations": ["CREATE", "UPDATE"], "scope": "*",
        }],
        // Whatever version a client speaks, the provider is asked in its own.
        "matchPolicy": "Equivalent",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
        // What is being deleted must be able to go, whatever is wrong with it or with its provider.
        "matchConditions": [{"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"}],
    });
    if kind == Kind::Mutating {
        webhook["reinvocationPolicy"] = json!("IfNeeded");
    }
    webhook
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn each_admitted_kind_is_asked_about_in_its_providers_version() {
        let kind = AdmittedKind {
            group: "infrastructure.example.org".into(),
            kind: "Box".into(),
            version: "v1beta2".into(),
            plural: "boxes".into(),
            provider: "boxes".into(),
        };
        let address = Address::Url("https://localhost:1".parse().unwrap());
        let mutating = of(Kind::Mutating, std::slice::from_ref(&kind), &address, "PEM");
        let webhook = &mutating["webhooks"][0];
        assert_eq!(webhook["name"], "boxes.infrastructure.example.org");
        assert_eq!(webhook["clientConfig"], json!({"url": "https://localhost:1/admit/default", "caBundle": "UEVN"}));
        assert_eq!((&webhook["failurePolicy"], &webhook["matchPolicy"]), (&json!("Fail"), &json!("Equivalent")));
        let validating = of(Kind::Validating, &[kind], &address, "PEM");
        assert_eq!(validating["webhooks"][0]["clientConfig"]["url"], "https://localhost:1/admit/validate");
        assert_eq!(validating["webhooks"][0].get("reinvocationPolicy"), None);
        assert_eq!(of(Kind::Validating, &[], &address, "PEM").get("webhooks"), None);
    }
}

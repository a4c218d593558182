//! Compares machine templates.

use capwasm_api::kinds::{Bootstrap, ContractReference, MachineSpec};

/// Differences of `current` from `wanted` that need a replacement, as text. Fields that can be changed on existing
/// Machines (metadata, timeouts, readiness gates, taints) do not count.
pub(crate) fn differences(current: &MachineSpec, wanted: &MachineSpec) -> Vec<String> {
    let mut found = Vec::new();
    if current.version != wanted.version {
        let text = |version: &Option<String>| version.clone().unwrap_or_else(|| "none".to_owned());
        found.push(format!("Version {}, {} required", text(&current.version), text(&wanted.version)));
    }
    if current.failure_domain != wanted.failure_domain {
        let text = |domain: &Option<String>| domain.clone().unwrap_or_else(|| "none".to_owned());
        found.push(format!(
            "Failure domain {}, {} required",
            text(&current.failure_domain),
            text(&wanted.failure_domain)
        ));
    }
    if current.bootstrap != wanted.bootstrap {
        found.push(format!("Bootstrap {}, {} required", bootstrap(&current.bootstrap), bootstrap(&wanted.bootstrap)));
    }
    if current.infrastructure_ref != wanted.infrastructure_ref {
        found.push(format!(
            "Infrastructure {}, {} required",
            reference(&current.infrastructure_ref),
            reference(&wanted.infrastructure_ref)
        ));
    }
    found
}

fn bootstrap(bootstrap: &Bootstrap) -> String {
    match (&bootstrap.config_ref, &bootstrap.data_secret_name) {
        (Some(config), _) => reference(config),
        (None, Some(secret)) => format!("Secret {secret}"),
        (None, None) => "none".to_owned(),
    }
}

fn reference(reference: &ContractReference) -> String {
    format!("{} {}", reference.kind, reference.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::{Value, json};

    fn spec(value: Value) -> MachineSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_version_bootstrap_infrastructure_and_failure_domain_replace_machines() {
        let base = json!({"clusterName": "c", "version": "v1.36.0", "bootstrap": {"configRef": {"apiGroup": "b", "kind": "T", "name": "t"}}, "infrastructureRef": {"apiGroup": "i", "kind": "I", "name": "i"}});
        let with = |key: &str, value: Value| {
            let mut changed = base.clone();
            changed[key] = value;
            differences(&spec(base.clone()), &spec(changed))
        };
        assert!(with("minReadySeconds", json!(5)).is_empty());
        assert!(with("deletion", json!({"nodeDrainTimeoutSeconds": 5})).is_empty());
        assert!(with("taints", json!([{"key": "k", "effect": "NoSchedule", "propagation": "Always"}])).is_empty());
        assert_eq!(with("version", json!("v1.37.0")), ["Version v1.36.0, v1.37.0 required"]);
        assert_eq!(with("failureDomain", json!("a")), ["Failure domain none, a required"]);
        assert_eq!(
            with("infrastructureRef", json!({"apiGroup": "i", "kind": "I", "name": "j"})),
            ["Infrastructure I i, I j required"]
        );
        assert_eq!(with("bootstrap", json!({"dataSecretName": "s"})), ["Bootstrap T t, Secret s required"]);
    }
}

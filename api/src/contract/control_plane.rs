//! Control planes.

use serde_json::Value;

use super::Contract;
use crate::json;
use crate::kinds::VersionCount;

/// Whether the first API server has been reachable. The v1beta1 contract has two flags for it.
pub fn initialized(object: &Value, contract: Contract) -> bool {
    match contract {
        Contract::V1Beta1 => {
            json::flag(object, "/status/initialized") == Some(true) || json::flag(object, "/status/ready") == Some(true)
        }
        Contract::V1Beta2 => json::flag(object, "/status/initialization/controlPlaneInitialized") == Some(true),
    }
}

/// Path of [`initialized`], for messages.
pub fn initialized_path(contract: Contract) -> &'static str {
    match contract {
        Contract::V1Beta1 => "status.initialized",
        Contract::V1Beta2 => "status.initialization.controlPlaneInitialized",
    }
}

/// Whether its machines are none of ours.
pub fn externally_managed(object: &Value) -> bool {
    json::flag(object, "/status/externalManagedControlPlane") == Some(true)
}

/// The wanted Kubernetes version.
pub fn version(object: &Value) -> Option<&str> {
    json::text(object, "/spec/version")
}

/// The lowest version that runs.
pub fn observed_version(object: &Value) -> Option<&str> {
    json::text(object, "/status/version")
}

/// Versions that run, with the number of machines of each.
pub fn versions(object: &Value) -> Vec<VersionCount> {
    json::items(object, "/status/versions")
        .iter()
        .filter_map(|entry| {
            Some(VersionCount {
                version: json::text(entry, "/version")?.to_owned(),
                replicas: json::number(entry, "/replicas").and_then(|count| i32::try_from(count).ok()).unwrap_or(0),
            })
        })
        .collect()
}

/// Replica counters, those that the provider reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// `spec.replicas`.
    pub desired: Option<i64>,
    /// All.
    pub replicas: Option<i64>,
    /// Ready.
    pub ready: Option<i64>,
    /// Available.
    pub available: Option<i64>,
    /// Up to date.
    pub up_to_date: Option<i64>,
}

/// The replica counters; v1beta1 counts what is updated and what is not available.
pub fn counters(object: &Value, contract: Contract) -> Counters {
    let status = |name: &str| json::number(object, &format!("/status/{name}"));
    let replicas = status("replicas");
    let (available, up_to_date) = match contract {
        Contract::V1Beta1 => (
            replicas
                .zip(status("unavailableReplicas"))
                .map(|(all, without)| all.saturating_sub(without).max(0))
                .or(status("readyReplicas")),
            status("updatedReplicas"),
        ),
        Contract::V1Beta2 => (status("availableReplicas"), status("upToDateReplicas")),
    };
    Counters {
        desired: json::number(object, "/spec/replicas"),
        replicas,
        ready: status("readyReplicas"),
        available,
        up_to_date,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn r7_initialized_is_read_by_contract() {
        for (what, object, contract, expected) in [
            (
                "v1beta2",
                json!({"status": {"initialization": {"controlPlaneInitialized": true}}}),
                Contract::V1Beta2,
                true,
            ),
            (
                "v1beta2 object without it",
                json!({"status": {"initialized": true, "ready": true}}),
                Contract::V1Beta2,
                false,
            ),
            ("v1beta1 initialized", json!({"status": {"initialized": true}}), Contract::V1Beta1, true),
            ("v1beta1 ready", json!({"status": {"ready": true}}), Contract::V1Beta1, true),
            (
                "v1beta1 initialized, not ready since",
                json!({"status": {"initialized": true, "ready": false}}),
                Contract::V1Beta1,
                true,
            ),
            ("nothing", json!({}), Contract::V1Beta1, false),
        ] {
            assert_eq!(initialized(&object, contract), expected, "{what}");
        }
    }

    #[test]
    fn counters_are_read_by_contract() {
        let object = json!({"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 2, "unavailableReplicas": 1, "updatedReplicas": 3, "availableReplicas": 1, "upToDateReplicas": 0}});
        let old = counters(&object, Contract::V1Beta1);
        assert_eq!((old.available, old.up_to_date), (Some(2), Some(3)));
        let new = counters(&object, Contract::V1Beta2);
        assert_eq!((new.available, new.up_to_date), (Some(1), Some(0)));
        let absurd = json!({"status": {"replicas": i64::MIN, "unavailableReplicas": 1}});
        assert_eq!(counters(&absurd, Contract::V1Beta1).available, Some(0), "whatever a provider reports");
    }
}

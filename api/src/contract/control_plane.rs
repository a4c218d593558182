//! Control planes.

use capwasm_object::json;
use serde_json::Value;

use super::infrastructure::endpoint;
use super::{Contract, Milestone, Report};
use crate::kinds::{Endpoint, ReplicaCounts, VersionCount};

/// Report of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlPlane {
    /// Whether its first API server has been reachable.
    pub initialized: bool,
    /// Endpoint of the API server, if host and port are set.
    pub endpoint: Option<Endpoint>,
    /// Whether it is managed externally, without Machines.
    pub externally_managed: bool,
    /// `spec.version`: the wanted Kubernetes version.
    pub version: Option<String>,
    /// `status.version`: the lowest Kubernetes version of its machines.
    pub observed_version: Option<String>,
    /// Replicas and versions.
    pub counts: ReplicaCounts,
}

impl Report for ControlPlane {
    fn read(object: &Value, contract: Contract) -> ControlPlane {
        let text = |pointer| json::text(object, pointer).map(str::to_owned);
        ControlPlane {
            initialized: initialized(object, contract),
            endpoint: endpoint(object),
            externally_managed: json::flag(object, "/status/externalManagedControlPlane") == Some(true),
            version: text("/spec/version"),
            observed_version: text("/status/version"),
            counts: counts(object, contract),
        }
    }
}

impl Milestone for ControlPlane {
    fn flag(contract: Contract) -> &'static str {
        match contract {
            Contract::V1Beta1 => "status.initialized",
            Contract::V1Beta2 => "status.initialization.controlPlaneInitialized",
        }
    }
}

/// Whether the first API server has been reachable. Contract v1beta1 has two flags for it.
fn initialized(object: &Value, contract: Contract) -> bool {
    match contract {
        Contract::V1Beta1 => {
            json::flag(object, "/status/initialized") == Some(true) || json::flag(object, "/status/ready") == Some(true)
        }
        Contract::V1Beta2 => json::flag(object, "/status/initialization/controlPlaneInitialized") == Some(true),
    }
}

/// Versions of the machines, with their number.
fn versions(object: &Value) -> Vec<VersionCount> {
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

/// Replica counters of a control plane or a group of workers; v1beta1 has updated and unavailable ones instead.
pub fn counts(object: &Value, contract: Contract) -> ReplicaCounts {
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
    ReplicaCounts {
        desired_replicas: json::number(object, "/spec/replicas"),
        replicas,
        up_to_date_replicas: up_to_date,
        ready_replicas: status("readyReplicas"),
        available_replicas: available,
        versions: versions(object),
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
        let old = counts(&object, Contract::V1Beta1);
        assert_eq!((old.available_replicas, old.up_to_date_replicas), (Some(2), Some(3)));
        let new = counts(&object, Contract::V1Beta2);
        assert_eq!((new.available_replicas, new.up_to_date_replicas), (Some(1), Some(0)));
        let absurd = json!({"status": {"replicas": i64::MIN, "unavailableReplicas": 1}});
        assert_eq!(counts(&absurd, Contract::V1Beta1).available_replicas, Some(0), "whatever a provider reports");
    }
}

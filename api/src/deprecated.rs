//! Status of v1beta1, computed from v1beta2: conditions with severities, and counters.
//!
//! Pure, and computed when an object is read in v1beta1 (see [`crate::conversion`]), so that nobody has to store it.
//! What
//! does not follow from the v1beta2 object is left out.

use capwasm_object::json;
use serde_json::{Map, Value, json};

use crate::names::{condition, reason};

/// Longest message of a v1beta1 condition.
const LONGEST_MESSAGE: usize = 10_240;

/// `status.deprecated.v1beta1` of a core object in v1beta2; empty for other kinds.
pub fn v1beta1_status(kind: &str, object: &Value) -> Value {
    match kind {
        "Cluster" => cluster(object),
        "Machine" => machine(object),
        "MachineSet" => machine_set(object),
        "MachineDeployment" => machine_deployment(object),
        "MachinePool" => machine_pool(object),
        _ => json!({}),
    }
}

pub(crate) fn cluster(object: &Value) -> Value {
    let parts = [
        old(object, condition::CONTROL_PLANE_INITIALIZED, "ControlPlaneInitialized"),
        old(object, condition::CONTROL_PLANE_AVAILABLE, "ControlPlaneReady"),
        old(object, condition::INFRASTRUCTURE_READY, "InfrastructureReady"),
        old(object, condition::TOPOLOGY_RECONCILED, "TopologyReconciled"),
    ];
    // Initialization is no part of readiness: it stays true when the control plane is lost.
    let ready = summary(parts[1..].iter().flatten());
    status(ready.into_iter().chain(parts.into_iter().flatten()), [])
}

pub(crate) fn machine(object: &Value) -> Value {
    let parts = [
        old(object, condition::BOOTSTRAP_CONFIG_READY, "BootstrapReady"),
        old(object, condition::INFRASTRUCTURE_READY, "InfrastructureReady"),
        old(object, condition::HEALTH_CHECK_SUCCEEDED, "HealthCheckSucceeded"),
        old(object, condition::OWNER_REMEDIATED, "OwnerRemediated"),
    ];
    let node = old(object, condition::NODE_HEALTHY, "NodeHealthy");
    let ready = summary(parts.iter().flatten());
    status(ready.into_iter().chain(parts.into_iter().flatten()).chain(node), [])
}

pub(crate) fn machine_set(object: &Value) -> Value {
    let parts = [resized(object), old(object, condition::MACHINES_READY, "MachinesReady")];
    let ready = summary(parts.iter().flatten());
    let labelled = number(object, "replicas");
    status(
        ready.into_iter().chain(parts.into_iter().flatten()),
        [
            ("fullyLabeledReplicas", labelled),
            ("readyReplicas", number(object, "readyReplicas")),
            ("availableReplicas", number(object, "availableReplicas")),
        ],
    )
}

pub(crate) fn machine_deployment(object: &Value) -> Value {
    let available = old(object, condition::AVAILABLE, "Available");
    let machines = old(object, condition::MACHINES_READY, "MachineSetReady");
    let ready = summary(available.iter());
    let counters = [
        ("readyReplicas", number(object, "readyReplicas")),
        ("availableReplicas", number(object, "availableReplicas")),
        ("updatedReplicas", number(object, "upToDateReplicas")),
        ("unavailableReplicas", unavailable(object)),
    ];
    status(ready.into_iter().chain(available).chain(machines), counters)
}

pub(crate) fn machine_pool(object: &Value) -> Value {
    let parts = [
        old(object, condition::BOOTSTRAP_CONFIG_READY, "BootstrapReady"),
        old(object, condition::INFRASTRUCTURE_READY, "InfrastructureReady"),
    ];
    let ready = summary(parts.iter().flatten());
    let counters = [
        ("readyReplicas", number(object, "readyReplicas")),
        ("availableReplicas", number(object, "availableReplicas")),
        ("unavailableReplicas", unavailable(object)),
    ];
    status(ready.into_iter().chain(parts.into_iter().flatten()), counters)
}

fn status<const N: usize>(
    conditions: impl IntoIterator<Item = Value>,
    counters: [(&'static str, Option<i64>); N],
) -> Value {
    let mut status = Map::new();
    let conditions: Vec<Value> = conditions.into_iter().collect();
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
    for (name, value) in counters {
        status.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    Value::Object(status)
}

fn number(object: &Value, field: &str) -> Option<i64> {
    json::number(object, &format!("/status/{field}"))
}

fn unavailable(object: &Value) -> Option<i64> {
    Some((number(object, "replicas")? - number(object, "availableReplicas")?).max(0))
}

fn find<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    json::items(object, "/status/conditions").iter().find(|condition| condition["type"] == name)
}

/// A v1beta2 condition with its v1beta1 type.
fn old(object: &Value, name: &str, old_name: &str) -> Option<Value> {
    let found = find(object, name)?;
    write(old_name, found.get("status")?.as_str()?, found)
}

/// `Resized`: the set is neither scaling up nor down.
fn resized(object: &Value) -> Option<Value> {
    let moving = [condition::SCALING_UP, condition::SCALING_DOWN].map(|name| find(object, name));
    let is = |status: &str| moving.iter().flatten().copied().find(|found| found["status"] == status);
    match (is("True"), is("Unknown"), moving) {
        (Some(found), ..) => write("Resized", "False", found),
        (None, Some(found), _) => write("Resized", "Unknown", found),
        (None, None, [Some(up), Some(down)]) => {
            let last = [up, down].into_iter().max_by_key(|found| found["lastTransitionTime"].as_str())?;
            write("Resized", "True", last)
        }
        _ => None,
    }
}

fn write(name: &str, status: &str, from: &Value) -> Option<Value> {
    let text = |key: &str| from.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut map = Map::from_iter([
        ("type".to_owned(), Value::from(name)),
        ("status".to_owned(), status.into()),
        ("lastTransitionTime".to_owned(), text("lastTransitionTime")?.into()),
    ]);
    // Old conditions say nothing more when they hold.
    if status != "True" {
        let word = text("reason").unwrap_or(reason::NO_REASON_REPORTED);
        map.insert("reason".to_owned(), word.chars().take(256).collect::<String>().into());
        if status == "False" {
            map.insert("severity".to_owned(), severity(word).into());
        }
        if let Some(message) = text("message") {
            map.insert("message".to_owned(), message.chars().take(LONGEST_MESSAGE).collect::<String>().into());
        }
    }
    Some(Value::Object(map))
}

/// `Info` for what is in progress, `Error` for failures of core or of a provider, else `Warning`.
fn severity(word: &str) -> &'static str {
    const UNDER_WAY: [&str; 9] = [
        reason::NOT_YET_REPORTED,
        reason::DOES_NOT_EXIST,
        reason::DELETING,
        reason::DELETED,
        reason::NOT_INITIALIZED,
        reason::SCALING_UP,
        reason::SCALING_DOWN,
        reason::ROLLING_OUT,
        reason::PAUSED,
    ];
    match word {
        reason::INTERNAL_ERROR | reason::INSPECTION_FAILED => "Error",
        _ if UNDER_WAY.contains(&word) || word.starts_with("Waiting") || word.ends_with("DoesNotExist") => "Info",
        _ if word.ends_with("Failed") || word.ends_with("Error") => "Error",
        _ => "Warning",
    }
}

/// `Ready`, which is the worst of its parts that is not True.
fn summary<'a>(parts: impl IntoIterator<Item = &'a Value>) -> Option<Value> {
    let parts: Vec<&Value> = parts.into_iter().collect();
    let worst = ["Error", "Warning", "Info"]
        .iter()
        .find_map(|severity| parts.iter().find(|part| part["severity"] == **severity))
        .or_else(|| parts.iter().find(|part| part["status"] != "True"))
        .copied();
    let last = parts.iter().max_by_key(|part| part["lastTransitionTime"].as_str()).copied();
    let mut ready = worst.or(last)?.clone();
    ready["type"] = condition::READY.into();
    Some(ready)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn condition(name: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    /// Type, status and severity of each condition.
    fn short(status: &Value) -> Vec<String> {
        json::items(status, "/conditions")
            .iter()
            .map(|c| {
                let severity = c.get("severity").and_then(Value::as_str).map_or(String::new(), |s| format!(" {s}"));
                format!("{}={}{severity}", c["type"].as_str().unwrap(), c["status"].as_str().unwrap())
            })
            .collect()
    }

    #[test]
    fn a_cluster_is_ready_when_its_control_plane_and_infrastructure_are() {
        let all = |infrastructure, control_plane| {
            json!({"status": {"conditions": [
                condition("InfrastructureReady", infrastructure, "Waiting", "soon"),
                condition("ControlPlaneInitialized", "True", "Initialized", ""),
                condition("ControlPlaneAvailable", control_plane, "NotAvailable", "lost"),
                condition("Paused", "False", "NotPaused", ""),
            ]}})
        };
        assert_eq!(
            short(&v1beta1_status("Cluster", &all("True", "True"))),
            ["Ready=True", "ControlPlaneInitialized=True", "ControlPlaneReady=True", "InfrastructureReady=True"]
        );
        let broken = v1beta1_status("Cluster", &all("False", "False"));
        assert_eq!(
            short(&broken),
            [
                "Ready=False Warning",
                "ControlPlaneInitialized=True",
                "ControlPlaneReady=False Warning",
                "InfrastructureReady=False Info"
            ]
        );
        assert_eq!(broken["conditions"][0]["message"], "lost");
        assert_eq!(broken["conditions"][1].get("reason"), None, "what holds needs no reason");
        assert_eq!(short(&v1beta1_status("Cluster", &all("True", "Unknown")))[0], "Ready=Unknown");
    }

    #[test]
    fn nothing_is_said_of_what_v1beta2_does_not_tell() {
        for kind in ["Cluster", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "ClusterClass"] {
            for object in [json!({}), json!({"status": {}}), json!({"status": {"conditions": "x", "replicas": "x"}})] {
                assert_eq!(v1beta1_status(kind, &object), json!({}), "{kind}");
            }
        }
    }

    #[test]
    fn a_machine_names_its_parts_as_before() {
        let object = json!({"status": {"conditions": [
            condition("Ready", "False", "NotReady", ""),
            condition("BootstrapConfigReady", "True", "Ready", ""),
            condition("InfrastructureReady", "False", "InternalError", "x"),
            condition("NodeHealthy", "Unknown", "NodeHealthUnknown", ""),
        ]}});
        assert_eq!(
            short(&v1beta1_status("Machine", &object)),
            ["Ready=False Error", "BootstrapReady=True", "InfrastructureReady=False Error", "NodeHealthy=Unknown"]
        );
    }

    #[test]
    fn counters_keep_their_old_names() {
        let object =
            json!({"status": {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3}});
        assert_eq!(
            v1beta1_status("MachineDeployment", &object),
            json!({"readyReplicas": 2, "availableReplicas": 1, "updatedReplicas": 3, "unavailableReplicas": 2})
        );
        assert_eq!(
            v1beta1_status("MachineSet", &object),
            json!({"readyReplicas": 2, "availableReplicas": 1, "fullyLabeledReplicas": 3})
        );
    }

    #[test]
    fn a_set_is_resized_when_it_stands_still() {
        let object = |up, down| {
            json!({"status": {"conditions": [
                condition("ScalingUp", up, "ScalingUp", "1 to 3"), condition("ScalingDown", down, "NotScalingDown", ""),
            ]}})
        };
        assert_eq!(short(&v1beta1_status("MachineSet", &object("False", "False"))), ["Ready=True", "Resized=True"]);
        assert_eq!(
            short(&v1beta1_status("MachineSet", &object("True", "False"))),
            ["Ready=False Info", "Resized=False Info"]
        );
    }
}

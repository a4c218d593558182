//! A static pod.

use capwasm_api::names::reason;
use capwasm_object::json;
use capwasm_sdk::object;
use serde_json::Value;

use super::Verdict;
use crate::names::reason as own;

/// What is to be said of a pod, or of its absence.
pub fn verdict(pod: Option<&Value>) -> Verdict {
    let Some(pod) = pod else { return (Some(false), reason::DOES_NOT_EXIST, "Pod does not exist".to_owned()) };
    let failed = |message: String| (Some(false), own::FAILED, message);
    let provisioning = |message: &str| (Some(false), own::PROVISIONING, message.to_owned());
    match object::text(pod, "/status/phase") {
        "Running" if object::is_true(pod, "Ready") => (Some(true), own::RUNNING, String::new()),
        "Running" => {
            let waiting = reasons(pod, "/state/waiting/reason");
            let terminated = reasons(pod, "/state/terminated/reason");
            match (waiting.is_empty(), terminated.is_empty()) {
                // A container that is started again waits, but it is known to have failed.
                (false, _) if crashed(pod) => failed(waiting.join(", ")),
                (false, _) => provisioning(&waiting.join(", ")),
                (true, false) => failed(terminated.join(", ")),
                (true, true) => provisioning("Waiting for startup or readiness probes"),
            }
        }
        "Pending" if !object::is_true(pod, "PodScheduled") => provisioning("Waiting to be scheduled"),
        "Pending" if !object::is_true(pod, "Initialized") => provisioning("Running init containers"),
        "Pending" => provisioning("Pod is pending"),
        "Succeeded" | "Failed" => failed("All the containers have been terminated".to_owned()),
        _ => (None, reason::INSPECTION_FAILED, "Pod is reporting Unknown status".to_owned()),
    }
}

fn containers(pod: &Value) -> &[Value] {
    json::items(pod, "/status/containerStatuses")
}

fn reasons(pod: &Value, pointer: &str) -> Vec<String> {
    let all = containers(pod).iter().map(|container| object::text(container, pointer).to_owned());
    all.filter(|reason| !reason.is_empty()).collect()
}

fn crashed(pod: &Value) -> bool {
    let code = |container: &Value| json::at(container, "/lastState/terminated/exitCode").and_then(Value::as_i64);
    containers(pod).iter().any(|container| code(container).is_some_and(|code| code != 0))
}

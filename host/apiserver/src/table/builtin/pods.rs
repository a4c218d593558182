//! Cells of pods. `STATUS` sums up phase, conditions and containers in one word.

use serde_json::{Value, json};

use super::super::human_duration;

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn is_ready(status: &Value) -> bool {
    status.get("ready").and_then(Value::as_bool) == Some(true)
}

pub(super) fn ready(pod: &Value, _: i64) -> Value {
    let ready = list(pod, "/status/containerStatuses").iter().filter(|status| is_ready(status)).count();
    json!(format!("{ready}/{}", list(pod, "/spec/containers").len()))
}

/// Reason for which a container waits or ended.
fn reason(status: &Value) -> Option<String> {
    if let Some(reason) = text(status, "/state/waiting/reason") {
        return Some(reason.to_owned());
    }
    let ended = status.pointer("/state/terminated")?;
    if let Some(reason) = text(ended, "/reason") {
        return Some(reason.to_owned());
    }
    let code = |field: &str| ended.get(field).and_then(Value::as_i64).unwrap_or(0);
    Some(match code("signal") {
        0 => format!("ExitCode:{}", code("exitCode")),
        signal => format!("Signal:{signal}"),
    })
}

pub(super) fn status(pod: &Value, _: i64) -> Value {
    let mut shown = text(pod, "/status/reason").or_else(|| text(pod, "/status/phase")).unwrap_or("Unknown").to_owned();
    let init = list(pod, "/status/initContainerStatuses");
    let unfinished = init.iter().enumerate().find(|(_, status)| {
        let done = status.pointer("/state/terminated/exitCode").and_then(Value::as_i64) == Some(0);
        // A sidecar has no end; it is through when it has started.
        let started =
            status.get("started").and_then(Value::as_bool) == Some(true) && status.pointer("/state/running").is_some();
        !done && !started
    });
    if let Some((index, container)) = unfinished {
        shown = match reason(container) {
            Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
            _ => format!("Init:{index}/{}", list(pod, "/spec/initContainers").len()),
        };
    } else {
        let mut running = false;
        for container in list(pod, "/status/containerStatuses").iter().rev() {
            match reason(container) {
                Some(reason) => shown = reason,
                None => running |= is_ready(container) && container.pointer("/state/running").is_some(),
            }
        }
        if shown == "Completed" && running {
            let ready = list(pod, "/status/conditions").iter().any(|condition| {
                text(condition, "/type") == Some("Ready") && text(condition, "/status") == Some("True")
            });
            shown = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }
    let deleting = text(pod, "/metadata/deletionTimestamp").is_some();
    let phase = text(pod, "/status/phase");
    if deleting && text(pod, "/status/reason") == Some("NodeLost") {
        shown = "Unknown".to_owned();
    } else if deleting && !matches!(phase, Some("Succeeded" | "Failed")) {
        shown = "Terminating".to_owned();
    }
    json!(shown)
}

pub(super) fn restarts(pod: &Value, now: i64) -> Value {
    let statuses = list(pod, "/status/containerStatuses");
    let count: i64 = statuses.iter().filter_map(|status| status.get("restartCount").and_then(Value::as_i64)).sum();
    let last = statuses
        .iter()
        .filter_map(|status| text(status, "/lastState/terminated/finishedAt")?.parse::<jiff::Timestamp>().ok())
        .max();
    json!(match last.filter(|_| count > 0) {
        Some(last) => format!("{count} ({} ago)", human_duration(now - last.as_second())),
        None => count.to_string(),
    })
}

pub(super) fn gates(pod: &Value, _: i64) -> Value {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return json!("<none>");
    }
    let met = gates.iter().filter(|gate| {
        let wanted = text(gate, "/conditionType");
        let conditions = list(pod, "/status/conditions");
        conditions
            .iter()
            .any(|condition| text(condition, "/type") == wanted && text(condition, "/status") == Some("True"))
    });
    json!(format!("{}/{}", met.count(), gates.len()))
}

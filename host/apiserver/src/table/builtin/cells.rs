//! Cells of the built-in columns, except those of pods.

use serde_json::{Value, json};

use super::super::human_duration;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn at(object: &Value, pointer: &str) -> Value {
    json!(text(object, pointer).unwrap_or_default())
}

pub(super) fn or_none(object: &Value, pointer: &str) -> Value {
    json!(text(object, pointer).unwrap_or(NONE))
}

pub(super) fn or_unknown(object: &Value, pointer: &str) -> Value {
    json!(text(object, pointer).unwrap_or(UNKNOWN))
}

pub(super) fn number(object: &Value, pointer: &str) -> Value {
    json!(object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0))
}

pub(super) fn ratio(object: &Value, part: &str, whole: &str) -> Value {
    json!(format!("{}/{}", number(object, part), number(object, whole)))
}

/// Age of the time at the first of these pointers that is set.
fn since(object: &Value, pointers: &[&str], now: i64) -> Value {
    let time = pointers.iter().find_map(|pointer| text(object, pointer)?.parse::<jiff::Timestamp>().ok());
    json!(time.map_or_else(|| UNKNOWN.to_owned(), |time| human_duration(now - time.as_second())))
}

pub(super) fn name(object: &Value, _: i64) -> Value {
    at(object, "/metadata/name")
}

pub(super) fn age(object: &Value, now: i64) -> Value {
    since(object, &["/metadata/creationTimestamp"], now)
}

pub(super) fn phase(object: &Value, _: i64) -> Value {
    at(object, "/status/phase")
}

pub(super) fn ty(object: &Value, _: i64) -> Value {
    at(object, "/type")
}

pub(super) fn data(object: &Value, _: i64) -> Value {
    let count = |field: &str| object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    json!(count("data") + count("binaryData"))
}

pub(super) fn secrets(object: &Value, _: i64) -> Value {
    json!(object.get("secrets").and_then(Value::as_array).map_or(0, Vec::len))
}

/// Formats labels as `a=b,c=d`.
pub(super) fn labels(labels: Option<&Value>) -> Value {
    let pairs: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    json!(if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") })
}

/// Covers Events of both groups, whose field names differ.
pub(super) fn event_last_seen(event: &Value, now: i64) -> Value {
    let pointers = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/firstTimestamp",
        "/metadata/creationTimestamp",
    ];
    since(event, &pointers, now)
}

pub(super) fn event_first_seen(event: &Value, now: i64) -> Value {
    since(event, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime", "/metadata/creationTimestamp"], now)
}

pub(super) fn event_reason(event: &Value, _: i64) -> Value {
    at(event, "/reason")
}

pub(super) fn event_object(event: &Value, _: i64) -> Value {
    let object = event.get("involvedObject").or_else(|| event.get("regarding")).unwrap_or(&Value::Null);
    let kind = text(object, "/kind").unwrap_or_default().to_lowercase();
    json!(match text(object, "/name") {
        Some(name) => format!("{kind}/{name}"),
        None => kind,
    })
}

pub(super) fn event_subobject(event: &Value, _: i64) -> Value {
    let path = text(event, "/involvedObject/fieldPath").or_else(|| text(event, "/regarding/fieldPath"));
    json!(path.unwrap_or_default())
}

pub(super) fn event_source(event: &Value, _: i64) -> Value {
    let component = text(event, "/source/component")
        .or_else(|| text(event, "/reportingComponent"))
        .or_else(|| text(event, "/reportingController"));
    let host = text(event, "/source/host").or_else(|| text(event, "/reportingInstance"));
    let parts: Vec<&str> = component.into_iter().chain(host).collect();
    json!(parts.join(", "))
}

pub(super) fn event_message(event: &Value, _: i64) -> Value {
    let message = text(event, "/message").or_else(|| text(event, "/note"));
    json!(message.unwrap_or_default().trim())
}

pub(super) fn event_count(event: &Value, _: i64) -> Value {
    let count = event.pointer("/series/count").or_else(|| event.get("count")).or_else(|| event.get("deprecatedCount"));
    json!(count.and_then(Value::as_i64).unwrap_or(1))
}

pub(super) fn node_status(node: &Value, _: i64) -> Value {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"));
    let mut status = match ready.and_then(|condition| condition.get("status")).and_then(Value::as_str) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    json!(status)
}

pub(super) fn node_roles(node: &Value, _: i64) -> Value {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role).filter(|role| !role.is_empty()),
            None if key == "kubernetes.io/role" => value.as_str().filter(|role| !role.is_empty()),
            None => None,
        })
        .collect();
    roles.sort_unstable();
    roles.dedup();
    json!(if roles.is_empty() { NONE.to_owned() } else { roles.join(",") })
}

pub(super) fn node_address(node: &Value, ty: &str) -> Value {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
    let found = addresses.into_iter().flatten().find(|address| address.get("type").and_then(Value::as_str) == Some(ty));
    json!(found.and_then(|address| text(address, "/address")).unwrap_or(NONE))
}

pub(super) fn service_external(service: &Value, _: i64) -> Value {
    let list = |pointer: &str| service.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    if text(service, "/spec/type") == Some("ExternalName") {
        return at(service, "/spec/externalName");
    }
    let ingress = list("/status/loadBalancer/ingress")
        .filter_map(|point| text(point, "/ip").or_else(|| text(point, "/hostname")));
    let addresses: Vec<&str> = ingress.chain(list("/spec/externalIPs").filter_map(Value::as_str)).collect();
    json!(match (addresses.is_empty(), text(service, "/spec/type")) {
        (false, _) => addresses.join(","),
        (true, Some("LoadBalancer")) => "<pending>".to_owned(),
        (true, _) => NONE.to_owned(),
    })
}

pub(super) fn service_ports(service: &Value, _: i64) -> Value {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let ports: Vec<String> = ports
        .into_iter()
        .flatten()
        .map(|port| {
            let protocol = text(port, "/protocol").unwrap_or("TCP");
            match port.get("nodePort").and_then(Value::as_i64).filter(|port| *port > 0) {
                Some(node_port) => format!("{}:{node_port}/{protocol}", number(port, "/port")),
                None => format!("{}/{protocol}", number(port, "/port")),
            }
        })
        .collect();
    json!(if ports.is_empty() { NONE.to_owned() } else { ports.join(",") })
}

pub(super) fn endpoints(endpoints: &Value, _: i64) -> Value {
    let list = |value: &Value, field: &str| value.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut shown = Vec::new();
    for subset in list(endpoints, "subsets") {
        let addresses = list(&subset, "addresses");
        let ports = list(&subset, "ports");
        for address in &addresses {
            let ip = text(address, "/ip").unwrap_or_default();
            if ports.is_empty() {
                shown.push(ip.to_owned());
            }
            shown.extend(ports.iter().map(|port| format!("{ip}:{}", number(port, "/port"))));
        }
    }
    json!(match shown.len() {
        0 => NONE.to_owned(),
        1..=3 => shown.join(","),
        many => format!("{} + {} more...", shown[..3].join(","), many - 3),
    })
}

//! What both providers read of a Cluster.

use capwasm_api::names::CORE_API_VERSION;
use capwasm_sdk::object;
use serde_json::{Value, json};

/// `host:port` of its API server, with brackets around an IPv6 address; none until both are known.
pub fn endpoint(cluster: &Value) -> Option<String> {
    let host = object::text(cluster, "/spec/controlPlaneEndpoint/host");
    let port = cluster.pointer("/spec/controlPlaneEndpoint/port").and_then(Value::as_u64).filter(|port| *port > 0)?;
    match host {
        "" => None,
        host if host.contains(':') && !host.starts_with('[') => Some(format!("[{host}]:{port}")),
        host => Some(format!("{host}:{port}")),
    }
}

/// An owner reference to the Cluster with this name and uid, which does not control.
pub fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": CORE_API_VERSION, "kind": "Cluster", "name": name, "uid": uid})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_known_with_host_and_port_and_an_address_of_ipv6_stands_in_brackets() {
        for (host, port, expected) in [
            (json!("h"), json!(6443), Some("h:6443")),
            (json!("fd00::1"), json!(6443), Some("[fd00::1]:6443")),
            (json!("[fd00::1]"), json!(6443), Some("[fd00::1]:6443")),
            (json!(""), json!(6443), None),
            (json!("h"), json!(0), None),
            (json!("h"), json!("6443"), None),
            (Value::Null, Value::Null, None),
        ] {
            let cluster = json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": port}}});
            assert_eq!(endpoint(&cluster).as_deref(), expected, "{cluster}");
        }
    }
}

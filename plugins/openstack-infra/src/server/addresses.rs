//! The addresses of a server, in an order that does not change.

use serde_json::{Value, json};

use crate::compute::Server;

/// As `status.addresses` has them: by network in the order of their names, IPv4 first.
pub fn of(server: &Server) -> Vec<Value> {
    let mut addresses = Vec::new();
    for on_network in server.addresses.values() {
        for version in [4, 6] {
            for address in on_network.iter().filter(|address| address.version == version) {
                let kind = match address.kind.as_str() {
                    "fixed" => "InternalIP",
                    "floating" => "ExternalIP",
                    _ => continue,
                };
                addresses.push(json!({"type": kind, "address": address.addr}));
            }
        }
    }
    addresses
}

/// Adds a floating address that Nova does not show yet.
pub fn with_floating(mut addresses: Vec<Value>, floating: &str) -> Vec<Value> {
    if !floating.is_empty() && !has(&addresses, floating) {
        addresses.push(json!({"type": "ExternalIP", "address": floating}));
    }
    addresses
}

/// Whether an address is among them.
pub fn has(addresses: &[Value], wanted: &str) -> bool {
    addresses.iter().any(|address| address.get("address").and_then(Value::as_str) == Some(wanted))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn addresses_are_ordered_by_network_and_family() {
        let server: Server = serde_json::from_value(json!({"id": "s", "addresses": {
            "storage": [{"addr": "10.9.0.5", "version": 4, "OS-EXT-IPS:type": "fixed"}],
            "main": [
                {"addr": "fd00::5", "version": 6, "OS-EXT-IPS:type": "fixed"},
                {"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed"},
                {"addr": "203.0.113.5", "version": 4, "OS-EXT-IPS:type": "floating"},
                {"addr": "10.0.0.6", "version": 4, "OS-EXT-IPS:type": "other"},
            ],
        }}))
        .unwrap();
        let expected = [
            json!({"type": "InternalIP", "address": "10.0.0.5"}),
            json!({"type": "ExternalIP", "address": "203.0.113.5"}),
            json!({"type": "InternalIP", "address": "fd00::5"}),
            json!({"type": "InternalIP", "address": "10.9.0.5"}),
        ];
        assert_eq!(of(&server), expected);
        assert_eq!(with_floating(of(&server), "203.0.113.5"), expected, "it is there already");
        assert_eq!(with_floating(of(&server), "203.0.113.9").len(), 5);
    }
}

//! Ports that are published on the engine's machine, and what containers need to speak IPv6.

use serde_json::{Value, json};

use crate::family::{Families, Family};

/// Publishes a port at an address of the engine's machine, under a number that the engine chooses. Nothing for no address.
pub fn published(port: u16, address: &str, families: &Families) -> Value {
    if address.is_empty() {
        return json!({});
    }
    // The same place, in the family that the container speaks.
    let address = match (families.first(), address) {
        (Family::V6, "127.0.0.1") => "::1",
        (Family::V6, "0.0.0.0") => "::",
        (_, address) => address,
    };
    let port = format!("{port}/tcp");
    json!({
        "ExposedPorts": {&port: {}},
        "HostConfig": {"PortBindings": {&port: [{"HostIp": address, "HostPort": "0"}]}},
    })
}

/// A container has IPv6 switched off where the engine's default is so.
pub fn sysctls(families: &Families) -> Value {
    if !families.has(Family::V6) {
        return json!({});
    }
    json!({"HostConfig": {"Sysctls": {"net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.all.forwarding": "1"}}})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_port_is_published_where_the_configuration_says_in_the_clusters_family() {
        let of = |services: &str| {
            Families::of(&json!({"spec": {"clusterNetwork": {"services": {"cidrBlocks": [services]}}}})).unwrap()
        };
        let (v4, v6) = (of("10.0.0.0/16"), of("fd00::/108"));
        for (address, families, expected) in [
            ("127.0.0.1", &v4, "127.0.0.1"),
            ("127.0.0.1", &v6, "::1"),
            ("0.0.0.0", &v6, "::"),
            ("192.0.2.1", &v6, "192.0.2.1"),
        ] {
            let body = published(6443, address, families);
            assert_eq!(body["HostConfig"]["PortBindings"]["6443/tcp"][0]["HostIp"], expected);
        }
        assert_eq!(published(6443, "", &v4), json!({}));
        assert_eq!((sysctls(&v4), sysctls(&v6).is_null()), (json!({}), false));
    }
}

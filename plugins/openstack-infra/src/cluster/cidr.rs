//! Ranges of addresses, as Neutron and Octavia write them.

use std::net::IpAddr;

pub use ipnet::IpNet;

/// From `10.0.0.0/8`, or from an address, which is a range of one. Bits behind the prefix are dropped.
pub fn parse(text: &str) -> Option<IpNet> {
    let text = text.trim();
    let range: IpNet = text.parse().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.into()))?;
    Some(range.trunc())
}

/// Whether it is a range of IPv4.
pub fn is_ipv4(range: &IpNet) -> bool {
    range.addr().is_ipv4()
}

/// Whether an address is in a range.
pub fn contains(range: &IpNet, address: &str) -> bool {
    address.parse::<IpAddr>().is_ok_and(|address| range.contains(&address))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn ranges_are_read_and_written_as_neutron_does() {
        let table = [
            ("10.0.0.7/24", Some("10.0.0.0/24")),
            ("10.0.0.7", Some("10.0.0.7/32")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("fd00::1/64", Some("fd00::/64")),
            ("::/0", Some("::/0")),
            ("10.0.0.0/33", None),
            ("host.example.org", None),
            ("", None),
        ];
        for (text, written) in table {
            assert_eq!(parse(text).map(|cidr| cidr.to_string()).as_deref(), written, "{text}");
        }
    }

    #[test]
    fn an_address_is_in_a_range_of_its_own_family() {
        let range = parse("10.6.0.0/24").unwrap();
        assert!(contains(&range, "10.6.0.255") && !contains(&range, "10.6.1.0"));
        assert!(!contains(&range, "fd00::1") && !contains(&range, "x"));
        assert!(contains(&parse("0.0.0.0/0").unwrap(), "1.2.3.4"));
    }
}

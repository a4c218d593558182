//! Ranges of addresses, as Neutron and Octavia write them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// From `10.0.0.0/8`, or from an address, which is a range of one. Bits behind the prefix are dropped.
    pub fn parse(text: &str) -> Option<Cidr> {
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u8 = prefix.map_or(Some(bits), |prefix| prefix.parse().ok())?;
        (prefix <= bits).then(|| Cidr { network: mask(address, prefix), prefix })
    }

    /// Whether an address is in it.
    pub fn contains(self, address: &str) -> bool {
        address.parse::<IpAddr>().is_ok_and(|address| {
            address.is_ipv4() == self.network.is_ipv4() && mask(address, self.prefix) == self.network
        })
    }

    /// Whether it is a range of IPv4.
    pub fn is_ipv4(self) -> bool {
        self.network.is_ipv4()
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
        }
    }
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
            assert_eq!(Cidr::parse(text).map(|cidr| cidr.to_string()).as_deref(), written, "{text}");
        }
    }

    #[test]
    fn an_address_is_in_a_range_of_its_own_family() {
        let range = Cidr::parse("10.6.0.0/24").unwrap();
        assert!(range.contains("10.6.0.255") && !range.contains("10.6.1.0"));
        assert!(!range.contains("fd00::1") && !range.contains("x"));
        assert!(Cidr::parse("0.0.0.0/0").unwrap().contains("1.2.3.4"));
    }
}

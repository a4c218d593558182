//! HTTP origins that a provider may reach: `scheme://host[:port]`.
//!
//! | host | matches |
//! |---|---|
//! | `api.example.org` | that name |
//! | `*.example.org` | every name below it, not itself |
//! | `*` | every name; no address |
//! | `10.0.0.7`, `[fd00::1]` | that address, also a loopback or link-local one |
//! | `10.0.0.0/8`, `[fd00::]/8` | addresses in the range, when the URL has an address; never loopback or link-local |
//!
//! The port is the scheme's own unless given; `*` is any. A name is granted, not what it resolves to: the address of
//! every connection is looked at again after DNS, and loopback and link-local (metadata services) are refused there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::GrantError;

/// A granted origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin {
    text: String,
    tls: bool,
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    Name(String),
    /// Including the leading dot.
    Suffix(String),
    Address(IpAddr),
    Range(IpAddr, u8),
}

impl FromStr for Origin {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let wrong = |problem| GrantError::Origin { origin: text.to_owned(), problem };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("no scheme"))?;
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("the scheme is neither http nor https")),
        };
        let (host, prefix, port) =
            split(rest).ok_or_else(|| wrong("brackets do not match, or something other than a port follows them"))?;
        let port = match port {
            None => Some(if tls { 443 } else { 80 }),
            Some("*") => None,
            Some(port) => Some(number(port).ok_or_else(|| wrong("the port is no number"))?),
        };
        let host = parse_host(host, prefix).map_err(wrong)?;
        Ok(Origin { text: text.to_owned(), tls, host, port })
    }
}

/// Parses digits only: no sign, and no leading zero, which others read as octal.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

/// Splits `host[/prefix][:port]`, where the host may be in brackets.
fn split(rest: &str) -> Option<(&str, Option<&str>, Option<&str>)> {
    let (host, after) = match rest.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => rest.split_at(rest.find(['/', ':']).unwrap_or(rest.len())),
    };
    let (prefix, port) = match after.strip_prefix('/') {
        Some(after) => match after.split_once(':') {
            Some((prefix, port)) => (Some(prefix), Some(port)),
            None => (Some(after), None),
        },
        None if after.is_empty() => (None, None),
        None => (None, Some(after.strip_prefix(':')?)),
    };
    Some((host, prefix, port))
}

fn parse_host(host: &str, prefix: Option<&str>) -> Result<Host, &'static str> {
    if let Some(prefix) = prefix {
        let address: IpAddr = host.parse().map_err(|_| "a path, or a range whose address cannot be read")?;
        let bits: u8 = number(prefix).ok_or("the prefix length is no number")?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        return if bits > width { Err("the prefix is too long") } else { Ok(Host::Range(address, bits)) };
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(Host::Address(address.to_canonical()));
    }
    let host = host.to_ascii_lowercase();
    let name = |name: &str| {
        !name.is_empty()
            && name.split('.').all(|label| !label.is_empty())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    if ends_in_number(&host) {
        return Err("an address is written as four decimal numbers");
    }
    match host.strip_prefix("*.") {
        _ if host == "*" => Ok(Host::Any),
        Some(suffix) if name(suffix) => Ok(Host::Suffix(format!(".{suffix}"))),
        None if name(&host) => Ok(Host::Name(host)),
        _ => Err("the host cannot be read"),
    }
}

/// Whether the last label of a host is a number: resolvers take `2130706433`, `0x7f.1` and `127.1` for addresses, and
/// no name ends so (WHATWG URL, "ends in a number").
pub(crate) fn ends_in_number(host: &str) -> bool {
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    decimal || hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl Origin {
    /// Whether scheme, host (without brackets) and port are granted.
    pub(crate) fn matches(&self, tls: bool, host: &str, port: u16) -> bool {
        self.tls == tls && self.port.is_none_or(|granted| granted == port) && self.matches_host(host)
    }

    fn matches_host(&self, host: &str) -> bool {
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        match (&self.host, address) {
            (Host::Any, None) => true,
            (Host::Name(name), None) => name == host,
            (Host::Suffix(suffix), None) => host.len() > suffix.len() && host.ends_with(suffix),
            (Host::Address(granted), Some(address)) => *granted == address,
            (Host::Range(net, bits), Some(address)) => in_range(*net, *bits, address) && !special_address(address),
            _ => false,
        }
    }

    /// Whether exactly this address is granted.
    pub(crate) fn is_address(&self, address: IpAddr) -> bool {
        self.host == Host::Address(address.to_canonical())
    }

    /// Whether a wanted origin is covered.
    pub(crate) fn includes(&self, want: &str) -> bool {
        let Ok(want) = want.parse::<Origin>() else { return false };
        let port = self.port.is_none() || self.port == want.port;
        let host = match (&self.host, &want.host) {
            (granted, wanted) if granted == wanted => true,
            (Host::Any, Host::Name(_) | Host::Suffix(_)) => true,
            (Host::Suffix(suffix), Host::Name(name) | Host::Suffix(name)) => {
                name.len() > suffix.len() && name.ends_with(suffix.as_str())
            }
            (Host::Range(net, bits), Host::Range(wanted, wanted_bits)) => {
                wanted_bits >= bits && in_range(*net, *bits, *wanted)
            }
            (Host::Range(..), Host::Address(address)) => self.matches_host(&address.to_string()),
            _ => false,
        };
        self.tls == want.tls && port && host
    }
}

fn in_range(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (net, address) {
        (IpAddr::V4(net), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            net.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(net), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            net.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// Metadata services that do not use link-local addresses: Alibaba, Azure's host, Oracle's older one; over IPv6 AWS,
/// the credentials of Pods in EKS, Google, Oracle.
const METADATA: [IpAddr; 7] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
];

/// Addresses that must be granted by name: this machine, its links, and metadata services. Private ranges are not among
/// them: clouds and clusters use them.
pub(crate) fn special_address(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if METADATA.contains(&address) || address.is_loopback() || address.is_unspecified() || address.is_multicast() {
        return true;
    }
    match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => {
            // Link-local, and IPv4 in IPv6 in the forms that canonicalisation leaves alone (compatible, NAT64, 6to4).
            let segments = v6.segments();
            let embedded = match segments {
                [0, 0, 0, 0, 0, 0, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some((a, b)),
                // NAT64 within a network (RFC 8215) in its longest prefix, and stateless translation.
                [0x64, 0xff9b, 1, 0, 0, 0, a, b] | [0, 0, 0, 0, 0xffff, 0, a, b] => Some((a, b)),
                [0x2002, a, b, ..] => Some((a, b)),
                _ => None,
            };
            let v4 = |(a, b): (u16, u16)| IpAddr::V4(Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)));
            segments[0] & 0xffc0 == 0xfe80 || embedded.is_some_and(|pair| special_address(v4(pair)))
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Origin {
    type Error = GrantError;

    fn try_from(text: String) -> Result<Self, GrantError> {
        text.parse()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use arbitrary::Unstructured;
    use arbtest::arbtest;

    #[test]
    fn origins_match_as_the_table_says() {
        let rows = [
            ("https://api.example.org", true, "api.example.org", 443, true),
            ("https://api.example.org", false, "api.example.org", 443, false),
            ("https://api.example.org", true, "api.example.org", 8443, false),
            ("https://api.example.org:8443", true, "api.example.org", 8443, true),
            ("https://API.example.org:*", true, "api.example.org", 1, true),
            ("https://*.example.org", true, "a.b.example.org", 443, true),
            ("https://*.example.org", true, "example.org", 443, false),
            ("https://*.example.org", true, "evilexample.org", 443, false),
            ("https://*", true, "anything", 443, true),
            ("https://*", true, "10.0.0.1", 443, false),
            ("http://10.0.0.0/8:*", false, "10.1.2.3", 5000, true),
            ("http://10.0.0.0/8", false, "11.1.2.3", 80, false),
            ("http://10.0.0.0/8", false, "10.example.org", 80, false),
            ("http://0.0.0.0/0", false, "127.0.0.1", 80, false),
            ("http://0.0.0.0/0", false, "169.254.169.254", 80, false),
            ("http://127.0.0.1:81", false, "127.0.0.1", 81, true),
            ("http://127.0.0.1:81", false, "::ffff:127.0.0.1", 81, true),
            ("http://[fd00::]/8:*", false, "fd12::1", 80, true),
            ("http://[fd00::1]:82", false, "fd00::1", 82, true),
        ];
        for (origin, tls, host, port, expected) in rows {
            let parsed: Origin = origin.parse().unwrap();
            assert_eq!(parsed.matches(tls, host, port), expected, "{origin} on {host}:{port}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        let rows = [
            "example.org",
            "ftp://example.org",
            "https://",
            "https://a/b",
            "https://a*b",
            "https://*.",
            "https://a..b",
            "http://10.0.0.0/33",
            "http://a:b",
            "http://[::1",
            "https://user@host",
            "https://10.0.0.0/8/x",
            "http://2130706433",
            "http://0x7f.1",
            "http://127.1",
            "http://256.0.0.1",
            "http://127.0.0.1.",
            "https://[::1]443",
            "https://[::1]*",
            "https://a:+443",
            "https://10.0.0.0/+8",
            "https://10.0.0.0/08",
            "https://a:0443",
        ];
        for text in rows {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }

    #[test]
    fn this_machine_and_its_links_are_special_in_every_spelling() {
        let special = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "::1",
            "::",
            "fe80::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "224.0.0.1",
            "255.255.255.255",
            "64:ff9b:1::7f00:1",
            "::ffff:0:7f00:1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "168.63.129.16",
            "192.0.0.192",
            "100.100.100.200",
            "::ffff:169.254.169.254",
            "64:ff9b::6464:64c8",
            "2002:a9fe:a9fe::1",
            "ff02::1",
        ];
        for address in special {
            assert!(special_address(address.parse().unwrap()), "{address}");
        }
        for address in ["10.0.0.1", "192.168.1.1", "172.16.0.1", "8.8.8.8", "fd00::1", "2001:db8::1"] {
            assert!(!special_address(address.parse().unwrap()), "{address}");
        }
    }

    /// A granted host, and hosts that it may cover.
    fn hosts(u: &mut Unstructured<'_>) -> arbitrary::Result<(String, Vec<String>)> {
        // No name ends in a number.
        let (first, last) = (u.choose(&["a", "127", "x-y"])?, u.choose(&["a", "b", "api"])?);
        let name = format!("{first}.{last}");
        let v4 = Ipv4Addr::from(u.choose(&[0x7f00_0001, 0xa9fe_a9fe, 0x0a01_0203, 0])? ^ u.int_in_range(0..=255_u32)?);
        let v6 = Ipv6Addr::from_bits(
            u128::from(u.arbitrary::<u8>()?) << (8 * u.int_in_range(0..=15)?) | u128::from(v4.to_bits()),
        );
        let below = vec![name.clone(), format!("c.{name}"), v4.to_string(), v6.to_string()];
        let host = match u.int_in_range(0..=6)? {
            0 => "*".to_owned(),
            1 => format!("*.{name}"),
            2 => name,
            3 => v4.to_string(),
            4 => format!("[{v6}]"),
            5 => format!("{v4}/{}", u.int_in_range(0..=32)?),
            _ => format!("[{v6}]/{}", u.int_in_range(0..=128)?),
        };
        Ok((host, below))
    }

    #[test]
    fn whatever_a_wanted_origin_matches_one_that_includes_it_matches_too_and_special_addresses_are_named() {
        arbtest(|u| {
            let (granted, mut below) = hosts(u)?;
            let (wanted, more) = hosts(u)?;
            below.extend(more);
            let port = |u: &mut Unstructured<'_>| u.choose(&["", ":80", ":81", ":*"]).copied();
            let read = |text: String| text.parse::<Origin>().unwrap_or_else(|error| panic!("{error}"));
            let granted = read(format!("http://{granted}{}", port(u)?));
            let wanted = read(format!("http://{wanted}{}", port(u)?));
            assert!(wanted.includes(&wanted.to_string()), "{wanted}");
            for (host, port) in below.iter().flat_map(|host| [(host, 80), (host, 81), (host, 443)]) {
                let reached = wanted.matches(false, host, port);
                let lost = reached && granted.includes(&wanted.to_string()) && !granted.matches(false, host, port);
                assert!(!lost, "{granted} includes {wanted} and does not reach {host}:{port}");
                let address = host.parse::<IpAddr>().ok().filter(|address| special_address(*address));
                assert!(
                    !reached || address.is_none_or(|address| wanted.is_address(address)),
                    "{wanted} reaches {host}"
                );
            }
            Ok(())
        })
        .budget_ms(500);
    }
}

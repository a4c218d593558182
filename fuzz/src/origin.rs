//! Origins: the grammar, what one includes, and the addresses that no wildcard and no range reaches.
//!
//! Input: lines of text; granted origin, wanted origin, host, port.

use std::net::IpAddr;
use std::sync::LazyLock;

use capwasm_runtime::Origin;
use capwasm_runtime::fuzzing::{origin_includes, origin_matches, special_address};
use regex::Regex;

/// The grammar of the module's documentation, said once more.
static GRAMMAR: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*";
    let host = format!(r"(?:\*|\*\.{name}|{name}|\[[0-9A-Za-z:.*_-]+\])");
    Regex::new(&format!(r"^(https?)://({host})(?:/(0|[1-9][0-9]{{0,2}}))?(?::(0|[1-9][0-9]{{0,4}}|\*))?$")).unwrap()
});

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let (Some(granted), Some(wanted)) = (lines.next(), lines.next()) else { return };
    let (host, port) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default().parse().unwrap_or(443));
    let granted = parse(granted);
    let parsed = parse(wanted);
    let Some(wanted) = &parsed else {
        assert!(
            granted.is_none_or(|granted| !origin_includes(&granted, wanted)),
            "{wanted:?} is no origin, and included"
        );
        return;
    };
    assert!(origin_includes(wanted, &wanted.to_string()), "{wanted} does not include itself");
    for host in hosts(host, wanted) {
        for port in [port, 80, 443] {
            for tls in [false, true] {
                matches(wanted, granted.as_ref(), tls, &host, port);
            }
        }
    }
}

/// An origin, if it is one, which comes back as it was written.
fn parse(text: &str) -> Option<Origin> {
    let parsed = text.parse::<Origin>().inspect_err(|error| assert!(error.to_string().contains("origin"))).ok()?;
    assert!(GRAMMAR.is_match(text), "{text:?} is none by the grammar");
    let again: Origin = parsed.to_string().parse().unwrap();
    assert_eq!(again, parsed);
    assert_eq!(serde_json::from_str::<Origin>(&serde_json::to_string(&parsed).unwrap()).unwrap(), parsed);
    Some(parsed)
}

/// The given host, and some that the origin is likely to match.
fn hosts(host: &str, origin: &Origin) -> Vec<String> {
    // Callers hand over hosts of URLs, in lower case.
    let mut hosts = vec![host.to_ascii_lowercase()];
    let text = origin.to_string().to_ascii_lowercase();
    let named = GRAMMAR.captures(&text).unwrap()[2].trim_matches(['[', ']']).to_owned();
    hosts.push(named.replace('*', "a"));
    hosts.push(named.replace('*', "a.b"));
    hosts.push(named);
    hosts.extend(["127.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe"].map(str::to_owned));
    hosts
}

fn matches(wanted: &Origin, granted: Option<&Origin>, tls: bool, host: &str, port: u16) {
    let covered = origin_matches(wanted, tls, host, port);
    if let Some(granted) = granted
        && covered
        && origin_includes(granted, &wanted.to_string())
    {
        assert!(
            origin_matches(granted, tls, host, port),
            "{granted} includes {wanted}, which reaches {host}:{port} (TLS: {tls}), and does not reach it"
        );
    }
    let address = host.parse::<IpAddr>().map(|address| address.to_canonical());
    if let Ok(address) = address
        && special_address(address)
        && covered
    {
        let text = wanted.to_string();
        let named = GRAMMAR.captures(&text).unwrap();
        let by_name = named.get(3).is_none()
            && named[2].trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|named| named.to_canonical() == address);
        assert!(by_name, "{wanted} reaches {address}, which it does not name");
    }
}

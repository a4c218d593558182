//! Versions of an API within its root: Nova's microversions, Octavia's minor versions.

use std::fmt;

use serde_json::Value;

/// A microversion of an API, such as `2.38`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// From `2.38` or `v2.38`.
    pub fn parse(text: &str) -> Option<Version> {
        let (major, minor) = text.strip_prefix('v').unwrap_or(text).split_once('.')?;
        Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The newest version that a service's discovery document offers: `{"version": {"version": "2.96"}}` of Nova's root, or
/// `{"versions": [{"id": "v2.27"}, …]}` of Octavia's.
pub fn newest(document: &Value) -> Option<Version> {
    let of = |version: &Value| {
        let text = |name: &str| version.get(name).and_then(Value::as_str).and_then(Version::parse);
        text("version").or_else(|| text("id"))
    };
    let one = document.get("version").and_then(of);
    let all = document.get("versions").and_then(Value::as_array).into_iter().flatten().filter_map(of);
    one.into_iter().chain(all).max()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_compare_by_number_and_the_newest_is_found_in_either_document() {
        assert!(Version::parse("2.100") > Version::parse("v2.96") && Version::parse("2").is_none());
        let nova = json!({"version": {"id": "v2.1", "version": "2.103", "min_version": "2.1"}});
        assert_eq!(newest(&nova).unwrap().to_string(), "2.103");
        let octavia = json!({"versions": [{"id": "v2.0"}, {"id": "v2.30", "status": "CURRENT"}, {"id": "v2.9"}]});
        assert_eq!(newest(&octavia), Version::parse("2.30"));
        assert_eq!(newest(&json!({})), None);
    }
}

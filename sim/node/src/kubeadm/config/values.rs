//! Versions and durations as they are written in kubeadm's configuration. Pure.

/// A Kubernetes version `vMAJOR.MINOR.PATCH[-pre][+build]`, read as strictly as kubeadm does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// As `v1.34.0`.
    pub text: String,
    /// As 34 in `v1.34.0`.
    pub minor: u64,
    /// As 0 in `v1.34.0`.
    pub patch: u64,
}

impl Version {
    /// Parses with or without the `v`.
    ///
    /// # Errors
    /// A sentence that names the text.
    pub fn parse(text: &str) -> Result<Version, String> {
        let plain = text.strip_prefix('v').unwrap_or(text);
        let version = semver::Version::parse(plain).ok().filter(|version| version.major == 1);
        let version = version.ok_or_else(|| format!("could not parse {text:?} as version"))?;
        Ok(Version { text: format!("v{plain}"), minor: version.minor, patch: version.patch })
    }
}

/// Parses a Go duration (`1h2m3.5s`, `300ms`).
pub fn duration(text: &str) -> Option<std::time::Duration> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest == "0" {
        return Some(std::time::Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| at + digits);
        seconds += number
            * match &rest[digits..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    std::time::Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn versions_need_three_numbers() {
        for (text, expected) in [
            ("1.34.2", Some(("v1.34.2", 34, 2))),
            ("v1.35.0-rc.1", Some(("v1.35.0-rc.1", 35, 0))),
            ("v1.34.1+k3s1", Some(("v1.34.1+k3s1", 34, 1))),
            ("", None),
            ("v1.34", None),
            ("v1.034.0", None),
            ("latest", None),
            ("v1.x.0", None),
            ("v2.0.0", None),
            ("v1.2.3 4", None),
        ] {
            let expected = expected.map(|(text, minor, patch)| Version { text: text.into(), minor, patch });
            assert_eq!(Version::parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn go_durations_are_read() {
        for (text, expected) in [
            ("5m0s", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("5", None),
            ("", None),
        ] {
            assert_eq!(duration(text).map(|d| d.as_millis()), expected, "{text}");
        }
    }
}

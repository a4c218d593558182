//! Versions and durations as they are written in kubeadm's configuration. Pure.

/// A Kubernetes version `vMAJOR.MINOR.PATCH[-pre][+build]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// As `v1.34.0`.
    pub text: String,
    /// As 34 in `v1.34.0`.
    pub minor: u32,
    /// As 0 in `v1.34.0`.
    pub patch: u32,
}

impl Version {
    /// Parses with or without the `v`.
    ///
    /// # Errors
    /// A sentence that names the text.
    pub fn parse(text: &str) -> Result<Version, String> {
        let broken = || format!("could not parse {text:?} as version");
        let plain = text.strip_prefix('v').unwrap_or(text);
        let core = plain.split(['-', '+']).next().unwrap_or_default();
        let numbers: Vec<u32> = core.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| broken())?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
        match numbers.as_slice() {
            [1, minor, patch] if plain.chars().all(allowed) => {
                Ok(Version { text: format!("v{plain}"), minor: *minor, patch: *patch })
            }
            _ => Err(broken()),
        }
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
        assert_eq!(Version::parse("1.34.2").unwrap(), Version { text: "v1.34.2".into(), minor: 34, patch: 2 });
        assert_eq!(Version::parse("v1.35.0-rc.1").unwrap().minor, 35);
        for text in ["", "v1.34", "latest", "v1.x.0", "v2.0.0", "v1.2.3 4"] {
            assert!(Version::parse(text).is_err(), "{text}");
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

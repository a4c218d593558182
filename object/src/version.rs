//! Kubernetes versions: `v1.36.0-rc.1+build`, compared as semantic versions.
//!
//! Not the crate `semver`: it refuses the `v` and a missing patch number, and costs a component 13 kB more.

/// A version; what comes after `+` plays no part.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// As 1 in `v1.36.0`.
    pub major: u64,
    /// As 36 in `v1.36.0`.
    pub minor: u64,
    /// As 0 in `v1.36.0`.
    pub patch: u64,
    /// A release comes after its own pre-releases.
    released: bool,
    pre: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Version {
    /// Reads a version, with or without `v` and patch number.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (numbers, pre) = text.split_once('-').map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
        let mut numbers = numbers.split('.').map(|number| number.parse::<u64>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = match numbers.next() {
            None => 0,
            Some(patch) => patch?,
        };
        if numbers.next().is_some() || pre.is_some_and(str::is_empty) {
            return None;
        }
        let part = |part: &str| part.parse().map_or_else(|_| Part::Word(part.to_owned()), Part::Number);
        Some(Version {
            major,
            minor,
            patch,
            released: pre.is_none(),
            pre: pre.into_iter().flat_map(|pre| pre.split('.')).map(part).collect(),
        })
    }

    /// Major, minor and patch number: a pre-release has those of its release.
    pub fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }

    /// Whether it is of this minor version, or a newer one, pre-releases included.
    pub fn is_at_least(&self, major: u64, minor: u64) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// How many minor versions `self` is ahead of `other`; none across major versions.
    pub fn minors_ahead_of(&self, other: &Version) -> Option<i64> {
        let minor = |version: &Version| i64::try_from(version.minor).ok();
        if self.major == other.major { Some(minor(self)? - minor(other)?) } else { None }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn versions_are_read_tolerantly_and_nonsense_is_not() {
        for (text, expected) in [
            ("v1.36.0", Some((1, 36, 0))),
            ("1.36.2+build.7", Some((1, 36, 2))),
            ("v1.36", Some((1, 36, 0))),
            ("v1.36.0-rc.1", Some((1, 36, 0))),
            ("latest", None),
            ("v1", None),
            ("v1.2.3.4", None),
            ("v1.2.x", None),
            ("v1.2.3-", None),
            ("", None),
        ] {
            let version = Version::parse(text);
            assert_eq!(version.map(|version| version.numbers()), expected, "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_as_semantic_versions() {
        let order = ["v1.9.3", "v1.36.0-alpha", "v1.36.0-rc.2", "v1.36.0-rc.10", "v1.36.0", "v1.36.1", "v2.0.0"];
        for pair in order.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
        let version = |text| Version::parse(text).unwrap();
        assert_eq!(version("v1.36.0").minors_ahead_of(&version("v1.34.9")), Some(2));
        assert_eq!(version("v1.36.0").minors_ahead_of(&version("v2.34.9")), None);
        assert!(version("v1.31.0-rc.1").is_at_least(1, 31) && !version("v1.30.9").is_at_least(1, 31));
    }
}

//! `apiVersion`: group and version of a kind, `apps/v1`, or `v1` alone in the core group; and Kubernetes' order of such versions.

use std::cmp::Ordering;

/// Splits into group, empty for the core group, and version.
pub fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The group; empty for the core group.
pub fn group(api_version: &str) -> &str {
    split(api_version).0
}

/// The `apiVersion` of a group, which is empty for the core group, and a version.
pub fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Compares two versions of an API; the greater is the preferred one: stable before beta before alpha, higher numbers first, anything
/// else last (`k8s.io/apimachinery/pkg/version`).
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Of those that are no version, the first in the alphabet is preferred.
        (None, None) => b.cmp(a),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

fn parse(version: &str) -> Option<(Stage, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    for (word, stage) in [("alpha", Stage::Alpha), ("beta", Stage::Beta)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stage, number(major)?, number(minor)?));
        }
    }
    Some((Stage::Stable, number(rest)?, 0))
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_group_has_no_name() {
        for (api_version, group, version) in [("v1", "", "v1"), ("apps/v1", "apps", "v1"), ("", "", "")] {
            assert_eq!(split(api_version), (group, version), "{api_version:?}");
            assert_eq!(join(group, version), api_version);
        }
    }

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let ordered = [
            "v10",
            "v2",
            "v1",
            "v3beta1",
            "v1beta10",
            "v1beta2",
            "v1beta1",
            "v11alpha2",
            "v1alpha1",
            "bar",
            "foo1",
            "v",
        ];
        for (at, version) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(compare_versions(other, version), at.cmp(&other_at), "{other} and {version}");
            }
        }
    }
}

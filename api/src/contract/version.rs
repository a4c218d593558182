//! Kubernetes' order of API versions: GA before beta before alpha, higher numbers first, others last.

use std::cmp::Ordering;

/// Compares two API versions; the greater is preferred. `v2 > v1 > v1beta2 > v1alpha1 > other`.
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
    (text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0')).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions =
            ["foo1", "v1alpha1", "v10", "v1beta2", "v2", "v1", "bar", "v11alpha2", "v3beta1", "v1beta10", "v01"];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v3beta1", "v1beta10", "v1beta2", "v11alpha2", "v1alpha1", "bar", "foo1", "v01"]
        );
    }
}

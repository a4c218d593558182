//! `apiVersion`: group and version of a kind, `apps/v1`, or `v1` alone in the core group.

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
}

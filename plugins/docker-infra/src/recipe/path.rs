//! Where files may lie.

/// Longer paths are refused.
const LONGEST: usize = 4_000;

/// An absolute path without `.`, `..` and double slashes. `/var/run` is a link to `/run` everywhere, and copying a
/// directory over a link fails.
pub fn normalize(path: &str) -> Result<String, &'static str> {
    if !path.starts_with('/') {
        return Err("the path is not absolute");
    }
    if path.len() > LONGEST || path.chars().any(char::is_control) {
        return Err("the path is too long or has control characters");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err("the path leaves its directory");
    }
    if parts.is_empty() || path.ends_with('/') {
        return Err("the path names a directory");
    }
    let joined = format!("/{}", parts.join("/"));
    Ok(joined.strip_prefix("/var/run/").map_or(joined.clone(), |rest| format!("/run/{rest}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn paths_are_absolute_and_stay_in_place() {
        for (path, expected) in [
            ("/etc/a", Ok("/etc/a")),
            ("//etc/./a", Ok("/etc/a")),
            ("/var/run/a", Ok("/run/a")),
            ("etc/a", Err("the path is not absolute")),
            ("", Err("the path is not absolute")),
            ("/", Err("the path names a directory")),
            ("/etc/", Err("the path names a directory")),
            ("/../../etc/passwd", Err("the path leaves its directory")),
            ("/a/../../b", Err("the path leaves its directory")),
            ("/a\u{0}b", Err("the path is too long or has control characters")),
            ("/a\nb", Err("the path is too long or has control characters")),
        ] {
            assert_eq!(normalize(path), expected.map(str::to_owned), "{path:?}");
        }
        assert!(normalize(&format!("/{}", "a".repeat(5000))).is_err());
    }
}

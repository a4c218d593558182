//! Resolves `Location` headers.

use http::Uri;

/// Redirects followed at most.
pub(super) const MOST: usize = 5;

/// Resolves an absolute URI, or a path from the root, against `from`.
pub(super) fn resolve(from: &Uri, location: &str) -> Result<Uri, String> {
    let refused = |why: &str| format!("it leads to {:?}, {why}", location.chars().take(200).collect::<String>());
    let to: Uri = location.parse().map_err(|_| refused("which is no URI"))?;
    let path = to.path_and_query().cloned().ok_or_else(|| refused("which has no path"))?;
    let parts = match (to.scheme_str(), to.authority(), from.scheme(), from.authority()) {
        (Some("http" | "https"), Some(authority), ..) if !authority.as_str().contains('@') => {
            Uri::builder().scheme(to.scheme_str().unwrap_or("https")).authority(authority.clone())
        }
        (None, None, Some(scheme), Some(authority)) if location.starts_with('/') && !location.starts_with("//") => {
            Uri::builder().scheme(scheme.clone()).authority(authority.clone())
        }
        _ => return Err(refused("which is neither an address of HTTP nor a path")),
    };
    parts.path_and_query(path).build().map_err(|error| refused(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn locations_are_absolute_or_paths_from_the_root() {
        let from = "https://registry.example:5000/v2/a/blobs/x".parse().unwrap();
        for (location, expected) in [
            ("https://storage.example/y?z=1", Some("https://storage.example/y?z=1")),
            ("http://storage.example/y", Some("http://storage.example/y")),
            ("/v2/y?_state=a%2Fb", Some("https://registry.example:5000/v2/y?_state=a%2Fb")),
            ("//storage.example/y", None),
            ("y", None),
            ("ftp://storage.example/y", None),
            ("file:///etc/passwd", None),
            ("https://user@storage.example/y", None),
            ("https://", None),
            ("", None),
            ("\u{0}", None),
        ] {
            let found = resolve(&from, location).ok().map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{location:?}");
        }
    }
}

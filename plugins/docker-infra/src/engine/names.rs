//! Names in the engine's URLs, and names of images.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The slashes and colons of an image's name, which the engine's router wants plain, are left as well.
const NOT_OF_IMAGES: &AsciiSet = &RESERVED.remove(b'/').remove(b':').remove(b'@');

/// Percent-encodes everything that is not unreserved, so that a name can neither leave its place in a path nor add a
/// parameter to a query.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The same for the name of an image in a path.
pub fn encode_path(image: &str) -> String {
    utf8_percent_encode(image, NOT_OF_IMAGES).to_string()
}

/// Name and tag; a digest stays in the name, and without either the engine would pull every tag.
pub fn split_image(image: &str) -> (&str, Option<&str>) {
    if image.contains('@') {
        return (image, None);
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, Some("latest")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn names_cannot_leave_their_place_in_a_url() {
        assert_eq!(encode("a b/../c?d=e&f"), "a%20b%2F..%2Fc%3Fd%3De%26f");
        assert_eq!(encode_path("r.example:5000/kindest/node:v1?x"), "r.example:5000/kindest/node:v1%3Fx");
    }

    #[test]
    fn an_image_is_pulled_by_one_tag_or_digest() {
        let table = [
            ("kindest/node:v1.36.0", ("kindest/node", Some("v1.36.0"))),
            ("kindest/node", ("kindest/node", Some("latest"))),
            ("localhost:5000/node", ("localhost:5000/node", Some("latest"))),
            ("localhost:5000/node:a", ("localhost:5000/node", Some("a"))),
            ("kindest/node:a@sha256:00", ("kindest/node:a@sha256:00", None)),
        ];
        for (image, expected) in table {
            assert_eq!(split_image(image), expected, "{image}");
        }
    }
}

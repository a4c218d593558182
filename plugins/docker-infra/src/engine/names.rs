//! Names in the engine's URLs, and names of images.

/// Percent-encodes everything that is not unreserved, so that a name can neither leave its place in a path nor add a
/// parameter to a query.
pub fn encode(text: &str) -> String {
    encode_except(text, b"")
}

/// The same, but leaves the slashes and colons of an image's name, which the engine's router wants plain.
pub fn encode_path(text: &str) -> String {
    encode_except(text, b"/:@")
}

fn encode_except(text: &str, plain: &[u8]) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || plain.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
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

//! Parts of URLs.

/// Names and values of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Without anything.
    pub fn new() -> Query {
        Query::default()
    }

    /// With one value more; a name may come again.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Query {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// With those of another behind it.
    #[must_use]
    pub fn and(mut self, other: &Query) -> Query {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// `path` with this query behind it, which it may have begun already.
    pub fn after(&self, path: &str) -> String {
        let mut url = path.to_owned();
        for (name, value) in &self.0 {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&encode(name));
            url.push('=');
            url.push_str(&encode(value));
        }
        url
    }
}

/// Percent-encodes everything but the unreserved characters of RFC 3986: for one segment of a path, a name or a value.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                encoded.push('%');
                encoded.push(char::from(HEX[usize::from(byte >> 4)]));
                encoded.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    encoded
}

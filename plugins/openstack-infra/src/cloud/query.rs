//! Parts of URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Names and values of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
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

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes everything but the unreserved characters: for one segment of a path, a name or a value.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

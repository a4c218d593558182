//! A request, read.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// A request to one service.
#[derive(Debug)]
pub(super) struct Request {
    pub method: String,
    /// Path with the service's part.
    pub path: String,
    /// The segments of the path behind the service's, decoded.
    pub segments: Vec<String>,
    pub raw_query: String,
    /// Query in order, decoded.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Request {
    /// Reads a request whose path begins with `prefix`.
    pub fn new(method: &str, path: &str, prefix: &str, raw_query: &str, headers: HeaderMap, body: Bytes) -> Request {
        let rest = path.strip_prefix(prefix).unwrap_or(path);
        let decode = |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            segments: rest.split('/').filter(|part| !part.is_empty()).map(decode).collect(),
            raw_query: raw_query.to_owned(),
            query: form_urlencoded::parse(raw_query.as_bytes()).into_owned().collect(),
            headers,
            body,
        }
    }

    /// Method and segments of the path, to match on.
    pub fn route(&self) -> (&str, Vec<&str>) {
        (&self.method, self.segments.iter().map(String::as_str).collect())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// All values of a query parameter.
    pub fn values(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The last value of a query parameter.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).pop()
    }

    /// The body; `None` when it is no JSON.
    pub fn json(&self) -> Option<Value> {
        if self.body.is_empty() {
            return Some(Value::Null);
        }
        serde_json::from_slice(&self.body).ok()
    }
}

//! Named HTTP endpoints: `http://NAME.endpoint/path` for a guest, a unix socket or a URL for the host, with credentials
//! that the guest never sees and rules for requests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use super::GrantError;

/// A granted endpoint. Exactly one of `unix` and `url` is set.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedEndpoint {
    /// Path of a unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<PathBuf>,
    /// `http://host:port/prefix` or `https://...`; the guest's path is appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Allowed requests. Absent: all; empty: none.
    #[serde(default = "Rule::everything")]
    pub allow: Vec<Rule>,
    /// PEM of the certificate authority of the server; the system's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// Client certificate of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// Headers added by the host, such as credentials; the guest can neither set nor see them.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Timeout of one request in seconds. Replaces the call's wall time limit while it waits for this endpoint, for
    /// slow operations such as image pulls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// Client certificate with its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientCertificate {
    /// Certificate chain, PEM.
    pub certificate_pem: String,
    /// Private key, PEM.
    pub key_pem: String,
}

/// Set of allowed requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// HTTP methods; empty means any.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Pattern of the path, without query. A segment `*` matches one segment, a last segment `**` matches the rest:
    /// `/v*/containers/**`; within a segment `*` matches any part.
    pub path: String,
}

impl NamedEndpoint {
    /// A unix socket that allows all requests.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        NamedEndpoint { unix: Some(path.into()), ..Self::empty() }
    }

    /// A URL that allows all requests.
    pub fn url(url: impl Into<String>) -> Self {
        NamedEndpoint { url: Some(url.into()), ..Self::empty() }
    }

    fn empty() -> Self {
        NamedEndpoint {
            unix: None,
            url: None,
            allow: Rule::everything(),
            ca: None,
            client_certificate: None,
            headers: BTreeMap::new(),
            timeout_seconds: None,
        }
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout_seconds.map(Duration::from_secs)
    }

    /// The parsed address.
    pub(crate) fn target(&self, name: &str) -> Result<Target, GrantError> {
        let wrong = |problem: String| GrantError::Endpoint { name: name.to_owned(), problem };
        match (&self.unix, &self.url) {
            (Some(path), None) => Ok(Target::Unix(path.clone())),
            (None, Some(url)) => {
                let uri: Uri = url.parse().map_err(|error| wrong(format!("url {url:?}: {error}")))?;
                let scheme = uri.scheme_str().unwrap_or_default();
                if uri.host().is_none() || !matches!(scheme, "http" | "https") || uri.query().is_some() {
                    return Err(wrong(format!("url {url:?}: expected http(s)://host[:port][/prefix]")));
                }
                Ok(Target::Url(uri))
            }
            _ => Err(wrong("give exactly one of unix and url".to_owned())),
        }
    }

    /// Whether there are rules other than the default.
    pub(crate) fn has_rules(&self) -> bool {
        self.allow != Rule::everything()
    }

    /// Whether the URL has a path, to which the guest's is appended.
    fn has_prefix(&self) -> bool {
        let url = self.url.as_ref().and_then(|url| url.parse::<Uri>().ok());
        url.is_some_and(|url| !url.path().trim_end_matches('/').is_empty())
    }

    /// Whether a request is allowed. Dot segments that leave the URL's path are refused with or without rules, since
    /// they would use the host's credentials for what was not granted.
    pub(crate) fn allows(&self, method: &str, path: &str) -> Result<(), EndpointRefusal> {
        if !self.has_rules() {
            return if self.has_prefix() { segments(path).map(drop) } else { Ok(()) };
        }
        let segments = segments(path)?;
        if self.allow.iter().any(|rule| rule.matches(method, &segments)) {
            Ok(())
        } else {
            Err(EndpointRefusal::NoRule)
        }
    }
}

impl std::fmt::Debug for NamedEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Credentials stay out.
        f.debug_struct("NamedEndpoint")
            .field("unix", &self.unix)
            .field("url", &self.url)
            .field("allow", &self.allow)
            .field("timeout_seconds", &self.timeout_seconds)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// Parsed address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Unix(PathBuf),
    Url(Uri),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndpointRefusal {
    #[error("no rule of the endpoint allows it")]
    NoRule,
    #[error(
        "the path has dots, empty segments, semicolons, encoded slashes or control characters, which servers read differently"
    )]
    Ambiguous,
}

/// Segments of a path; an error if servers may read the path differently.
fn segments(path: &str) -> Result<Vec<String>, EndpointRefusal> {
    let path = path.strip_prefix('/').ok_or(EndpointRefusal::Ambiguous)?;
    let mut segments = Vec::new();
    let count = path.split('/').count();
    for (index, segment) in path.split('/').enumerate() {
        // A per cent sign that begins no byte stays one, and is refused below.
        let decoded = percent_decode_str(segment).decode_utf8().map_err(|_| EndpointRefusal::Ambiguous)?;
        let trailing = segment.is_empty() && index + 1 == count;
        let ambiguous = (decoded.is_empty() && !trailing) || decoded == "." || decoded == "..";
        // Servers that know path parameters take `..;x` for `..`.
        if ambiguous || decoded.contains(['/', '\\', ';', '%']) || decoded.contains(char::is_control) {
            return Err(EndpointRefusal::Ambiguous);
        }
        segments.push(decoded.into_owned());
    }
    Ok(segments)
}

impl Rule {
    /// The default rules.
    fn everything() -> Vec<Rule> {
        vec![Rule { methods: Vec::new(), path: "/**".to_owned() }]
    }

    fn matches(&self, method: &str, segments: &[String]) -> bool {
        let method = self.methods.is_empty() || self.methods.iter().any(|allowed| allowed.eq_ignore_ascii_case(method));
        method && self.matches_path(segments)
    }

    fn matches_path(&self, segments: &[String]) -> bool {
        let mut rest = segments.iter();
        let mut patterns = self.path.trim_start_matches('/').split('/').peekable();
        while let Some(pattern) = patterns.next() {
            if pattern == "**" && patterns.peek().is_none() {
                return true;
            }
            match rest.next() {
                Some(segment) if super::wildcard(pattern, segment) => {}
                _ => return false,
            }
        }
        rest.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn rule(methods: &[&str], path: &str) -> Rule {
        Rule { methods: methods.iter().map(|m| (*m).to_owned()).collect(), path: path.into() }
    }

    #[test]
    fn rules_allow_by_method_and_path() {
        let endpoint = NamedEndpoint {
            allow: vec![rule(&["GET"], "/v*/images/**"), rule(&["POST", "DELETE"], "/v1.41/containers/*/start")],
            ..NamedEndpoint::unix("/x")
        };
        let rows = [
            ("GET", "/v1.41/images/kindest/node/json", Ok(())),
            ("POST", "/v1.41/images/create", Err(EndpointRefusal::NoRule)),
            ("POST", "/v1.41/containers/a/start", Ok(())),
            ("POST", "/v1.41/containers/a/b/start", Err(EndpointRefusal::NoRule)),
            ("POST", "/v1.41/containers/a/start/x", Err(EndpointRefusal::NoRule)),
            ("GET", "/v1.41/images/../containers/json", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/%2e%2E/containers/json", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a%2fb", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/%252e", Err(EndpointRefusal::Ambiguous)),
            ("GET", "//v1.41/images/a", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a%zz", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/..;/containers/json", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/..;a=b/containers/json", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a%3bb", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/..%5ccontainers", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/..\\containers", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a%0d%0aHost:%20b", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a%00", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images//containers", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/./a", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/%c0%ae%c0%ae/a", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a%", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a%zz", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/%+1%41", Err(EndpointRefusal::Ambiguous)),
            ("GET", "v1.41/images/a", Err(EndpointRefusal::Ambiguous)),
            ("GET", "/v1.41/images/a.b/...", Ok(())),
            ("GET", "/v1.41/images/", Ok(())),
            ("GET", "/V1.41/IMAGES/a", Err(EndpointRefusal::NoRule)),
            ("get", "/v1.41/images/a", Ok(())),
            ("post", "/v1.41/images/a", Err(EndpointRefusal::NoRule)),
            ("GETX", "/v1.41/images/a", Err(EndpointRefusal::NoRule)),
            ("GET", "/v1.41/images/.%2E;x=y/containers/json", Err(EndpointRefusal::Ambiguous)),
        ];
        for (method, path, expected) in rows {
            assert_eq!(endpoint.allows(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn the_path_of_an_endpoints_url_cannot_be_left() {
        let endpoint = NamedEndpoint::url("http://h/prefix/");
        for path in [
            "/../x",
            "/a/%2e%2E/x",
            "/%252e%252e/x",
            "/..%2fx",
            "/..\\x",
            "/..;a/x",
            "/..",
            "/%2e%2e/g%",
            "/a%2fb",
            "/a//b",
        ] {
            assert_eq!(endpoint.allows("GET", path), Err(EndpointRefusal::Ambiguous), "{path}");
            assert_eq!(NamedEndpoint::url("http://h").allows("GET", path), Ok(()), "{path} without a prefix");
        }
        for path in ["/a..b/x", "/a/b/", "/"] {
            assert_eq!(endpoint.allows("GET", path), Ok(()), "{path}");
        }
    }

    #[test]
    fn two_stars_are_the_rest_only_where_they_are_last() {
        let endpoint = NamedEndpoint { allow: vec![rule(&[], "/v1/**/json")], ..NamedEndpoint::unix("/x") };
        assert_eq!(endpoint.allows("GET", "/v1/a/json"), Ok(()));
        assert_eq!(endpoint.allows("GET", "/v1/a/b/json"), Err(EndpointRefusal::NoRule));
        assert_eq!(endpoint.allows("POST", "/v1/containers/create"), Err(EndpointRefusal::NoRule));
    }

    #[test]
    fn an_empty_list_of_rules_allows_nothing_and_none_allows_everything() {
        let nothing: NamedEndpoint = serde_json::from_str(r#"{"unix": "/x", "allow": []}"#).unwrap();
        assert_eq!(nothing.allows("GET", "/"), Err(EndpointRefusal::NoRule));
        let everything: NamedEndpoint = serde_json::from_str(r#"{"unix": "/x"}"#).unwrap();
        assert_eq!(everything.allows("GET", "/a%2fb"), Ok(()));
    }

    #[test]
    fn an_endpoint_leads_to_one_place() {
        let both = NamedEndpoint { url: Some("http://h".into()), ..NamedEndpoint::unix("/x") };
        assert!(both.target("n").is_err());
        assert!(NamedEndpoint::url("ftp://h").target("n").is_err());
        assert!(NamedEndpoint::url("http://h:1/prefix").target("n").is_ok());
    }

    #[test]
    fn a_path_that_a_rule_allows_is_one_that_no_server_reads_otherwise() {
        const PARTS: [&str; 14] =
            ["a", "images", "..", ".", "%2e", "%2E%2e", "%2f", "%5c", "\\", "%25", ";", "/", "//", "%00"];
        let endpoint = NamedEndpoint { allow: vec![rule(&[], "/a/**")], ..NamedEndpoint::unix("/x") };
        arbtest::arbtest(|u| {
            let parts =
                u.arbitrary_iter::<u8>()?.take(8).map(|byte| byte.map(|byte| PARTS[usize::from(byte) % PARTS.len()]));
            let path = format!("/a/{}", parts.collect::<arbitrary::Result<String>>()?);
            if endpoint.allows("GET", &path).is_ok() {
                let read = percent_decode_str(&path).decode_utf8().unwrap().replace('\\', "/");
                let names = read.split('/').map(|part| part.split(';').next().unwrap_or_default());
                let (inner, last) = (names.clone().skip(1).count() - 1, names.clone().next_back());
                let empty = names.clone().skip(1).take(inner).any(|part| part.is_empty());
                assert!(!empty && !names.clone().any(|part| part == "." || part == ".."), "{path} {last:?}");
            }
            Ok(())
        })
        .budget_ms(300);
    }
}

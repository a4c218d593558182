//! Checks method, URL and headers of a guest's request. Pure.
//!
//! The host, which checks grants, and the server must read the same request: what is ambiguous is refused, not
//! repaired.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, uri};
use capwasm_contract::Refused;

/// Headers about the connection, the message's frame or the host, which a guest cannot set.
const NOT_THE_GUESTS: [HeaderName; 10] = [
    header::CONNECTION,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Headers with which some servers override method or path of the request line.
const OVERRIDES: [&str; 6] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
];

/// Methods that are no requests to a server, or whose responses repeat the request's headers, and with them the host's
/// credentials.
const REFUSED_METHODS: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

pub(super) fn bad(message: String) -> Refused {
    Refused::invalid("BadRequest", format!("unable to make the request: {message}"))
}

pub(super) fn method(text: &str) -> Result<Method, Refused> {
    if REFUSED_METHODS.iter().any(|refused| refused.eq_ignore_ascii_case(text)) {
        return Err(bad(format!("{text} is not possible")));
    }
    text.parse().map_err(|_| bad(format!("method {text:?}")))
}

/// Parses an absolute URL of http or https without credentials, with an unambiguous address or name as host.
pub(super) fn url(text: &str) -> Result<Uri, Refused> {
    let uri: Uri = text.parse().map_err(|error| bad(format!("url {text:?}: {error}")))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(bad(format!("{uri}: expected http or https")));
    }
    let authority = uri.authority().ok_or_else(|| bad(format!("{uri}: no host")))?;
    if authority.as_str().contains('@') {
        return Err(bad("credentials in a URL are not possible; send a header".to_owned()));
    }
    let host = authority.host();
    let is_address = match host.starts_with('[') {
        true => bare_host(host).parse::<Ipv6Addr>().is_ok(),
        false => host.parse::<Ipv4Addr>().is_ok(),
    };
    if !is_address {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !host.bytes().all(plain) {
            return Err(bad(format!(
                "{uri}: the host is neither a name nor an address; write other alphabets in punycode"
            )));
        }
        if crate::grants::ends_in_number(host) {
            return Err(bad(format!("{uri}: write an address as four decimal numbers")));
        }
    }
    Ok(uri)
}

pub(super) fn headers(given: &[(String, String)]) -> Result<HeaderMap, Refused> {
    let mut map = HeaderMap::with_capacity(given.len().min(64));
    for (name, value) in given {
        let name: HeaderName = name.parse().map_err(|_| bad(format!("header {name:?}")))?;
        let value: HeaderValue = value.parse().map_err(|_| bad(format!("the value of header {name}")))?;
        if NOT_THE_GUESTS.contains(&name) {
            return Err(bad(format!("header {name} is set by the host")));
        }
        // Its value follows from the body.
        if name != header::CONTENT_LENGTH {
            map.try_append(name, value).map_err(|_| bad("too many headers".to_owned()))?;
        }
    }
    Ok(map)
}

/// Refuses headers that override method or path.
pub(super) fn no_overrides(headers: &HeaderMap) -> Result<(), Refused> {
    match OVERRIDES.iter().find(|name| headers.contains_key(**name)) {
        None => Ok(()),
        Some(name) => Err(Refused::denied(format!(
            "header {name} may make another method or path of a request than the endpoint's rules allow"
        ))),
    }
}

/// `docker` for `http://docker.endpoint/`.
pub(super) fn endpoint_name(uri: &Uri) -> Option<&str> {
    let name = uri.host()?.strip_suffix(".endpoint")?;
    (uri.scheme() == Some(&uri::Scheme::HTTP) && uri.port().is_none()).then_some(name)
}

pub(super) fn bare_host(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_contract::Refusal;

    #[test]
    fn only_a_plain_url_of_the_endpoint_domain_names_an_endpoint() {
        let rows = [
            ("http://docker.endpoint/x", Some("docker")),
            ("http://docker.endpoint", Some("docker")),
            ("https://docker.endpoint/x", None),
            ("http://docker.endpoint:80/x", None),
            ("http://docker.endpoint./x", None),
            ("http://DOCKER.ENDPOINT/x", None),
            ("http://docker.endpoint.example.org/x", None),
            ("http://endpoint/x", None),
            ("/x", None),
        ];
        for (url, expected) in rows {
            assert_eq!(endpoint_name(&url.parse().unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn a_guest_cannot_set_headers_that_frame_the_message_or_name_the_host() {
        let with = |name: &str| headers(&[(name.to_owned(), "x".to_owned())]);
        for name in ["Host", "connection", "Transfer-Encoding", "upgrade", "keep-alive", "te", "proxy-authorization"] {
            assert_eq!(with(name).unwrap_err().refusal, Refusal::Invalid, "{name}");
        }
        assert_eq!(with("x-auth-token").unwrap().len(), 1);
        assert!(with("content-length").unwrap().is_empty());
        assert!(with("bad name").is_err());
        for value in ["a\r\nhost: b", "a\nb", "a\rb", "a\0b"] {
            assert!(headers(&[("x".to_owned(), value.to_owned())]).is_err(), "{value:?}");
        }
        for name in [":authority", ":path", "x\r\nhost", "x:y", ""] {
            assert!(with(name).is_err(), "{name:?}");
        }
        let many: Vec<_> = (0..40_000).map(|at| (format!("x-{at}"), String::new())).collect();
        assert_eq!(headers(&many).unwrap_err().refusal, Refusal::Invalid, "and no panic");
    }

    #[test]
    fn methods_that_show_the_credentials_of_an_endpoint_or_tunnel_are_refused() {
        for refused in ["CONNECT", "connect", "TRACE", "Trace", "TRACK", "", "GET /x", "GET\r\nx: y"] {
            assert_eq!(method(refused).unwrap_err().refusal, Refusal::Invalid, "{refused:?}");
        }
        assert!(method("PATCH").is_ok() && method("PROPFIND").is_ok());
    }

    #[test]
    fn a_host_is_a_name_or_an_address_in_its_one_spelling() {
        let rows = [
            ("http://example.org/", true),
            ("HTTP://Example.ORG./", true),
            ("http://xn--bcher-kva.example/", true),
            ("http://127.0.0.1:8080/", true),
            ("http://[::1]/", true),
            ("http://a_b.example/", true),
            ("http://1.2.3.example/", true),
            // Each of these is 127.0.0.1 to one resolver or another.
            ("http://2130706433/", false),
            ("http://0x7f000001/", false),
            ("http://0x7f.1/", false),
            ("http://0X7F.1/", false),
            ("http://127.1/", false),
            ("http://127.0.1/", false),
            ("http://0177.0.0.1/", false),
            ("http://127.0.0.1./", false),
            ("http://127.0.0.01/", false),
            ("http://0/", false),
            ("http://a.0x/", false),
            ("http://%6cocalhost/", false),
            ("http://localhost%00.example.org/", false),
            ("http://bücher.example/", false),
            ("http://\u{2460}27.0.0.1/", false),
            ("http://[::1%25lo]/", false),
            ("http://[fe80::1%eth0]/", false),
            ("http://[127.0.0.1]/", false),
            ("http://[localhost]/", false),
            ("http://user@example.org/", false),
            ("http://user:password@engine.endpoint/", false),
            ("http://example.org@127.0.0.1/", false),
            ("http:///x", false),
            ("http://", false),
            ("//example.org/x", false),
            ("/x", false),
            ("example.org", false),
            ("ftp://example.org/", false),
            ("file:///etc/passwd", false),
            ("unix:/run/docker.sock", false),
            ("http://example.org/a b", false),
            ("http://example.org/\r\nHost: other", false),
            ("http://example.org\\@127.0.0.1/", false),
        ];
        for (text, good) in rows {
            assert_eq!(url(text).is_ok(), good, "{text}: {:?}", url(text));
        }
    }

    #[test]
    fn no_header_says_another_method_or_path_where_rules_hold() {
        for name in ["X-HTTP-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"]
        {
            let given = headers(&[(name.to_owned(), "DELETE".to_owned())]).unwrap();
            assert_eq!(no_overrides(&given).unwrap_err().refusal, Refusal::Denied, "{name}");
        }
        assert!(no_overrides(&headers(&[("accept".to_owned(), "*/*".to_owned())]).unwrap()).is_ok());
    }
}

//! Address of the webhook for API servers.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Service or URL of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Service of the same cluster.
    Service(Service),
    /// A URL.
    Url(Url),
}

/// Parsed from `namespace/name` or `namespace/name:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    namespace: String,
    name: String,
    port: u16,
}

/// Parsed from `https://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    authority: String,
    host: String,
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no Service: give namespace/name, or namespace/name:port");
        let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
            None => (rest, 443),
        };
        let label = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !label(namespace) || !label(name) || port == 0 {
            return Err(wrong());
        }
        Ok(Service { namespace: namespace.to_owned(), name: name.to_owned(), port })
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no URL of a webhook: give https://host:port, without a path");
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        if uri.scheme_str() != Some("https") || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        Ok(Url { authority: authority.to_string(), host: host.to_owned() })
    }
}

impl Address {
    /// Namespace of the Service.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Address::Service(service) => Some(&service.namespace),
            Address::Url(_) => None,
        }
    }

    /// DNS names or IP addresses for the certificate.
    pub fn names(&self) -> Vec<String> {
        match self {
            Address::Service(Service { namespace, name, .. }) => {
                [format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")].to_vec()
            }
            Address::Url(url) => vec![url.host.clone()],
        }
    }

    /// `clientConfig` of a webhook at `path`, with the bundle (PEM) as `caBundle`. The unused one of `service` and
    /// `url` is null, so that a merge patch removes it.
    pub fn client_config(&self, path: &str, bundle: &str) -> Value {
        let ca = STANDARD.encode(bundle);
        match self {
            Address::Service(Service { namespace, name, port }) => {
                let service = json!({"namespace": namespace, "name": name, "port": port, "path": path});
                json!({"service": service, "url": null, "caBundle": ca})
            }
            Address::Url(url) => {
                json!({"service": null, "url": format!("https://{}{path}", url.authority), "caBundle": ca})
            }
        }
    }

    /// Whether a `clientConfig` has this address, whatever its bundle.
    pub fn is_in(&self, client_config: &Value, path: &str) -> bool {
        let ours = self.client_config(path, "");
        ["service", "url"].iter().all(|field| client_config.get(*field).unwrap_or(&Value::Null) == &ours[*field])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn addresses_are_taken_as_they_are_written_in_manifests() {
        let service = Address::Service("capi/capwasm".parse().unwrap());
        assert_eq!(service.names()[0], "capwasm.capi.svc");
        let config = service.client_config("/convert", "PEM");
        assert_eq!(config["service"], json!({"namespace": "capi", "name": "capwasm", "port": 443, "path": "/convert"}));
        assert_eq!(config["caBundle"], "UEVN");
        let url = Address::Url("https://[::1]:9443/".parse().unwrap());
        assert_eq!(url.names(), ["::1"]);
        assert_eq!(url.client_config("/convert", "")["url"], "https://[::1]:9443/convert");
        for wrong in ["capwasm", "/capwasm", "capi/", "capi/cap wasm", "capi/capwasm:0", "capi/capwasm:x"] {
            assert!(wrong.parse::<Service>().is_err(), "{wrong}");
        }
        for wrong in ["http://a:1", "a:1", "https://", "https://a/path", "https://u@a", "https://a?b"] {
            assert!(wrong.parse::<Url>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_webhook_of_ours_is_known_by_where_it_leads() {
        let (service, url): (Service, Url) = ("capi/capwasm".parse().unwrap(), "https://a:1".parse().unwrap());
        let (service, url) = (Address::Service(service), Address::Url(url));
        let of = |address: &Address| address.client_config("/convert", "other");
        assert!(service.is_in(&of(&service), "/convert") && url.is_in(&of(&url), "/convert"));
        assert!(!service.is_in(&of(&url), "/convert") && !url.is_in(&of(&url), "/admit"));
    }
}

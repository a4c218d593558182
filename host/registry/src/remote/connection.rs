//! HTTP to a registry: TLS with the system's and configured authorities, timeouts and limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::error::Error;

const CONNECT: Duration = Duration::from_secs(10);
/// Least upload rate in bytes per second, from which the timeout of an upload follows.
const SLOWEST_UPLOAD: u64 = 64 << 10;
/// Bytes of an error's text that are read.
const LARGEST_MESSAGE: u64 = 8 << 10;
/// Characters of an error's text that are shown.
const SHOWN: usize = 300;

/// Times of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// From a sent request to the head of its response.
    pub(super) answer: Duration,
    /// Between two parts of a body.
    pub(super) idle: Duration,
    /// For a whole body.
    pub(super) body: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { answer: seconds(30), idle: seconds(30), body: seconds(600) }
    }
}

pub(super) struct Connection {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    registry: String,
    plain: bool,
    pub(super) times: Times,
}

impl Connection {
    pub(super) fn new(registry: &str, ca: Option<&str>, plain: bool) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        let tls = ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Authority(error.to_string()))?
            .with_root_certificates(roots(ca)?)
            .with_no_client_auth();
        let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls);
        let https = if plain { https.https_or_http() } else { https.https_only() };
        let connector = https.enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, registry: registry.to_owned(), plain, times: Times::default() })
    }

    /// Whether the URI has TLS, or needs none.
    pub(super) fn may_reach(&self, uri: &Uri) -> bool {
        self.plain || uri.scheme_str() == Some("https")
    }

    pub(super) async fn send(
        &self,
        method: &Method,
        uri: &Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        if !self.may_reach(uri) {
            return Err(Error::PlainHttp(uri.to_string()));
        }
        let time = self.times.answer + Duration::from_secs(body.len() as u64 / SLOWEST_UPLOAD);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers;
        let agent = HeaderValue::from_static(concat!("capwasm/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        tokio::time::timeout(time, self.client.request(request))
            .await
            .map_err(|_| self.late(time))?
            .map_err(|error| self.broken(error))
    }

    /// A body of at most `limit` bytes.
    pub(super) async fn read(&self, response: Response<Incoming>, limit: u64, what: &str) -> Result<Bytes, Error> {
        let too_large = || Error::TooLarge { what: what.to_owned(), limit };
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|announced| announced > limit) {
            return Err(too_large());
        }
        let Times { idle, body: whole, .. } = self.times;
        let collect = async {
            let mut body = response.into_body();
            let mut bytes = BytesMut::new();
            loop {
                let frame = tokio::time::timeout(idle, body.frame()).await.map_err(|_| self.late(idle))?;
                let Some(frame) = frame else { break };
                let frame = frame.map_err(|error| self.broken(error))?;
                let Some(data) = frame.data_ref() else { continue };
                if (bytes.len() + data.len()) as u64 > limit {
                    return Err(too_large());
                }
                bytes.extend_from_slice(data);
            }
            Ok(bytes.freeze())
        };
        tokio::time::timeout(whole, collect).await.map_err(|_| self.late(whole))?
    }

    /// `: …` with the error message of a registry's response; empty without one.
    pub(super) async fn message(&self, response: Response<Incoming>) -> String {
        match self.read(response, LARGEST_MESSAGE, "the error").await {
            Ok(bytes) => message(&bytes),
            // The status says enough.
            Err(_) => String::new(),
        }
    }

    fn late(&self, limit: Duration) -> Error {
        Error::Timeout { registry: self.registry.clone(), seconds: limit.as_secs() }
    }

    fn broken(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Connect { registry: self.registry.clone(), source: Box::new(error) }
    }
}

fn message(bytes: &[u8]) -> String {
    let body = serde_json::from_slice::<serde_json::Value>(bytes);
    let text = match &body {
        Ok(body) => {
            let first =
                body.pointer("/errors/0/message").or_else(|| body.get("message")).or_else(|| body.get("details"));
            first.and_then(serde_json::Value::as_str).unwrap_or_default()
        }
        // Some say it in plain words, such as that they speak TLS; pages for browsers say nothing.
        Err(_) => {
            std::str::from_utf8(bytes).ok().map(str::trim).filter(|text| !text.starts_with('<')).unwrap_or_default()
        }
    };
    let shown: String = text.chars().filter(|character| !character.is_control()).take(SHOWN).collect();
    if shown.is_empty() { shown } else { format!(": {shown}") }
}

fn roots(ca: Option<&str>) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (_, ignored) = store.add_parsable_certificates(system.certs);
    tracing::debug!(ignored, errors = ?system.errors, "system authorities");
    if let Some(pem) = ca {
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| Error::Authority(error.to_string()))?;
        if certificates.is_empty() {
            return Err(Error::Authority("there is no certificate in it".to_owned()));
        }
        for certificate in certificates {
            store.add(certificate).map_err(|error| Error::Authority(error.to_string()))?;
        }
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_registry_says_is_shown_short_and_without_control_characters() {
        for (body, expected) in [
            (r#"{"errors":[{"code":"DENIED","message":"not \u001b[31myou"}]}"#, ": not [31myou"),
            (r#"{"message":"plain"}"#, ": plain"),
            (r#"{"details":"token"}"#, ": token"),
            (r#"{"errors":[{"message":7}]}"#, ""),
            ("<html>", ""),
            ("Client sent an HTTP request to an HTTPS server.\n", ": Client sent an HTTP request to an HTTPS server."),
        ] {
            assert_eq!(message(body.as_bytes()), expected);
        }
        assert_eq!(message(format!(r#"{{"message":"{}"}}"#, "x".repeat(5000)).as_bytes()).len(), 2 + SHOWN);
    }

    #[test]
    fn a_certificate_authority_has_to_be_one() {
        for bad in ["", "nothing", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(matches!(roots(Some(bad)), Err(Error::Authority(_))), "{bad}");
        }
    }
}

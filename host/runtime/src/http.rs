//! The host's side of the `http` capability: one [`HttpClient`] per loaded provider, with its own connection pools.
//!
//! A URL leads to a named endpoint (`http://NAME.endpoint/path`) or to a granted origin, or nowhere. No redirects, no
//! proxy from the environment, `Host` from the URL, bounded responses. The address of an origin is looked at after DNS,
//! in the connector, for every connection.

mod connector;
mod network;
mod recent;
mod request;
mod tls;

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, uri};
use bytes::{Bytes, BytesMut};
use capwasm_contract::recording::Exchange;
use capwasm_contract::{Refusal, Refused};
use capwasm_fence::Fence;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use tracing::Instrument;

use self::connector::{ConnectError, Connector, Route};
pub use self::network::Network;
use self::recent::{Key, Recent};
use self::request::{bare_host, endpoint_name};
pub(crate) use self::tls::Trust;

use crate::grants::{EndpointRefusal, GrantError, Grants, NamedEndpoint, Origin, Target};
use crate::limits::Limits;

type Pool = Client<Connector, Full<Bytes>>;

/// HTTP client of a provider: grants and connection pools.
pub struct HttpClient {
    endpoints: BTreeMap<String, Endpoint>,
    origins: Arc<Vec<Origin>>,
    /// Pools of origins, by what the guest trusts besides the system; last used last.
    pools: Mutex<VecDeque<(Trust, Pool)>>,
    /// Recent responses; per generation, since another one may have other grants.
    recent: Recent,
    network: Arc<dyn Network>,
    insecure_tls: bool,
    response_bytes: u64,
    timeout: Duration,
    /// What requests that may change something have to pass.
    fence: Fence,
}

struct Endpoint {
    granted: NamedEndpoint,
    target: Target,
    headers: HeaderMap,
    pool: Pool,
}

/// Request of a guest.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// HTTP method, such as `GET`.
    pub method: String,
    /// Absolute URL, `http://NAME.endpoint/…` for a named endpoint.
    pub url: String,
    /// Headers, except those that frame the message or name the host.
    pub headers: Vec<(String, String)>,
    /// The complete body.
    pub body: Bytes,
    /// Timeout set by the guest, within the granted one.
    pub deadline: Option<Duration>,
}

/// Response of a server.
pub type HttpResponse = capwasm_contract::HttpResponse<Bytes>;

impl HttpRequest {
    /// The request as a recording has it.
    pub(crate) fn recorded(&self, trust: &Trust) -> Exchange {
        let HttpRequest { method, url, headers, body, deadline } = self.clone();
        let deadline_ms = deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
        Exchange { method, url, headers, body, trust: trust.name(), deadline_ms }
    }
}

/// Pools of origins at most; they differ in what the guest trusts, such as a cloud's own CA.
const POOLS: usize = 64;
/// Idle connections kept per host.
const IDLE_PER_HOST: usize = 4;
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Most bytes of response headers.
const HEADER_BYTES: usize = 64 << 10;

impl HttpClient {
    /// A client with these grants. Sizes and timeouts are those of the limits.
    pub fn new(grants: &Grants, limits: &Limits) -> Result<Self, GrantError> {
        Self::over(grants, limits, Arc::new(network::System::default()))
    }

    /// As [`HttpClient::new`], over a network other than the system's.
    pub fn over(grants: &Grants, limits: &Limits, network: Arc<dyn Network>) -> Result<Self, GrantError> {
        let endpoint =
            |(name, granted): (&String, &NamedEndpoint)| Ok((name.clone(), Endpoint::new(name, granted, &network)?));
        Ok(HttpClient {
            endpoints: grants.endpoints.iter().map(endpoint).collect::<Result<_, GrantError>>()?,
            origins: Arc::new(grants.origins.clone()),
            pools: Mutex::default(),
            recent: Recent::default(),
            network,
            insecure_tls: grants.insecure_tls,
            response_bytes: limits.response_bytes,
            timeout: limits.wall_time(),
            fence: Fence::none(),
        })
    }

    /// A client without grants.
    pub fn denied() -> Self {
        HttpClient {
            endpoints: BTreeMap::new(),
            origins: Arc::default(),
            pools: Mutex::default(),
            recent: Recent::default(),
            network: Arc::new(network::System::default()),
            insecure_tls: false,
            response_bytes: 0,
            timeout: Duration::ZERO,
            fence: Fence::none(),
        }
    }

    /// The same, for requests that have to pass a fence: all but those that only read.
    #[must_use]
    pub fn fenced(self, fence: Fence) -> Self {
        HttpClient { fence, ..self }
    }

    /// Whether requests without TLS verification are granted.
    pub(crate) fn may_be_insecure(&self) -> Result<(), Refused> {
        if self.insecure_tls {
            return Ok(());
        }
        Err(Refused::denied(
            "TLS without verification is not granted; trust the server's CA, or set spec.grants.insecureTLS",
        ))
    }

    /// An earlier response to an equal request, not older than `max_age`.
    pub(crate) fn recent(&self, request: &HttpRequest, trust: &Trust, max_age: Duration) -> Option<HttpResponse> {
        self.recent.get(&Key::of(request, trust), Instant::now(), max_age)
    }

    /// Sends a request and keeps the response. Of equal requests at the same time one is sent and its response shared;
    /// if it is not kept, as a refusal is not, each is sent, one after another.
    pub(crate) async fn send_and_keep(
        &self,
        request: HttpRequest,
        trust: &Trust,
        max_age: Duration,
    ) -> Result<HttpResponse, Refused> {
        let key = Key::of(&request, trust);
        let _turn = self.recent.turn(key).await;
        if let Some(answer) = self.recent.get(&key, Instant::now(), max_age) {
            return Ok(answer);
        }
        // As old as the moment when it was asked for: that it took long does not make it younger.
        let asked = Instant::now();
        let answer = self.send(request, trust).await?;
        self.recent.put(key, asked, &answer);
        Ok(answer)
    }

    /// Whether a URL is of an endpoint with a timeout of its own.
    pub(crate) fn has_own_limit(&self, url: &str) -> bool {
        let Ok(uri) = url.parse::<Uri>() else { return false };
        self.endpoint(&uri).is_some_and(|endpoint| endpoint.granted.timeout().is_some())
    }

    fn endpoint(&self, uri: &Uri) -> Option<&Endpoint> {
        self.endpoints.get(endpoint_name(uri)?)
    }

    /// Sends a request.
    pub(crate) async fn send(&self, request: HttpRequest, trust: &Trust) -> Result<HttpResponse, Refused> {
        let uri = request::url(&request.url)?;
        let method = request::method(&request.method)?;
        let mut headers = request::headers(&request.headers)?;
        // As the guest names it: an endpoint's own address is not the guest's to know.
        let server = uri.authority().map(ToString::to_string).unwrap_or_default();
        let (pool, uri, timeout) = match endpoint_name(&uri) {
            Some(name) => {
                let endpoint = self.endpoints.get(name).ok_or_else(|| endpoint_not_granted(name))?;
                endpoint.check(name, &method, &uri, &headers)?;
                headers.extend(endpoint.headers.clone());
                (endpoint.pool.clone(), endpoint.uri(&uri)?, endpoint.granted.timeout())
            }
            None => (self.origin_pool(&uri, trust)?, uri, None),
        };
        let granted = timeout.unwrap_or(self.timeout);
        let limit = request.deadline.map_or(granted, |deadline| deadline.min(granted));
        let reads = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
        let fence = if reads { Fence::none() } else { self.fence.clone() };

        let mut outgoing = Request::new(Full::new(request.body));
        *outgoing.method_mut() = method;
        *outgoing.uri_mut() = uri;
        *outgoing.headers_mut() = headers;
        // Without path and query, where a name or a token may stand.
        let span = tracing::info_span!("http", method = %outgoing.method(), host = outgoing.uri().host(), status = tracing::field::Empty);
        let told = span.clone();
        let exchange = async {
            let response = pool.request(outgoing).await.map_err(|error| unreachable_or_denied(&server, &error))?;
            told.record("status", response.status().as_u16());
            self.collect(&server, response).await
        };
        let fenced = async {
            let answer = fence.guard(exchange.instrument(span)).await;
            answer.unwrap_or_else(|down| Err(Refused::new(Refusal::Unavailable, "LeaseLost", down.to_string())))
        };
        tokio::time::timeout(limit, fenced).await.unwrap_or_else(|_| {
            Err(Refused::new(
                Refusal::Limit,
                "RequestTimeout",
                format!("{} did not answer within {limit:?}", request.url),
            ))
        })
    }

    /// The pool for an origin, if it is granted.
    fn origin_pool(&self, uri: &Uri, trust: &Trust) -> Result<Pool, Refused> {
        let tls = uri.scheme_str() == Some("https");
        let default_port = if tls { 443 } else { 80 };
        let authority = uri.authority().ok_or_else(|| request::bad(format!("{uri}: no host")))?;
        let host = bare_host(authority.host()).to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(default_port);
        if !self.origins.iter().any(|origin| origin.matches(tls, &host, port)) {
            let scheme = if tls { "https" } else { "http" };
            return Err(Refused::denied(format!(
                "{scheme}://{}:{port} is not granted; add it to spec.grants.origins of the WasmProvider",
                authority.host()
            )));
        }
        let mut pools = self.pools.lock();
        let known = pools.iter().position(|(known, _)| known == trust).and_then(|at| pools.remove(at));
        let entry = known.unwrap_or_else(|| {
            if pools.len() >= POOLS {
                pools.pop_front();
            }
            let wanted = tls::Wanted::guest(trust.clone());
            let connector = Connector::new(Route::Origins(self.origins.clone()), wanted, self.network.clone());
            (trust.clone(), new_pool(connector))
        });
        let pool = entry.1.clone();
        // To the end, so that the front is what was not used for longest.
        pools.push_back(entry);
        Ok(pool)
    }

    async fn collect(&self, server: &str, response: Response<Incoming>) -> Result<HttpResponse, Refused> {
        let (parts, mut incoming) = response.into_parts();
        let size: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if size > HEADER_BYTES {
            return Err(headers_too_large(server));
        }
        let mut body = BytesMut::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| {
                Refused::new(
                    Refusal::Unavailable,
                    "ResponseBroken",
                    format!("the response of {server} broke off: {}", chain(&error)),
                )
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if (body.len() + data.len()) as u64 > self.response_bytes {
                return Err(Refused::new(
                    Refusal::Limit,
                    "ResponseTooLarge",
                    format!(
                        "the response of {server} is larger than {} bytes (limits.responseBytes)",
                        self.response_bytes
                    ),
                ));
            }
            body.extend_from_slice(&data);
        }
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Ok(HttpResponse {
            status: parts.status.as_u16(),
            headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: body.freeze(),
        })
    }
}

impl Endpoint {
    fn new(name: &str, granted: &NamedEndpoint, network: &Arc<dyn Network>) -> Result<Self, GrantError> {
        let wrong = |problem: String| GrantError::Endpoint { name: name.to_owned(), problem };
        let target = granted.target(name)?;
        let mut headers = HeaderMap::new();
        for (key, value) in &granted.headers {
            let key: HeaderName = key.parse().map_err(|_| wrong(format!("header {key:?} cannot be a header")))?;
            let mut value: HeaderValue =
                value.parse().map_err(|_| wrong(format!("the value of header {key:?} cannot be one")))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        let wanted = tls::Wanted::endpoint(granted).map_err(wrong)?;
        let route = match &target {
            Target::Unix(path) => Route::Unix(path.clone()),
            Target::Url(_) => Route::Granted,
        };
        let pool = new_pool(Connector::new(route, wanted, network.clone()));
        Ok(Endpoint { granted: granted.clone(), target, headers, pool })
    }

    fn check(&self, name: &str, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let denied =
            |refusal: EndpointRefusal| Refused::denied(format!("endpoint {name}: {method} {}: {refusal}", uri.path()));
        self.granted.allows(method.as_str(), uri.path()).map_err(denied)?;
        if self.granted.has_rules() {
            request::no_overrides(headers)?;
        }
        Ok(())
    }

    /// The URL that is sent to the server. For a unix socket the host is the endpoint's name.
    fn uri(&self, asked: &Uri) -> Result<Uri, Refused> {
        let Target::Url(base) = &self.target else { return Ok(asked.clone()) };
        let query = asked.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("{}{}{query}", base.path().trim_end_matches('/'), asked.path());
        let mut parts = base.clone().into_parts();
        parts.path_and_query =
            Some(path.parse().map_err(|error: uri::InvalidUri| request::bad(format!("{path}: {error}")))?);
        Uri::from_parts(parts).map_err(|error| request::bad(format!("{path}: {error}")))
    }
}

fn new_pool(connector: Connector) -> Pool {
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_TIME)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .pool_timer(TokioTimer::new())
        .http1_max_buf_size(2 * HEADER_BYTES)
        .http2_max_header_list_size(HEADER_BYTES as u32)
        .build(connector)
}

fn headers_too_large(server: &str) -> Refused {
    let message = format!("the headers of {server}'s response are too large, or say a length that cannot be");
    Refused::new(Refusal::Limit, "HeadersTooLarge", message)
}

fn endpoint_not_granted(name: &str) -> Refused {
    Refused::denied(format!("endpoint {name} is not granted; add it to spec.grants.endpoints"))
}

/// Finds a refusal of the connector among the causes of the pool's error.
fn unreachable_or_denied(server: &str, error: &hyper_util::client::legacy::Error) -> Refused {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(ConnectError::Address(message)) = error.downcast_ref() {
            return Refused::denied(message.clone());
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large) {
            return headers_too_large(server);
        }
        cause = error.source();
    }
    Refused::new(Refusal::Unavailable, "Unreachable", format!("no response of {server}: {}", chain(error)))
}

/// The error with its causes, without repetitions.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn pools_are_shared_by_trust_and_bounded() {
        let grants = Grants { origins: vec!["https://*".parse().unwrap()], ..Grants::default() };
        let client = HttpClient::new(&grants, &Limits::default()).unwrap();
        let uri: Uri = "https://example.org/".parse().unwrap();
        for round in 0..3 * POOLS {
            let trust = Trust::of([u8::try_from(round % (2 * POOLS)).unwrap(); 32]);
            client.origin_pool(&uri, &trust).unwrap();
            client.origin_pool(&uri, &trust).unwrap();
        }
        assert_eq!(client.pools.lock().len(), POOLS);
    }

    /// A server that counts its requests, and a host that stood still while it had a Lease: a machine is not made twice.
    #[tokio::test]
    async fn nothing_is_changed_by_a_host_that_lost_its_lease() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (seen, sees) = std::sync::mpsc::channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = seen.clone();
                let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
                    let _ = seen.send(request.method().clone());
                    async { Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::new()))) }
                });
                let io = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, answer));
            }
        });
        let clock = Arc::new(std::sync::atomic::AtomicU64::new(1_000));
        let read = clock.clone();
        let term = capwasm_fence::Term { duration: Duration::from_secs(5), margin: Duration::from_secs(1) };
        let fence =
            Fence::with_clock(term, move || Duration::from_secs(read.load(std::sync::atomic::Ordering::Relaxed)));
        fence.renewed(fence.now());
        let grants = Grants { origins: vec![origin.parse().unwrap()], ..Grants::default() };
        let client = HttpClient::new(&grants, &Limits::default()).unwrap().fenced(fence);
        let ask = async |method: &str| {
            let request = HttpRequest {
                method: method.to_owned(),
                url: format!("{origin}/servers"),
                headers: Vec::new(),
                body: Bytes::new(),
                deadline: None,
            };
            client.send(request, &Trust::default()).await.map(|answer| answer.status).map_err(|refused| refused.reason)
        };
        assert_eq!(ask("POST").await, Ok(200));
        clock.fetch_add(30, std::sync::atomic::Ordering::Relaxed);
        for (method, expected) in [
            ("GET", Ok(200)),
            ("HEAD", Ok(200)),
            ("POST", Err("LeaseLost".to_owned())),
            ("PUT", Err("LeaseLost".to_owned())),
            ("PATCH", Err("LeaseLost".to_owned())),
            ("DELETE", Err("LeaseLost".to_owned())),
        ] {
            assert_eq!(ask(method).await, expected, "{method}");
        }
        assert_eq!(sees.try_iter().collect::<Vec<_>>(), [Method::POST, Method::GET, Method::HEAD]);
    }
}

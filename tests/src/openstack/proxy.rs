//! Between a client and OpenStack's services, real or fake: counts calls, answers in their place, and cuts them off.
//!
//! ```text
//! http://127.0.0.1:PROXY/127.0.0.1:29004/v2.1/servers  ──►  http://127.0.0.1:29004/v2.1/servers
//! ```
//!
//! Addresses of the services in answers (the catalog, links to next pages) are replaced, so that whoever logs in here stays here.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

/// One call that came to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its method.
    pub method: Method,
    /// Type of service as in the catalog; empty until a client has seen one.
    pub service: String,
    /// Below the service's endpoint, without the query.
    pub path: String,
    /// Query without the question mark.
    pub query: String,
    /// What was answered; none when the client was cut off.
    pub status: Option<u16>,
}

impl Call {
    /// Whether it may change something: anything but a read and a request for a token.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET && !self.is_token()
    }

    /// Whether it asks for a token.
    pub fn is_token(&self) -> bool {
        self.path.ends_with("/auth/tokens")
    }

    /// Whether it asks for what no write changes: a token, versions, extensions. A host asks for these first.
    fn is_timeless(&self) -> bool {
        let path = self.path.trim_matches('/');
        self.is_token() || path.is_empty() || path.ends_with("extensions")
    }

    /// All that tells it from another one, but for the body.
    fn signature(&self) -> String {
        format!("{} {} {}?{}", self.method, self.service, self.path, self.query)
    }

    /// Method, service and path with `*` for ids.
    pub fn pattern(&self) -> String {
        let part = |part: &str| if is_id(part) { "*".to_owned() } else { part.to_owned() };
        let path: Vec<String> = self.path.split('/').map(part).collect();
        format!("{} {} {}", self.method, self.service, path.join("/"))
    }
}

fn is_id(part: &str) -> bool {
    let hex = part.bytes().filter(u8::is_ascii_hexdigit).count();
    part.len() >= 32 && hex >= 32 && part.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// What is done with a call.
#[derive(Clone, Debug)]
pub enum Action {
    /// It is passed on, and its answer back.
    Pass,
    /// It is answered here, and the service never learns of it.
    Answer(u16, Vec<(&'static str, String)>, Value),
    /// It is passed on after a time.
    Late(Duration),
    /// The connection is closed, and the service never learns of it.
    Drop,
    /// It is passed on, and its answer is thrown away with the connection.
    Lose,
}

impl Action {
    /// A service's own way to say that something is wrong.
    pub fn status(status: u16, message: &str) -> Action {
        let body = serde_json::json!({"error": {"code": status, "title": "of a test", "message": message}});
        Action::Answer(status, Vec::new(), body)
    }
}

type Rule = Box<dyn FnMut(&Call) -> Action + Send>;

/// A running proxy, on a thread of its own. It ends when it is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    upstream: String,
    /// PEM, where it speaks TLS.
    certificate: Option<String>,
    _end: oneshot::Sender<()>,
}

struct Shared {
    http: Client<HttpConnector, Full<Bytes>>,
    origin: Mutex<String>,
    state: Mutex<State>,
    /// Whether everything is cut off.
    cut: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    /// How many there ever were.
    writes: usize,
    rule: Option<Rule>,
    cutting: Option<Cutting>,
    /// Types of services by their endpoints, longest first.
    catalog: BTreeMap<String, String>,
}

/// Which calls are the last ones of a host.
#[derive(Default)]
struct Cutting {
    /// Calls that were a last one, each with the number of writes to its service before it: another write makes a read another
    /// one. What no write changes counts once.
    seen: BTreeSet<(usize, String)>,
    /// Writes that had an effect, by service.
    writes: BTreeMap<String, usize>,
    is_closed: bool,
    /// Reads are no last calls.
    writes_only: bool,
    /// Only one in so many is a last one, chosen by this seed.
    sample: Option<(u64, u64)>,
}

impl Cutting {
    /// Whether this one is a last one.
    fn ends_with(&mut self, call: &Call) -> bool {
        if self.writes_only && !call.is_write() {
            return false;
        }
        let writes = self.writes.get(&call.service).filter(|_| !call.is_timeless()).copied().unwrap_or_default();
        let is_new = self.seen.insert((writes, call.signature()));
        let is_last = is_new
            && self.sample.is_none_or(|(seed, one_in)| chosen(seed, &call.pattern(), writes).is_multiple_of(one_in));
        self.is_closed |= is_last;
        is_last
    }
}

/// The same for the same kind of call at the same moment, whatever ids it names.
fn chosen(seed: u64, pattern: &str, writes: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, pattern, writes).hash(&mut hasher);
    hasher.finish()
}

impl Proxy {
    /// In front of the services whose Keystone is at `auth_url`.
    pub fn start(auth_url: &str) -> Proxy {
        Proxy::spawn(auth_url, None)
    }

    /// The same with TLS, by a certificate that nobody else has signed.
    pub fn start_tls(auth_url: &str) -> Proxy {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let chain = vec![made.cert.der().clone()];
        let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a certificate and its key");
        Proxy::spawn(auth_url, Some((TlsAcceptor::from(Arc::new(config)), made.cert.pem())))
    }

    fn spawn(auth_url: &str, tls: Option<(TlsAcceptor, String)>) -> Proxy {
        let (acceptor, certificate) = tls.unzip();
        let shared = Arc::new(Shared {
            http: Client::builder(TokioExecutor::new()).build_http(),
            origin: Mutex::default(),
            state: Mutex::default(),
            cut: watch::Sender::new(false),
        });
        let (end, ended) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let (serving, scheme) = (Arc::clone(&shared), if certificate.is_some() { "https" } else { "http" });
        // Not on the test's runtime: a test that waits for a process must not stop it.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                let address = listener.local_addr().expect("it is bound");
                *serving.origin.lock().expect("nobody panics") = format!("{scheme}://{address}");
                tell.send(address).expect("somebody waits");
                tokio::select! {
                    () = accept(listener, acceptor, serving) => {}
                    _ = ended => {}
                }
            });
        });
        let address = told.recv().expect("the proxy listens");
        let (upstream, path) = split(auth_url);
        let upstream = format!("{}/{upstream}{path}", shared.origin.lock().expect("nobody panics"));
        Proxy { shared, address, upstream, certificate, _end: end }
    }

    /// Keystone's URL behind this proxy.
    pub fn auth_url(&self) -> &str {
        &self.upstream
    }

    /// Its own scheme, host and port.
    pub fn origin(&self) -> String {
        self.shared.origin.lock().expect("nobody panics").clone()
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that it serves with, PEM.
    pub fn certificate(&self) -> &str {
        self.certificate.as_deref().unwrap_or_default()
    }

    /// All calls until now, the oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Counts writes, those that were forgotten included.
    pub fn writes(&self) -> impl Fn() -> usize + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.state.lock().expect("nobody panics").writes
    }

    /// Forgets the calls until now.
    pub fn clear(&self) {
        self.state().calls.clear();
    }

    /// How often each pattern was called.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.state().calls.iter() {
            *counts.entry(call.pattern()).or_default() += 1;
        }
        counts
    }

    /// Asks `rule` what to do with each call from now on.
    pub fn rule(&self, rule: impl FnMut(&Call) -> Action + Send + 'static) {
        self.state().rule = Some(Box::new(rule));
    }

    /// Passes everything on from now on.
    pub fn pass(&self) {
        let mut state = self.state();
        (state.rule, state.cutting) = (None, None);
        self.shared.cut.send_replace(false);
    }

    /// Cuts everything off after each call, whose answer is lost, until [`Proxy::reopen`]: after each write, and after each read
    /// that was not the last one before since the last write to its service.
    pub fn cut_after_every_call(&self) {
        self.cut_after(Cutting::default());
    }

    /// The same, but for reads.
    pub fn cut_after_every_write(&self) {
        self.cut_after(Cutting { writes_only: true, ..Cutting::default() });
    }

    /// The same, but only for one write in so many, chosen by a seed.
    pub fn cut_after_some_writes(&self, seed: u64, one_in: u64) {
        self.cut_after(Cutting { writes_only: true, sample: Some((seed, one_in)), ..Cutting::default() });
    }

    fn cut_after(&self, cutting: Cutting) {
        self.state().cutting = Some(cutting);
        self.shared.cut.send_replace(false);
    }

    /// Lets calls pass again, until the next one that is a last one.
    pub fn reopen(&self) {
        if let Some(cutting) = &mut self.state().cutting {
            cutting.is_closed = false;
        }
        self.shared.cut.send_replace(false);
    }

    /// Waits until everything is cut off.
    pub async fn cut(&self) {
        let mut cut = self.shared.cut.subscribe();
        cut.wait_for(|cut| *cut).await.expect("the proxy is there");
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().expect("nobody panics")
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let (shared, acceptor) = (Arc::clone(&shared), acceptor.clone());
        tokio::spawn(async move {
            let serve = service_fn(move |request| handle(Arc::clone(&shared), request));
            let http = hyper::server::conn::http1::Builder::new();
            // A client that goes away is not this side's problem.
            let _ = match acceptor {
                None => http.serve_connection(TokioIo::new(stream), serve).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => http.serve_connection(TokioIo::new(stream), serve).await,
                    Err(_) => Ok(()),
                },
            };
        });
    }
}

/// An error closes the connection.
#[derive(Debug, thiserror::Error)]
#[error("cut off")]
struct CutOff;

impl From<Infallible> for CutOff {
    fn from(never: Infallible) -> CutOff {
        match never {}
    }
}

async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, CutOff> {
    let (parts, body) = request.into_parts();
    let Some((host, path)) = parts.uri.path().trim_start_matches('/').split_once('/') else { return Err(CutOff) };
    let (host, path) = (host.to_owned(), format!("/{path}"));
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let body = body.collect().await.map_err(|_| CutOff)?.to_bytes();

    let (index, action, is_last, written) = {
        let mut state = shared.state.lock().expect("nobody panics");
        let (service, below) = state.service_of(&format!("http://{host}{path}"), &path);
        let call = Call { method: parts.method.clone(), service, path: below, query: query.clone(), status: None };
        let action = state.rule.as_mut().map_or(Action::Pass, |rule| rule(&call));
        let is_closed = state.cutting.as_ref().is_some_and(|cutting| cutting.is_closed);
        let is_last = !is_closed && state.cutting.as_mut().is_some_and(|cutting| cutting.ends_with(&call));
        let action = match action {
            _ if is_closed => Action::Drop,
            _ if is_last => Action::Lose,
            action => action,
        };
        let written = call.is_write().then(|| call.service.clone());
        state.writes += usize::from(written.is_some());
        state.calls.push(call);
        (state.calls.len() - 1, action, is_last, written)
    };
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    let uri: Uri = format!("http://{host}{path}{query}").parse().map_err(|_| CutOff)?;
    match &action {
        Action::Drop => return Err(CutOff),
        Action::Answer(status, headers, body) => {
            let mut answer = Response::builder().status(*status).header("content-type", "application/json");
            for (name, value) in headers {
                answer = answer.header(*name, value);
            }
            shared.note(index, *status);
            return Ok(answer.body(Full::new(Bytes::from(body.to_string()))).expect("an answer"));
        }
        Action::Late(time) => tokio::time::sleep(*time).await,
        Action::Pass | Action::Lose => {}
    }
    let mut forward = Request::builder().method(parts.method).uri(uri).body(Full::new(body)).expect("a request");
    *forward.headers_mut() = end_to_end(&parts.headers);
    let answer = shared.http.request(forward).await;
    if let Some(service) = written
        && answer.as_ref().is_ok_and(|answer| answer.status().is_success())
    {
        let mut state = shared.state.lock().expect("nobody panics");
        if let Some(cutting) = &mut state.cutting {
            *cutting.writes.entry(service).or_default() += 1;
        }
    }
    if is_last {
        shared.cut.send_replace(true);
    }
    if matches!(action, Action::Lose) {
        return Err(CutOff);
    }
    let (parts, body) = answer.map_err(|_| CutOff)?.into_parts();
    let body = body.collect().await.map_err(|_| CutOff)?.to_bytes();
    let body = shared.replace(&body);
    shared.note(index, parts.status.as_u16());
    let mut answer = Response::builder().status(parts.status).body(Full::new(body)).expect("an answer");
    *answer.headers_mut() = end_to_end(&parts.headers);
    Ok(answer)
}

impl Shared {
    fn note(&self, index: usize, status: u16) {
        let mut state = self.state.lock().expect("nobody panics");
        // Gone when the calls were cleared meanwhile.
        if let Some(call) = state.calls.get_mut(index) {
            call.status = Some(status);
        }
    }

    /// The body with this proxy in every address, after what it says about the catalog was learned.
    fn replace(&self, body: &Bytes) -> Bytes {
        let Ok(text) = std::str::from_utf8(body) else { return body.clone() };
        if text.contains("\"catalog\"") {
            let token: Value = serde_json::from_str(text).unwrap_or_default();
            self.state.lock().expect("nobody panics").learn(&token);
        }
        let origin = self.origin.lock().expect("nobody panics").clone();
        Bytes::from(text.replace("http://127.0.0.1:", &format!("{origin}/127.0.0.1:")))
    }
}

impl State {
    fn learn(&mut self, token: &Value) {
        for service in token.pointer("/token/catalog").and_then(Value::as_array).into_iter().flatten() {
            for endpoint in service["endpoints"].as_array().into_iter().flatten() {
                if let (Some(url), Some(kind)) = (endpoint["url"].as_str(), service["type"].as_str()) {
                    self.catalog.entry(url.trim_end_matches('/').to_owned()).or_insert_with(|| kind.to_owned());
                }
            }
        }
    }

    fn service_of(&self, url: &str, path: &str) -> (String, String) {
        let longest = self.catalog.iter().filter(|(root, _)| url.starts_with(root.as_str()));
        match longest.max_by_key(|(root, _)| root.len()) {
            Some((root, kind)) => (kind.clone(), url[root.len()..].to_owned()),
            None => (String::new(), path.to_owned()),
        }
    }
}

/// Without those headers that are about one connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for name in ["connection", "content-length", "host", "keep-alive", "transfer-encoding"] {
        kept.remove(name);
    }
    kept
}

fn split(url: &str) -> (&str, String) {
    let rest = url.strip_prefix("http://").expect("the services speak HTTP");
    rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")))
}

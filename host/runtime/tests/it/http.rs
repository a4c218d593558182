//! The `http` capability against real servers: TCP, TLS and a unix socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use capwasm_contract::Failure;
use capwasm_runtime::{ClientCertificate, Grants, HttpClient, Limits, NamedEndpoint, Rule};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use crate::support::Bench;

/// Repeats the request. `/big` is large, `/slow` late, `/elsewhere` a redirect; `/count` differs every time, as does
/// `/refused`, a 401.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    let host = parts.uri.authority().map_or_else(|| header("host"), ToString::to_string);
    let said = json!({
        "method": parts.method.as_str(), "path": parts.uri.path(), "query": parts.uri.query(), "host": host,
        "body": String::from_utf8_lossy(&body), "authorization": header("authorization"), "fixture": header("x-fixture"),
        "version": format!("{:?}", parts.version)
    });
    let mut response = Response::new(Full::new(Bytes::from(said.to_string())));
    match parts.uri.path() {
        "/big" => *response.body_mut() = Full::new(Bytes::from(vec![b'x'; 9 << 20])),
        "/count" | "/refused" => {
            let count = COUNT.fetch_add(1, Ordering::SeqCst);
            *response.body_mut() = Full::new(Bytes::from(format!("{said} {count}")));
            if parts.uri.path() == "/refused" {
                *response.status_mut() = hyper::StatusCode::UNAUTHORIZED;
            }
        }
        "/slow" => tokio::time::sleep(Duration::from_secs(1)).await,
        "/elsewhere" => {
            *response.status_mut() = hyper::StatusCode::FOUND;
            response.headers_mut().insert("location", "/there".parse().unwrap());
        }
        _ => {}
    }
    Ok(response)
}

/// Makes responses of `/count` and `/refused` differ.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    tokio::spawn(async move {
        let _ =
            auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service_fn(answer)).await;
    });
}

pub async fn tcp() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream);
        }
    });
    address
}

pub fn origins(origins: &[String]) -> Grants {
    Grants { origins: origins.iter().map(|origin| origin.parse().unwrap()).collect(), ..Grants::default() }
}

pub fn endpoint(endpoint: NamedEndpoint) -> Grants {
    Grants { endpoints: [("engine".to_owned(), endpoint)].into(), ..Grants::default() }
}

pub fn get(url: impl Into<String>) -> Value {
    json!({"do": "http", "method": "GET", "url": url.into()})
}

fn body(seen: &Value) -> Value {
    serde_json::from_str(seen["ok"]["body"].as_str().unwrap_or_else(|| panic!("{seen}"))).unwrap()
}

#[tokio::test]
async fn an_origin_is_reached_when_granted_by_its_address_and_denied_otherwise() {
    let (bench, server) = (Bench::new(Limits::default()).await, tcp().await);
    let port = server.port();
    let url = format!("http://127.0.0.1:{port}/a/b?c=d");
    let granted = origins(&[format!("http://127.0.0.1:{port}")]);
    let seen = bench.seen(get(&url), granted.clone()).await;
    assert_eq!(
        body(&seen),
        json!({
            "method": "GET", "path": "/a/b", "query": "c=d", "host": format!("127.0.0.1:{port}"), "body": "",
            "authorization": "", "fixture": "1", "version": "HTTP/1.1"
        })
    );
    let rows = [
        ("nothing granted", url.clone(), Grants::default()),
        ("every name granted", url.clone(), origins(&["http://*:*".into()])),
        ("the whole range granted", url.clone(), origins(&["http://0.0.0.0/0:*".into()])),
        ("another port granted", url.clone(), origins(&["http://127.0.0.1:1".into()])),
        ("the scheme", url.replace("http:", "https:"), granted.clone()),
        // The name is granted, but its address is this machine's: that is found in the connector.
        ("a name that leads to this machine", url.replace("127.0.0.1", "localhost"), origins(&["http://*:*".into()])),
        ("that name by itself", url.replace("127.0.0.1", "localhost"), origins(&["http://localhost:*".into()])),
        ("an endpoint that is not there", "http://engine.endpoint/".into(), granted),
    ];
    for (name, url, grants) in rows {
        let seen = bench.seen(get(url), grants).await;
        assert_eq!(seen["refused"], "Refusal::Denied", "{name}: {seen}");
    }
}

#[tokio::test]
async fn requests_are_bounded_in_size_time_and_number_and_redirects_are_not_followed() {
    let limits = Limits { requests: 3, wall_time_ms: 20_000, ..Limits::default() };
    let (bench, server) = (Bench::new(limits).await, tcp().await);
    let grants = || origins(&[format!("http://{server}")]);
    let seen = async |spec: Value| bench.seen(spec, grants()).await;

    assert_eq!(seen(get(format!("http://{server}/elsewhere"))).await["ok"]["status"], 302);
    assert_eq!(seen(get(format!("http://{server}/big"))).await["reason"], "ResponseTooLarge");
    let mut slow = get(format!("http://{server}/slow"));
    slow["deadline"] = json!(100);
    assert_eq!(seen(slow).await["reason"], "RequestTimeout");
    let mut many = get(format!("http://{server}/"));
    many["times"] = json!(4);
    assert_eq!(seen(many).await["reason"], "TooManyRequests");
    assert_eq!(seen(get("not a url")).await["refused"], "Refusal::Invalid");
    assert_eq!(seen(get(format!("http://user@{server}/"))).await["refused"], "Refusal::Invalid");
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let seen = bench.seen(get(format!("http://{nobody}/")), origins(&[format!("http://{nobody}")])).await;
    assert_eq!(seen["refused"], "Refusal::Unavailable", "{seen}");
}

#[tokio::test]
async fn an_endpoint_is_a_unix_socket_with_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream);
        }
    });
    let bench = Bench::new(Limits::default()).await;
    let rules = vec![Rule { methods: vec!["POST".into()], path: "/v*/containers/**".into() }];
    let grants = || endpoint(NamedEndpoint { allow: rules.clone(), ..NamedEndpoint::unix(&path) });
    let post = json!({
        "do": "http", "method": "POST", "url": "http://engine.endpoint/v1.41/containers/create?name=x", "body": "{}", "times": 3
    });
    let said = body(&bench.seen(post, grants()).await);
    assert_eq!(
        (&said["path"], &said["query"], &said["body"]),
        (&json!("/v1.41/containers/create"), &json!("name=x"), &json!("{}"))
    );
    assert_eq!(said["host"], "engine.endpoint");
    for url in ["http://engine.endpoint/v1.41/containers/json", "http://other.endpoint/"] {
        assert_eq!(bench.seen(get(url), grants()).await["refused"], "Refusal::Denied", "{url}");
    }
}

#[tokio::test]
async fn an_endpoint_is_a_url_with_credentials_that_the_guest_does_not_see() {
    let (bench, server) = (Bench::new(Limits::default()).await, tcp().await);
    let mut granted = NamedEndpoint::url(format!("http://{server}/prefix/"));
    granted.headers.insert("authorization".into(), "Bearer secret".into());
    let said = body(&bench.seen(get("http://engine.endpoint/x?y"), endpoint(granted)).await);
    assert_eq!((&said["path"], &said["query"]), (&json!("/prefix/x"), &json!("y")));
    assert_eq!((&said["authorization"], &said["host"]), (&json!("Bearer secret"), &json!(server.to_string())));
}

#[tokio::test]
async fn a_wait_on_an_endpoint_with_its_own_limit_does_not_use_up_the_calls_wall_time() {
    let limits = Limits { wall_time_ms: 400, ..Limits::default() };
    let (bench, server) = (Bench::new(limits).await, tcp().await);
    let granted =
        |timeout_seconds| endpoint(NamedEndpoint { timeout_seconds, ..NamedEndpoint::url(format!("http://{server}")) });
    let started = Instant::now();
    let seen = bench.seen(get("http://engine.endpoint/slow"), granted(Some(30))).await;
    assert_eq!(body(&seen)["path"], "/slow");
    assert!(started.elapsed() >= Duration::from_secs(1));

    match bench.granted(get("http://engine.endpoint/slow"), granted(None)).await {
        // The request's limit and the call's are equal here; either may be seen first.
        Err(error) => assert!(matches!(error.failure, Failure::Wall { .. }), "{error}"),
        Ok(reply) => assert_eq!(reply.outcome.status[0]["seen"]["reason"], "RequestTimeout"),
    }
}

pub type Authority = rcgen::CertifiedIssuer<'static, rcgen::KeyPair>;

pub fn authority() -> Authority {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
}

fn signed(authority: &Authority, name: &str) -> (rcgen::Certificate, rcgen::KeyPair) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap(), key)
}

/// A TLS server; with `clients`, one that wants a client certificate of that authority.
pub async fn tls(authority: &Authority, clients: Option<&Authority>) -> SocketAddr {
    let (certificate, key) = signed(authority, "127.0.0.1");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(clients.der().clone()).unwrap();
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = rustls_pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream);
            }
        }
    });
    server
}

#[tokio::test]
async fn a_server_is_trusted_by_the_authority_that_the_guest_or_the_grant_gives() {
    let authority = authority();
    let server = tls(&authority, None).await;

    let bench = Bench::new(Limits::default()).await;
    let grants = || origins(&[format!("https://{server}")]);
    let seen = bench.seen(get(format!("https://{server}/")), grants()).await;
    assert_eq!(seen["refused"], "Refusal::Unavailable", "{seen}");
    let mut trusting = get(format!("https://{server}/"));
    trusting["trust"] = json!(authority.pem());
    assert_eq!(body(&bench.seen(trusting, grants()).await)["version"], "HTTP/2.0");
    let mut nonsense = get(format!("https://{server}/"));
    nonsense["trust"] = json!("-----BEGIN NOTHING-----");
    assert_eq!(bench.seen(nonsense, grants()).await["refused"], "Refusal::Invalid");

    let granted = NamedEndpoint { ca: Some(authority.pem()), ..NamedEndpoint::url(format!("https://{server}")) };
    assert_eq!(body(&bench.seen(get("http://engine.endpoint/x"), endpoint(granted)).await)["path"], "/x");
}

#[tokio::test]
async fn an_endpoint_presents_the_client_certificate_of_its_grant() {
    let (server_authority, clients) = (authority(), authority());
    let server = tls(&server_authority, Some(&clients)).await;
    let bench = Bench::new(Limits::default()).await;
    let anonymous =
        NamedEndpoint { ca: Some(server_authority.pem()), ..NamedEndpoint::url(format!("https://{server}")) };
    let seen = bench.seen(get("http://engine.endpoint/x"), endpoint(anonymous.clone())).await;
    assert_eq!(seen["refused"], "Refusal::Unavailable", "{seen}");
    let (certificate, key) = signed(&clients, "host");
    let identity = ClientCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() };
    let known = NamedEndpoint { client_certificate: Some(identity), ..anonymous };
    assert_eq!(body(&bench.seen(get("http://engine.endpoint/x"), endpoint(known)).await)["path"], "/x");
}

/// Calls of one generation share what is kept; another generation, or another client of the same grants, has its own.
#[tokio::test]
async fn a_recent_answer_will_do_for_the_very_same_request_of_the_same_generation() {
    let authority = authority();
    let server = tls(&authority, None).await;
    let grants = Grants { insecure_tls: true, ..origins(&[format!("https://{server}")]) };
    let bench = Bench::new(Limits { requests: 1, ..Limits::default() }).await;
    let generation = Arc::new(HttpClient::new(&grants, &bench.limits).unwrap());
    let ask = async |client: &Arc<HttpClient>, changes: Value| {
        let mut spec = json!({"do": "http", "method": "POST", "url": format!("https://{server}/count"), "body": "password",
            "trust": authority.pem(), "maxAge": 3_600_000});
        spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let mut call = bench.call(spec, grants.clone());
        call.capabilities.http = client.clone();
        crate::support::seen(&bench.provider.call(call).await.unwrap())["ok"]["body"].clone()
    };
    let first = ask(&generation, json!({})).await;
    assert!(first.is_string());
    assert_eq!(ask(&generation, json!({})).await, first, "in another call");
    assert_eq!(ask(&generation, json!({"times": 5})).await, first, "what is not sent does not count as a request");
    let others = [
        ("the body", json!({"body": "another"})),
        ("the method", json!({"method": "PUT"})),
        ("the URL", json!({"url": format!("https://{server}/count?x")})),
        ("no verification", json!({"insecure": true})),
        ("a send is always sent", json!({"maxAge": null})),
    ];
    for (name, changes) in others {
        assert_ne!(ask(&generation, changes).await, first, "{name}");
    }
    assert_eq!(ask(&generation, json!({})).await, first, "the first is still kept");
    let next = Arc::new(HttpClient::new(&grants, &bench.limits).unwrap());
    assert_ne!(ask(&next, json!({})).await, first, "another generation begins anew");
    let renewed = ask(&generation, json!({"maxAge": 0})).await;
    assert_ne!(renewed, first, "asked anew");
    assert_eq!(ask(&generation, json!({})).await, renewed, "and kept");
    let refused = json!({"url": format!("https://{server}/refused")});
    assert_ne!(ask(&generation, refused.clone()).await, ask(&generation, refused).await, "a refusal is not kept");
}

#[tokio::test]
async fn of_calls_that_want_the_same_at_once_one_asks() {
    let server = tcp().await;
    let grants = origins(&[format!("http://{server}")]);
    let bench = Bench::new(Limits::default()).await;
    let client = Arc::new(HttpClient::new(&grants, &bench.limits).unwrap());
    let calls = (0..6).map(|_| {
        let spec =
            json!({"do": "http", "method": "POST", "url": format!("http://{server}/count?at-once"), "maxAge": 60_000});
        let mut call = bench.call(spec, grants.clone());
        call.capabilities.http = client.clone();
        bench.provider.call(call)
    });
    let answers = futures::future::join_all(calls).await;
    let bodies: Vec<Value> =
        answers.iter().map(|reply| crate::support::seen(reply.as_ref().unwrap())["ok"]["body"].clone()).collect();
    assert!(bodies[0].is_string() && bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_reached_only_when_that_is_granted_and_asked_for() {
    let server = tls(&authority(), None).await;
    let bench = Bench::new(Limits::default()).await;
    let grants = |insecure_tls| Grants { insecure_tls, ..origins(&[format!("https://{server}")]) };
    let asked = |insecure: bool| {
        let mut spec = get(format!("https://{server}/x"));
        spec["insecure"] = json!(insecure);
        spec
    };
    let denied = bench.seen(asked(true), grants(false)).await;
    assert_eq!(denied["refused"], "Refusal::Denied", "{denied}");
    assert!(denied["message"].as_str().unwrap().contains("spec.grants.insecureTLS"), "{denied}");
    let unasked = bench.seen(asked(false), grants(true)).await;
    assert_eq!(unasked["refused"], "Refusal::Unavailable", "{unasked}");
    assert_eq!(body(&bench.seen(asked(true), grants(true)).await)["path"], "/x");
    let elsewhere = Grants { insecure_tls: true, ..Grants::default() };
    assert_eq!(
        bench.seen(asked(true), elsewhere).await["refused"],
        "Refusal::Denied",
        "the origin needs its own grant"
    );
}

//! Attacks by requests: the Host header, credentials, rules of endpoints, names of endpoints.

use std::sync::Arc;

use capwasm_runtime::{Grants, Limits, NamedEndpoint, Rule};
use serde_json::{Value, json};

use crate::http::{endpoint, get, origins};
use crate::servers::{Made, Raw};
use crate::support::Bench;

fn with_headers(url: impl Into<String>, headers: Value) -> Value {
    let mut spec = get(url);
    spec["headers"] = headers;
    spec
}

fn lines<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let of = |line: &&str| line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name));
    head.lines().filter(of).collect()
}

/// The Host header is the URL's, whatever the guest says; nor can it end its request and begin another.
#[tokio::test]
async fn a_server_is_told_the_host_of_the_url_and_one_request_at_a_time() {
    let (bench, server) = (Bench::new(Limits::default()).await, Raw::good().await);
    let network = Arc::new(Made::default().server("10.0.0.9", server.address).name("api.example", &[&["10.0.0.9"]]));
    let granted = origins(&["http://*:*".to_owned()]);
    let ask = async |spec: Value| bench.seen_over(spec, &granted, &network).await;
    let refused = [
        json!([["Host", "internal.example"]]),
        json!([["host", ""]]),
        json!([["HOST", "api.example"], ["host", "internal.example"]]),
        json!([[":authority", "internal.example"]]),
        json!([["x", "y\r\nHost: internal.example"]]),
        json!([["x\r\nHost", "internal.example"]]),
        json!([["x", "y\n\nGET /other HTTP/1.1"]]),
        json!([["Transfer-Encoding", "chunked"]]),
        json!([["transfer-encoding", "x"], ["content-length", "0"]]),
        json!([["Connection", "x-secret"]]),
        json!([["Upgrade", "h2c"]]),
        json!([["Proxy-Authorization", "Basic x"]]),
        json!([["Proxy-Connection", "keep-alive"]]),
    ];
    for headers in refused {
        let seen = ask(with_headers("http://api.example/", headers.clone())).await;
        assert_eq!(seen["refused"], "Refusal::Invalid", "{headers}: {seen}");
    }
    for url in
        ["http://api.example/a b", "http://api.example/\r\nHost: x", "http://api.example\t/", "http://x@api.example/"]
    {
        assert_eq!(ask(get(url)).await["refused"], "Refusal::Invalid", "{url:?}");
    }
    let mut method = get("http://api.example/");
    method["method"] = json!("GET /other HTTP/1.1\r\nHost: internal.example\r\n\r\nGET");
    assert_eq!(ask(method).await["refused"], "Refusal::Invalid");
    assert_eq!(server.heads(), Vec::<String>::new(), "none of it was sent");

    let lying = json!([["content-length", "400"], ["x-forwarded-host", "internal.example"]]);
    assert_eq!(ask(with_headers("http://api.example:81/a?b=http://c/", lying)).await["ok"]["body"], "good");
    let heads = server.heads();
    assert!(heads[0].starts_with("GET /a?b=http://c/ HTTP/1.1\r\n"), "in origin form: {}", heads[0]);
    assert_eq!(lines(&heads[0], "host"), ["host: api.example:81"]);
    assert_eq!(
        lines(&heads[0], "content-length"),
        Vec::<&str>::new(),
        "it follows from the body, of which there is none"
    );
}

fn with_credentials(server: &Raw, path: &str) -> NamedEndpoint {
    let mut endpoint = NamedEndpoint::url(format!("http://{}{path}", server.address));
    endpoint.headers.insert("Authorization".into(), "Bearer secret".into());
    endpoint.headers.insert("x-api-key".into(), "key".into());
    endpoint
}

#[tokio::test]
async fn the_credentials_of_an_endpoint_are_the_hosts_and_never_shown() {
    let (bench, server) = (Bench::new(Limits::default()).await, Raw::good().await);
    let granted = endpoint(with_credentials(&server, ""));
    let own = json!([["authorization", "Bearer mine"], ["Authorization", "Basic mine"], ["X-API-Key", "mine"]]);
    let seen = bench.seen(with_headers("http://engine.endpoint/", own), granted.clone()).await;
    assert!(!seen.to_string().contains("secret"), "{seen}");
    let heads = server.heads();
    assert_eq!(lines(&heads[0], "authorization"), ["authorization: Bearer secret"]);
    assert_eq!(lines(&heads[0], "x-api-key"), ["x-api-key: key"]);

    for method in ["TRACE", "trace", "TRACK", "CONNECT", "connect"] {
        let mut echo = get("http://engine.endpoint/");
        echo["method"] = json!(method);
        assert_eq!(bench.seen(echo, granted.clone()).await["refused"], "Refusal::Invalid", "{method}");
    }
    let user = bench.seen(get("http://me:mine@engine.endpoint/"), granted).await;
    assert_eq!(user["refused"], "Refusal::Invalid");
    assert_eq!(server.heads().len(), 1);
}

/// A name under `.endpoint` is never asked of DNS, and never leads to an endpoint in another spelling.
#[tokio::test]
async fn an_endpoint_is_named_in_one_way_and_is_no_host() {
    let (bench, server, trap) = (Bench::new(Limits::default()).await, Raw::good().await, Raw::good().await);
    let other = ["engine.endpoint", "ENGINE.ENDPOINT", "engine.endpoint.", "other.endpoint", "a.engine.endpoint"];
    let network = other.iter().fold(Made::default(), |network, name| network.name(name, &[&["10.0.0.9"]]));
    let network = Arc::new(network.server("10.0.0.9", trap.address).server("127.0.0.1", server.address));
    let granted = || Grants {
        origins: origins(&["http://*:*".into(), "https://*:*".into()]).origins,
        ..endpoint(with_credentials(&server, ""))
    };
    let ask = async |url: &str| {
        let mut spec = get(url);
        spec["deadline"] = json!(2_000);
        bench.seen_over(spec, &granted(), &network).await
    };
    assert_eq!(ask("http://engine.endpoint/x").await["ok"]["body"], "good");
    assert_eq!((server.heads().len(), network.asked()), (1, Vec::new()));
    for url in ["http://other.endpoint/", "http://a.engine.endpoint/", "http://.endpoint/"] {
        assert_eq!(ask(url).await["refused"], "Refusal::Denied", "{url}");
    }
    assert_eq!(network.asked(), Vec::<String>::new());
    // These are names as others are: no credentials are for them.
    for url in [
        "http://engine.endpoint:80/",
        "https://engine.endpoint/",
        "http://ENGINE.ENDPOINT/",
        "http://engine.endpoint./",
    ] {
        let _ = ask(url).await;
    }
    assert_eq!(server.heads().len(), 1);
    assert!(trap.heads().iter().all(|head| lines(head, "authorization").is_empty()), "{:?}", trap.heads());
    assert!(trap.heads().len() >= 3, "the others are hosts: {:?}", trap.heads());
}

fn ruled(server: &Raw) -> Grants {
    let rule = |methods: &[&str], path: &str| Rule {
        methods: methods.iter().map(|m| (*m).to_owned()).collect(),
        path: path.into(),
    };
    let allow = vec![rule(&["GET"], "/v1/images/**"), rule(&["POST"], "/v1/images/*/pull")];
    endpoint(NamedEndpoint { allow, ..with_credentials(server, "") })
}

#[tokio::test]
async fn the_rules_of_an_endpoint_hold_for_every_spelling_of_a_path_and_method() {
    let (bench, server) = (Bench::new(Limits::default()).await, Raw::good().await);
    let paths = [
        "/v1/secrets",
        "/",
        "",
        "/v1/images/../secrets",
        "/v1/images/a/../../secrets",
        "/v1/images/%2e%2e/secrets",
        "/v1/images/%2E./secrets",
        "/v1/images/.%2e/secrets",
        "/v1/images/..%2fsecrets",
        "/v1/images/..%2Fsecrets",
        "/v1/images/%252e%252e/secrets",
        "/v1/images/%252e%252e%252fsecrets",
        "/v1/images/..%5csecrets",
        "/v1/images/..\\secrets",
        "/v1/images/..;/secrets",
        "/v1/images/..;x=y/secrets",
        "/v1/images/.;/a",
        "/v1/images/a;x",
        "/v1/images//secrets",
        "//v1/images/a",
        "/v1//images/a",
        "/v1/images/./a",
        "/v1/images/a%00",
        "/v1/images/a%0d%0aHost:%20x",
        "/v1/images/%c0%ae%c0%ae/secrets",
        "/v1/images/%zz",
        "/v1/images/%2",
        "/V1/images/a",
        "/v1/IMAGES/a",
        "/v1/imagesx/a",
        "/?/v1/images/a",
        "/v1/secrets?/v1/images/a",
        "/v1/secrets#/v1/images/a",
    ];
    for path in paths {
        let seen = bench.seen(get(format!("http://engine.endpoint{path}")), ruled(&server)).await;
        assert_eq!(seen["refused"], "Refusal::Denied", "{path}: {seen}");
    }
    for (method, path) in [
        ("POST", "/v1/images/a"),
        ("DELETE", "/v1/images/a"),
        ("HEAD", "/v1/images/a"),
        ("GETX", "/v1/images/a"),
        ("POST", "/v1/images/a/b/pull"),
    ] {
        let mut spec = get(format!("http://engine.endpoint{path}"));
        spec["method"] = json!(method);
        assert_eq!(bench.seen(spec, ruled(&server)).await["refused"], "Refusal::Denied", "{method} {path}");
    }
    for name in [
        "X-HTTP-Method-Override",
        "x-http-method",
        "X-Method-Override",
        "X-Original-URL",
        "X-Original-URI",
        "X-Rewrite-URL",
    ] {
        let spec = with_headers("http://engine.endpoint/v1/images/a", json!([[name, "DELETE"]]));
        assert_eq!(bench.seen(spec, ruled(&server)).await["refused"], "Refusal::Denied", "{name}");
    }
    assert_eq!(server.heads(), Vec::<String>::new(), "none of it was sent");
    let seen = bench.seen(get("http://engine.endpoint/v1/images/a.b/..c?x=/../y"), ruled(&server)).await;
    assert_eq!(seen["ok"]["body"], "good", "what is as it seems goes through");
    assert!(server.heads()[0].starts_with("GET /v1/images/a.b/..c?x=/../y HTTP/1.1\r\n"), "{}", server.heads()[0]);
}

/// An endpoint without rules, whose URL has a path: what is asked stays below it.
#[tokio::test]
async fn no_path_leaves_the_prefix_of_an_endpoint() {
    let (bench, server) = (Bench::new(Limits::default()).await, Raw::good().await);
    let granted = || endpoint(with_credentials(&server, "/tenants/mine/"));
    for path in ["/../other/x", "/..", "/%2e%2e/other", "/a/..%2f..%2fother", "/..\\other", "/..;/other", "//other"] {
        let seen = bench.seen(get(format!("http://engine.endpoint{path}")), granted()).await;
        assert_eq!(seen["refused"], "Refusal::Denied", "{path}: {seen}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
    assert_eq!(bench.seen(get("http://engine.endpoint/x/y?z"), granted()).await["ok"]["body"], "good");
    assert!(server.heads()[0].starts_with("GET /tenants/mine/x/y?z HTTP/1.1\r\n"), "{}", server.heads()[0]);
}

#[tokio::test]
async fn a_request_with_more_headers_than_fit_is_refused_to_the_guest() {
    let (bench, server) = (Bench::new(Limits::default()).await, Raw::good().await);
    let headers: Value = (0..40_000).map(|at| json!([format!("x-{at}"), ""])).collect();
    let granted = origins(&[format!("http://{}", server.address)]);
    let seen = bench.seen(with_headers(format!("http://{}/", server.address), headers), granted).await;
    assert_eq!(seen["refused"], "Refusal::Invalid", "{seen}");
    assert_eq!(server.heads(), Vec::<String>::new());
}

//! Attacks by servers: the call gets an error within its time limit, and the connection ends.

use std::sync::Arc;
use std::time::Duration;

use capwasm_runtime::{HttpClient, Limits};
use capwasm_test_support::hostile::{Behaviour, Ending, ON_THE_WAY, Server, behaviours};
use serde_json::{Value, json};

use crate::http::{get, origins};
use crate::servers::{Raw, Script};
use crate::support::Bench;

async fn seen(bench: &Bench, server: &Raw, changes: Value) -> Value {
    let mut spec = get(format!("http://{}/", server.address));
    spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    bench.seen(spec, origins(&[format!("http://{}", server.address)])).await
}

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// The table of misbehaviour that all clients meet. The neighbour is another call of the same provider, through the same client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_server_is_left_at_a_limit_and_named_and_its_neighbour_answers_meanwhile() {
    let bench = Bench::new(Limits { response_bytes: 1 << 20, ..Limits::default() }).await;
    let good = Raw::good().await;
    for Behaviour { name, script, ending } in behaviours() {
        let server = Server::start(script);
        let url = |address| format!("http://{address}");
        let grants = origins(&[url(server.address), url(good.address)]);
        let client = Arc::new(HttpClient::new(&grants, &bench.limits).unwrap());
        let ask = |spec: Value| bench.seen_with(spec, &grants, &client);
        let hostile = json!({"do": "http", "method": "GET", "url": url(server.address), "deadline": 500});
        let (told, neighbour) = tokio::join!(ask(hostile), ask(get(url(good.address))));
        assert_eq!(neighbour["ok"]["body"], "good", "{name}: {neighbour}");
        let reasons: &[&str] = match ending {
            Ending::TooLarge => &["ResponseTooLarge"],
            // A length that cannot be makes an answer none.
            Ending::Headers => &["HeadersTooLarge", "Unreachable"],
            Ending::Late => &["RequestTimeout"],
            Ending::Broken => &["Unreachable", "ResponseBroken"],
        };
        assert!(reasons.contains(&told["reason"].as_str().unwrap_or_default()), "{name}: {told}");
        let message = told["message"].as_str().unwrap_or_default();
        assert!(message.contains(&server.address.to_string()) && message.len() < 400, "{name}: {told}");
        assert!(server.sent() < ON_THE_WAY, "{name}: {} bytes", server.sent());
        // Not because its client went.
        assert!(tokio::task::spawn_blocking(move || server.left()).await.unwrap(), "{name}: the connection ends");
        drop(client);
    }
    bench.still_works().await;
}

#[tokio::test]
async fn an_answer_that_never_comes_to_an_end_of_its_own_is_given_up_in_time() {
    let bench = Bench::new(Limits::default()).await;
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    let rows = [
        ("nothing but empty lines", "\r\n".to_owned(), Duration::from_millis(20)),
        ("nothing but 100 Continue", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100), Duration::ZERO),
        ("nothing but 103 Early Hints", hints.repeat(100), Duration::ZERO),
    ];
    for (name, again, pause) in rows {
        let server = Raw::start(Script { first: Vec::new(), again: again.into(), pause }).await;
        let seen = seen(&bench, &server, json!({"deadline": 300})).await;
        assert_eq!(seen["reason"], "RequestTimeout", "{name}: {seen}");
        server.left().await;
    }
    bench.still_works().await;
}

#[tokio::test]
async fn an_answer_that_is_none_is_told_as_such() {
    let bench = Bench::new(Limits::default()).await;
    let trailers = format!(
        "{OK}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n{}\r\n",
        format!("t: {}\r\n", "x".repeat(1_000)).repeat(100)
    );
    let rows = [
        ("nonsense", "\u{0}\u{1}nonsense\r\n\r\n".to_owned()),
        ("a negative length", format!("{OK}content-length: -1\r\n\r\n")),
        ("a chunk of no length", format!("{OK}transfer-encoding: chunked\r\n\r\nzz\r\n")),
        ("wild trailers", trailers),
        ("a folded header", format!("{OK}a: b\r\n c\r\n\r\n")),
        ("status 99999", "HTTP/1.1 99999 OK\r\n\r\n".to_owned()),
    ];
    for (name, text) in rows {
        let server = Raw::once(&text).await;
        let seen = seen(&bench, &server, json!({})).await;
        assert_eq!(seen["refused"], "Refusal::Unavailable", "{name}: {seen}");
    }
    bench.still_works().await;
}

/// Nobody unpacks it: ten bytes may be ten gigabytes.
#[tokio::test]
async fn a_compressed_answer_comes_as_it_is() {
    let bench = Bench::new(Limits::default()).await;
    let server = Raw::once(&format!("{OK}content-encoding: gzip\r\ncontent-length: 10\r\n\r\n\u{1f}packed-up")).await;
    let seen = seen(&bench, &server, json!({})).await;
    assert_eq!((&seen["ok"]["bytes"], &seen["ok"]["body"]), (&json!(10), &json!("\u{1f}packed-up")), "{seen}");
    let head = &server.heads()[0].to_ascii_lowercase();
    assert!(!head.contains("accept-encoding"), "nor does anybody ask for it: {head}");
}

/// What stands behind an answer is not the next request's.
#[tokio::test]
async fn bytes_behind_an_answer_answer_nothing() {
    let bench = Bench::new(Limits::default()).await;
    let server = Raw::once(&format!("{OK}content-length: 4\r\n\r\ngood{OK}content-length: 4\r\n\r\nevil")).await;
    for _ in 0..5 {
        let seen = seen(&bench, &server, json!({"times": 3})).await;
        assert_ne!(seen["ok"]["body"], "evil", "{seen}");
    }
}

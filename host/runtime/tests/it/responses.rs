//! Attacks by servers: the call gets an error within its time limit, and the connection ends.

use std::time::Duration;

use capwasm_runtime::Limits;
use serde_json::{Value, json};

use crate::http::{get, origins};
use crate::servers::{Raw, Script};
use crate::support::Bench;

async fn seen(bench: &Bench, server: &Raw, changes: Value) -> Value {
    let mut spec = get(format!("http://{}/", server.address));
    spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    bench.seen(spec, origins(&[format!("http://{}", server.address)])).await
}

fn endless(first: &str, again: impl Into<Vec<u8>>) -> Script {
    Script { first: first.into(), again: again.into(), pause: Duration::ZERO }
}

const OK: &str = "HTTP/1.1 200 OK\r\n";

#[tokio::test]
async fn an_answer_without_end_stops_at_a_limit_and_its_connection_ends() {
    let bench = Bench::new(Limits { response_bytes: 1 << 20, ..Limits::default() }).await;
    let chunk = [format!("{:x}\r\n", 64 << 10).into_bytes(), vec![b'x'; 64 << 10], b"\r\n".to_vec()].concat();
    let rows = [
        (
            "a length that lies",
            endless(&format!("{OK}content-length: 9999999999999\r\n\r\n"), vec![b'x'; 64 << 10]),
            "ResponseTooLarge",
        ),
        (
            "a length that there is not",
            endless(&format!("{OK}content-length: 18446744073709551615\r\n\r\n"), vec![b'x'; 64 << 10]),
            "HeadersTooLarge",
        ),
        ("chunks", endless(&format!("{OK}transfer-encoding: chunked\r\n\r\n"), chunk), "ResponseTooLarge"),
        ("until it closes", endless(&format!("{OK}\r\n"), vec![b'x'; 64 << 10]), "ResponseTooLarge"),
        ("headers", endless(OK, "x-flood: yes\r\n".repeat(1_000)), "HeadersTooLarge"),
        ("one header", endless(&format!("{OK}x: "), vec![b'x'; 64 << 10]), "HeadersTooLarge"),
        ("the status line", endless("HTTP/1.1 200 ", vec![b'x'; 64 << 10]), "HeadersTooLarge"),
    ];
    for (name, script, reason) in rows {
        let server = Raw::start(script).await;
        let seen = seen(&bench, &server, json!({})).await;
        assert_eq!((&seen["refused"], &seen["reason"]), (&json!("Refusal::Limit"), &json!(reason)), "{name}: {seen}");
        server.left().await;
    }
    bench.still_works().await;
}

#[tokio::test]
async fn an_answer_that_never_comes_to_an_end_of_its_own_is_given_up_in_time() {
    let bench = Bench::new(Limits::default()).await;
    let slow = |first: &str, again: &str| Script {
        first: first.into(),
        again: again.into(),
        pause: Duration::from_millis(20),
    };
    let rows = [
        ("nothing but empty lines", slow("", "\r\n")),
        ("a slow head", slow(OK, "x")),
        ("a slow body", slow(&format!("{OK}content-length: 1000000\r\n\r\n"), "x")),
        ("slow chunks", slow(&format!("{OK}transfer-encoding: chunked\r\n\r\n"), "1\r\nx\r\n")),
        ("nothing but 100 Continue", endless("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100))),
        ("nothing but 103 Early Hints", endless("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(100))),
    ];
    for (name, script) in rows {
        let server = Raw::start(script).await;
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
        ("another protocol", "SSH-2.0-OpenSSH_9.9\r\n".to_owned()),
        ("less than it says", format!("{OK}content-length: 100\r\n\r\nshort")),
        ("two lengths", format!("{OK}content-length: 1\r\ncontent-length: 2\r\n\r\nxx")),
        ("a negative length", format!("{OK}content-length: -1\r\n\r\n")),
        ("a chunk of no length", format!("{OK}transfer-encoding: chunked\r\n\r\nzz\r\n")),
        ("a chunk of a wild length", format!("{OK}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n")),
        ("wild trailers", trailers),
        ("a folded header", format!("{OK}a: b\r\n c\r\n\r\n")),
        ("status 99999", "HTTP/1.1 99999 OK\r\n\r\n".to_owned()),
        ("nothing", String::new()),
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

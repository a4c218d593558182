//! Every limit, and every way in which a guest can go wrong: the one call fails, with a text that says where.

use std::time::{Duration, Instant};

use capwasm_contract::descriptor::KindPattern;
use capwasm_contract::{Failure, Function};
use capwasm_runtime::{CallError, Grants, Limits};
use serde_json::json;

use crate::support::Bench;

async fn failure(bench: &Bench, what: &str) -> CallError {
    let error = bench.machine(json!({"do": what})).await.unwrap_err();
    let text = error.to_string();
    let digest = &bench.provider.digest()["sha256:".len()..][..12];
    assert!(
        text.starts_with(&format!("provider fixture (sha256:{digest}), infrastructure-machine.provision: ")),
        "{text}"
    );
    bench.still_works().await;
    error
}

#[tokio::test]
async fn an_endless_loop_uses_up_its_cpu_time_while_others_go_on() {
    let bench = Bench::new(Limits { cpu_time_ms: 200, ..Limits::default() }).await;
    let (looping, others) = tokio::join!(failure(&bench, "loop"), async {
        for _ in 0..10 {
            bench.still_works().await;
        }
    });
    assert_eq!(others, ());
    assert!(matches!(looping.failure, Failure::Cpu { limit, .. } if limit == Duration::from_millis(200)), "{looping}");
    assert!(looping.to_string().contains("endless"), "{looping}");
}

#[tokio::test]
async fn a_memory_bomb_stops_at_its_limit_and_is_named() {
    let bench = Bench::new(Limits { memory_bytes: 16 << 20, ..Limits::default() }).await;
    let error = failure(&bench, "bomb").await;
    assert!(matches!(error.failure, Failure::Memory { limit, .. } if limit == 16 << 20), "{error}");
    assert!(error.to_string().contains("provision"), "{error}");
}

#[tokio::test]
async fn a_panic_of_the_guest_is_told_in_its_own_words_and_with_function_names() {
    let bench = Bench::new(Limits::default()).await;
    let error = failure(&bench, "panic").await;
    assert!(error.failure.is_trap());
    let text = error.to_string();
    assert!(text.contains("the guest's own words") && text.contains("innermost_mistake"), "{text}");
}

#[tokio::test]
async fn deep_recursion_is_a_trap() {
    let bench = Bench::new(Limits::default()).await;
    let error = failure(&bench, "recurse").await;
    assert!(error.failure.is_trap() && error.to_string().contains("recurse"), "{error}");
}

#[tokio::test]
async fn results_are_bounded_in_one_piece_and_in_sum() {
    let bench = Bench::new(Limits { memory_bytes: 128 << 20, ..Limits::default() }).await;
    for what in ["huge-status", "events"] {
        let error = failure(&bench, what).await;
        assert!(matches!(error.failure, Failure::Result { limit } if limit == 4 << 20), "{what}: {error}");
    }
    let call = |bytes: u64| capwasm_runtime::Call {
        function: Function::BootstrapGenerate,
        ..bench.call(json!({"bytes": bytes}), Grants::default())
    };
    assert!(bench.provider.call(call(3 << 20)).await.is_ok());
    let error = bench.provider.call(call(5 << 20)).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Result { .. }), "{error}");
    bench.still_works().await;
}

#[tokio::test]
async fn broken_json_is_a_trap_that_names_the_host_call() {
    let bench = Bench::new(Limits::default()).await;
    let error = failure(&bench, "bad-status").await;
    assert!(error.to_string().contains("outcome.set-status: not JSON"), "{error}");
}

#[tokio::test]
async fn wall_time_ends_a_call_that_only_waits() {
    let bench = Bench::new(Limits { wall_time_ms: 300, ..Limits::default() }).await;
    let started = Instant::now();
    let error = failure(&bench, "sleep").await;
    assert!(matches!(error.failure, Failure::Wall { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_panic_of_the_host_fails_one_call() {
    let bench = Bench::new(Limits::default()).await;
    let grants = Grants { reads: vec![KindPattern { group: String::new(), kind: "Pod".into() }], ..Grants::default() };
    let spec = json!({"do": "get", "apiVersion": "v1", "kind": "Pod", "name": "panic"});
    let error = bench.granted(spec, grants).await.unwrap_err();
    assert!(
        matches!(&error.failure, Failure::Panic { message } if message.contains("the host's own mistake")),
        "{error}"
    );
    bench.still_works().await;
}

#[tokio::test]
async fn a_call_that_finds_no_slot_in_its_time_is_busy() {
    let bench = Bench::new(Limits { wall_time_ms: 400, concurrency: 1, ..Limits::default() }).await;
    // The second gets the slot when the first's time is up; the third's is up by then.
    let calls = (0..3).map(|_| bench.machine(json!({"do": "sleep"})));
    let failures: Vec<_> =
        futures::future::join_all(calls).await.into_iter().map(|result| result.unwrap_err().failure).collect();
    assert!(matches!(failures[0], Failure::Wall { .. }), "{failures:?}");
    assert!(matches!(failures[2], Failure::Busy { .. }), "{failures:?}");
    bench.still_works().await;
}

#[tokio::test]
async fn a_dropped_call_frees_its_slot() {
    let bench = Bench::new(Limits { concurrency: 1, wall_time_ms: 20_000, ..Limits::default() }).await;
    let call = bench.machine(json!({"do": "sleep"}));
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    let started = Instant::now();
    bench.still_works().await;
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn keys_and_log_lines_are_counted() {
    let bench = Bench::new(Limits { keys: 2, ..Limits::default() }).await;
    let grants = Grants { pki: true, ..Grants::default() };
    let seen = bench.seen(json!({"do": "keys", "count": 3}), grants).await;
    assert_eq!((&seen["made"], &seen["error"]["reason"]), (&json!(2), &json!("TooManyKeys")));
    assert!(bench.machine(json!({"do": "log"})).await.unwrap().answer.is_ok());
}

//! Many calls, good and bad, leave nothing behind. A process of its own: it measures its memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "it/support.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod support;

use capwasm_runtime::Limits;
use serde_json::json;
use support::Bench;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn calls(bench: &Bench, count: usize) {
    for number in 0..count {
        let bad = ["panic", "bomb", "recurse"][number % 3];
        assert!(bench.machine(json!({"do": "facts"})).await.is_ok());
        if number % 10 == 0 {
            assert!(bench.machine(json!({"do": bad})).await.is_err());
        }
    }
}

#[tokio::test]
async fn a_thousand_calls_leave_memory_flat() {
    let bench = Bench::new(Limits { memory_bytes: 8 << 20, ..Limits::default() }).await;
    calls(&bench, 300).await;
    let before = resident_kib();
    calls(&bench, 1_000).await;
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 4 << 10, "grew by {grown} KiB from {before} KiB");
}

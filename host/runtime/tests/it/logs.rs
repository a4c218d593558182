//! What a guest writes into the host's log is bounded, and cannot pass for the host's own words.

use std::io;
use std::sync::Arc;

use capwasm_runtime::Limits;
use parking_lot::Mutex;
use serde_json::json;
use tracing::instrument::WithSubscriber;

use crate::support::Bench;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Log flood: 6,000 lines by all three ways, with forged ends of lines and a terminal's control sequences in them.
#[tokio::test]
async fn a_flood_of_lines_is_cut_off_and_the_log_stays_readable() {
    let bench =
        Bench::new(Limits { log_lines: 40, cpu_time_ms: 60_000, wall_time_ms: 120_000, ..Limits::default() }).await;
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let call = bench.machine(json!({"do": "flood"})).with_subscriber(subscriber);
    assert!(call.await.unwrap().answer.is_ok());

    let bytes = written.0.lock().clone();
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("capwasm::guest")).collect();
    assert_eq!(lines.len(), 40, "{text}");
    assert!(lines[39].contains("further lines of this call are dropped (limits.logLines)"), "{}", lines[39]);
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        assert!(!line.starts_with("forged") && !line.chars().any(char::is_control), "{line:?}");
        assert!(line.len() < 5 << 10, "{} bytes", line.len());
    }
    assert!(["forged  [2J0", "out 0", "err 0"].iter().all(|part| text.contains(part)), "{text}");
}

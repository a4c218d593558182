//! `log`, stdout and stderr: lines for the host's log. Bounded in number and length; needs no grant.

use std::fmt::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::log::{self, Level};
use crate::budget::{Budget, Limit};
use crate::untrusted;

/// Longest line in bytes; the rest is cut off.
const LINE_BYTES: usize = 4 << 10;
/// Bytes of stderr that an error repeats.
const TAIL_BYTES: usize = 1 << 10;

pub(crate) struct GuestLog {
    provider: String,
    function: String,
    trace_id: String,
    /// The call's, of which each line takes a part.
    pub(crate) budget: Arc<Budget>,
    lines: Mutex<Lines>,
}

struct Lines {
    /// Unfinished lines of stdout and stderr.
    partial: [Vec<u8>; 2],
    /// End of stderr.
    tail: String,
}

#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Stdout = 0,
    Stderr = 1,
}

impl GuestLog {
    pub(crate) fn new(provider: &str, function: &str, trace_id: &str, budget: Arc<Budget>) -> Self {
        GuestLog {
            provider: provider.to_owned(),
            function: function.to_owned(),
            trace_id: trace_id.to_owned(),
            budget,
            lines: Mutex::new(Lines { partial: [Vec::new(), Vec::new()], tail: String::new() }),
        }
    }

    /// Writes to a stream; complete lines are logged.
    pub(crate) fn output(&self, stream: Stream, bytes: &[u8]) {
        let mut lines = self.lines.lock();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let partial = &mut lines.partial[stream as usize];
            let room = LINE_BYTES.saturating_sub(partial.len());
            partial.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                let line = std::mem::take(partial);
                self.finish(&mut lines, stream, &line);
            }
        }
    }

    fn finish(&self, lines: &mut Lines, stream: Stream, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = untrusted::line(text.trim_end(), LINE_BYTES);
        if text.is_empty() {
            return;
        }
        if let Stream::Stderr = stream {
            keep_tail(&mut lines.tail, &text);
        }
        let level = match stream {
            Stream::Stdout => Level::Info,
            Stream::Stderr => Level::Warn,
        };
        self.line(level, &text);
    }

    /// End of the guest's stderr, as one line.
    pub(crate) fn stderr(&self) -> String {
        self.flush();
        self.lines.lock().tail.clone()
    }

    /// Logs unfinished lines.
    fn flush(&self) {
        let mut lines = self.lines.lock();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let line = std::mem::take(&mut lines.partial[stream as usize]);
            self.finish(&mut lines, stream, &line);
        }
    }

    fn line(&self, level: Level, text: &str) {
        if self.budget.charge(Limit::LogLines, 1_u32).is_err() {
            return;
        }
        let (provider, function, trace_id) = (&self.provider, &self.function, &self.trace_id);
        match self.budget.left(Limit::LogLines) {
            0 => tracing::warn!(
                target: "capwasm::guest", provider, function, trace_id, "further lines of this call are dropped (limits.logLines)"
            ),
            _ => match level {
                Level::Debug => tracing::debug!(target: "capwasm::guest", provider, function, trace_id, "{text}"),
                Level::Info => tracing::info!(target: "capwasm::guest", provider, function, trace_id, "{text}"),
                Level::Warn => tracing::warn!(target: "capwasm::guest", provider, function, trace_id, "{text}"),
                Level::Error => tracing::error!(target: "capwasm::guest", provider, function, trace_id, "{text}"),
            },
        }
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        self.flush();
    }
}

fn keep_tail(tail: &mut String, line: &str) {
    if !tail.is_empty() {
        tail.push_str(" | ");
    }
    tail.push_str(line);
    if tail.len() > TAIL_BYTES {
        let cut = tail.len() - TAIL_BYTES;
        let cut = (cut..tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
        tail.drain(..cut);
    }
}

pub(crate) struct LogView<'a> {
    pub(crate) log: &'a GuestLog,
}

struct HasLog;

impl HasData for HasLog {
    type Data<'a> = LogView<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> LogView<'_>) -> Result<()> {
    log::add_to_linker::<T, HasLog>(linker, view)
}

impl log::Host for LogView<'_> {
    fn write(&mut self, level: Level, message: String, fields: Vec<(String, String)>) -> Result<()> {
        if self.log.budget.left(Limit::LogLines) == 0 {
            return Ok(());
        }
        let mut text = untrusted::line(&message, LINE_BYTES);
        for (key, value) in &fields {
            if text.len() > LINE_BYTES {
                break;
            }
            // Writing to a String cannot fail.
            let _ = write!(text, " {}={:?}", untrusted::line(key, LINE_BYTES), untrusted::cut(value, LINE_BYTES));
        }
        text.truncate(untrusted::cut(&text, LINE_BYTES).len());
        self.log.line(level, &text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::limits::Limits;

    fn log_of(lines: u32) -> GuestLog {
        GuestLog::new("p", "f", "c", Arc::new(Budget::new(&Limits { log_lines: lines, ..Limits::default() })))
    }

    #[test]
    fn stderr_is_kept_by_its_end_and_in_one_line() {
        let log = log_of(10);
        log.output(Stream::Stderr, b"\nthread 'main' panicked at src/lib.rs:1:2:\nguest says");
        log.output(Stream::Stderr, b" no\x1b[31m\n");
        log.output(Stream::Stdout, b"not this\n");
        assert_eq!(log.stderr(), "thread 'main' panicked at src/lib.rs:1:2: | guest says no [31m");
    }

    #[test]
    fn lines_are_bounded_in_number_and_length() {
        let log = log_of(3);
        log.output(Stream::Stdout, &vec![b'x'; 1 << 20]);
        assert_eq!(log.lines.lock().partial[0].len(), LINE_BYTES);
        log.output(Stream::Stdout, &b"line\n".repeat(100));
        assert_eq!(log.budget.left(Limit::LogLines), 0);
    }

    #[test]
    fn a_long_tail_is_cut_at_a_character() {
        let mut tail = String::new();
        keep_tail(&mut tail, &"ü".repeat(TAIL_BYTES));
        assert!(tail.len() <= TAIL_BYTES && tail.starts_with('ü'));
    }
}

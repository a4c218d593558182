//! What the engine streams: progress of a pull, and logs.

use serde_json::Value;

/// Longest line of progress that is read, and bytes of a log's end.
const LONGEST: usize = 64 << 10;

/// Why a pull failed: the engine streams progress under a status of 200 and reports a failure as a line of it.
pub fn pull_failure(progress: &[u8]) -> Option<String> {
    let lines = progress.rsplit(|byte| *byte == b'\n').filter(|line| line.len() <= LONGEST);
    let mut lines = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.find_map(|line| line.get("error")?.as_str().map(str::to_owned))
}

/// The end of a log without the frames that the engine puts around the output of a container without a terminal.
pub fn log_text(mut bytes: &[u8]) -> String {
    let mut out = Vec::new();
    while let [0..=2, 0, 0, 0, a, b, c, d, rest @ ..] = bytes {
        let size = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX).min(rest.len());
        let (frame, next) = rest.split_at(size);
        out.extend_from_slice(frame);
        bytes = next;
    }
    out.extend_from_slice(bytes);
    end_of(&out)
}

/// The end of what a container wrote, as text: whoever reads its last lines needs no more.
pub fn end_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LONGEST)..]).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_failed_pull_is_found_in_its_progress() {
        assert_eq!(pull_failure(b"{\"status\":\"Pulling\"}\r\n{\"status\":\"Done\"}\r\n"), None);
        assert_eq!(pull_failure(b"{\"status\":\"x\"}\n{\"error\":\"no space\"}\n").as_deref(), Some("no space"));
        assert_eq!(pull_failure(b"\xff\xfe"), None);
    }

    #[test]
    fn logs_are_read_with_and_without_frames() {
        assert_eq!(log_text(b"\x01\0\0\0\0\0\0\x03a\nb\x02\0\0\0\0\0\0\x01c"), "a\nbc");
        assert_eq!(log_text(b"plain"), "plain");
        assert_eq!(log_text(b"\x01\0\0\0\xff\xff\xff\xffcut"), "cut");
    }
}

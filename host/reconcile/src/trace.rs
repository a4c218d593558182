//! Trace id of a pass, common to log lines, spans and calls of providers.

use jiff::Timestamp;

/// 32 hex digits, as W3C's trace context wants them: the first half of the object's uid, then the milliseconds of the
/// pass. So the same object's traces sort together, in time.
pub(crate) fn trace_id(uid: &str, now: Timestamp) -> String {
    let digits: String =
        uid.chars().filter(char::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase()).take(16).collect();
    // Never all zeros, which would be no id: now is after 1970.
    format!("{digits:0<16}{:016x}", now.as_millisecond().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_of_the_object_and_the_moment() {
        let now = Timestamp::from_millisecond(1_700_000_000_000).unwrap_or_default();
        assert_eq!(trace_id("01234567-89AB-cdef-0011-223344556677", now), "0123456789abcdef0000018bcfe56800");
        assert_eq!(trace_id("", Timestamp::UNIX_EPOCH), "00000000000000000000000000000001");
    }
}

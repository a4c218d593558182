//! Durations in Go's format (`1h30m`, `500ms`), and whole seconds.

const SECOND: i128 = 1_000_000_000;

/// Whole seconds of a Go duration, truncated and clamped to 32 bits.
pub fn seconds(text: &str) -> Option<i32> {
    let whole = nanoseconds(text)? / SECOND;
    Some(i32::try_from(whole).unwrap_or(if whole < 0 { i32::MIN } else { i32::MAX }))
}

/// Seconds in Go's format, such as `1h0m5s`.
pub fn text(seconds: i64) -> String {
    let (sign, all) = if seconds < 0 { ("-", seconds.unsigned_abs()) } else { ("", seconds.unsigned_abs()) };
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Nanoseconds of a Go duration; `None` if it is invalid.
fn nanoseconds(text: &str) -> Option<i128> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        total = total.checked_add(amount(number, nanoseconds_in(unit)?)?)?;
        rest = tail;
    }
    // Go keeps them in 64 bits.
    i64::try_from(total).ok()?;
    Some(if negative { -total } else { total })
}

fn nanoseconds_in(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        _ => return None,
    })
}

fn amount(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    // More digits than nanoseconds can tell apart say nothing.
    let fraction = &fraction[..fraction.len().min(15)];
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = digits(fraction)?.checked_mul(unit)? / scale;
    digits(whole)?.checked_mul(unit)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("10s", Some(10)),
            ("1h30m", Some(5400)),
            ("1.5h", Some(5400)),
            ("1h0m0.5s", Some(3600)),
            ("999ms", Some(0)),
            ("1500ms", Some(1)),
            (".5m", Some(30)),
            ("5.m", Some(300)),
            ("1us2ns3\u{b5}s", Some(0)),
            ("-90s", Some(-90)),
            ("+2m", Some(120)),
            ("0", Some(0)),
            ("876000h", Some(i32::MAX)),
            ("9999999999h", None),
            ("99999999999999999999999999999999999999999999s", None),
            ("", None),
            ("-", None),
            ("10", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("1d", None),
            ("1 s", None),
            ("\u{fc}s", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn seconds_are_written_as_go_writes_them() {
        for (value, expected) in
            [(0, "0s"), (59, "59s"), (60, "1m0s"), (90, "1m30s"), (3600, "1h0m0s"), (90_061, "25h1m1s"), (-61, "-1m1s")]
        {
            assert_eq!(text(value), expected);
            assert_eq!(seconds(expected).map(i64::from), Some(value), "{expected}");
        }
    }
}

//! Instants as OpenStack and Kubernetes write them.

/// Seconds since 1970 of `2026-11-20T16:28:30.000000Z`, also without the `Z`; fractions are cut. None for other offsets.
pub fn parse(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z').unwrap_or(text).split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time.split('.').next()?, ':')?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 {
        return None;
    }
    // Counted from March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = (year * 365 + leap_days + (month * 153 + 2) / 5 + day).checked_sub(719_469)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse::<u64>().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn instants_are_read_to_the_second() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2023-11-14T22:13:20.000000Z", Some(1_700_000_000)),
            ("2024-02-29T12:00:00", Some(1_709_208_000)),
            ("2000-03-01T00:00:00Z", Some(951_868_800)),
            ("2024-02-29T12:00:00+01:00", None),
            ("2024-13-01T00:00:00Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("yesterday", None),
        ] {
            assert_eq!(parse(text), seconds, "{text}");
        }
    }
}

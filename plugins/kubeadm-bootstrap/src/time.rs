//! Points in time as Kubernetes writes them.

/// `2023-11-14T22:13:20Z` of milliseconds since 1970.
pub fn rfc3339(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Proleptic Gregorian calendar in eras of 400 years that begin on 1 March, so that leap days come last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// Milliseconds since 1970 of such a text, with `Z` or an offset; none when it is something else or earlier.
pub fn parse(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| {
        text.get(range).filter(|it| it.bytes().all(|b| b.is_ascii_digit()))?.parse::<i64>().ok()
    };
    let separated = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !separated.iter().all(|(at, separator)| text.as_bytes().get(*at) == Some(separator)) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let of_day = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
    // A fraction of a second says nothing here.
    let zone = text.get(19..)?.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match zone {
        "Z" => 0,
        zone => {
            let sign = match zone.get(..1)? {
                "+" => 1,
                "-" => -1,
                _ => return None,
            };
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60)
        }
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // The same calendar as above, the other way round.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let seconds = (era * 146_097 + of_era - 719_468) * 86_400 + of_day - offset;
    u64::try_from(seconds).ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_kubernetes_writes_them() {
        for ms in [0, 951_782_400_000, 1_700_000_000_000, 1_709_164_800_000, 4_107_542_400_000, 253_402_300_799_000] {
            assert_eq!(parse(&rfc3339(ms)), Some(ms));
        }
        assert_eq!(parse("2023-11-14T23:13:20.999+01:00"), Some(1_700_000_000_000));
        for wrong in [
            "",
            "now",
            "2023-11-14",
            "2023-13-14T22:13:20Z",
            "2023-11-14T22:13:20",
            "1969-01-01T00:00:00Z",
            "2023-11-14T22:13:20?",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_written_as_kubernetes_does() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_700_000_000_999, "2023-11-14T22:13:20Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}

//! Timestamps and durations for components, in which `jiff` would add 220 kB to each.

pub mod duration;

/// `2023-11-14T22:13:20Z` (RFC 3339) for seconds since 1970.
pub fn format(seconds: u64) -> String {
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

/// Seconds since 1970 of an RFC 3339 text with `Z` or an offset; fractions are cut. `None` for other texts and earlier
/// times.
pub fn parse(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| {
        text.get(range).filter(|it| it.bytes().all(|b| b.is_ascii_digit()))?.parse::<i64>().ok()
    };
    let separated = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !separated.iter().all(|(at, separator)| text.as_bytes().get(*at) == Some(separator)) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
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
    // A minute may have a leap second.
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // The same calendar as above, the other way round.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = era * 146_097 + of_era - 719_468;
    u64::try_from(days * 86_400 + hour * 3600 + minute * 60 + second - offset).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_kubernetes_writes_them() {
        for seconds in [0, 951_782_400, 951_868_800, 1_709_208_000, 1_795_192_110, 4_107_542_400, 253_402_300_799] {
            assert_eq!(parse(&format(seconds)), Some(seconds));
        }
        for (text, seconds) in [
            ("2023-11-14T23:13:20.999+01:00", 1_700_000_000),
            ("2023-11-14T22:13:20.000000Z", 1_700_000_000),
            ("2026-11-20T16:28:30.999999999Z", 1_795_192_110),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
        }
        for wrong in [
            "",
            "now",
            "2023-11-14",
            "2023-13-14T22:13:20Z",
            "2023-11-14T24:13:20Z",
            "0001-01-01T00:00:00Z",
            "x-y-zTa:b:cZ",
            "2023-11-14T22:13:20",
            "1969-01-01T00:00:00Z",
            "2023-11-14T22:13:20?",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_written_as_kubernetes_does() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(format(seconds), text);
        }
    }
}

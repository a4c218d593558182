//! String and number formats that are validated. Others are accepted, as upstream does.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use base64::Engine;
use serde_json::Number;

pub(super) fn number_fits(format: &str, number: &Number) -> bool {
    let beyond_signed = number.as_i64().is_none() && number.as_u64().is_some();
    match format {
        "int32" => !beyond_signed && number.as_i64().is_none_or(|value| i32::try_from(value).is_ok()),
        "int64" => !beyond_signed,
        _ => true,
    }
}

/// Whether a text has the form that its format demands.
pub(super) fn text_fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => jiff::civil::Date::from_str(text).is_ok() && text.len() == 10,
        "duration" => duration_text_is_valid(text),
        "byte" => is_base64(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(format, text),
        "ipv4" => Ipv4Addr::from_str(text).is_ok(),
        "ipv6" => Ipv6Addr::from_str(text).is_ok(),
        "ip" => text.parse::<std::net::IpAddr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "hostname" => is_hostname(text),
        "email" => text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && is_hostname(host)),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
                && !rest.is_empty()
                && !rest.contains([' ', '\n', '\t'])
        }),
        _ => true,
    }
}

/// RFC 3339 with a zone. `jiff` also takes other ISO 8601 forms, so the shape is checked first.
fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b't')
        && bytes[13] == b':'
        && bytes[16] == b':'
        && !text.contains('[');
    shape && jiff::Timestamp::from_str(text).is_ok()
}

/// Whether `text` is a duration of Go, such as `1h30m`, `-1.5s`, `0`.
pub(crate) fn duration_text_is_valid(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if !number.bytes().any(|byte| byte.is_ascii_digit()) || number.matches('.').count() > 1 {
            return false;
        }
        let units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
        match units.iter().find_map(|unit| after.strip_prefix(unit)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

fn is_base64(text: &str) -> bool {
    base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

fn is_uuid(format: &str, text: &str) -> bool {
    let hex: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let dashes = text.bytes().enumerate().all(|(at, byte)| byte != b'-' || matches!(at, 8 | 13 | 18 | 23));
    let version = format.strip_prefix("uuid").and_then(|digit| digit.bytes().next());
    hex.len() == 32
        && dashes
        && hex.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|digit| hex.get(12) == Some(&digit))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Ok(length) = length.parse::<u8>() else { return false };
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => length <= 32,
        Ok(std::net::IpAddr::V6(_)) => length <= 128,
        Err(_) => false,
    }
}

fn is_mac(text: &str) -> bool {
    let separator = if text.contains('-') { '-' } else { ':' };
    let groups: Vec<&str> = text.split(separator).collect();
    matches!(groups.len(), 6 | 8 | 20)
        && groups.iter().all(|group| group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_hostname(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    !text.is_empty()
        && text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        })
}

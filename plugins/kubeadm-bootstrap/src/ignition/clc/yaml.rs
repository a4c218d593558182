//! YAML as the Go library reads it that Flatcar's transpiler uses: version 1.1's words for truths and its octal numbers.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_yaml::{Yaml, read};
use serde_json::{Value, json};

/// The one document of a text; null for an empty one.
pub(super) fn values(text: &str) -> Result<Value, String> {
    read::only_merged(text)?.map_or(Ok(Value::Null), value)
}

fn value(yaml: Yaml) -> Result<Value, String> {
    Ok(match yaml {
        Yaml::Scalar { text, binary: true, .. } => {
            let bytes = STANDARD.decode(text.split_ascii_whitespace().collect::<String>());
            let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            text.map(Value::String).ok_or("what is tagged !!binary is not a text in base64")?
        }
        Yaml::Scalar { text, plain: true, .. } => resolved(&text),
        Yaml::Scalar { text, .. } => json!(text),
        Yaml::List(items) => items.into_iter().map(value).collect::<Result<_, _>>()?,
        Yaml::Map(fields) => {
            let fields = fields.into_iter().map(|(key, field)| Ok((key, value(field)?)));
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
    })
}

fn resolved(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => return json!(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => return json!(false),
        _ => {}
    }
    let digits = text.replace('_', "");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let whole = match digits.get(..2) {
        Some("0x") => i64::from_str_radix(&digits[2..], 16).ok(),
        Some("0b") => i64::from_str_radix(&digits[2..], 2).ok(),
        Some("0o") => i64::from_str_radix(&digits[2..], 8).ok(),
        _ if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok(),
        _ => digits.parse().ok(),
    };
    if let Some(number) = whole {
        return json!(number * sign);
    }
    let is_float = digits.contains(['.', 'e', 'E']) && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    match digits.parse::<f64>() {
        Ok(number) if is_float && number.is_finite() => json!(number * f64::from(sign as i32)),
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn values_are_what_go_takes_them_for() {
        for (text, expected) in [
            ("", Value::Null),
            ("0644", json!(420)),
            ("0o644", json!(420)),
            ("0x1F", json!(31)),
            ("-7", json!(-7)),
            ("1_000", json!(1000)),
            ("1.5", json!(1.5)),
            ("yes", json!(true)),
            ("'yes'", json!("yes")),
            ("!!str 5", json!("5")),
            ("!!binary aGk=", json!("hi")),
            ("v1.36.0", json!("v1.36.0")),
            ("0999", json!("0999")),
            ("a: &x {b: 1}\nc: *x", json!({"a": {"b": 1}, "c": {"b": 1}})),
            ("a: &x {b: 1, d: 2}\nc: {<<: *x, d: 3}", json!({"a": {"b": 1, "d": 2}, "c": {"b": 1, "d": 3}})),
            ("a: |\n  one\n  two\n", json!({"a": "one\ntwo\n"})),
            ("1: a\ntrue: b", json!({"1": "a", "true": "b"})),
        ] {
            assert_eq!(values(text).as_ref(), Ok(&expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                    c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d]";
        for (text, part) in [
            ("a: [", ""),
            ("a: 1\na: 2", "twice"),
            ("a: 1\n---\nb: 1", "more than one"),
            ("{[a]: 1}", "key"),
            ("a: !!binary '%'", "base64"),
            ("a: *x", ""),
            (bomb, "more than 20000"),
            (&("[".repeat(60) + &"]".repeat(60)), "deep"),
        ] {
            let problem = values(text).expect_err(text);
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}

//! Reads YAML as the Go library does that Flatcar's transpiler uses: version 1.1's words for truths and its octal numbers.

use std::collections::HashMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value, json};

/// More values than any configuration has; what aliases stand for is counted each time.
const LARGEST: usize = 20_000;
/// Deeper than any configuration is.
const DEEPEST: usize = 40;

/// The one document of a text; null for an empty one.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader { root: None, open: Vec::new(), anchors: HashMap::new(), values: 0 };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| error.to_string())?;
        match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err("there is more than one document".into());
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| tag.suffix().to_owned());
                let value = scalar(&text, style == ScalarStyle::Plain, tag.as_deref())?;
                reader.value(value, anchor)?;
            }
            Event::SequenceStart(_, anchor, _) => reader.begin(Value::Array(Vec::new()), anchor)?,
            Event::MappingStart(_, anchor, _) => reader.begin(Value::Object(Map::new()), anchor)?,
            Event::SequenceEnd | Event::MappingEnd => reader.end()?,
            Event::Alias(anchor) => {
                let value = reader.anchors.get(&anchor).cloned().ok_or("an alias stands for itself")?;
                reader.count(size(&value))?;
                reader.put(value)?;
            }
            _ => {}
        }
    }
    Ok(reader.root.unwrap_or_default())
}

struct Reader {
    root: Option<Value>,
    /// Lists and maps that go on: the value so far, its anchor, and a key that waits for its value.
    open: Vec<(Value, usize, Option<String>)>,
    anchors: HashMap<usize, Value>,
    values: usize,
}

impl Reader {
    fn count(&mut self, more: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(more);
        if self.values > LARGEST { Err("it is too large".into()) } else { Ok(()) }
    }

    fn begin(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        self.count(1)?;
        if self.open.len() >= DEEPEST {
            return Err("it is nested too deeply".into());
        }
        self.open.push((value, anchor, None));
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let (mut value, anchor, _) = self.open.pop().ok_or("a list or map ends that did not begin")?;
        if let Value::Object(map) = &mut value
            && let Some(from) = map.remove("<<")
        {
            inherit(map, from)?;
        }
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        self.put(value)
    }

    fn value(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        self.count(1)?;
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        self.put(value)
    }

    /// Puts a value where it belongs.
    fn put(&mut self, value: Value) -> Result<(), String> {
        let Some((parent, _, key)) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        match parent {
            Value::Array(items) => items.push(value),
            Value::Object(map) => match key.take() {
                None => match value {
                    Value::String(name) => *key = Some(name),
                    Value::Number(_) | Value::Bool(_) => *key = Some(value.to_string()),
                    _ => return Err("a key is not a text".into()),
                },
                Some(name) => {
                    if map.contains_key(&name) {
                        return Err(format!("the key {name} is there twice"));
                    }
                    map.insert(name, value);
                }
            },
            _ => {}
        }
        Ok(())
    }
}

/// `<<: *anchor`: what the map does not say itself.
fn inherit(map: &mut Map<String, Value>, from: Value) -> Result<(), String> {
    match from {
        Value::Object(from) => {
            for (key, value) in from {
                map.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(items) => items.into_iter().try_for_each(|item| inherit(map, item)),
        _ => Err("<< needs a map".into()),
    }
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum(),
        _ => 0,
    }
}

fn scalar(text: &str, plain: bool, tag: Option<&str>) -> Result<Value, String> {
    match tag {
        Some("binary") => {
            let bytes = STANDARD.decode(text.split_ascii_whitespace().collect::<String>());
            let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            text.map(Value::String).ok_or_else(|| "what is tagged !!binary is not a text in base64".into())
        }
        Some("str") => Ok(json!(text)),
        _ if plain => Ok(resolved(text)),
        _ => Ok(json!(text)),
    }
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
            assert_eq!(read(text).as_ref(), Ok(&expected), "{text:?}");
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
            (bomb, "too large"),
            (&("[".repeat(60) + &"]".repeat(60)), "deep"),
        ] {
            let problem = read(text).expect_err(text);
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}

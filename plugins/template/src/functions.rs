//! Functions of templates, and what values are to them.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::Language;

const KNOWN: [&str; 15] =
    ["and", "eq", "ge", "gt", "index", "le", "len", "lt", "ne", "not", "or", "print", "printf", "println", "slice"];

/// Whether a name can be called.
pub fn check(name: &str, language: &Language) -> Result<(), String> {
    match name {
        name if language.function(name).is_some() => Ok(()),
        "call" | "html" | "js" | "urlquery" => Err(format!("function {name} is not supported")),
        name if KNOWN.contains(&name) => Ok(()),
        name => Err(format!("function {name:?} not defined")),
    }
}

/// Empty values are not true.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// The entries of a map in the order of their keys.
pub fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

/// As a template shows a value.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let entries: Vec<_> =
                sorted(map).into_iter().map(|(key, value)| format!("{key}:{}", printed(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// As `print` shows a value.
fn printed(value: &Value) -> String {
    if value.is_null() { "<nil>".into() } else { shown(value) }
}

/// Calls a function that takes all its arguments.
pub fn call(name: &str, arguments: &[Value], language: &Language) -> Result<Value, String> {
    if let Some(function) = language.function(name) {
        return function(arguments);
    }
    let wrong = || format!("wrong number of arguments for {name}: {}", arguments.len());
    match (name, arguments) {
        ("not", [value]) => Ok(Value::Bool(!truth(value))),
        ("eq", [first, rest @ ..]) if !rest.is_empty() => {
            for other in rest {
                if equal(first, other)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        ("ne", [a, b]) => equal(a, b).map(|equal| Value::Bool(!equal)),
        ("lt", [a, b]) => order(a, b).map(|order| Value::Bool(order == Ordering::Less)),
        ("le", [a, b]) => order(a, b).map(|order| Value::Bool(order != Ordering::Greater)),
        ("gt", [a, b]) => order(a, b).map(|order| Value::Bool(order == Ordering::Greater)),
        ("ge", [a, b]) => order(a, b).map(|order| Value::Bool(order != Ordering::Less)),
        ("len", [Value::String(text)]) => Ok(text.len().into()),
        ("len", [Value::Array(items)]) => Ok(items.len().into()),
        ("len", [Value::Object(map)]) => Ok(map.len().into()),
        ("len", [other]) => Err(format!("len of {}", shown(other))),
        ("index", [value, keys @ ..]) => keys.iter().try_fold(value.clone(), |value, key| index(&value, key)),
        ("slice", [Value::String(text), bounds @ ..]) if bounds.len() <= 2 => slice(text, bounds),
        ("print", values) => Ok(Value::String(print(values))),
        ("println", values) => Ok(Value::String(values.iter().map(printed).collect::<Vec<_>>().join(" ") + "\n")),
        ("printf", [Value::String(format), values @ ..]) => printf(format, values).map(Value::String),
        ("printf", [other, ..]) => Err(format!("printf needs a format, not {}", shown(other))),
        ("slice", [other, ..]) => Err(format!("can't slice {}", shown(other))),
        _ => Err(wrong()),
    }
}

fn equal(a: &Value, b: &Value) -> Result<bool, String> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Ok(a == b),
        (Value::Object(_), _) | (_, Value::Object(_)) => Err("maps can't be compared".into()),
        (Value::Array(_), _) | (_, Value::Array(_)) => Err("lists can't be compared".into()),
        (Value::Number(a), Value::Number(b)) => Ok(a.as_i64() == b.as_i64()),
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => Ok(a == b),
        _ => Err("incompatible types for comparison".into()),
    }
}

fn order(a: &Value, b: &Value) -> Result<Ordering, String> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(a.as_i64().cmp(&b.as_i64())),
        (Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
        _ => Err("incompatible types for comparison".into()),
    }
}

fn index(value: &Value, key: &Value) -> Result<Value, String> {
    let at = || usize::try_from(key.as_i64()?).ok();
    let out_of_range = || format!("index out of range: {}", shown(key));
    match (value, key) {
        (Value::Object(map), Value::String(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
        (Value::Array(items), Value::Number(_)) => at().and_then(|at| items.get(at).cloned()).ok_or_else(out_of_range),
        (Value::String(text), Value::Number(_)) => {
            at().and_then(|at| text.as_bytes().get(at)).map(|byte| Value::from(*byte)).ok_or_else(out_of_range)
        }
        _ => Err(format!("can't index {} with {}", shown(value), shown(key))),
    }
}

fn slice(text: &str, bounds: &[Value]) -> Result<Value, String> {
    let bound = |at: usize, otherwise: usize| match bounds.get(at) {
        None => Ok(otherwise),
        Some(Value::Number(at)) => {
            at.as_u64().and_then(|at| usize::try_from(at).ok()).ok_or_else(|| format!("index out of range: {at}"))
        }
        Some(other) => Err(format!("can't slice at {}", shown(other))),
    };
    let (from, to) = (bound(0, 0)?, bound(1, text.len())?);
    // Half a character is no text.
    text.get(from..to)
        .map(|part| Value::String(part.to_owned()))
        .ok_or_else(|| format!("index out of range: {from} to {to}"))
}

/// Blanks stand between two values neither of which is a text.
fn print(values: &[Value]) -> String {
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        let text = |value: &Value| matches!(value, Value::String(_));
        if at > 0 && !text(value) && !text(&values[at - 1]) {
            out.push(' ');
        }
        out.push_str(&printed(value));
    }
    out
}

fn printf(format: &str, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut values = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut flags = String::new();
        while let Some(flag) = chars.next_if(|c| "-0123456789".contains(*c)) {
            flags.push(flag);
        }
        let verb = chars.next().ok_or("printf: the format ends in %")?;
        if verb == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| format!("printf: no value for %{flags}{verb}"))?;
        let text = match (verb, value) {
            ('v', value) | ('s', value @ Value::String(_)) => printed(value),
            ('d', Value::Number(number)) => number.to_string(),
            ('x', Value::Number(number)) => {
                let number = number.as_i64().unwrap_or_default();
                format!("{}{:x}", if number < 0 { "-" } else { "" }, number.unsigned_abs())
            }
            ('t', Value::Bool(flag)) => flag.to_string(),
            ('q', Value::String(text)) => format!("{text:?}"),
            _ => return Err(format!("printf: %{verb} of {} is not supported", shown(value))),
        };
        out.push_str(&padded(&text, &flags)?);
    }
    match values.next() {
        Some(extra) => Err(format!("printf: no verb for {}", shown(extra))),
        None => Ok(out),
    }
}

fn padded(text: &str, flags: &str) -> Result<String, String> {
    let (left, rest) = match flags.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, flags),
    };
    if rest.is_empty() {
        return Ok(text.to_owned());
    }
    let zeros = rest.starts_with('0') && !left;
    let width: usize = rest.parse().map_err(|_| format!("printf: {flags} is no width"))?;
    if width > 1000 {
        return Err(format!("printf: the width {width} is too large"));
    }
    Ok(match (left, zeros) {
        (true, _) => format!("{text:<width$}"),
        (false, true) => match text.strip_prefix('-') {
            Some(digits) => format!("-{digits:0>width$}", width = width.saturating_sub(1)),
            None => format!("{text:0>width$}"),
        },
        (false, false) => format!("{text:>width$}"),
    })
}

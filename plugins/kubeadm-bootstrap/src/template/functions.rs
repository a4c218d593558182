//! Functions of templates.

use std::cmp::Ordering;

use super::Value;

const KNOWN: [&str; 15] =
    ["and", "eq", "ge", "gt", "index", "le", "len", "lt", "ne", "not", "or", "print", "printf", "println", "slice"];

/// Whether a name can be called.
pub fn check(name: &str) -> Result<(), String> {
    match name {
        "call" | "html" | "js" | "urlquery" => Err(format!("function {name} is not supported")),
        name if KNOWN.contains(&name) => Ok(()),
        name => Err(format!("function {name:?} not defined")),
    }
}

/// Empty values are not true.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Missing => false,
        Value::Bool(flag) => *flag,
        Value::Int(number) => *number != 0,
        Value::Text(text) => !text.is_empty(),
        Value::Map(map) => !map.is_empty(),
    }
}

/// As a template shows a value.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Missing => "<no value>".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Map(map) => {
            let entries: Vec<_> = map.iter().map(|(key, value)| format!("{key}:{}", printed(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// As `print` shows a value.
fn printed(value: &Value) -> String {
    if *value == Value::Missing { "<nil>".into() } else { shown(value) }
}

/// Calls a function that takes all its arguments.
pub fn call(name: &str, arguments: Vec<Value>) -> Result<Value, String> {
    let wrong = || format!("wrong number of arguments for {name}: {}", arguments.len());
    match (name, arguments.as_slice()) {
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
        ("len", [Value::Text(text)]) => Ok(Value::Int(i64::try_from(text.len()).unwrap_or(i64::MAX))),
        ("len", [Value::Map(map)]) => Ok(Value::Int(i64::try_from(map.len()).unwrap_or(i64::MAX))),
        ("len", [other]) => Err(format!("len of {}", shown(other))),
        ("index", [value, keys @ ..]) => keys.iter().try_fold(value.clone(), |value, key| index(&value, key)),
        ("slice", [Value::Text(text), bounds @ ..]) if bounds.len() <= 2 => slice(text, bounds),
        ("print", values) => Ok(Value::Text(print(values))),
        ("println", values) => Ok(Value::Text(values.iter().map(printed).collect::<Vec<_>>().join(" ") + "\n")),
        ("printf", [Value::Text(format), values @ ..]) => printf(format, values).map(Value::Text),
        ("printf", [other, ..]) => Err(format!("printf needs a format, not {}", shown(other))),
        ("slice", [other, ..]) => Err(format!("can't slice {}", shown(other))),
        _ => Err(wrong()),
    }
}

fn equal(a: &Value, b: &Value) -> Result<bool, String> {
    match (a, b) {
        (Value::Missing, _) | (_, Value::Missing) => Ok(a == b),
        (Value::Map(_), _) | (_, Value::Map(_)) => Err("maps can't be compared".into()),
        (Value::Bool(_), Value::Bool(_)) | (Value::Int(_), Value::Int(_)) | (Value::Text(_), Value::Text(_)) => {
            Ok(a == b)
        }
        _ => Err("incompatible types for comparison".into()),
    }
}

fn order(a: &Value, b: &Value) -> Result<Ordering, String> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Ok(a.cmp(b)),
        _ => Err("incompatible types for comparison".into()),
    }
}

fn index(value: &Value, key: &Value) -> Result<Value, String> {
    match (value, key) {
        (Value::Map(map), Value::Text(key)) => Ok(map.get(key).cloned().unwrap_or(Value::Missing)),
        (Value::Text(text), Value::Int(at)) => usize::try_from(*at)
            .ok()
            .and_then(|at| text.as_bytes().get(at))
            .map(|byte| Value::Int(i64::from(*byte)))
            .ok_or_else(|| format!("index out of range: {at}")),
        _ => Err(format!("can't index {} with {}", shown(value), shown(key))),
    }
}

fn slice(text: &str, bounds: &[Value]) -> Result<Value, String> {
    let bound = |at: usize, otherwise: usize| match bounds.get(at) {
        None => Ok(otherwise),
        Some(Value::Int(at)) => usize::try_from(*at).map_err(|_| format!("index out of range: {at}")),
        Some(other) => Err(format!("can't slice at {}", shown(other))),
    };
    let (from, to) = (bound(0, 0)?, bound(1, text.len())?);
    // Half a character is no text.
    text.get(from..to)
        .map(|part| Value::Text(part.to_owned()))
        .ok_or_else(|| format!("index out of range: {from} to {to}"))
}

/// Blanks stand between two values neither of which is a text.
fn print(values: &[Value]) -> String {
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        let text = |value: &Value| matches!(value, Value::Text(_));
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
            ('v', value) | ('s', value @ Value::Text(_)) => printed(value),
            ('d', Value::Int(number)) => number.to_string(),
            ('x', Value::Int(number)) => format!("{}{:x}", if *number < 0 { "-" } else { "" }, number.unsigned_abs()),
            ('t', Value::Bool(flag)) => flag.to_string(),
            ('q', Value::Text(text)) => format!("{text:?}"),
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

//! What an answer looks like when everything is taken out of it that differs from one run to the next.

use serde_json::{Map, Value};

/// The value with a placeholder for each id, time, address and port of loopback.
pub fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (text(key), normalized(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(normalized).collect();
            // No list of a service has an order that it keeps.
            if items.iter().all(Value::is_object) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::String(string) => Value::String(text(string)),
        other => other.clone(),
    }
}

/// Where the two differ, as `path: expected, found`. Members of objects have to be the same; values too when `values` says so,
/// otherwise their types. Arrays are compared item by item, or by their first items where only types count.
pub fn differences(expected: &Value, found: &Value, values: bool) -> Vec<String> {
    let mut all = Vec::new();
    compare("", expected, found, values, &mut all);
    all
}

fn compare(path: &str, expected: &Value, found: &Value, values: bool, all: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                match right.get(key) {
                    Some(other) => compare(&format!("{path}/{key}"), value, other, values, all),
                    None => all.push(format!("{path}/{key}: is missing, should be {value}")),
                }
            }
            for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(*key)) {
                all.push(format!("{path}/{key}: should not be there, is {value}"));
            }
        }
        (Value::Array(left), Value::Array(right)) if values => {
            if left.len() != right.len() {
                all.push(format!("{path}: should have {} items, has {}", left.len(), right.len()));
            }
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}/{index}"), left, right, values, all);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            if left.is_empty() != right.is_empty() {
                all.push(format!("{path}: should have {} items, has {}", left.len(), right.len()));
            }
            if let (Some(left), Some(right)) = (left.first(), right.first()) {
                compare(&format!("{path}/0"), left, right, values, all);
            }
        }
        (left, right) if values && left != right => all.push(format!("{path}: should be {left}, is {right}")),
        (left, right) if kind(left) != kind(right) => all.push(format!("{path}: should be {left}, is {right}")),
        _ => {}
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn text(string: &str) -> String {
    use std::sync::LazyLock;
    static PATTERNS: LazyLock<Vec<(regex::Regex, &str)>> = LazyLock::new(|| {
        [
            (r"(?i)\breq-[0-9a-f-]{36}\b", "<request>"),
            (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
            (r"(?i)\b[0-9a-f]{64}\b", "<digest>"),
            (r"(?i)\b[0-9a-f]{32}\b", "<id>"),
            (r"(?i)\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b", "<mac>"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "<time>"),
            // The fake has all services at one address.
            (r"http://127\.0\.0\.1:\d+(/(identity|compute|image|networking|load-balancer|volume)\b)?", "<service>"),
            (r"\b(198\.51\.100|127\.\d+\.\d+)\.\d+\b", "<external>"),
            // Chosen by chance from the table's only subnet.
            (r"^10\.6\.0\.\d+$", "<inner>"),
        ]
        .into_iter()
        .map(|(pattern, name)| (regex::Regex::new(pattern).expect("a pattern"), name))
        .collect()
    });
    PATTERNS.iter().fold(string.to_owned(), |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{differences, normalized};
    use serde_json::json;

    #[test]
    fn ids_times_and_addresses_are_replaced() {
        let value = json!({"id": "2d052096e5b94f6182ed64dcd63d2de6", "at": "2026-11-22T04:46:04Z",
            "message": "Network 58f9e5f0-91f1-4d7d-8c5c-0c1a3f8ab0a1 is in use", "cidr": "10.0.0.0/24",
            "href": "http://127.0.0.1:29004/v2.1/servers"});
        let expected = json!({"id": "<id>", "at": "<time>", "message": "Network <id> is in use", "cidr": "10.0.0.0/24",
            "href": "<service>/v2.1/servers"});
        assert_eq!(normalized(&value), expected);
    }

    #[test]
    fn differences_name_the_place() {
        let (left, right) = (json!({"a": [1], "b": "x", "c": null}), json!({"a": [], "b": "y", "d": 1}));
        let types = differences(&left, &right, false);
        assert_eq!(
            types,
            ["/a: should have 1 items, has 0", "/c: is missing, should be null", "/d: should not be there, is 1"]
        );
        assert!(differences(&left, &right, true).contains(&"/b: should be \"x\", is \"y\"".to_owned()));
    }
}

//! What an answer looks like when everything is taken out of it that differs from one run to the next.

use serde_json::{Map, Value};

/// Members whose values no two installations, and no two requests, have to share; each stays there as its placeholder, so that a
/// missing one is seen: member, placeholder, reason.
const BY_CHANCE: [(&str, &str, &str); 3] = [
    ("revision_number", "<revision>", "how often a service has written the resource, its own bookkeeping included"),
    ("standard_attr_id", "<number>", "the row's number in Neutron's data base"),
    ("hostId", "<host>", "a digest of the project's id and of the name of the host that the scheduler chose"),
];

/// Members of which null says the same as another value: member, that value, reason.
const SAME_AS_NULL: [(&str, Value, &str); 1] = [(
    "belongs_to_default_sg",
    Value::Bool(false),
    "of the two rules that each group starts with, the answer to POST says false and the one to GET null",
)];

/// The value with a placeholder for each id, time, address and port of loopback, and for what is there by chance.
pub fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (text(key), member(key, value)));
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

/// The value of the member of an object.
fn member(key: &str, value: &Value) -> Value {
    if let Some((_, placeholder, _)) = BY_CHANCE.iter().find(|(name, ..)| *name == key)
        && (value.is_number() || value.is_string())
    {
        return Value::String((*placeholder).to_owned());
    }
    match SAME_AS_NULL.iter().find(|(name, ..)| *name == key && value.is_null()) {
        Some((_, same, _)) => same.clone(),
        None => normalized(value),
    }
}

/// Where the two differ, as `path: expected, found`. Members of objects have to be the same; values too when `values` says so,
/// otherwise their types. Arrays are compared item by item, or by their first items where only types count; of two lengths, they differ
/// in the items that only one of them has.
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
        (Value::Array(left), Value::Array(right)) if values && left.len() != right.len() => {
            let mut more: Vec<&Value> = right.iter().collect();
            for item in left {
                match more.iter().position(|other| *other == item) {
                    Some(index) => drop(more.remove(index)),
                    None => all.push(format!("{path}: is missing, should be {item}")),
                }
            }
            all.extend(more.iter().map(|item| format!("{path}: should not be there, is {item}")));
        }
        (Value::Array(left), Value::Array(right)) if values => {
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
            (r"(?i)\b([0-9a-f]{64}){1,2}\b", "<digest>"),
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
    ordered(
        &PATTERNS
            .iter()
            .fold(string.to_owned(), |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned()),
    )
}

/// Octavia writes what is allowed in the order of a Python set, another one in each process.
fn ordered(text: &str) -> String {
    const ALLOWED: &str = "Value should be one of: ";
    let Some((start, allowed)) = text.split_once(ALLOWED) else { return text.to_owned() };
    let mut allowed: Vec<&str> = allowed.split(", ").collect();
    allowed.sort_unstable();
    format!("{start}{ALLOWED}{}", allowed.join(", "))
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
    fn what_is_there_by_chance_still_has_to_be_there() {
        let value = |revision: u32, default: serde_json::Value| json!({"revision_number": revision, "hostId": "4711", "belongs_to_default_sg": default});
        let expected = json!({"revision_number": "<revision>", "hostId": "<host>", "belongs_to_default_sg": false});
        assert_eq!(normalized(&value(1, json!(null))), expected);
        assert_eq!(normalized(&value(7, json!(false))), expected);
        assert_ne!(normalized(&value(7, json!(true))), expected);
        let without = normalized(&json!({"hostId": "4711", "belongs_to_default_sg": false}));
        assert_eq!(differences(&expected, &without, true), ["/revision_number: is missing, should be \"<revision>\""]);
    }

    #[test]
    fn what_a_set_allows_has_one_order() {
        let value = |allowed: &str| normalized(&json!(format!("Value: 'x'. Value should be one of: {allowed}")));
        assert_eq!(value("B, C, A"), value("A, B, C"));
        assert_ne!(value("B, C, A"), value("A, B, D"));
    }

    #[test]
    fn differences_name_the_place() {
        let (left, right) = (json!({"a": [1], "b": "x", "c": null}), json!({"a": [], "b": "y", "d": 1}));
        let types = differences(&left, &right, false);
        assert_eq!(
            types,
            ["/a: should have 1 items, has 0", "/c: is missing, should be null", "/d: should not be there, is 1"]
        );
        let values = differences(&left, &right, true);
        assert_eq!(values[..2], ["/a: is missing, should be 1", "/b: should be \"x\", is \"y\""]);
        let (left, right) = (json!([1, 2, 2]), json!([2, 3]));
        let items = differences(&left, &right, true);
        assert_eq!(items, [": is missing, should be 1", ": is missing, should be 2", ": should not be there, is 3"]);
    }
}

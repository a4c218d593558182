//! Values as Python writes them: that is how Nova's messages repeat what they refuse.

use serde_json::Value;

/// `repr()` of a value. Members come in the order of their names: that of the request is not known any more.
pub(super) fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(string) => quoted(string),
        Value::Array(items) => format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", quoted(name), repr(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// In apostrophes, or in quotation marks if only apostrophes are in it.
fn quoted(string: &str) -> String {
    let quote = if string.contains('\'') && !string.contains('"') { '"' } else { '\'' };
    let mut text = String::from(quote);
    for char in string.chars() {
        match char {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\\' => text.push_str("\\\\"),
            char if char == quote => text.extend(['\\', char]),
            char if char.is_ascii_control() => text.push_str(&format!("\\x{:02x}", u32::from(char))),
            char => text.push(char),
        }
    }
    text.push(quote);
    text
}

#[cfg(test)]
mod tests {
    use super::repr;
    use serde_json::json;

    #[test]
    fn values_are_written_as_python_does() {
        let value = json!({"a": null, "b": [true, false, 1, 1.5], "c": {"d": "e"}, "f": {}});
        assert_eq!(repr(&value), "{'a': None, 'b': [True, False, 1, 1.5], 'c': {'d': 'e'}, 'f': {}}");
    }

    #[test]
    fn strings_are_quoted_as_python_does() {
        assert_eq!(repr(&json!("it's")), "\"it's\"");
        assert_eq!(repr(&json!("\"it's\"")), "'\"it\\'s\"'");
        assert_eq!(repr(&json!("a\\b\n\u{1}é")), "'a\\\\b\\n\\x01é'");
    }
}

//! `clouds.yaml` as JSON. Scalars stay the text that was written, because what they mean is decided by their place: a
//! password may look like a number.

use capwasm_yaml::{Yaml, read};
use serde_json::Value;

/// The first document: every scalar a string, but for a plain `null`, `~` or nothing. The error never quotes values.
pub fn parse(text: &str) -> Result<Value, String> {
    Ok(read::first(text)?.map(json).unwrap_or_default())
}

fn json(node: Yaml) -> Value {
    match node {
        node if node.is_null() => Value::Null,
        Yaml::Scalar { text, .. } => Value::String(text),
        Yaml::List(items) => Value::Array(items.into_iter().map(json).collect()),
        Yaml::Map(fields) => Value::Object(fields.into_iter().map(|(key, value)| (key, json(value))).collect()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn scalars_are_text_as_it_was_written() {
        let text = "# comment\na: 0600\nb: 'null'\nc: ~\nd:\ne: [1, \"x\"]\nf: true\n";
        let value = json!({"a": "0600", "b": "null", "c": null, "d": null, "e": ["1", "x"], "f": "true"});
        assert_eq!(parse(text).unwrap(), value);
        assert_eq!(parse("# nothing\n").unwrap(), Value::Null);
    }

    #[test]
    fn entries_may_share_what_they_have_in_common() {
        let merged = parse("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n").unwrap();
        assert_eq!(merged["b"], json!({"x": "1", "y": "3"}));
    }
}

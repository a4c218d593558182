//! JSON of which only some parts are wanted: the rest is skipped, and costs next to nothing.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a JSON text, but no more than these parts of it: paths of keys such as `status/conditions/type`, which go on in each
/// item of a list. What is absent stays absent; a map or a list on the way to a part is there if it was there.
///
/// # Errors
/// When the text is not JSON.
pub(crate) fn read(text: &str, parts: &[&str]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Parts(parts.to_vec()).deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

/// What is left of each path; none when all of the value is wanted.
struct Parts<'p>(Vec<&'p str>);

impl<'de> DeserializeSeed<'de> for Parts<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        if self.0.is_empty() { serde::Deserialize::deserialize(reader) } else { reader.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Parts<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(wanted) = fields.next_key_seed(Key(&self.0))? {
            match wanted {
                Some((key, rest)) => drop(map.insert(key, fields.next_value_seed(rest)?)),
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Parts(self.0.clone()))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    // What is neither a map nor a list has no parts.

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
}

/// A key that some path begins with, and what is left of those; none for others, which are not even copied.
struct Key<'a, 'p>(&'a [&'p str]);

impl<'de, 'p> DeserializeSeed<'de> for Key<'_, 'p> {
    type Value = Option<(String, Parts<'p>)>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Key<'_, 'p> {
    type Value = Option<(String, Parts<'p>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let after = |path: &'p str| path.strip_prefix(key).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut rest: Vec<&str> = self.0.iter().filter_map(|path| after(path)).collect();
        if rest.is_empty() {
            return Ok(None);
        }
        // One that ends here wants all of it.
        if rest.contains(&"") {
            rest.clear();
        }
        Ok(Some((key.to_owned(), Parts(rest.into_iter().map(|path| &path[1..]).collect()))))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wanted_is_there_and_nothing_else() {
        let object = json!({
            "kind": "Pod", "metadata": {"name": "a", "labels": {"x/y": "z"}, "named": 1},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "message": "m"}, 3, null]},
            "spec": {"big": [1, 2.5, -3, true, "é\n\"", {"deep": {}}]},
        });
        let rows: [(&[&str], Value); 6] = [
            (&["metadata/name"], json!({"metadata": {"name": "a"}})),
            (&["metadata/name", "metadata"], json!({"metadata": object["metadata"]})),
            (
                &["status/conditions/type", "kind"],
                json!({"kind": "Pod", "status": {"conditions": [{"type": "Ready"}, 3, null]}}),
            ),
            (&["spec/big/deep"], json!({"spec": {"big": [1, 2.5, -3, true, "é\n\"", {"deep": {}}]}})),
            (&["kind/of/nothing", "absent"], json!({"kind": "Pod"})),
            (&[], object.clone()),
        ];
        for (parts, expected) in rows {
            assert_eq!(read(&object.to_string(), parts).unwrap(), expected, "{parts:?}");
        }
        assert!(read("{\"metadata\": {\"name\": \"a\"}", &["metadata/name"]).is_err(), "cut off");
        assert!(read("{} {}", &["a"]).is_err(), "more than one");
    }
}

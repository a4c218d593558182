//! JSON of which only some fields are wanted: the rest is skipped, and costs next to nothing.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a JSON text, but no more than these fields of it: paths of keys such as `status/conditions/type`, which go on in each
/// item of a list. What is absent stays absent; a map or a list on the way to a field is there if it was there.
///
/// # Errors
/// When the text is not JSON.
pub(crate) fn read(text: &str, fields: &[&str]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Fields::all(fields).deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

/// Where in the paths a value is: those that lead there, as bits, and how many of their bytes did. All have these bytes in
/// common, so that going on costs no memory.
#[derive(Clone, Copy)]
struct Fields<'p> {
    paths: &'p [&'p str],
    leading: u64,
    gone: usize,
}

impl<'p> Fields<'p> {
    /// At the top. Of more paths than there are bits all is read.
    fn all(paths: &'p [&'p str]) -> Self {
        let leading = if let 1..=64 = paths.len() { u64::MAX >> (64 - paths.len()) } else { 0 };
        Fields { paths, leading, gone: 0 }
    }

    /// All of the value is wanted.
    fn is_whole(self) -> bool {
        self.leading == 0
    }

    /// Behind a key; none where no path goes on with it.
    fn after(self, key: &str) -> Option<Self> {
        let mut leading = 0;
        let mut whole = false;
        for (index, path) in self.paths.iter().enumerate().filter(|(index, _)| self.leading & (1 << index) != 0) {
            // Each path that leads here is at least this long.
            match path.as_bytes()[self.gone..].strip_prefix(key.as_bytes()) {
                Some([]) => whole = true,
                Some([b'/', ..]) => leading |= 1 << index,
                _ => {}
            }
        }
        match (whole, leading) {
            (false, 0) => None,
            // A path that ends here wants all of it.
            (true, _) => Some(Fields { leading: 0, ..self }),
            (false, _) => Some(Fields { leading, gone: self.gone + key.len() + 1, ..self }),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        if self.is_whole() { serde::Deserialize::deserialize(reader) } else { reader.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(wanted) = fields.next_key_seed(Key(self))? {
            match wanted {
                Some((key, rest)) => drop(map.insert(key, fields.next_value_seed(rest)?)),
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    // What is neither a map nor a list has no fields.

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

/// A key that some path goes on with, and where that leads; none for others, which are not even copied.
struct Key<'p>(Fields<'p>);

impl<'de, 'p> DeserializeSeed<'de> for Key<'p> {
    type Value = Option<(String, Fields<'p>)>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Key<'p> {
    type Value = Option<(String, Fields<'p>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.after(key).map(|rest| (key.to_owned(), rest)))
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
        for (fields, expected) in rows {
            assert_eq!(read(&object.to_string(), fields).unwrap(), expected, "{fields:?}");
        }
        assert!(read("{\"metadata\": {\"name\": \"a\"}", &["metadata/name"]).is_err(), "cut off");
        assert!(read("{} {}", &["a"]).is_err(), "more than one");
    }
}

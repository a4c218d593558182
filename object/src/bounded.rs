//! Reads JSON of strangers into a tree whose memory is charged before it is held.
//!
//! A tree may take a hundred times the bytes of its text: seven bytes, `{"":0},`, make a map with a node of its own. So a limit of the
//! text is none of the memory. Here whoever reads says for each piece whether there is room for it, and the first refusal ends it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Why a text was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON.
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    /// There was no room for it.
    #[error("it takes more memory than there is for it")]
    TooLarge,
}

/// A slot of a list, and a value of a map, in bytes.
const SLOT: usize = size_of::<Value>();
/// Node of a map in bytes: it has room for eleven entries and is never less than half full, but for the only one. Nodes above these
/// are fewer by far, and within what nodes of honest maps have to spare.
const NODE: usize = 11 * (SLOT + size_of::<String>()) + 16;
/// Entries of a node at least.
const ENTRIES: usize = 5;

/// Reads a JSON text as `serde_json` does. `charge` is asked with the bytes of each piece of the tree before that is made, and answers
/// whether there is room. Together they are about what the tree takes, and never less than half of it: of texts of a few bytes and lists that grow
/// they are that little.
///
/// # Errors
/// When the text is not JSON, or `charge` refuses.
pub fn read(text: &[u8], charge: impl FnMut(usize) -> bool) -> Result<Value, ReadError> {
    let mut room = Room { charge, refused: false };
    let mut source = serde_json::Deserializer::from_slice(text);
    let read = Tree(&mut room).deserialize(&mut source);
    match read.and_then(|value| source.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(_) if room.refused => Err(ReadError::TooLarge),
        Err(error) => Err(error.into()),
    }
}

/// As [`read`], for trees of at most `left` bytes together, which are taken from it.
///
/// # Errors
/// As those of [`read`].
pub fn read_within(text: &[u8], left: &mut usize) -> Result<Value, ReadError> {
    read(text, |bytes| {
        let rest = left.checked_sub(bytes);
        *left = rest.unwrap_or_default();
        rest.is_some()
    })
}

/// What [`read`] charges for a tree in bytes.
pub fn cost(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(list) => list.capacity() * SLOT + list.iter().map(cost).sum::<usize>(),
        Value::Object(map) => {
            let entries: usize = map.iter().map(|(key, value)| key.len() + cost(value)).sum();
            map.len().div_ceil(ENTRIES) * NODE + entries
        }
    }
}

struct Room<F> {
    charge: F,
    refused: bool,
}

impl<F: FnMut(usize) -> bool> Room<F> {
    fn take<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        if bytes == 0 || (self.charge)(bytes) {
            return Ok(());
        }
        self.refused = true;
        Err(E::custom("no room"))
    }
}

/// Reads one value of a tree.
struct Tree<'a, F>(&'a mut Room<F>);

impl<'de, F: FnMut(usize) -> bool> DeserializeSeed<'de> for Tree<'_, F> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de, F: FnMut(usize) -> bool> Visitor<'de> for Tree<'_, F> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.0.take(text.len())?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Tree(self.0))? {
            if list.len() == list.capacity() {
                let more = list.len().max(4);
                self.0.take(more * SLOT)?;
                list.reserve_exact(more);
            }
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key_seed(Key(self.0))? {
            let value = entries.next_value_seed(Tree(self.0))?;
            if map.len().is_multiple_of(ENTRIES) {
                self.0.take(NODE)?;
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Reads the key of a map.
struct Key<'a, F>(&'a mut Room<F>);

impl<'de, F: FnMut(usize) -> bool> DeserializeSeed<'de> for Key<'_, F> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<String, D::Error> {
        source.deserialize_str(self)
    }
}

impl<F: FnMut(usize) -> bool> Visitor<'_> for Key<'_, F> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string key")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
        self.0.take(text.len())?;
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// What a text's tree is charged.
    fn charged(text: &str) -> usize {
        let mut charged = 0;
        let tree = read(text.as_bytes(), |bytes| {
            charged += bytes;
            true
        });
        assert_eq!(cost(&tree.unwrap()), charged, "{text}");
        charged
    }

    fn within(text: &[u8], mut most: usize) -> Result<Value, ReadError> {
        read_within(text, &mut most)
    }

    #[test]
    fn a_text_is_read_as_serde_json_reads_it() {
        let texts = [
            "null",
            " [1, -1, 1.5, 1e400, 18446744073709551615, 99999999999999999999, -0, true, \"a\\u00e4\\n\", []] ",
            r#"{"a": {"b": [{}, {"": null}]}, "a": 2, "\u0061b": "x", "$serde_json::private::RawValue": "1"}"#,
            "",
            "{",
            "{}x",
            r#"{"a"}"#,
            r#"{1: 2}"#,
            "[1,]",
            "\"\\ud800\"",
            "1e999",
            &"[".repeat(200),
        ];
        for text in texts {
            let (expected, read) = (serde_json::from_str::<Value>(text), read(text.as_bytes(), |_| true));
            match (expected, read) {
                (Ok(expected), Ok(read)) => assert_eq!(read, expected, "{text}"),
                (Err(expected), Err(ReadError::NotJson(error))) => {
                    assert_eq!(error.to_string(), expected.to_string(), "{text}");
                }
                // serde_json takes this key for a mark of its own.
                (Err(_), Ok(read)) if text.contains("RawValue") => assert_eq!(read["a"], 2),
                (expected, read) => assert!(read.is_err() && expected.is_err(), "{text}: {expected:?}, {read:?}"),
            }
        }
    }

    #[test]
    fn a_tree_is_charged_for_what_it_takes_and_not_for_its_text() {
        let rows = [
            ("a number", "12345", 0..=0),
            ("a text", r#""12345""#, 5..=5),
            ("an escaped text", r#""\u0061\n""#, 2..=2),
            ("an empty list", "[]", 0..=0),
            ("a list", "[0]", 4 * SLOT..=4 * SLOT),
            ("a list that grew", "[0,0,0,0,0]", 8 * SLOT..=8 * SLOT),
            ("an empty map", "{}", 0..=0),
            ("a map", r#"{"":0}"#, NODE..=NODE),
            ("a larger map", r#"{"aa":0,"bb":0,"cc":0,"dd":0,"ee":0,"ff":0}"#, 2 * NODE + 12..=2 * NODE + 12),
        ];
        for (name, text, expected) in rows {
            assert!(expected.contains(&charged(text)), "{name}: {}", charged(text));
        }
        let small = format!("[{}0]", r#"{"":0},"#.repeat(10_000));
        assert!(charged(&small) > 80 * small.len(), "{} of {}", charged(&small), small.len());
    }

    #[test]
    fn what_there_is_no_room_for_is_not_made() {
        let text = format!("[{}0]", r#"{"":0},"#.repeat(1_000));
        let most = charged(&text);
        assert!(within(text.as_bytes(), most).is_ok());
        assert!(matches!(within(text.as_bytes(), most - 1), Err(ReadError::TooLarge)));
        let mut pieces = 0;
        let stopped = read(text.as_bytes(), |_| {
            pieces += 1;
            pieces < 10
        });
        assert!(matches!(stopped, Err(ReadError::TooLarge)));
        assert_eq!(pieces, 10, "it went on after a refusal");
        assert!(matches!(within(b"\"xx\"", 1), Err(ReadError::TooLarge)));
        assert!(matches!(within(br#"{"xx":0}"#, 1), Err(ReadError::TooLarge)));
    }
}

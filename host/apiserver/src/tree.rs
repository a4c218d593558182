//! JSON values from what clients send, read within a bound: a few bytes of text become hundreds in memory (`{"":0}` is one entry of a
//! node that has room for eleven). So what is made is counted while it is read, and charged to the request.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::status::ApiError;
use crate::turn;

/// Most bytes in memory of the values of one body: sixteen for each byte of the largest body, which is what CustomResourceDefinitions
/// take, the densest of the honest.
pub(crate) const LIMIT: usize = 48 << 20;
/// Bytes that are charged at a time.
const STEP: usize = 64 << 10;

/// Beside its bytes, a text takes what the allocator adds.
const TEXT: usize = 16;
/// A place in a list that doubles as it grows, while the half of it is still there.
const ITEM: usize = 3 * size_of::<Value>();
/// The first node of an object, how many fields have room in it, and a place in nodes that are half full.
const NODE: usize = 640;
const NODE_FIELDS: usize = 11;
const FIELD: usize = 128;

/// Bytes that the YAML reader holds for each of a text that is all tokens, or comments.
const TOKENS: usize = 4;
/// What the anchors of a YAML text stand for is kept until its end: so many tokens, and bytes of their texts.
const ANCHORED: usize = 5_000;
const ANCHORED_BYTES: usize = 512 << 10;

/// Duplicates and unknown fields that are told, and bytes of each.
const MENTIONED: usize = 100;
const MENTION: usize = 256;

/// What the values of one body take. An estimate from above.
#[derive(Default)]
pub(crate) struct Tree {
    bytes: Cell<usize>,
    charged: Cell<usize>,
    refused: RefCell<Option<ApiError>>,
}

/// A tree is refused: [`Tree::refused`] says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit of what a request body may become in memory is {LIMIT} bytes")]
pub(crate) struct Refused;

impl Tree {
    /// One that is bounded, and charged to nobody: it is gone before the request is.
    pub fn uncharged() -> Self {
        Self { charged: Cell::new(usize::MAX), ..Self::default() }
    }

    /// Counts bytes before they are made.
    ///
    /// # Errors
    /// When there are too many for one body, or for its sender.
    pub fn add(&self, bytes: usize) -> Result<(), Refused> {
        let sum = self.bytes.get().saturating_add(bytes);
        self.bytes.set(sum);
        let charged = if sum > LIMIT {
            Err(ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {Refused}")))
        } else if sum > self.charged.get() {
            let more = (sum - self.charged.get()).max(STEP);
            turn::charge(more).map(|()| self.charged.set(self.charged.get() + more))
        } else {
            Ok(())
        };
        charged.map_err(|error| {
            *self.refused.borrow_mut() = Some(error);
            Refused
        })
    }

    /// What was counted, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// A text of a value.
    pub fn text(&self, bytes: usize) -> Result<(), Refused> {
        self.add(bytes + TEXT)
    }

    /// One more value in a list.
    pub fn item(&self) -> Result<(), Refused> {
        self.add(ITEM)
    }

    /// One more field of an object that has `fields`.
    pub fn field(&self, name: &str, fields: usize) -> Result<(), Refused> {
        let place = match fields {
            0 => NODE,
            _ if fields < NODE_FIELDS => 0,
            _ => FIELD,
        };
        self.add(name.len() + TEXT + place)
    }

    /// A copy of a value.
    pub fn copy(&self, value: &Value) -> Result<Value, Refused> {
        self.value(value).map(|()| value.clone())
    }

    fn value(&self, value: &Value) -> Result<(), Refused> {
        match value {
            Value::String(text) => self.text(text.len()),
            Value::Array(items) => items.iter().try_for_each(|item| self.item().and_then(|()| self.value(item))),
            Value::Object(fields) => fields.iter().enumerate().try_for_each(|(index, (name, value))| {
                self.field(name, index)?;
                self.value(value)
            }),
            _ => Ok(()),
        }
    }

    /// Why it was refused, if it was.
    pub fn refused(&self) -> Option<ApiError> {
        self.refused.borrow_mut().take()
    }
}

/// What a value takes in memory, in bytes.
pub(crate) fn size(value: &Value) -> usize {
    let tree = Tree::uncharged();
    // Beyond the limit it is counted on all the same, up to where it was refused.
    let _ = tree.value(value);
    tree.bytes()
}

/// Adds a path to those that a client is told, unless there are enough.
pub(crate) fn mention(mentioned: &mut Vec<String>, path: &impl fmt::Display) {
    if mentioned.len() < MENTIONED {
        let mut path = path.to_string();
        if path.len() > MENTION {
            path.truncate(path.floor_char_boundary(MENTION));
            path.shrink_to_fit();
        }
        mentioned.push(path);
    }
}

/// Reads a JSON text. Of fields that occur again the last one counts, as in Go; the first hundred are put into `duplicates`.
pub(crate) fn json(text: &[u8], tree: &Tree, duplicates: &mut Vec<String>) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = Reader { path: &Path::Root, duplicates, tree }.deserialize(&mut deserializer)?;
    deserializer.end().map(|()| read)
}

/// Reads a YAML text; an alias counts as what it stands for.
pub(crate) fn yaml(text: &str, tree: &Tree) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_recorded_anchor_events: ANCHORED, max_recorded_anchor_bytes: ANCHORED_BYTES },
    };
    tree.add(text.len() * TOKENS).map_err(de::Error::custom)?;
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Reader { path: &Path::Root, duplicates: &mut Vec::new(), tree }.deserialize(deserializer)
    })
}

/// Reads any JSON value, recording fields that occur again. As in Go, the last one counts.
struct Reader<'a> {
    path: &'a Path<'a>,
    duplicates: &'a mut Vec<String>,
    tree: &'a Tree,
}

impl Reader<'_> {
    fn text<E: de::Error>(&self, text: &str) -> Result<(), E> {
        self.tree.text(text.len()).map_err(E::custom)
    }
}

/// The path to a value, formatted only for duplicates.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
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

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        self.text(value)?;
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        self.text(&value)?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path::Item(self.path, list.len());
            match items.next_element_seed(Reader { path: &path, duplicates: self.duplicates, tree: self.tree })? {
                Some(item) => {
                    self.tree.item().map_err(de::Error::custom)?;
                    list.push(item);
                }
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            self.tree.field(&name, map.len()).map_err(de::Error::custom)?;
            let path = Path::Field(self.path, &name);
            if map.contains_key(&name) {
                mention(self.duplicates, &path);
            }
            let value = fields.next_value_seed(Reader { path: &path, duplicates: self.duplicates, tree: self.tree })?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(text: &str) -> Result<usize, u16> {
        let tree = Tree::default();
        match json(text.as_bytes(), &tree, &mut Vec::new()) {
            Ok(_) => Ok(tree.bytes()),
            Err(_) => Err(tree.refused().unwrap().code),
        }
    }

    #[test]
    fn a_body_that_becomes_too_much_in_memory_is_refused() {
        let many = |item: &str, bytes: usize| format!("[{}]", vec![item; bytes / (item.len() + 1)].join(","));
        for item in [r#"{"":0}"#, "0", r#"[{"":0}]"#, r#"{"a":{"b":""}}"#] {
            assert_eq!(read(&many(item, 3 << 20)), Err(413), "{item}");
        }
        assert!(read(&many(&format!("\"{}\"", "a".repeat(1000)), 3 << 20)).is_ok(), "texts take what they are long");
    }

    #[test]
    fn the_largest_of_our_own_resource_definitions_would_do_three_times_as_large_as_a_body_may_be() {
        for crd in [
            include_str!("../../../plugins/openstack-infra/crds/openstackclusters.json"),
            include_str!("../../../plugins/kubeadm-control-plane/crds/kubeadmcontrolplanetemplates.json"),
            include_str!("../../../api/crds/clusterclasses.json"),
        ] {
            let compact = serde_json::from_str::<Value>(crd).unwrap().to_string();
            let taken = read(&compact).unwrap();
            assert!(taken * (3 << 20) / compact.len() <= LIMIT * 11 / 10, "{taken} of {}", compact.len());
        }
    }

    #[test]
    fn duplicates_are_told_in_few_words() {
        let body = format!(r#"{{"{}": {{{}"a": 1}}}}"#, "é".repeat(1 << 19), r#""a": 1, "#.repeat(100_000));
        let mut duplicates = Vec::new();
        json(body.as_bytes(), &Tree::default(), &mut duplicates).unwrap();
        assert_eq!(duplicates.len(), MENTIONED);
        assert!(duplicates.iter().all(|path| path.len() <= MENTION));
    }
}

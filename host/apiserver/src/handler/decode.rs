//! Request bodies: JSON, YAML and protobuf into JSON.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::protobuf;
use crate::registry::{FieldValidation, NESTING, nests_beyond, too_deep};
use crate::status::{ApiError, ApiResult};

const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

pub(crate) struct Decoded {
    pub object: Value,
    /// Paths of fields that occur twice in their object.
    pub duplicates: Vec<String>,
}

/// Media type without parameters.
pub(crate) fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn object(content_type: &str, body: &Bytes) -> ApiResult<Decoded> {
    match essence(content_type) {
        "" | "application/json" | "text/plain" | "application/x-www-form-urlencoded" => json(body),
        "application/yaml" | "application/apply-patch+yaml" => yaml(body),
        "application/vnd.kubernetes.protobuf" => {
            let object = protobuf::decode(body).map_err(|error| ApiError::bad_request(error.to_string()))?;
            Ok(Decoded { object, duplicates: Vec::new() })
        }
        _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
    }
}

/// Decodes JSON, noticing duplicate fields.
pub(crate) fn json(body: &[u8]) -> ApiResult<Decoded> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = Reader { path: &Path::Root, duplicates: &mut duplicates }.deserialize(&mut deserializer);
    let object = read.and_then(|object| deserializer.end().map(|()| object));
    let object =
        object.map_err(|error| ApiError::bad_request(format!("unable to decode the request body: {error}")))?;
    Ok(Decoded { object, duplicates })
}

fn yaml(body: &[u8]) -> ApiResult<Decoded> {
    // Every JSON text is YAML, but our JSON reader is faster and says more.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return json(body);
    }
    let text = std::str::from_utf8(body).map_err(|_| ApiError::bad_request("the request body is not UTF-8"))?;
    let object =
        serde_saphyr::from_str(text).map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
    if nests_beyond(&object, NESTING) {
        return Err(too_deep());
    }
    Ok(Decoded { object, duplicates: Vec::new() })
}

impl Decoded {
    /// Refuses duplicate fields if the client asked for that; else they become warnings.
    pub fn checked(self, validation: FieldValidation, warnings: &mut Vec<String>) -> ApiResult<Value> {
        let texts = self.duplicates.iter().map(|path| format!("duplicate field \"{path}\""));
        match validation {
            FieldValidation::Strict if !self.duplicates.is_empty() => {
                let all = texts.collect::<Vec<_>>().join(", ");
                return Err(ApiError::bad_request(format!("strict decoding error: {all}")));
            }
            FieldValidation::Warn => warnings.extend(texts),
            _ => {}
        }
        Ok(self.object)
    }
}

/// Reads any JSON value, recording fields that occur again. As in Go, the last one counts.
struct Reader<'a> {
    path: &'a Path<'a>,
    duplicates: &'a mut Vec<String>,
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

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path::Item(self.path, list.len());
            match items.next_element_seed(Reader { path: &path, duplicates: self.duplicates })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = Path::Field(self.path, &name);
            if map.contains_key(&name) {
                self.duplicates.push(path.to_string());
            }
            let value = fields.next_value_seed(Reader { path: &path, duplicates: self.duplicates })?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_fields_are_named_by_their_path() {
        let decoded = json(br#"{"a": {"b": 1, "b": 2}, "c": [{"d": 1, "d": 2}], "a": {"b": 3}}"#).unwrap();
        assert_eq!(decoded.duplicates, ["a.b", "c[0].d", "a"]);
        assert_eq!(decoded.object, json!({"a": {"b": 3}, "c": [{"d": 2}]}));
    }

    #[test]
    fn yaml_and_json_bodies_decode_alike() {
        let yaml = Bytes::from_static(b"kind: K\nspec:\n  n: 3\n  t: \"3\"\n");
        assert_eq!(object("application/yaml", &yaml).unwrap().object, json!({"kind": "K", "spec": {"n": 3, "t": "3"}}));
        assert_eq!(object("text/html", &yaml).err().map(|e| e.code), Some(415));
    }
}

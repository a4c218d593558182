//! Objects as they are kept: without `managedFields`, which are as large as all else, and skipped while an answer is read.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};

/// An object, or a list of objects.
pub(super) struct Lean(pub(super) Value);

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Lean;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Lean, A::Error> {
                let mut object = Map::new();
                while let Some(name) = fields.next_key::<String>()? {
                    let value = match name.as_str() {
                        "metadata" => fields.next_value::<Metadata>()?.0,
                        "items" => fields.next_value::<Items>()?.0,
                        _ => fields.next_value()?,
                    };
                    object.insert(name, value);
                }
                Ok(Lean(Value::Object(object)))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// `metadata`, whatever it is.
struct Metadata(Value);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Metadata;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("metadata")
            }

            fn visit_unit<E>(self) -> Result<Metadata, E> {
                Ok(Metadata(Value::Null))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Metadata, A::Error> {
                let mut metadata = Map::new();
                while let Some(name) = fields.next_key::<String>()? {
                    if name == "managedFields" {
                        fields.next_value::<IgnoredAny>()?;
                    } else {
                        metadata.insert(name, fields.next_value()?);
                    }
                }
                Ok(Metadata(Value::Object(metadata)))
            }
        }
        deserializer.deserialize_any(Fields)
    }
}

/// `items` of a list; a field of that name in an object is no list of objects, and stays what it is.
struct Items(Value);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut items = Value::deserialize(deserializer)?;
        for item in items.as_array_mut().into_iter().flatten() {
            if let Some(metadata) = item.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        }
        Ok(Self(items))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_is_read_but_managed_fields() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"managedFields": "kept"},
            "metadata": {"name": "c", "managedFields": [{"manager": "m"}], "labels": {"a": "b"}},
        });
        let mut kept = object.clone();
        kept["metadata"].as_object_mut().unwrap().remove("managedFields");
        let read = |value: &Value| serde_json::from_str::<Lean>(&value.to_string()).map(|lean| lean.0);
        assert_eq!(read(&object).unwrap(), kept);
        let list = json!({"kind": "ConfigMapList", "metadata": {"continue": "c"}, "items": [object]});
        assert_eq!(read(&list).unwrap()["items"], json!([kept]));
        assert_eq!(read(&list).unwrap()["metadata"], json!({"continue": "c"}));
        let other = json!({"items": "text", "metadata": null});
        assert_eq!(read(&other).unwrap(), other);
        assert!(read(&json!(["no object"])).is_err() && read(&json!({"metadata": 1})).is_err());
    }
}

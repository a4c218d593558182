//! JSON with a gap for the revision, so that the writer thread stamps bytes instead of editing documents.

use bytes::Bytes;
use serde_json::Value;

/// A serialised object, split where the digits of `metadata.resourceVersion` belong.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    gap: usize,
}

impl Encoded {
    /// Serialises `object`, leaving out any `metadata.resourceVersion`. `apiVersion`, `kind` and `metadata` come first, so
    /// that readers may look at them without parsing the rest.
    pub fn of(object: &Value) -> Self {
        let mut bytes = Vec::with_capacity(1024);
        bytes.push(b'{');
        for field in ["apiVersion", "kind"] {
            if let Some(value) = object.get(field) {
                member(&mut bytes, field, value);
            }
        }
        if bytes.len() > 1 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(br#""metadata":{"resourceVersion":""#);
        let gap = bytes.len();
        bytes.push(b'"');
        for (field, value) in object.get("metadata").and_then(Value::as_object).into_iter().flatten() {
            if field != "resourceVersion" {
                member(&mut bytes, field, value);
            }
        }
        bytes.push(b'}');
        for (field, value) in object.as_object().into_iter().flatten() {
            if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
                member(&mut bytes, field, value);
            }
        }
        bytes.push(b'}');
        Self { bytes, gap }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn stamp(&self, revision: u64) -> Bytes {
        let digits = revision.to_string();
        let mut stamped = Vec::with_capacity(self.bytes.len() + digits.len());
        stamped.extend_from_slice(&self.bytes[..self.gap]);
        stamped.extend_from_slice(digits.as_bytes());
        stamped.extend_from_slice(&self.bytes[self.gap..]);
        stamped.into()
    }
}

fn member(bytes: &mut Vec<u8>, field: &str, value: &Value) {
    if bytes.last() != Some(&b'{') {
        bytes.push(b',');
    }
    // Writing a JSON value into memory has no way to fail: keys are strings and the sink is a vector.
    let _ = serde_json::to_writer(&mut *bytes, field);
    bytes.push(b':');
    let _ = serde_json::to_writer(&mut *bytes, value);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stamped_document_is_the_object_with_its_revision() {
        let object = json!({"spec": {"a": [1, "ü\"\\"]}, "kind": "K", "apiVersion": "g/v1",
            "metadata": {"name": "n", "resourceVersion": "old"}});
        let stamped = Encoded::of(&object).stamp(42);
        assert!(stamped.starts_with(br#"{"apiVersion":"g/v1","kind":"K","metadata":{"resourceVersion":"42","#));
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(serde_json::from_slice::<Value>(&stamped).unwrap(), expected);
    }

    #[test]
    fn an_object_without_any_field_still_carries_its_revision() {
        let stamped = Encoded::of(&json!({})).stamp(7);
        assert_eq!(serde_json::from_slice::<Value>(&stamped).unwrap(), json!({"metadata": {"resourceVersion": "7"}}));
    }
}

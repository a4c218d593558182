//! Request bodies: JSON, YAML and protobuf into JSON.

use bytes::Bytes;
use serde_json::Value;

use crate::protobuf;
use crate::registry::{FieldValidation, NESTING, nests_beyond, too_deep};
use crate::status::{ApiError, ApiResult};
use crate::tree::{self, Tree};

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
            let tree = Tree::default();
            let object = protobuf::decode(body, &tree)
                .map_err(|error| tree.refused().unwrap_or_else(|| ApiError::bad_request(error.to_string())))?;
            Ok(Decoded { object, duplicates: Vec::new() })
        }
        _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
    }
}

/// Decodes JSON, noticing duplicate fields.
pub(crate) fn json(body: &[u8]) -> ApiResult<Decoded> {
    let (tree, mut duplicates) = (Tree::default(), Vec::new());
    let object = tree::json(body, &tree, &mut duplicates).map_err(|error| {
        let wrong = || ApiError::bad_request(format!("unable to decode the request body: {error}"));
        tree.refused().unwrap_or_else(wrong)
    })?;
    Ok(Decoded { object, duplicates })
}

fn yaml(body: &[u8]) -> ApiResult<Decoded> {
    // Every JSON text is YAML, but our JSON reader is faster and says more.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return json(body);
    }
    let text = std::str::from_utf8(body).map_err(|_| ApiError::bad_request("the request body is not UTF-8"))?;
    let tree = Tree::default();
    let object = tree::yaml(text, &tree).map_err(|error| {
        tree.refused().unwrap_or_else(|| ApiError::bad_request(format!("error decoding YAML: {error}")))
    })?;
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

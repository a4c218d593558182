//! Request bodies: JSON, YAML and protobuf into JSON.

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

/// # Errors
/// 400 for what is malformed, 413 and 429 for what becomes too much in memory, 415 for another content type.
pub(crate) fn object(content_type: &str, body: &[u8]) -> ApiResult<Decoded> {
    counted(content_type, body, &Tree::default())
}

/// As [`object`], counted in `tree`.
pub(crate) fn counted(content_type: &str, body: &[u8], tree: &Tree) -> ApiResult<Decoded> {
    let mut duplicates = Vec::new();
    // Every JSON text is YAML, but our JSON reader is faster and says more.
    let braced = || body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let read = match essence(content_type) {
        "" | "application/json" | "text/plain" | "application/x-www-form-urlencoded" => {
            json_in(body, tree, &mut duplicates)
        }
        "application/yaml" | "application/apply-patch+yaml" if braced() => json_in(body, tree, &mut duplicates),
        "application/yaml" | "application/apply-patch+yaml" => yaml(body, tree),
        "application/vnd.kubernetes.protobuf" => {
            protobuf::decode(body, tree).map_err(|error| ApiError::bad_request(error.to_string()))
        }
        _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
    };
    let object = read.map_err(|error| tree.refused().unwrap_or(error))?;
    Ok(Decoded { object, duplicates })
}

/// Decodes JSON, noticing duplicate fields.
pub(crate) fn json(body: &[u8]) -> ApiResult<Decoded> {
    object("application/json", body)
}

fn json_in(body: &[u8], tree: &Tree, duplicates: &mut Vec<String>) -> ApiResult<Value> {
    tree::json(body, tree, duplicates)
        .map_err(|error| ApiError::bad_request(format!("unable to decode the request body: {error}")))
}

fn yaml(body: &[u8], tree: &Tree) -> ApiResult<Value> {
    let text = std::str::from_utf8(body).map_err(|_| ApiError::bad_request("the request body is not UTF-8"))?;
    let object =
        tree::yaml(text, tree).map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
    if nests_beyond(&object, NESTING) { Err(too_deep()) } else { Ok(object) }
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
        let yaml = b"kind: K\nspec:\n  n: 3\n  t: \"3\"\n";
        assert_eq!(object("application/yaml", yaml).unwrap().object, json!({"kind": "K", "spec": {"n": 3, "t": "3"}}));
        assert_eq!(object("text/html", yaml).err().map(|e| e.code), Some(415));
    }
}

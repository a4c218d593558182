//! Kubernetes objects as JSON, as providers read and write them: what [`capwasm_object`] has, and typed specs.

use capwasm_contract::{Problem, Refusal, Refused};
pub use capwasm_object::conditions::{get as condition, is_true};
pub use capwasm_object::merge_patch::apply as merge;
pub use capwasm_object::meta::{annotation, is_deleting, kind, label, name, namespace, uid};
use capwasm_object::{json, owners};
use serde::Deserialize;
use serde_json::Value;

/// The string at a JSON pointer, empty when it is not there: `text(&object, "/spec/clusterName")`.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    json::at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Reads the text of an object, but no more than some fields of it: paths of keys, which go on in each item of a list. Most of
/// what a read costs is parsing what nobody looks at. What is absent stays absent.
///
/// ```
/// let pod = r#"{"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "message": "long"}]}}"#;
/// let seen = capwasm_sdk::object::parse_fields(pod, &["metadata", "status/conditions/type"]).unwrap();
/// assert_eq!(seen, serde_json::json!({"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready"}]}}));
/// ```
///
/// # Errors
/// When the text is not JSON, which no host hands out.
pub fn parse_fields(text: &str, fields: &[&str]) -> Result<Value, Refused> {
    let read = crate::partial_json::read(text, fields);
    read.map_err(|error| Refused::new(Refusal::Invalid, "NotJson", format!("an object is not JSON: {error}")))
}

/// `spec` in the shape that a provider reads it; the default when there is none, an `invalid` problem when it has
/// another shape.
///
/// ```
/// #[derive(Default, PartialEq, Debug, serde::Deserialize)]
/// #[serde(default)]
/// struct BoxSpec { size: u32 }
///
/// let sized = serde_json::json!({"spec": {"size": 3, "colour": "red"}});
/// assert_eq!(capwasm_sdk::object::spec::<BoxSpec>(&sized), Ok(BoxSpec { size: 3 }));
/// ```
pub fn spec<T: for<'de> Deserialize<'de> + Default>(object: &Value) -> Result<T, Problem> {
    match object.get("spec") {
        None | Some(Value::Null) => Ok(T::default()),
        Some(spec) => T::deserialize(spec)
            .map_err(|error| Problem::invalid("BadSpec", format!("spec of {}: {error}", name(object)))),
    }
}

/// An owner reference to `owner`, for what is made for it and should go with it.
pub fn owner_reference(owner: &Value) -> Value {
    owners::reference_to(owner, true)
}

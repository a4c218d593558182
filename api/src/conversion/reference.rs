//! References: ObjectReference in v1beta1, other forms in v1beta2.

use capwasm_object::group_version;
use serde_json::{Map, Value};

/// Returns the `apiVersion` of v1beta1 references to a kind of a group; `None` if unknown.
pub type Resolver<'a> = &'a dyn Fn(&str, &str) -> Option<String>;

/// Resolver without a cluster: assumes that every group but the core group serves v1beta1, which contract v1beta1 asks
/// for.
pub fn known_api_version(group: &str, _kind: &str) -> Option<String> {
    (!group.is_empty()).then(|| format!("{group}/v1beta1"))
}

/// Form of a reference in v1beta2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `{apiGroup, kind, name}`, whose version follows from the contract.
    Contract,
    /// `{apiVersion, kind, name}` of templates of a ClusterClass.
    Template,
    /// `{name}` of a Node.
    Node,
}

/// The v1beta2 form of an ObjectReference. Other values than objects are left to validation.
pub fn up(form: Form, reference: Value) -> Value {
    let Value::Object(mut old) = reference else { return reference };
    let mut new = Map::new();
    let api_version = old.remove("apiVersion");
    match (form, api_version) {
        (Form::Contract, Some(Value::String(api_version))) => {
            new.insert("apiGroup".to_owned(), group_version::group(&api_version).into());
        }
        (Form::Template, Some(api_version)) => {
            new.insert("apiVersion".to_owned(), api_version);
        }
        _ => {}
    }
    let kept: &[&str] = if form == Form::Node { &["name"] } else { &["kind", "name"] };
    for key in kept {
        if let Some(value) = old.remove(*key) {
            new.insert((*key).to_owned(), value);
        }
    }
    Value::Object(new)
}

/// The ObjectReference of a v1beta2 form, in the namespace of the referring object.
pub fn down(form: Form, reference: Value, namespace: &str, resolver: Resolver<'_>) -> Value {
    let Value::Object(mut new) = reference else { return reference };
    let mut old = Map::new();
    let text =
        |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match form {
        Form::Contract => {
            let (group, kind) = (text(&new, "apiGroup"), text(&new, "kind"));
            if let Some(api_version) = resolver(&group, &kind).or_else(|| known_api_version(&group, &kind)) {
                old.insert("apiVersion".to_owned(), api_version.into());
            }
        }
        Form::Template => {
            if let Some(api_version) = new.remove("apiVersion") {
                old.insert("apiVersion".to_owned(), api_version);
            }
        }
        Form::Node => {
            old.insert("apiVersion".to_owned(), "v1".into());
            old.insert("kind".to_owned(), "Node".into());
        }
    }
    for key in ["kind", "name"] {
        if let Some(value) = new.remove(key) {
            old.insert(key.to_owned(), value);
        }
    }
    let mut old = Value::Object(old);
    if form != Form::Node {
        fill(&mut old, namespace);
    }
    old
}

/// Sets the namespace of a reference without one, as v1beta1's defaulting does.
pub fn fill(reference: &mut Value, namespace: &str) {
    if let Value::Object(map) = reference
        && !namespace.is_empty()
        && map.get("name").is_some_and(Value::is_string)
        && map.get("namespace").is_none_or(|value| value.is_null() || value == "")
    {
        map.insert("namespace".to_owned(), namespace.into());
    }
}

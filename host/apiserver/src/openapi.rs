//! OpenAPI v3 documents, one per API group and version.
//!
//! kubectl reads three things from them: whether the server validates fields itself (the `fieldValidation` parameter of
//! the PATCH operation of a kind), which patches it takes (the content types of that operation), and the schemas of
//! kinds, for `explain` and for three-way strategic merges. A document holds that and no more, and is made when asked for.

mod operations;
mod shared;

use serde_json::{Map, Value, json};

use crate::schema::{self, Schema};

/// What a document needs of a kind.
pub struct PublishedKind<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version without the group.
    pub version: &'a str,
    /// Kind, such as `Deployment`.
    pub kind: &'a str,
    /// Resource name, such as `deployments`.
    pub plural: &'a str,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Built-in kinds take strategic merge patches.
    pub builtin: bool,
    /// `None`: an object without a declared structure.
    pub schema: Option<&'a Schema>,
    /// Whether there is the `status` subresource.
    pub status: bool,
    /// Whether there is the `scale` subresource.
    pub scale: bool,
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The OpenAPI v3 document of one group and version.
pub fn document(group: &str, version: &str, kinds: &[PublishedKind<'_>]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert(OBJECT_META.to_owned(), schema::object_meta().to_openapi());
    schemas.insert(LIST_META.to_owned(), list_meta());
    for kind in kinds {
        operations::add(kind, &mut paths);
        schemas.insert(component(kind), object(kind));
        schemas.insert(format!("{}List", component(kind)), list(kind));
    }
    // Built-in kinds have few repetitions, and are known to clients in one piece.
    let schemas = if kinds.iter().any(|kind| !kind.builtin) { shared::share(schemas) } else { schemas };
    let title = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({
        "openapi": "3.0.0",
        "info": {"title": format!("Kubernetes API of {title}"), "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Name of a kind's schema, such as `io.k8s.api.apps.v1.Deployment`: reversed domain of the group, version, kind.
fn component(kind: &PublishedKind<'_>) -> String {
    let domain = match kind.group {
        "" => "io.k8s.api.core".to_owned(),
        group if kind.builtin && !group.contains('.') => format!("io.k8s.api.{group}"),
        group => group.split('.').rev().collect::<Vec<_>>().join("."),
    };
    format!("{domain}.{}.{}", kind.version, kind.kind)
}

fn reference(component: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{component}")})
}

/// `x-kubernetes-group-version-kind`.
fn gvk(kind: &PublishedKind<'_>) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

fn object(kind: &PublishedKind<'_>) -> Value {
    let mut schema = match kind.schema {
        Some(schema) => schema.to_openapi(),
        None => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    schema["x-kubernetes-group-version-kind"] = json!([gvk(kind)]);
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] =
        json!({"type": "string", "description": "Version of the schema that this object follows."});
    schema["properties"]["kind"] = json!({"type": "string", "description": "Kind of this object."});
    // In a reference nothing else may stand beside it, hence the wrapping.
    schema["properties"]["metadata"] =
        json!({"allOf": [reference(OBJECT_META)], "default": {}, "description": "Metadata that every object has."});
    schema
}

fn list(kind: &PublishedKind<'_>) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [reference(LIST_META)], "default": {}},
            "items": {"type": "array", "items": reference(&component(kind))},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": format!("{}List", kind.kind)}],
    })
}

fn list_meta() -> Value {
    json!({
        "type": "object",
        "properties": {
            "continue": {"type": "string"},
            "remainingItemCount": {"type": "integer", "format": "int64"},
            "resourceVersion": {"type": "string"},
            "selfLink": {"type": "string"},
        },
    })
}

#[cfg(test)]
mod tests;

//! Paths and operations of a kind.

use serde_json::{Map, Value, json};

use super::{PublishedKind, component, gvk, reference};

pub(super) fn add(kind: &PublishedKind<'_>, paths: &mut Map<String, Value>) {
    let root = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    let collection = if kind.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{root}/{}", kind.plural)
    };
    if kind.namespaced {
        let all = json!({"get": operation(kind, "list", "Namespaced", &[], None)});
        paths.insert(format!("{root}/{}", kind.plural), all);
    }
    let scope: &[&str] = if kind.namespaced { &["namespace"] } else { &[] };
    let mut item_scope = vec!["name"];
    item_scope.extend(scope);
    paths.insert(
        collection.clone(),
        json!({
            "get": operation(kind, "list", "", &[], None),
            "post": operation(kind, "post", "", WRITE, Some(BODY)),
            "delete": operation(kind, "deletecollection", "", &["dryRun"], None),
            "parameters": path_parameters(scope),
        }),
    );
    let item = format!("{collection}/{{name}}");
    paths.insert(
        item.clone(),
        json!({
            "get": operation(kind, "get", "", &[], None),
            "put": operation(kind, "put", "", WRITE, Some(BODY)),
            "patch": patch(kind, ""),
            "delete": operation(kind, "delete", "", &["dryRun"], None),
            "parameters": path_parameters(&item_scope),
        }),
    );
    let subresources = [("status", kind.status, "Status"), ("scale", kind.scale, "Scale")];
    for (name, _, suffix) in subresources.into_iter().filter(|(_, present, _)| *present) {
        paths.insert(
            format!("{item}/{name}"),
            json!({
                "get": operation(kind, "get", suffix, &[], None),
                "put": operation(kind, "put", suffix, WRITE, Some(BODY)),
                "patch": patch(kind, suffix),
                "parameters": path_parameters(&item_scope),
            }),
        );
    }
}

const BODY: &[&str] = &["application/json", "application/yaml"];
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];

fn patch(kind: &PublishedKind<'_>, suffix: &str) -> Value {
    let mut contents =
        vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    // Only built-in kinds know merge keys; kubectl picks its patch by this.
    if kind.builtin {
        contents.push("application/strategic-merge-patch+json");
    }
    operation(kind, "patch", suffix, &["dryRun", "fieldManager", "fieldValidation", "force"], Some(&contents))
}

fn operation(kind: &PublishedKind<'_>, action: &str, suffix: &str, query: &[&str], body: Option<&[&str]>) -> Value {
    let schema = if action == "list" { format!("{}List", component(kind)) } else { component(kind) };
    let parameters: Vec<Value> = query
        .iter()
        .map(|name| {
            let ty = if *name == "force" { "boolean" } else { "string" };
            json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}})
        })
        .collect();
    let id: String = [kind.group, kind.version].join(".").split('.').map(capitalised).collect();
    let mut operation = json!({
        "operationId": format!("{action}{id}{}{suffix}", kind.kind),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference(&schema)}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(kind),
    });
    if let Some(contents) = body {
        let schema = if action == "patch" { json!({"type": "object"}) } else { reference(&schema) };
        let content: Map<String, Value> =
            contents.iter().map(|ty| ((*ty).to_owned(), json!({"schema": schema}))).collect();
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    operation
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn path_parameters(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})).collect()
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::{PublishedKind, document};
use crate::builtin::kinds;
use crate::schema::{Schema, of_kind};

fn core() -> Value {
    let published: Vec<PublishedKind<'_>> = kinds()
        .iter()
        .filter(|row| row.group.is_empty())
        .map(|row| PublishedKind {
            group: row.group,
            version: row.version,
            kind: row.kind,
            plural: row.plural,
            namespaced: row.namespaced,
            builtin: true,
            schema: of_kind(row.group, row.version, row.kind),
            status: row.has_status,
            scale: false,
        })
        .collect();
    document("", "v1", &published)
}

#[test]
fn kubectl_finds_validation_and_patch_types_of_built_in_kinds() {
    let document = core();
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert!(
        patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|parameter| parameter["name"] == "fieldValidation" && parameter["in"] == "query")
    );
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some());
    assert!(document["paths"]["/api/v1/namespaces/{name}/status"]["patch"].is_object());
    assert!(document["paths"]["/api/v1/configmaps"]["get"].is_object());
}

#[test]
fn merge_keys_and_list_types_of_built_in_kinds_are_published() {
    let document = core();
    let pod = &document["components"]["schemas"]["io.k8s.api.core.v1.Pod"];
    assert_eq!(pod["x-kubernetes-group-version-kind"], json!([{"group": "", "version": "v1", "kind": "Pod"}]));
    let containers = &pod["properties"]["spec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(
        containers["items"]["properties"]["ports"]["x-kubernetes-list-map-keys"],
        json!(["containerPort", "protocol"])
    );
    assert_eq!(pod["properties"]["spec"]["properties"]["volumes"]["x-kubernetes-patch-strategy"], "merge,retainKeys");
    assert_eq!(
        pod["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
}

#[test]
fn custom_kinds_take_no_strategic_merge_and_keep_their_descriptions() {
    let schema = Schema::parse(&json!({"type": "object", "description": "A thing.", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string", "description": "An a."}}}}})).unwrap();
    let document = custom(&schema);
    let item = &document["paths"]["/apis/x.example.com/v1/things/{name}"];
    assert!(item["patch"]["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    assert!(item["patch"]["requestBody"]["content"].get("application/apply-patch+yaml").is_some());
    assert!(document["paths"].get("/apis/x.example.com/v1/things/{name}/scale").is_some());
    let thing = &document["components"]["schemas"]["com.example.x.v1.Thing"];
    assert_eq!(thing["description"], "A thing.");
    assert_eq!(thing["properties"]["spec"]["properties"]["a"]["description"], "An a.");
    assert!(document["components"]["schemas"].get("com.example.x.v1.ThingList").is_some());
}

/// A kind of many conditions whose template repeats it.
fn repetitive() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description, "maxLength": 63});
    let condition = json!({"type": "object", "required": ["type"], "properties": {
        "type": text("Type of the condition."), "reason": text("Why it is so."), "properties": text("A field of this name."),
    }});
    let conditions = json!({"type": "array", "items": condition});
    let spec = json!({"type": "object", "properties": {
        "short": {"type": "object", "properties": {"a": {"type": "string"}}},
        "domains": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "conditions": conditions, "zone": text("Zone of the domain."),
        }}},
        "name": text("Name of the machine."),
    }});
    json!({"type": "object", "properties": {
        "spec": spec, "status": {"type": "object", "properties": {"conditions": conditions}},
        "template": {"type": "object", "properties": {"spec": spec}},
    }})
}

fn custom(schema: &Schema) -> Value {
    let published = [PublishedKind {
        group: "x.example.com",
        version: "v1",
        kind: "Thing",
        plural: "things",
        namespaced: false,
        builtin: false,
        schema: Some(schema),
        status: true,
        scale: true,
    }];
    document("x.example.com", "v1", &published)
}

#[test]
fn structures_of_custom_kinds_are_shared_and_mean_the_same() {
    fn resolved(value: &Value, document: &Value) -> Value {
        match value {
            Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
                Some(reference) if reference.ends_with(".Object") => {
                    resolved(document.pointer(reference.trim_start_matches('#')).unwrap(), document)
                }
                _ => fields.iter().map(|(key, value)| (key.clone(), resolved(value, document))).collect(),
            },
            Value::Array(items) => items.iter().map(|value| resolved(value, document)).collect(),
            other => other.clone(),
        }
    }
    let schema = Schema::parse(&repetitive()).unwrap();
    let document = custom(&schema);
    let thing = &document["components"]["schemas"]["com.example.x.v1.Thing"];
    let whole = resolved(thing, &document);
    let plain = schema.to_openapi();
    for field in ["spec", "status", "template"] {
        assert_eq!(whole["properties"][field], plain["properties"][field], "{field}");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let shared: Vec<&String> = schemas.keys().filter(|name| name.ends_with(".Object")).collect();
    assert_eq!(
        shared,
        ["com.example.x.v1.Thing.spec.Object", "com.example.x.v1.Thing.spec.domains.conditions.Object",],
        "the spec, and within it and the status the conditions, but nothing short"
    );
    assert_eq!(thing["properties"]["template"]["properties"]["spec"], thing["properties"]["spec"]);
}

#[test]
fn every_reference_of_a_document_leads_somewhere() {
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
                }
                fields.values().for_each(|value| walk(value, document));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, document)),
            _ => {}
        }
    }
    for document in [core(), custom(&Schema::parse(&repetitive()).unwrap())] {
        walk(&document, &document);
    }
}

//! Resources of a CustomResourceDefinition, one per served version.

use std::sync::Arc;

use capwasm_object::{group_version, meta};
use serde_json::Value;

use crate::config::ConvertedKind;

use super::{Origin, Resource, Scale, SchemaRef};
use crate::schema::Schema;

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|held| held["type"] == "Established" && held["status"] == "True")
}

/// The served resources of `crd`; none when it is not established. Its schemas were parsed when it was accepted, so one
/// that does not parse now was written by another program: that version is left out.
pub(super) fn resources(crd: &Value) -> Vec<Arc<Resource>> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if !established(crd) {
        return Vec::new();
    }
    let parse = |version: &Value| {
        let schema = version.pointer("/schema/openAPIV3Schema")?;
        match Schema::shared(schema) {
            Ok(schema) => Some(SchemaRef::Custom(schema)),
            Err(error) => {
                tracing::error!(crd = meta::name(crd), %error, "a stored schema does not parse");
                None
            }
        }
    };
    let Some(storage) = versions.iter().find(|version| version["storage"] == true) else { return Vec::new() };
    let storage_schema = parse(storage);
    let names = |field: &str| crd.pointer(&format!("/status/acceptedNames/{field}"));
    let kind = text(crd, "/status/acceptedNames/kind");
    let converted = converted(crd, kind);
    let mut served = Vec::new();
    for version in versions.iter().filter(|version| version["served"] == true) {
        let is_storage = version["name"] == storage["name"];
        let schema = if is_storage { storage_schema.clone() } else { parse(version) };
        let Some(schema) = schema else { continue };
        let scale = version.pointer("/subresources/scale").map(|scale| Scale {
            spec_replicas: text(scale, "/specReplicasPath").to_owned(),
            status_replicas: text(scale, "/statusReplicasPath").to_owned(),
            selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned),
        });
        let selectable = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
        let group = text(crd, "/spec/group");
        let name = text(version, "/name");
        let deprecated = version["deprecated"] == true;
        let warning = version.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned);
        served.push(
            Resource {
                group: group.to_owned(),
                version: name.to_owned(),
                kind: kind.to_owned(),
                list_kind: text(crd, "/status/acceptedNames/listKind").to_owned(),
                plural: text(crd, "/status/acceptedNames/plural").to_owned(),
                singular: text(crd, "/status/acceptedNames/singular").to_owned(),
                short_names: texts(names("shortNames")),
                categories: texts(names("categories")),
                namespaced: text(crd, "/spec/scope") == "Namespaced",
                origin: Origin::Custom,
                status: version.pointer("/subresources/status").is_some(),
                scale,
                subresources: Vec::new(),
                generation: true,
                storage: group_version::join(group, text(storage, "/name")),
                store: meta::name(crd).to_owned(),
                schema: Some(schema),
                storage_schema: storage_schema.clone(),
                columns: version.get("additionalPrinterColumns").cloned(),
                selectable: Some(
                    selectable
                        .filter_map(|f| f["jsonPath"].as_str())
                        .map(|p| p.trim_start_matches('.').to_owned())
                        .collect(),
                ),
                deprecation: deprecated
                    .then(|| warning.unwrap_or_else(|| format!("{group}/{name} {kind} is deprecated"))),
                converted: converted.clone(),
                defaulted_since: 0,
                terminating: meta::is_deleting(crd),
                head: String::new(),
            }
            .defaulted_since(crd)
            .finish(),
        );
    }
    served
}

/// `Some` when the CRD's conversion strategy is `Webhook`.
fn converted(crd: &Value, kind: &str) -> Option<Arc<ConvertedKind>> {
    let webhook = text(crd, "/spec/conversion/strategy") == "Webhook";
    let label = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let labels = meta::field(crd, "labels").as_object().into_iter().flatten().filter_map(label).collect();
    webhook
        .then(|| Arc::new(ConvertedKind { group: text(crd, "/spec/group").to_owned(), kind: kind.to_owned(), labels }))
}

impl Resource {
    /// Objects older than the CRD's newest revision may lack defaults that the schema has now.
    fn defaulted_since(mut self, crd: &Value) -> Self {
        if self.schema.as_ref().is_some_and(|schema| schema.has_defaults) {
            self.defaulted_since = meta::revision(crd).unwrap_or(0);
        }
        self
    }
}

//! The OpenAPI v3 documents of Kubernetes.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::go::Modules;

/// Documents by group and version, read when first asked for.
pub(super) struct OpenApi<'a> {
    modules: &'a Modules,
    documents: HashMap<String, Value>,
}

impl<'a> OpenApi<'a> {
    pub(super) fn new(modules: &'a Modules) -> Self {
        Self { modules, documents: HashMap::new() }
    }

    fn document(&mut self, version: &str) -> Result<&Value> {
        if !self.documents.contains_key(version) {
            let name = match version.split_once('/') {
                None => format!("api__{version}"),
                Some((group, version)) => format!("apis__{group}__{version}"),
            };
            self.documents.insert(version.to_owned(), self.modules.openapi(&name)?);
        }
        self.documents.get(version).context("just inserted")
    }

    /// Name of the component of a kind; `*` is the core version, and whichever else has it. Bodies of subresources are in the
    /// documents of those who have the subresource.
    pub(super) fn component(&mut self, version: &str, kind: &str) -> Result<String> {
        let version = if version == "*" { "v1" } else { version };
        self.document(version)?;
        let (group, number) = version.split_once('/').unwrap_or(("", version));
        let stated = |schema: &Value| {
            let mut kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
            kinds.any(|stated| stated["group"] == group && stated["version"] == number && stated["kind"] == kind)
        };
        let schemas = self.documents.values().filter_map(|document| document["components"]["schemas"].as_object());
        let found = schemas.flatten().find(|(_, schema)| stated(schema));
        found.map(|(name, _)| name.clone()).with_context(|| format!("no document has {kind} of {version}"))
    }

    /// Of a kind: its resource name, scope, and whether it has a status and is stored.
    pub(super) fn resource(&mut self, version: &str, kind: &str) -> Result<String> {
        let paths = self.document(version)?["paths"].as_object().context("a document has no paths")?;
        let made = |path: &Value| {
            let post = &path["post"];
            post["x-kubernetes-action"] == "post" && post["x-kubernetes-group-version-kind"]["kind"] == kind
        };
        let (path, operations) = paths
            .iter()
            .find(|(path, operations)| made(operations) && !path.contains("/{name}"))
            .with_context(|| format!("{kind} of {version} is not made anywhere"))?;
        let plural = path.rsplit('/').next().unwrap_or_default();
        let scope = if path.contains("/{namespace}/") { "namespaced" } else { "cluster" };
        let status = if paths.contains_key(&format!("{path}/{{name}}/status")) { " status" } else { "" };
        let answered = if operations.get("get").is_some() { "" } else { " answered" };
        Ok(format!("{plural} {scope}{status}{answered}"))
    }

    /// A component, if there is one of that name.
    pub(super) fn schema(&self, component: &str) -> Option<&Value> {
        self.documents.values().find_map(|document| document["components"]["schemas"].get(component))
    }
}

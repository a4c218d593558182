//! CustomResourceDefinitions from Rust types (feature `crds`, native builds only).
//!
//! The types that a provider reads its objects with say what the schema is; the role adds the fields that the host writes. The
//! result is a file beside the code, embedded with `include_str!` and looked at in reviews; a test keeps it as the types are:
//!
//! ```
//! use capwasm_sdk::descriptor::Role;
//! use capwasm_sdk::crd::CustomResource;
//!
//! /// What a box should be.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(rename_all = "camelCase")]
//! struct BoxSpec {
//!     /// Gigabytes.
//!     memory: Option<u32>,
//! }
//!
//! let boxes = CustomResource::new(Role::InfrastructureMachine, "infrastructure.cluster.x-k8s.io", "BoxMachine")
//!     .version::<BoxSpec>("v1beta2");
//! let schema = &boxes.build()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
//! assert_eq!(schema["properties"]["spec"]["properties"]["memory"]["description"], "Gigabytes.");
//! assert_eq!(schema["properties"]["spec"]["properties"]["providerID"]["type"], "string");
//!
//! // In a test of the provider, with the templates that core clones:
//! // capwasm_sdk::crd::check(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"), &[boxes.template(), boxes]);
//! ```

mod contract;
mod file;
mod structural;
#[cfg(test)]
mod tests;

use capwasm_contract::descriptor::Role;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::object;

pub use file::check;
pub use structural::NotStructural;

/// Builder of a CustomResourceDefinition. The first version is the stored one, and the one that the provider is called with.
#[derive(Clone, Debug)]
pub struct CustomResource {
    role: Role,
    group: String,
    kind: String,
    plural: String,
    short_names: Vec<String>,
    cluster_scoped: bool,
    versions: Vec<Version>,
}

#[derive(Clone, Debug)]
struct Version {
    name: String,
    spec: Value,
    status: Option<Value>,
    columns: Vec<Value>,
}

impl CustomResource {
    /// A namespaced kind without versions.
    pub fn new(role: Role, group: &str, kind: &str) -> CustomResource {
        CustomResource {
            role,
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: plural(&kind.to_lowercase()),
            short_names: Vec::new(),
            cluster_scoped: false,
            versions: Vec::new(),
        }
    }

    /// One more served version, with the type of its `spec`.
    ///
    /// # Panics
    /// When a CRD cannot say what the type is; see [`NotStructural`].
    #[must_use]
    pub fn version<Spec: JsonSchema>(mut self, name: &str) -> CustomResource {
        let spec = schema::<Spec>();
        self.versions.push(Version { name: name.to_owned(), spec, status: None, columns: Vec::new() });
        self
    }

    /// The type of the latest version's `status`; without one it has the fields that the host writes.
    ///
    /// # Panics
    /// As [`CustomResource::version`].
    #[must_use]
    pub fn status<Status: JsonSchema>(mut self) -> CustomResource {
        if let Some(version) = self.versions.last_mut() {
            version.status = Some(schema::<Status>());
        }
        self
    }

    /// A column of the latest version in `kubectl get`: `("Size", "string", ".spec.size")`.
    #[must_use]
    pub fn column(mut self, name: &str, of_type: &str, path: &str) -> CustomResource {
        if let Some(version) = self.versions.last_mut() {
            version.columns.push(json!({"name": name, "type": of_type, "jsonPath": path}));
        }
        self
    }

    /// The resource's name, where it is not the kind in lower case with a regular plural.
    #[must_use]
    pub fn plural(mut self, plural: &str) -> CustomResource {
        plural.clone_into(&mut self.plural);
        self
    }

    /// Adds a short name for `kubectl get`.
    #[must_use]
    pub fn short_name(mut self, name: &str) -> CustomResource {
        self.short_names.push(name.to_owned());
        self
    }

    /// Makes the kind cluster-scoped; kinds are namespaced without this.
    #[must_use]
    pub fn cluster_scoped(mut self) -> CustomResource {
        self.cluster_scoped = true;
        self
    }

    /// The kind `<Kind>Template` that core clones objects of this kind from.
    #[must_use]
    pub fn template(&self) -> CustomResource {
        let kind = format!("{}Template", self.kind);
        let versions = self.versions.iter().map(|version| Version {
            spec: contract::template(&contract::spec(self.role, &version.spec)),
            status: None,
            columns: Vec::new(),
            name: version.name.clone(),
        });
        CustomResource {
            versions: versions.collect(),
            cluster_scoped: self.cluster_scoped,
            ..CustomResource::new(Role::Template, &self.group, &kind)
        }
    }

    /// The resource's name: `boxmachines`.
    pub fn resource(&self) -> &str {
        &self.plural
    }

    /// The CustomResourceDefinition, with the fields that the host writes in this role.
    pub fn build(&self) -> Value {
        let mut names = json!({
            "kind": self.kind, "listKind": format!("{}List", self.kind),
            "plural": self.plural, "singular": self.kind.to_lowercase(), "categories": ["cluster-api"],
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = json!(self.short_names);
        }
        let versions: Vec<Value> =
            self.versions.iter().enumerate().map(|(index, version)| self.served(version, index == 0)).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", self.plural, self.group)},
            "spec": {
                "group": self.group,
                "scope": if self.cluster_scoped { "Cluster" } else { "Namespaced" },
                "names": names,
                "versions": versions,
            },
        })
    }

    fn served(&self, version: &Version, storage: bool) -> Value {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": contract::spec(self.role, &version.spec),
            },
        });
        let mut served = json!({"name": version.name, "served": true, "storage": storage});
        if let Some(status) = contract::status(self.role, version.status.as_ref()) {
            schema["properties"]["status"] = status;
            served["subresources"] = contract::subresources(self.role);
        }
        served["schema"] = json!({"openAPIV3Schema": schema});
        let mut columns = version.columns.clone();
        columns.extend(contract::columns(self.role));
        if !columns.is_empty() {
            served["additionalPrinterColumns"] = columns.into();
        }
        served
    }
}

/// The OpenAPI schema of a type, without references, in the structural form that CRDs need.
#[allow(clippy::panic, reason = "runs in tests of a provider, whose author reads this")]
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Err(problem) = structural::rewrite(&mut schema) {
        panic!("{} cannot be part of a CRD: {problem}", T::schema_name());
    }
    schema
}

/// The regular plural of a lower-case kind: `proxies`, `classes`, `boxmachines`.
fn plural(singular: &str) -> String {
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

/// `base` with `over` merged into it (JSON merge patch).
fn overlaid(base: Value, over: &Value) -> Value {
    let mut merged = base;
    object::merge(&mut merged, over);
    merged
}

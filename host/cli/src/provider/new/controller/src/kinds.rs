//! The kind, as this provider reads it. `UPDATE_CRDS=1 cargo test` makes the file in `crds/` of these types; conditions, which the
//! host writes, come with the role.

use serde::{Deserialize, Serialize};

/// What should be.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spec {
    /// Name of the ConfigMap that is copied.
    pub source: String,
    /// Names of the copies.
    pub copies: Vec<String>,
}

/// What is.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// How many copies there should be by now.
    pub copies: usize,
}

/// What `crds/` is made of.
#[cfg(test)]
pub fn custom_resources() -> Vec<capwasm_sdk::crd::CustomResource> {
    use capwasm_sdk::descriptor::Role;
    use capwasm_sdk::crd::CustomResource;

    const GROUP: &str = "{{name}}.example.org";
    let kind = CustomResource::new(Role::Controller, GROUP, "{{Name}}")
        .version::<Spec>("v1alpha1")
        .status::<Status>()
        .column("Source", "string", ".spec.source")
        .column("Copies", "integer", ".status.copies");
    vec![kind]
}

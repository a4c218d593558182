//! The kind, as this provider reads it. `UPDATE_CRDS=1 cargo test` makes the files in `crds/` of these types; the fields that the
//! host writes (`status.dataSecretName`, `status.conditions`, …) come with the role.

use serde::Deserialize;

/// What a machine should run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spec {
    /// Commands, in order, in a shell.
    pub commands: Vec<String>,
}

/// What `crds/` is made of.
#[cfg(test)]
pub fn custom_resources() -> Vec<capwasm_sdk::crd::CustomResource> {
    use capwasm_sdk::descriptor::Role;
    use capwasm_sdk::crd::CustomResource;

    const GROUP: &str = "bootstrap.cluster.x-k8s.io";
    let config = CustomResource::new(Role::Bootstrap, GROUP, "{{Name}}Config").version::<Spec>("v1beta2");
    vec![config.template(), config]
}

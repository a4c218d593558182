//! The kind, as this provider reads it. `UPDATE_CRDS=1 cargo test` makes the file in `crds/` of this type; the fields of the contract
//! (`spec.version`, `spec.controlPlaneEndpoint`, `status.conditions`, …) come with the role.

use serde::Deserialize;

/// What should be.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spec {
    /// Version of Kubernetes, `v1.34.0`.
    pub version: String,
    /// Key of the kubeconfig in its Secret; `value`, as everywhere in Cluster API, unless said otherwise.
    pub key: Option<String>,
}

/// What `crds/` is made of.
#[cfg(test)]
pub fn custom_resources() -> Vec<capwasm_sdk::crd::CustomResource> {
    use capwasm_sdk::descriptor::Role;
    use capwasm_sdk::crd::CustomResource;

    const GROUP: &str = "controlplane.cluster.x-k8s.io";
    vec![
        CustomResource::new(Role::ControlPlane, GROUP, "{{Name}}ControlPlane")
            .version::<Spec>("v1beta2")
            .column("Version", "string", ".spec.version"),
    ]
}

//! The kinds, as this provider reads them. `UPDATE_CRDS=1 cargo test` makes the files in `crds/` of these types; the fields that the
//! host writes (`spec.providerID`, `status.conditions`, …) come with the role.

use serde::Deserialize;

/// What all machines of a cluster share.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClusterSpec {
    /// The cluster's API is at `<name>.<domain>`.
    pub domain: String,
}

impl Default for ClusterSpec {
    fn default() -> ClusterSpec {
        ClusterSpec { domain: "example.org".to_owned() }
    }
}

/// What a machine should be.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineSpec {
    /// How large it is.
    pub size: Size,
}

/// Sizes of machines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Size {
    #[default]
    Small,
    Large,
}

/// What `crds/` is made of.
#[cfg(test)]
pub fn custom_resources() -> Vec<capwasm_sdk::crd::CustomResource> {
    use capwasm_sdk::descriptor::Role;
    use capwasm_sdk::crd::CustomResource;

    const GROUP: &str = "infrastructure.cluster.x-k8s.io";
    let cluster =
        CustomResource::new(Role::InfrastructureCluster, GROUP, "{{Name}}Cluster").version::<ClusterSpec>("v1beta2");
    let machine = CustomResource::new(Role::InfrastructureMachine, GROUP, "{{Name}}Machine")
        .version::<MachineSpec>("v1beta2")
        .column("Size", "string", ".spec.size");
    vec![machine.template(), cluster, machine]
}

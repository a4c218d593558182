//! The kinds, as this provider reads them. `UPDATE_CRDS=1 cargo test --package addons` makes `crds/` of these types.

use std::collections::BTreeMap;

use capwasm_sdk::ObjectRef;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// API group of all three.
pub const GROUP: &str = "addons.example.org";
/// The API version in which objects are handed to this provider.
pub const API_VERSION: &str = "addons.example.org/v1beta1";
/// On Addons: the set that made it. On what is installed: the Addon.
pub const SET_LABEL: &str = "addons.example.org/set";
/// On what is installed: the Addon that it belongs to.
pub const ADDON_LABEL: &str = "addons.example.org/addon";
/// Whose workload cluster an object is about.
pub const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// Group, version and kind of what can be installed. Each is a grant, so that a catalog cannot ask for more.
pub const INSTALLED: [(&str, &str, &str); 3] =
    [("", "v1", "ConfigMap"), ("apps", "v1", "DaemonSet"), ("apps", "v1", "Deployment")];

/// `spec` of an AddonCatalog.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CatalogSpec {
    /// What there is to install.
    #[serde(default)]
    pub addons: Vec<Entry>,
}

/// One addon of a catalog.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Entry {
    /// Unique in the catalog.
    pub name: String,
    /// Ready Nodes that a cluster has to have first.
    #[serde(default)]
    pub minimum_nodes: usize,
    /// ConfigMaps, DaemonSets and Deployments; without a namespace in `default`.
    #[serde(default)]
    pub manifests: Vec<Map<String, Value>>,
}

/// `status` of an AddonCatalog.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CatalogStatus {
    /// Addons that name this catalog.
    pub users: usize,
}

/// `spec` of an AddonSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetSpec {
    /// Which Clusters of the namespace.
    pub cluster_selector: Selector,
    /// Name of the AddonCatalog.
    pub catalog: String,
    /// Names in the catalog.
    pub addons: Vec<String>,
    /// What becomes of what was installed.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// Labels that a Cluster has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Selector {
    /// All of them; none selects no Cluster.
    #[serde(default)]
    pub match_labels: BTreeMap<String, String>,
}

/// `spec` of an AddonSet in v1alpha1.
#[cfg(test)]
#[allow(dead_code, reason = "for its schema")]
#[derive(Deserialize, schemars::JsonSchema)]
pub struct SetSpecV1Alpha1 {
    /// Which Clusters: `a=b,c=d`.
    #[schemars(regex(pattern = r"^([^=,!() ]+=[^=,!() ]*(,[^=,!() ]+=[^=,!() ]*)*)?$"))]
    selector: String,
    /// Name of the AddonCatalog.
    catalog: String,
    /// Names in the catalog.
    addons: Vec<String>,
}

/// `status` of an AddonSet.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetStatus {
    /// Clusters that it selects.
    pub clusters: usize,
    /// Its Addons that are ready.
    pub ready: usize,
}

/// `spec` of an Addon.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddonSpec {
    /// The Cluster that it is for.
    pub cluster_name: String,
    /// Name of the AddonCatalog.
    pub catalog: String,
    /// Name in the catalog.
    pub addon: String,
    /// What becomes of what was installed.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// `status` of an Addon.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddonStatus {
    /// Objects in the workload cluster.
    pub installed: usize,
}

/// What becomes of what was installed when the Addon goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum DeletionPolicy {
    /// It is deleted.
    #[default]
    Delete,
    /// It stays.
    Orphan,
}

/// An object of one of the three kinds.
pub fn reference(kind: &str, name: &str) -> ObjectRef {
    ObjectRef::new(API_VERSION, kind, name)
}

/// What `crds/` is made of.
#[cfg(test)]
pub fn custom_resources() -> Vec<capwasm_sdk::crd::CustomResource> {
    use capwasm_sdk::crd::CustomResource;
    use capwasm_sdk::descriptor::Role;

    let kind = |kind| CustomResource::new(Role::Controller, GROUP, kind);
    let catalog = kind("AddonCatalog").version::<CatalogSpec>("v1beta1").status::<CatalogStatus>();
    let set = kind("AddonSet")
        .version::<SetSpec>("v1beta1")
        .status::<SetStatus>()
        .column("Clusters", "integer", ".status.clusters")
        .column("Ready", "integer", ".status.ready")
        .version::<SetSpecV1Alpha1>("v1alpha1")
        .status::<SetStatus>();
    let addon = kind("Addon")
        .version::<AddonSpec>("v1beta1")
        .status::<AddonStatus>()
        .column("Cluster", "string", ".spec.clusterName")
        .column("Addon", "string", ".spec.addon");
    vec![catalog.column("Users", "integer", ".status.users"), set, addon]
}

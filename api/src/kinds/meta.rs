//! Metadata and references.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The part of ObjectMeta that reconcilers read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Unique over time.
    pub uid: String,
    /// Counts changes of the spec.
    pub generation: i64,
    /// RFC 3339.
    pub creation_timestamp: Option<String>,
    /// RFC 3339; set once deletion was asked for.
    pub deletion_timestamp: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Owners.
    pub owner_references: Vec<OwnerReference>,
}

impl Metadata {
    /// Whether deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that controls the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// Whether an object with this uid is among the owners.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owner_references.iter().any(|owner| owner.uid == uid)
    }
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Unique over time.
    pub uid: String,
    /// At most one owner controls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether the owner waits for this object when it is deleted in the foreground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// Group of the owner's kind.
    pub fn group(&self) -> &str {
        crate::json::group_of(&self.api_version)
    }
}

/// A reference without namespace and version: the object is in the namespace of the one that refers to it, and its version
/// follows from the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContractReference {
    /// Group.
    pub api_group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Metadata of a template: what each object made from it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

//! Metadata and references.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An object of a kind, as far as it is known here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Object<Spec, Status> {
    /// Name, owners, labels and the like.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: Spec,
    /// What was observed, but for its conditions: [`crate::conditions`] reads and sets those.
    pub status: Status,
}

/// The part of ObjectMeta that reconcilers read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Unique within namespace and kind.
    pub name: String,
    /// Empty for what has none.
    pub namespace: String,
    /// Unique over time.
    pub uid: String,
    /// Counts changes of the spec.
    pub generation: i64,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// RFC 3339; set once deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// What selectors select by.
    pub labels: BTreeMap<String, String>,
    /// What nothing selects by.
    pub annotations: BTreeMap<String, String>,
    /// Who has something to do before the object is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Without any of these objects, it is garbage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
    /// `group/version` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the same namespace unless it has none.
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
        capwasm_object::group_version::group(&self.api_version)
    }
}

/// A reference without namespace and version: the object is in the namespace of the one that refers to it, and its version
/// follows from the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContractReference {
    /// Group of the object's kind; its version follows from the contract.
    pub api_group: String,
    /// The object's kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
}

/// Metadata of a template: what each object made from it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    /// Labels of each object.
    pub labels: BTreeMap<String, String>,
    /// Annotations of each object.
    pub annotations: BTreeMap<String, String>,
}

//! Object metadata and references.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Typed view of an object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Object<Spec, Status> {
    /// `metadata`, as far as reconcilers read it.
    pub metadata: Metadata,
    /// Typed spec.
    pub spec: Spec,
    /// Typed status without conditions, which [`crate::conditions`] reads and sets.
    pub status: Status,
}

/// The fields of ObjectMeta that reconcilers read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Name, unique within namespace and kind.
    pub name: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Uid, unique over time.
    pub uid: String,
    /// Number of changes of the spec.
    pub generation: i64,
    /// When the object was created, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// When deletion was requested, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Labels, by which selectors select.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers; the object is removed once there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owner references.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

impl Metadata {
    /// Whether `deletionTimestamp` is set.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The controlling owner reference.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// Whether an owner has this uid.
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
    /// Name of the owner, which is in the same namespace or cluster-scoped.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// Whether the owner is the controller; at most one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// API group of the owner; empty for the core group.
    pub fn group(&self) -> &str {
        capwasm_object::group_version::group(&self.api_version)
    }
}

/// Reference to an object in the same namespace, whose version follows from the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContractReference {
    /// API group of the object.
    pub api_group: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

/// Metadata of objects that are made from a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    /// Labels of each object.
    pub labels: BTreeMap<String, String>,
    /// Annotations of each object.
    pub annotations: BTreeMap<String, String>,
}

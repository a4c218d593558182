//! Provider objects: found by reference, at the version that their CRD's contract labels name.

use std::sync::Arc;

use capwasm_api::contract::{self, Contract};
use capwasm_api::kinds::ContractReference;
use capwasm_reconcile::{CacheError, View, interests::Parts};
use serde_json::Value;

use crate::kinds;

/// What a reference leads to.
#[derive(Clone, Debug)]
pub(crate) enum External {
    /// The object, and the contract that its kind keeps.
    Found {
        /// As the cache has it.
        object: Arc<Value>,
        /// How to read it.
        contract: Contract,
    },
    /// The kind is known and has no such object.
    Missing,
    /// The kind is not installed, so there is no such object; in words.
    NotInstalled(String),
    /// The kind is installed, but not served yet, or keeps no contract that core knows: whether there is such an object
    /// cannot be said. In words.
    Unserved(String),
}

impl External {
    /// The object and its contract, when it is there.
    pub(crate) fn found(&self) -> Option<(&Value, Contract)> {
        match self {
            External::Found { object, contract } => Some((object, *contract)),
            _ => None,
        }
    }

    /// What is wrong with the kind.
    pub(crate) fn unusable_kind(&self) -> Option<&str> {
        match self {
            External::NotInstalled(message) | External::Unserved(message) => Some(message),
            External::Found { .. } | External::Missing => None,
        }
    }
}

/// Reads the object that `reference` names, in the namespace of the one that refers to it. Whatever is absent (the
/// object, its CRD, a label) wakes the pass's key when it appears.
pub(crate) async fn read(view: &View, namespace: &str, reference: &ContractReference) -> Result<External, CacheError> {
    follow(view, namespace, reference, None).await
}

/// The same for who follows only these parts of the object.
pub(crate) async fn read_part(
    view: &View,
    namespace: &str,
    reference: &ContractReference,
    parts: Parts,
) -> Result<External, CacheError> {
    follow(view, namespace, reference, Some(parts)).await
}

async fn follow(
    view: &View,
    namespace: &str,
    reference: &ContractReference,
    parts: Option<Parts>,
) -> Result<External, CacheError> {
    let ContractReference { api_group, kind, name } = reference;
    let crd_name = contract::crd_name(api_group, kind);
    let Some(crd) = view.get(&kinds::crd(), "", &crd_name).await? else {
        return Ok(External::NotInstalled(format!(
            "{kind} is not installed: there is no CustomResourceDefinition {crd_name}"
        )));
    };
    let Some((contract, version)) = contract::resolve(&crd) else {
        return Ok(External::Unserved(format!(
            "CustomResourceDefinition {crd_name} has no label of a contract that is known here"
        )));
    };
    let kind = match view.kind_at(&format!("{api_group}/{version}"), kind).await {
        Ok(kind) => kind,
        // The CRD is there, but not served yet.
        Err(CacheError::UnknownKind { .. }) => {
            return Ok(External::Unserved(format!("{kind} {version} is not served yet")));
        }
        Err(error) => return Err(error),
    };
    let object = match parts {
        Some(parts) => view.get_part(&kind, namespace, name, parts).await?,
        None => view.get(&kind, namespace, name).await?,
    };
    Ok(match object {
        Some(object) => External::Found { object, contract },
        None => External::Missing,
    })
}

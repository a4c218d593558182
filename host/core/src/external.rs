//! Provider objects: found by reference, read at the version that their CRD's contract labels name.

use std::sync::Arc;

use capwasm_api::conditions::{Condition, Status, mirror};
use capwasm_api::contract::{self, Contract, ControlPlane, Milestone, Report};
use capwasm_api::kinds::ContractReference;
use capwasm_api::names::{condition, reason};
use capwasm_object::{meta, news::OF_PROVIDED};
use capwasm_reconcile::{
    CacheError, View,
    interests::{Fields, News},
};
use serde_json::Value;

use crate::kinds;

/// A referenced object; `T` is what it reports by the contract.
#[derive(Clone, Debug)]
pub(crate) enum External<T> {
    /// The object exists.
    Found {
        object: Arc<Value>,
        /// Contract of its kind.
        contract: Contract,
        report: T,
    },
    /// The kind is served, and the object does not exist.
    Missing,
    /// The kind is not installed; the message.
    NotInstalled(String),
    /// The kind is installed, but not served yet, or follows no supported contract, so that the object may exist; the
    /// message.
    Unserved(String),
}

impl<T> External<T> {
    pub(crate) fn found(&self) -> Option<(&Value, &T)> {
        match self {
            External::Found { object, report, .. } => Some((object, report)),
            _ => None,
        }
    }

    pub(crate) fn report(&self) -> Option<&T> {
        self.found().map(|(_, report)| report)
    }

    /// Why the kind cannot be read.
    pub(crate) fn unusable_kind(&self) -> Option<&str> {
        match self {
            External::NotInstalled(message) | External::Unserved(message) => Some(message),
            External::Found { .. } | External::Missing => None,
        }
    }
}

impl<T: Milestone> External<T> {
    /// The condition `name` of the referring object: this object's `Ready`, else its flag, else that it is missing.
    /// `was_there`: it has existed, or is not needed any more.
    pub(crate) fn ready(&self, name: &str, was_there: bool, is_there: impl FnOnce(&T) -> bool) -> Condition {
        self.mirrored(condition::READY, (reason::READY, reason::NOT_READY), name, was_there, is_there)
    }

    fn mirrored(
        &self,
        source: &str,
        (yes, no): (&str, &str),
        name: &str,
        was_there: bool,
        is_there: impl FnOnce(&T) -> bool,
    ) -> Condition {
        match self {
            External::Found { object, contract, report } => mirror(object, source, name, || {
                let is_there = is_there(report);
                Condition::new(name, is_there, if is_there { yes } else { no }).message(format!(
                    "{} {} is {is_there}",
                    meta::kind(object),
                    T::flag(*contract)
                ))
            }),
            External::NotInstalled(message) | External::Unserved(message) => {
                Condition::new(name, Status::Unknown, reason::INTERNAL_ERROR).message(message.clone())
            }
            External::Missing if was_there => {
                Condition::new(name, false, reason::DELETED).message("The referenced object has been deleted")
            }
            External::Missing => {
                Condition::new(name, false, reason::DOES_NOT_EXIST).message("The referenced object does not exist")
            }
        }
    }
}

impl External<ControlPlane> {
    /// As [`ready`](External::ready), from `Available`; contract v1beta1 has `Ready` instead.
    pub(crate) fn available(&self, name: &str, was_there: bool) -> Condition {
        let source = match self {
            External::Found { contract: Contract::V1Beta1, .. } => condition::READY,
            _ => condition::AVAILABLE,
        };
        let reasons = (reason::AVAILABLE, reason::NOT_AVAILABLE);
        self.mirrored(source, reasons, name, was_there, |report| report.initialized)
    }
}

/// Reads a referenced object in the namespace of the referring one. Whatever is missing (object, CRD, label) wakes the
/// pass's key when it appears.
pub(crate) async fn read<T: Report>(
    view: &View,
    namespace: &str,
    reference: &ContractReference,
) -> Result<External<T>, CacheError> {
    follow(view, namespace, reference, None).await
}

/// As [`read`], for an optional reference.
pub(crate) async fn read_optional<T: Report>(
    view: &View,
    namespace: &str,
    reference: Option<&ContractReference>,
) -> Result<Option<External<T>>, CacheError> {
    match reference {
        Some(reference) => read(view, namespace, reference).await.map(Some),
        None => Ok(None),
    }
}

/// As [`read`], woken only by these fields of the object.
pub(crate) async fn read_for_fields<T: Report>(
    view: &View,
    namespace: &str,
    reference: &ContractReference,
    fields: Fields,
) -> Result<External<T>, CacheError> {
    follow(view, namespace, reference, Some(fields)).await
}

async fn follow<T: Report>(
    view: &View,
    namespace: &str,
    reference: &ContractReference,
    fields: Option<Fields>,
) -> Result<External<T>, CacheError> {
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
    let object = match fields {
        Some(fields) => view.get_for_fields(&kind, namespace, name, fields).await?,
        None => view.with_news(News::In(OF_PROVIDED)).get(&kind, namespace, name).await?,
    };
    Ok(match object {
        Some(object) => External::Found { report: T::read(&object, contract), object, contract },
        None => External::Missing,
    })
}

//! The API versions of a kind: an object said in another one, with nothing lost.
//!
//! The newest version (v1beta2) is the hub: every older one converts to and from it by one list of [`Rule`]s, read
//! forwards or backwards. What a version cannot say travels in an annotation, and comes back on the way home:
//!
//! - [`DATA_ANNOTATION`], on objects in an older version: the hub object that was read. A client that sends the object back
//!   keeps what its version cannot say; what it changed wins over what was stored (a three-way merge, see `merge`).
//! - [`OLD_DATA_ANNOTATION`], on objects in the hub version: the pieces of the older form that the hub cannot say
//!   (`1m500ms`, the uid of a reference, a removed field), each beside what the hub would say instead. A piece whose
//!   counterpart was changed since is out of date and is left out.
//!
//! Neither is written when nothing would be lost. Pure: no schema, no cluster; what needs one, the `apiVersion` that a
//! reference had, is asked of a [`Resolver`].

mod cluster;
mod cluster_class;
mod health_check;
pub mod kubeadm;
mod machine;
mod merge;
mod others;
mod path;
mod preserve;
mod reference;
mod rule;

pub use reference::{Resolver, known_api_version};
pub use rule::Rule;

use capwasm_object::{json, meta};
use serde_json::Value;

/// On objects in an older version: JSON of the hub object without metadata.
pub const DATA_ANNOTATION: &str = "cluster.x-k8s.io/conversion-data";
/// On objects in the hub version: JSON of what only the older version can express.
pub const OLD_DATA_ANNOTATION: &str = "capwasm.dev/v1beta1-data";
/// The version to and from which all others are converted.
pub const HUB: &str = "v1beta2";

/// Rules of `status.conditions` of both contracts; counters and failures are in the kinds' rules.
pub const CONDITIONS: [Rule; 2] = [
    Rule::Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Rule::Move("status.v1beta2.conditions", "status.conditions"),
];

/// Why an object cannot be converted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConversionError {
    /// There are no rules for the kind.
    #[error("{kind} of group {group:?} is not converted here")]
    UnknownKind {
        /// API group of the kind.
        group: String,
        /// Name of the kind.
        kind: String,
    },
    /// There are no rules for the version.
    #[error("{kind} has no version {version:?}")]
    UnknownVersion {
        /// Name of the kind.
        kind: String,
        /// The requested `group/version`.
        version: String,
    },
    /// A value has no counterpart.
    #[error("{path}: {message}")]
    Value {
        /// Path from the nearest object with rules of its own.
        path: String,
        /// The problem with the value.
        message: String,
    },
    /// The annotation of an earlier conversion is invalid, and converting without it would lose its data.
    #[error("annotation {DATA_ANNOTATION} cannot be read: {0}")]
    Data(String),
}

/// A kind with its older versions.
#[derive(Debug)]
pub struct Kind {
    /// API group of the kind.
    pub group: &'static str,
    /// Name of the kind.
    pub kind: &'static str,
    /// Older versions, with rules for the conversion to the hub.
    pub older: &'static [Older],
    /// Computes fields of the hub's `status.deprecated.v1beta1`, which therefore need not be stored.
    pub derived: Option<fn(&Value) -> Value>,
}

/// Older version of a kind.
#[derive(Debug)]
pub struct Older {
    /// Such as `v1beta1`.
    pub version: &'static str,
    /// Rules for the object without `apiVersion`, `kind` and `metadata`.
    pub rules: &'static [Rule],
}

/// Converts an object of a core kind (of any group of core) to version `to` (`group/version`).
///
/// # Errors
/// The kind or version is not known, or a value has no counterpart (a duration that is none, a broken annotation).
pub fn convert_core(object: Value, to: &str) -> Result<Value, String> {
    convert_core_with(object, to, &known_api_version)
}

/// As [`convert_core`], with a resolver for the `apiVersion` of references.
///
/// # Errors
/// As [`convert_core`].
pub fn convert_core_with(object: Value, to: &str, resolver: Resolver<'_>) -> Result<Value, String> {
    convert(&[cluster::KINDS, cluster_class::KINDS, machine::KINDS, others::KINDS], object, to, resolver)
        .map_err(|error| error.to_string())
}

/// Converts an object of one of `kinds` to version `to` (`group/version`).
///
/// # Errors
/// As [`convert_core`].
pub fn convert(
    kinds: &[&'static [Kind]],
    object: Value,
    to: &str,
    resolver: Resolver<'_>,
) -> Result<Value, ConversionError> {
    let from = json::text(&object, "/apiVersion").unwrap_or_default().to_owned();
    let (group, name) = (meta::group(&object).to_owned(), meta::kind(&object).to_owned());
    let Some(kind) = kinds.iter().copied().flatten().find(|kind| kind.group == group && kind.kind == name) else {
        return Err(ConversionError::UnknownKind { group, kind: name });
    };
    let older = |api_version: &str| match api_version.split_once('/') {
        Some((group, version)) if group == kind.group && version == HUB => Ok(None),
        Some((group, version)) if group == kind.group => kind
            .older
            .iter()
            .find(|older| older.version == version)
            .map(Some)
            .ok_or_else(|| unknown_version(kind, api_version)),
        _ => Err(unknown_version(kind, api_version)),
    };
    let (source, target) = (older(&from)?, older(to)?);
    if from == to {
        return Ok(object);
    }
    let hub = match source {
        Some(older) => preserve::up(kind, older, object, resolver)?,
        None => object,
    };
    match target {
        Some(older) => preserve::down(kind, older, hub, resolver),
        None => Ok(hub),
    }
}

fn unknown_version(kind: &Kind, version: &str) -> ConversionError {
    ConversionError::UnknownVersion { kind: kind.kind.to_owned(), version: version.to_owned() }
}

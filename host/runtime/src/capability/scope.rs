//! Access of a call to the management cluster: granted kinds, in the object's own namespace and granted ones.

use std::sync::{Arc, OnceLock};

use capwasm_contract::Refused;
use capwasm_object::group_version::group;
use serde::Deserialize;

use crate::grants::{Grants, covers};

/// Grants, with the object whose namespace they include.
pub(crate) struct Scope {
    object: Arc<String>,
    grants: Arc<Grants>,
    own_namespace: OnceLock<Option<String>>,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    namespace: Option<String>,
}

impl Scope {
    pub(crate) fn new(object: Arc<String>, grants: Arc<Grants>) -> Self {
        Scope { object, grants, own_namespace: OnceLock::new() }
    }

    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Whether a kind of the management cluster may be read in a namespace.
    pub(crate) fn read(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Result<(), Refused> {
        self.kind(covers(&self.grants.reads, group(api_version), kind), "reads", api_version, kind)?;
        self.namespace(namespace)
    }

    /// Whether a kind of the management cluster may be written in a namespace.
    pub(crate) fn write(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Result<(), Refused> {
        self.kind(covers(&self.grants.writes, group(api_version), kind), "writes", api_version, kind)?;
        self.namespace(namespace)
    }

    fn kind(&self, covered: bool, grant: &str, api_version: &str, kind: &str) -> Result<(), Refused> {
        if covered { Ok(()) } else { Err(not_granted(grant, api_version, kind)) }
    }

    /// Whether a namespace is the object's own or granted.
    pub(crate) fn namespace(&self, namespace: Option<&str>) -> Result<(), Refused> {
        let Some(namespace) = namespace else { return Ok(()) };
        if self.own_namespace() == Some(namespace) || self.grants.covers_namespace(namespace) {
            return Ok(());
        }
        Err(Refused::denied(format!(
            "namespace {namespace:?} is not the object's own; grant it in spec.grants.namespaces"
        )))
    }

    /// Parsed on first use: most calls never name a namespace.
    fn own_namespace(&self) -> Option<&str> {
        let parse = || serde_json::from_str::<Object>(&self.object).ok().and_then(|o| o.metadata.namespace);
        self.own_namespace.get_or_init(parse).as_deref()
    }
}

/// Refusal of a kind, which names the missing grant.
pub(crate) fn not_granted(grant: &str, api_version: &str, kind: &str) -> Refused {
    let group = group(api_version);
    Refused::denied(format!("{kind} of group {group:?} is not granted; add it to spec.grants.{grant}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_contract::descriptor::KindPattern;

    fn scope(namespaces: &[&str]) -> Scope {
        let grants = Grants {
            reads: vec![KindPattern { group: String::new(), kind: "ConfigMap".into() }],
            namespaces: namespaces.iter().map(|n| (*n).to_owned()).collect(),
            ..Grants::default()
        };
        Scope::new(Arc::new(r#"{"metadata":{"namespace":"mine","name":"x"},"spec":{}}"#.into()), Arc::new(grants))
    }

    #[test]
    fn reads_see_granted_kinds_in_the_own_namespace() {
        type Row = (&'static str, &'static str, Option<&'static str>, &'static [&'static str], bool);
        let rows: [Row; 7] = [
            ("own namespace by default", "ConfigMap", None, &[], true),
            ("own namespace by name", "ConfigMap", Some("mine"), &[], true),
            ("another namespace", "ConfigMap", Some("other"), &[], false),
            ("another namespace that is granted", "ConfigMap", Some("other"), &["other"], true),
            ("another namespace of all", "ConfigMap", Some("other"), &["*"], true),
            ("another kind", "Pod", None, &["*"], false),
            ("the empty namespace", "ConfigMap", Some(""), &[], false),
        ];
        for (name, kind, namespace, granted, expected) in rows {
            assert_eq!(scope(granted).read("v1", kind, namespace).is_ok(), expected, "{name}");
        }
    }

    #[test]
    fn a_refusal_names_the_missing_grant() {
        let refused = scope(&[]).write("apps/v1", "Deployment", None).unwrap_err();
        assert_eq!(refused.message, "Deployment of group \"apps\" is not granted; add it to spec.grants.writes");
    }
}

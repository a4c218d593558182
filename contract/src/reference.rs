//! References to objects and lists, and the API server that they are for.

use std::fmt;

use capwasm_object::group_version::group;
use serde::{Deserialize, Serialize};

/// Reference to an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `group/version`, `v1` for the core group, or `group/` where the host takes the version that its contract knows.
    pub api_version: String,
    /// Kind, such as `Machine`.
    pub kind: String,
    /// `None` for the reconciled object's namespace, and for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl ObjectRef {
    /// An object in the reconciled object's namespace, or of a cluster-scoped kind.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, name: impl Into<String>) -> ObjectRef {
        ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace: None, name: name.into() }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> ObjectRef {
        self.namespace = Some(namespace.into());
        self
    }

    /// The API group; `""` for the core group.
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }

    /// Size of its texts in bytes.
    pub fn bytes(&self) -> usize {
        self.api_version.len() + self.kind.len() + self.name.len() + self.namespace.as_ref().map_or(0, String::len)
    }
}

/// `v1/Secret kube-system/token`.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ", self.api_version, self.kind)?;
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, "{namespace}/"))?;
        f.write_str(&self.name)
    }
}

/// Selection of a kind's objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// `group/version`, `v1` for the core group, or `group/` where the host takes the version that its contract knows.
    pub api_version: String,
    /// Kind, such as `Machine`.
    pub kind: String,
    /// `None` for the reconciled object's namespace in the management cluster, and for all namespaces of a workload
    /// cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Label selector as kubectl takes it: `app=x,!old`. Empty selects all.
    pub labels: String,
}

impl Selection {
    /// All objects of a kind, in the reconciled object's namespace or in all of a workload cluster.
    pub fn of(api_version: impl Into<String>, kind: impl Into<String>) -> Selection {
        Selection { api_version: api_version.into(), kind: kind.into(), namespace: None, labels: String::new() }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Selection {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the label selector, as kubectl takes it.
    #[must_use]
    pub fn labelled(mut self, labels: impl Into<String>) -> Selection {
        self.labels = labels.into();
        self
    }

    /// The API group; `""` for the core group.
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }

    /// Size of its texts in bytes.
    pub fn bytes(&self) -> usize {
        self.api_version.len() + self.kind.len() + self.labels.len() + self.namespace.as_ref().map_or(0, String::len)
    }
}

/// `v1/Pod in kube-system with tier=control-plane`.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version, self.kind)?;
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " in {namespace}"))?;
        if self.labels.is_empty() { Ok(()) } else { write!(f, " with {}", self.labels) }
    }
}

/// API server of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// The management cluster.
    Management,
    /// The workload cluster.
    Workload,
}

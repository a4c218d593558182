//! What an object is (its kind) and which one it is (its key).
//!
//! A [`Kind`] carries everything that is needed to speak to the API server about objects of that kind, so nothing below
//! this module looks up a plural or a scope again. Both types are cheap to clone: thousands of queue entries and
//! interests hold them.

use std::{fmt, ops::Deref, sync::Arc};

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

/// Fields of a [`Kind`].
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindFields {
    /// API group, empty for the core group.
    pub group: Box<str>,
    /// API version without the group, as in `v1beta2`.
    pub version: Box<str>,
    /// Kind in CamelCase, as in `Machine`.
    pub kind: Box<str>,
    /// Name of the resource in URLs, as in `machines`.
    pub plural: Box<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// A kind of object at one version. Dereferences to its [`KindFields`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(Arc<KindFields>);

impl Kind {
    /// A kind whose plural and scope are known already; [`Cache::kind`](crate::Cache::kind) asks the server instead.
    pub fn new(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Self(Arc::new(KindFields {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
        }))
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind as kube's dynamic API takes it.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&self.group, &self.version, &self.kind), &self.plural)
    }

    /// A dynamic API for this kind in `namespace`; for the whole cluster if the kind is cluster-scoped or `namespace`
    /// is empty.
    pub fn api(&self, client: &kube::Client, namespace: &str) -> kube::Api<DynamicObject> {
        let resource = self.api_resource();
        if self.namespaced && !namespace.is_empty() {
            kube::Api::namespaced_with(client.clone(), namespace, &resource)
        } else {
            kube::Api::all_with(client.clone(), &resource)
        }
    }

    /// URL path of the collection, or of an object.
    pub fn path(&self, namespace: &str, name: Option<&str>) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }

    /// Whether group and kind match, at any version.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        *self.group == *group && *self.kind == *kind
    }
}

impl Deref for Kind {
    type Target = KindFields;

    fn deref(&self) -> &KindFields {
        &self.0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// One object of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Kind of the object.
    pub kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl Key {
    /// The key of `namespace/name`.
    pub fn new(kind: &Kind, namespace: &str, name: &str) -> Self {
        Self { kind: kind.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of `object`, which is of `kind`.
    pub fn of(kind: &Kind, object: &Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self::new(kind, text("/metadata/namespace"), text("/metadata/name"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// A workload cluster, by the namespace and name of its Cluster object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId {
    /// Namespace of the Cluster object.
    pub namespace: String,
    /// Name of the Cluster object.
    pub name: String,
}

impl ClusterId {
    /// The cluster of the Cluster object `namespace/name`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// API server of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The management cluster.
    Management,
    /// A workload cluster.
    Workload(Arc<ClusterId>),
}

/// Splits `apiVersion` into group (empty for the core group) and version.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_group_and_scope() {
        let machine = Kind::new("cluster.x-k8s.io", "v1beta2", "Machine", "machines", true);
        assert_eq!(machine.path("ns", Some("m")), "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/m");
        assert_eq!(machine.path("", None), "/apis/cluster.x-k8s.io/v1beta2/machines");
        let node = Kind::new("", "v1", "Node", "nodes", false);
        assert_eq!(node.path("ignored", Some("n")), "/api/v1/nodes/n");
        assert_eq!(node.api_version(), "v1");
    }
}

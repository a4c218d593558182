//! A guest's reads, answered from the host's caches and remembered for the object under reconciliation. The runtime has
//! checked grants of kinds and namespaces before.

use std::collections::BTreeMap;

use async_trait::async_trait;
use base64::Engine as _;
use capwasm_api::names::labels::CLUSTER_NAME;
use capwasm_contract::descriptor::KindPattern;
use capwasm_contract::{ObjectRef, Refusal, Refused, Selection};
use capwasm_object::{json, meta};
use capwasm_reconcile::{CacheError, ClusterId, Kind, Selector, View};
use capwasm_remote::Remote;
use capwasm_runtime::{Lookup, Secrets};
use serde_json::Value;

/// Reads that the host remembers for all objects of one kind of a provider: ten for each of 50,000 machines. Each takes some hundred
/// bytes until the object's next pass.
const REMEMBERED: usize = 500_000;

/// Whether another read may be remembered.
fn may_remember(held: usize) -> Result<(), Refused> {
    if held < REMEMBERED {
        return Ok(());
    }
    let message =
        format!("the objects of this kind have read {REMEMBERED} others, which is all that the host remembers");
    Err(Refused::new(Refusal::Limit, "TooManyReads", message))
}

/// Reads of the management cluster; the default namespace is the object's.
pub struct Management {
    pub view: View,
    pub namespace: String,
    /// Bytes of a list at most.
    pub most: usize,
}

#[async_trait]
impl Lookup for Management {
    async fn get(&self, target: &ObjectRef) -> Result<String, Refused> {
        let kind = kind_of(&self.view, &target.api_version, &target.kind).await?;
        get(&self.view, &kind, target.namespace.as_deref().unwrap_or(&self.namespace), &target.name).await
    }

    async fn list(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        let kind = kind_of(&self.view, &of.api_version, &of.kind).await?;
        let namespace = one_namespace(&kind, of.namespace.as_deref().unwrap_or(&self.namespace))?;
        list(&self.view, &kind, Some(namespace), &of.labels, self.most).await
    }
}

/// The namespace of a list. For a cluster-scoped object there is no default, since none would mean all of them.
fn one_namespace<'a>(kind: &Kind, namespace: &'a str) -> Result<&'a str, Refused> {
    if kind.namespaced && namespace.is_empty() {
        let message = format!("the object is in no namespace; name one for a list of {kind}");
        return Err(Refused::denied(message));
    }
    Ok(namespace)
}

/// Reads of the workload cluster.
pub struct Workload {
    pub view: View,
    pub remote: Remote,
    pub cluster: Option<ClusterId>,
    /// Bytes of a list at most.
    pub most: usize,
    /// Kinds whose changes wake the object.
    pub watched: Vec<KindPattern>,
}

impl Workload {
    pub(crate) async fn connection(&self) -> Result<capwasm_remote::Workload, Refused> {
        let Some(cluster) = &self.cluster else {
            return Err(Refused::new(Refusal::Unavailable, "NoCluster", "the object belongs to no Cluster"));
        };
        let workload = self.remote.connect(&self.view, cluster).await;
        workload.map_err(|error| Refused::new(Refusal::Unavailable, error.reason, error.message))
    }

    async fn connected(&self) -> Result<View, Refused> {
        Ok(self.connection().await?.view(&self.view))
    }

    /// The kind, watched from now on if it is among `watched`.
    async fn kind(&self, view: &View, api_version: &str, kind: &str) -> Result<Kind, Refused> {
        let kind = kind_of(view, api_version, kind).await?;
        let watched = &self.watched;
        if watched.iter().any(|pattern| pattern.matches(&kind.group, &kind.kind)) {
            view.cache().follow(&kind);
        }
        Ok(kind)
    }
}

#[async_trait]
impl Lookup for Workload {
    async fn get(&self, target: &ObjectRef) -> Result<String, Refused> {
        let view = self.connected().await?;
        let kind = self.kind(&view, &target.api_version, &target.kind).await?;
        get(&view, &kind, target.namespace.as_deref().unwrap_or_default(), &target.name).await
    }

    async fn list(&self, of: &Selection) -> Result<Vec<String>, Refused> {
        let view = self.connected().await?;
        let kind = self.kind(&view, &of.api_version, &of.kind).await?;
        list(&view, &kind, of.namespace.as_deref(), &of.labels, self.most).await
    }
}

/// The bootstrap data Secret of the Machine or MachinePool, or the one that a controller's object names.
pub struct DataSecret {
    pub name: String,
    /// Required type.
    pub of_type: Option<&'static str>,
}

/// Secrets, always read live; the default namespace is the object's.
pub struct NamespaceSecrets {
    pub view: View,
    pub namespace: String,
    pub bootstrap_data: Option<DataSecret>,
}

impl NamespaceSecrets {
    async fn read(&self, namespace: &str, name: &str, of_type: Option<&str>) -> Opened {
        let kind = kind_of(&self.view, "v1", "Secret").await?;
        may_remember(self.view.held())?;
        let secret = self.view.get_live(&kind, namespace, name).await.map_err(refused)?;
        let secret = secret.ok_or_else(|| Refused::not_found(format!("there is no Secret {namespace}/{name}")))?;
        let found = json::text(&secret, "/type").unwrap_or_default();
        if of_type.is_some_and(|wanted| wanted != found) {
            let message = format!("Secret {namespace}/{name} is of type {found:?}, which is no bootstrap data");
            return Err(Refused::denied(message));
        }
        if of_type.is_some() && is_of_a_cluster(&secret) {
            let message = format!("Secret {namespace}/{name} holds keys of a cluster, which are no bootstrap data");
            return Err(Refused::denied(message));
        }
        decode(&secret).map_err(|key| {
            Refused::invalid("BrokenSecret", format!("Secret {namespace}/{name}: {key:?} is not base64"))
        })
    }
}

/// Suffixes of Cluster API's Secrets `<cluster>-<purpose>`, which have the same type as bootstrap data.
const PURPOSES: [&str; 6] = ["-kubeconfig", "-ca", "-etcd", "-proxy", "-sa", "-apiserver-etcd-client"];

/// Whether a Secret of this name may be a cluster's kubeconfig or key.
pub(crate) fn may_be_of_a_cluster(name: &str) -> bool {
    PURPOSES.iter().any(|purpose| name.ends_with(purpose))
}

/// Whether a Secret is a cluster's kubeconfig or key. Without a cluster label its name decides.
fn is_of_a_cluster(secret: &Value) -> bool {
    let cluster = meta::label(secret, CLUSTER_NAME);
    let of = |purpose| meta::name(secret).strip_suffix(purpose);
    PURPOSES.into_iter().filter_map(of).any(|name| cluster.is_none_or(|cluster| cluster == name))
}

type Opened = Result<BTreeMap<String, Vec<u8>>, Refused>;

#[async_trait]
impl Secrets for NamespaceSecrets {
    async fn open(&self, namespace: Option<&str>, name: &str) -> Opened {
        self.read(namespace.unwrap_or(&self.namespace), name, None).await
    }

    async fn bootstrap_data(&self) -> Opened {
        match &self.bootstrap_data {
            Some(DataSecret { name, of_type }) => self.read(&self.namespace, name, *of_type).await,
            None => Err(Refused::not_found("there is no bootstrap data yet")),
        }
    }
}

/// Decodes `data` of a Secret. The error is the key that is not base64.
pub(crate) fn decode(secret: &Value) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let Some(data) = secret.get("data").and_then(Value::as_object) else { return Ok(BTreeMap::new()) };
    data.iter()
        .map(|(key, value)| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap_or_default());
            bytes.map(|bytes| (key.clone(), bytes)).map_err(|_| key.clone())
        })
        .collect()
}

/// Resolves `group/version` exactly; `group/` to the server's preferred version.
async fn kind_of(view: &View, api_version: &str, kind: &str) -> Result<Kind, Refused> {
    let found = match api_version.strip_suffix('/') {
        Some(group) => view.kind(group, kind).await,
        None => view.kind_at(api_version, kind).await,
    };
    found.map_err(refused)
}

async fn get(view: &View, kind: &Kind, namespace: &str, name: &str) -> Result<String, Refused> {
    may_remember(view.held())?;
    let found = view.get_text(kind, namespace, name).await.map_err(refused)?;
    found.ok_or_else(|| Refused::not_found(format!("there is no {} {namespace}/{name}", kind.kind)))
}

async fn list(
    view: &View,
    kind: &Kind,
    namespace: Option<&str>,
    labels: &str,
    most: usize,
) -> Result<Vec<String>, Refused> {
    may_remember(view.held())?;
    let selector = Selector::parse(labels).map_err(|error| Refused::invalid("BadSelector", error.to_string()))?;
    view.list_texts_within(kind, namespace, &selector, most).await.map_err(refused)
}

fn refused(error: CacheError) -> Refused {
    let chain = chain(&error);
    match &error {
        CacheError::ListTooLarge { .. } => Refused::new(Refusal::Limit, "ListTooLarge", chain),
        CacheError::UnknownKind { .. } => Refused::new(Refusal::NotFound, "UnknownKind", chain),
        error if error.is_unavailable() => Refused::new(Refusal::Unavailable, "Unavailable", chain),
        _ => Refused::new(Refusal::Invalid, "ReadFailed", chain),
    }
}

/// An error with its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    /// A kubeconfig has the type that bootstrap data has: what an object may name must not open it.
    #[test]
    fn keys_of_a_cluster_are_no_bootstrap_data() {
        let secret = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
        let of_c = || json!({"cluster.x-k8s.io/cluster-name": "c"});
        for purpose in ["kubeconfig", "ca", "etcd", "proxy", "sa", "apiserver-etcd-client"] {
            assert!(is_of_a_cluster(&secret(&format!("c-{purpose}"), of_c())), "{purpose}");
            assert!(is_of_a_cluster(&secret(&format!("c-{purpose}"), json!({}))), "{purpose} without a label");
            assert!(!is_of_a_cluster(&secret(&format!("c-worker-{purpose}"), of_c())), "a machine's {purpose}");
        }
        assert!(!is_of_a_cluster(&secret("c-md-0-abcde", of_c())) && !is_of_a_cluster(&secret("data", json!({}))));
    }

    #[test]
    fn reads_of_a_kind_are_remembered_up_to_a_number() {
        assert_eq!(may_remember(REMEMBERED - 1), Ok(()));
        assert_eq!(may_remember(REMEMBERED).map_err(|refused| refused.reason), Err("TooManyReads".to_owned()));
    }

    #[test]
    fn an_object_without_a_namespace_does_not_list_them_all() {
        let pods = Kind::new("", "v1", "Pod", "pods", true);
        let nodes = Kind::new("", "v1", "Node", "nodes", false);
        assert_eq!(one_namespace(&pods, "").unwrap_err().refusal, Refusal::Denied);
        assert_eq!((one_namespace(&pods, "a"), one_namespace(&nodes, "")), (Ok("a"), Ok("")));
    }

    #[test]
    fn secret_data_is_decoded_or_the_broken_key_named() {
        let good = decode(&json!({"data": {"value": "aGVsbG8=", "empty": ""}})).unwrap();
        assert_eq!((good["value"].as_slice(), good["empty"].as_slice()), (b"hello".as_slice(), b"".as_slice()));
        assert_eq!(decode(&json!({"data": {"value": "%%%"}})), Err("value".to_owned()));
        assert!(decode(&json!({"metadata": {}})).unwrap().is_empty());
    }
}

//! Defaulting and validation by the generation that serves a kind. While a provider with admission is installed, no
//! object of its kinds is stored without it.

use std::collections::HashMap;
use std::sync::Arc;

use capwasm_contract::descriptor::KindDescriptor;
use capwasm_contract::{Fault, Problem};
use capwasm_object::{bounded, json, meta};
use capwasm_runtime::{Provider, PureError, PureReply};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;

use crate::conversion::unreadable;
use crate::host_keys;
use crate::metrics::CallMetrics;
use crate::reads::chain;

/// Names of the contract's functions, for metrics.
const DEFAULT: &str = "admission.default";
const VALIDATE: &str = "admission.validate";

/// Memory of an object with defaults in bytes: twenty times the largest text that an API server takes.
const TREE: usize = 64 << 20;

/// Why an object must not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The object is invalid: 422.
    #[error("{message}")]
    Invalid {
        /// CamelCase; reason of the cause in the `Status`.
        reason: String,
        /// The provider's message.
        message: String,
    },
    /// The request is forbidden, whatever the object contains: 403.
    #[error("{0}")]
    Forbidden(String),
    /// The provider that admits the kind is not loaded.
    #[error("{0}")]
    NotLoaded(String),
    /// The provider trapped, passed a limit or broke the contract.
    #[error("{0}")]
    Failed(String),
}

/// A kind with admission by a provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdmittedKind {
    /// API group, such as `infrastructure.cluster.x-k8s.io`.
    pub group: String,
    /// Kind, such as `DockerMachine`.
    pub kind: String,
    /// Version in which objects are passed to the provider.
    pub version: String,
    /// Resource name, such as `dockermachines`.
    pub plural: String,
    /// Name of the provider.
    pub provider: String,
}

/// Kinds with admission. One per process.
#[derive(Debug)]
pub struct Admissions {
    /// By group and kind.
    kinds: RwLock<HashMap<(String, String), Admitted>>,
    changes: watch::Sender<()>,
    calls: CallMetrics,
}

#[derive(Clone)]
struct Admitted {
    kind: AdmittedKind,
    /// `None` while the provider is installed but not loaded.
    component: Option<Arc<Provider>>,
}

impl std::fmt::Debug for Admitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.kind, self.component.as_ref().map(|component| component.digest()))
    }
}

impl Admissions {
    pub(crate) fn new(calls: CallMetrics) -> Self {
        Admissions { kinds: RwLock::default(), changes: watch::channel(()).0, calls }
    }

    /// Refuses objects of the kinds in `status.kinds` of an installed WasmProvider until [`Admissions::serve`].
    pub fn expect(&self, wasm_provider: &Value) {
        let mut kinds = self.kinds.write();
        for kind in json::items(wasm_provider, "/status/kinds") {
            let text = |pointer| json::text(kind, pointer).unwrap_or_default().to_owned();
            // Its plural is what makes webhooks of it.
            let plural = text("/admission");
            if plural.is_empty() {
                continue;
            }
            let (group, kind, version) = (text("/group"), text("/kind"), text("/version"));
            let provider = meta::name(wasm_provider).to_owned();
            let admitted = AdmittedKind { group: group.clone(), kind: kind.clone(), version, plural, provider };
            kinds.entry((group, kind)).or_insert(Admitted { kind: admitted, component: None });
        }
        drop(kinds);
        self.changes.send_replace(());
    }

    /// Routes admission of its kinds to `component`.
    pub fn serve(&self, component: &Arc<Provider>) {
        let descriptor = component.descriptor();
        let mut kinds = self.kinds.write();
        kinds.retain(|_, admitted| admitted.kind.provider != descriptor.name);
        for kind in descriptor.kinds.iter().filter(|kind| kind.admission) {
            let admitted = Admitted { kind: admitted_kind(kind, &descriptor.name), component: Some(component.clone()) };
            kinds.insert((kind.group.clone(), kind.kind.clone()), admitted);
        }
        drop(kinds);
        self.changes.send_replace(());
    }

    /// As [`Admissions::serve`], unless another component of the provider serves: objects can be written between the
    /// installation of a CRD and the provider's start.
    pub fn offer(&self, component: &Arc<Provider>) {
        let descriptor = component.descriptor();
        let known = |admitted: &Admitted| admitted.kind.provider == descriptor.name && admitted.component.is_some();
        if !self.kinds.read().values().any(known) {
            self.serve(component);
        }
    }

    /// Removes an uninstalled provider: its objects are stored without admission.
    pub fn leave(&self, provider: &str) {
        self.kinds.write().retain(|_, admitted| admitted.kind.provider != provider);
        self.changes.send_replace(());
    }

    /// The kinds with admission, sorted.
    pub fn kinds(&self) -> Vec<AdmittedKind> {
        let mut kinds: Vec<AdmittedKind> = self.kinds.read().values().map(|admitted| admitted.kind.clone()).collect();
        kinds.sort();
        kinds
    }

    /// Notifies of changes of [`Admissions::kinds`].
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// `None` for a kind without admission.
    pub fn admitted(&self, group: &str, kind: &str) -> Option<AdmittedKind> {
        Some(self.find(group, kind)?.kind)
    }

    /// `object`, in the version of [`Admissions::admitted`], with defaults; unchanged for a kind without admission.
    ///
    /// # Errors
    /// When it must not be stored.
    pub async fn with_defaults(&self, object: Value, old: Option<&Value>) -> Result<Value, NotAdmitted> {
        let Some((provider, component)) = self.component(&object)? else { return Ok(object) };
        let call = component.default_object(object.to_string(), old.map(Value::to_string)).await;
        let text = self.answer(&provider, DEFAULT, call)?;
        let failed = |why: String| NotAdmitted::Failed(format!("provider {provider:?}: {DEFAULT}: {why}"));
        let mut changed = read(&text).map_err(failed)?;
        let same = |field: &str| changed.get(field) == object.get(field);
        if !same("apiVersion") || !same("kind") {
            return Err(failed("it answered another version or kind".to_owned()));
        }
        keep(&object, &mut changed);
        Ok(changed)
    }

    /// Warnings for the client. `object` is in the version of [`Admissions::admitted`].
    ///
    /// # Errors
    /// When it must not be stored.
    pub async fn validate(&self, object: &Value, old: Option<&Value>) -> Result<Vec<String>, NotAdmitted> {
        let Some((provider, component)) = self.component(object)? else { return Ok(Vec::new()) };
        let call = component.validate_object(object.to_string(), old.map(Value::to_string)).await;
        self.answer(&provider, VALIDATE, call)
    }

    fn answer<T>(
        &self,
        provider: &str,
        function: &'static str,
        call: Result<PureReply<T>, PureError>,
    ) -> Result<T, NotAdmitted> {
        self.calls.count_pure(provider, function, call.as_ref());
        match call {
            Ok(reply) => reply.answer.map_err(refused),
            Err(error) => Err(NotAdmitted::Failed(format!("provider {provider:?}: {}", chain(&error)))),
        }
    }

    fn find(&self, group: &str, kind: &str) -> Option<Admitted> {
        self.kinds.read().get(&(group.to_owned(), kind.to_owned())).cloned()
    }

    /// Name and component of the provider that admits an object.
    fn component(&self, object: &Value) -> Result<Option<(String, Arc<Provider>)>, NotAdmitted> {
        let group =
            json::text(object, "/apiVersion").and_then(|version| version.split_once('/')).map_or("", |(g, _)| g);
        match self.find(group, meta::kind(object)) {
            None => Ok(None),
            Some(Admitted { kind, component: Some(component) }) => Ok(Some((kind.provider, component))),
            Some(Admitted { kind, component: None }) => Err(NotAdmitted::NotLoaded(format!(
                "provider {:?}, which has to be asked about {}.{group}, is not loaded; see its WasmProvider",
                kind.provider, kind.kind
            ))),
        }
    }
}

/// Reads an answer.
fn read(text: &str) -> Result<Value, String> {
    let mut left = TREE;
    bounded::read_within(text.as_bytes(), &mut left).map_err(unreadable)
}

/// A provider may default neither status nor metadata other than labels and annotations that are not the host's.
fn keep(object: &Value, changed: &mut Value) {
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    if let Some(kept) = metadata.as_object_mut() {
        for field in ["labels", "annotations"] {
            match changed.pointer(&format!("/metadata/{field}")).filter(|value| !value.is_null()) {
                Some(value) => kept.insert(field.to_owned(), value.clone()),
                None => kept.remove(field),
            };
        }
    }
    if let Some(root) = changed.as_object_mut() {
        root.insert("metadata".to_owned(), metadata);
        match object.get("status") {
            Some(status) => root.insert("status".to_owned(), status.clone()),
            None => root.remove("status"),
        };
    }
    host_keys::keep(object, changed, |_| false, |_, _| {});
}

fn admitted_kind(kind: &KindDescriptor, provider: &str) -> AdmittedKind {
    AdmittedKind {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        version: kind.version.clone(),
        plural: json::text(&kind.crd, "/spec/names/plural").unwrap_or_default().to_owned(),
        provider: provider.to_owned(),
    }
}

fn refused(problem: Problem) -> NotAdmitted {
    match problem.fault {
        Fault::Invalid => NotAdmitted::Invalid { reason: problem.reason, message: problem.message },
        _ => NotAdmitted::Forbidden(problem.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_are_of_the_spec_and_of_labels_and_annotations_that_are_not_the_hosts() {
        let of = |metadata: Value, spec: Value| json!({"apiVersion": "a.example/v1", "kind": "A", "metadata": metadata, "spec": spec});
        let object = of(json!({"name": "a", "labels": {"cluster.x-k8s.io/cluster-name": "c", "x": "1"}}), json!({}));
        let mut changed = of(
            json!({"name": "b", "finalizers": ["f"], "labels": {"cluster.x-k8s.io/cluster-name": "other", "y": "2"},
                "annotations": {"cluster.x-k8s.io/paused": "", "a.example/z": "3"}}),
            json!({"size": 1}),
        );
        changed["status"] = json!({"ready": true});
        keep(&object, &mut changed);
        let labels = json!({"cluster.x-k8s.io/cluster-name": "c", "y": "2"});
        let metadata = json!({"name": "a", "labels": labels, "annotations": {"a.example/z": "3"}});
        assert_eq!(changed, of(metadata, json!({"size": 1})));
    }

    #[test]
    fn an_answer_that_takes_too_much_memory_is_refused() {
        let of = |count: usize| format!(r#"{{"a":[{}0]}}"#, r#"{"":0},"#.repeat(count));
        assert!(read(&of(50_000)).is_ok());
        assert_eq!(
            read(&of(150_000)),
            Err("its answer takes more memory than there is for it".to_owned()),
            "a MiB of text"
        );
        assert!(read("{").is_err_and(|error| error.starts_with("its answer is not JSON")));
    }
}

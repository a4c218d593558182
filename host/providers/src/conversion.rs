//! Conversion by the generation that serves a kind; between two generations by the older one.
//!
//! API servers ask synchronously while a request waits, so conversions run on a thread of their own and the caller
//! blocks. Nothing on that thread waits for the API server, so this cannot deadlock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use capwasm_contract::descriptor::KindDescriptor;
use capwasm_contract::host_keys::CONVERSION_DATA;
use capwasm_object::bounded::{self, ReadError};
use capwasm_object::{json, meta};
use capwasm_runtime::Provider;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::Instrument;

use crate::admission::Admissions;
use crate::host_keys;
use crate::metrics::CallMetrics;
use crate::reads::chain;

/// Name of the contract's function, for metrics.
const CONVERT: &str = "conversion.convert";

/// Longer than any conversion takes within its limits, including the time in the queue.
const PATIENCE: Duration = Duration::from_secs(15);

/// Memory of the objects that one conversion answers, in bytes: four times what their text may have.
const TREES: usize = 256 << 20;

/// Why objects were not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotConverted {
    /// The provider that converts the kind is not loaded.
    #[error("{0}")]
    NotLoaded(String),
    /// The provider cannot convert it, or broke the contract.
    #[error("{0}")]
    Failed(String),
}

/// Converters by group and kind. One per process.
#[derive(Debug)]
pub struct Conversions {
    kinds: RwLock<HashMap<(String, String), Converter>>,
    /// `apiVersion` that v1beta1 references to a kind carry.
    references: RwLock<HashMap<(String, String), String>>,
    jobs: UnboundedSender<Job>,
    client_config: RwLock<Option<Arc<Value>>>,
    /// Served by the same components.
    admissions: Admissions,
    calls: CallMetrics,
}

#[derive(Clone)]
struct Converter {
    provider: String,
    component: Arc<Provider>,
}

impl std::fmt::Debug for Converter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.provider, self.component.digest())
    }
}

struct Job {
    converter: Converter,
    objects: Vec<String>,
    to: String,
    /// The caller's span, of which the call is a part.
    span: tracing::Span,
    answer: mpsc::SyncSender<Result<Vec<String>, String>>,
}

impl Conversions {
    /// Starts the conversion thread, without converters.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start() -> std::io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let (jobs, queue) = unbounded_channel();
        // Ends when the last reference to the registry is gone.
        let calls = CallMetrics::default();
        let counted = calls.clone();
        thread::Builder::new().name("capwasm-convert".into()).spawn(move || runtime.block_on(work(queue, counted)))?;
        Ok(Arc::new(Conversions {
            kinds: RwLock::default(),
            references: RwLock::default(),
            jobs,
            client_config: RwLock::default(),
            admissions: Admissions::new(calls.clone()),
            calls,
        }))
    }

    /// Routes conversion and admission of its kinds to `component`. Kinds that only an older generation had keep that
    /// one: their objects may still be stored.
    pub fn serve(&self, component: &Arc<Provider>) {
        self.put(component, true);
        self.admissions.serve(component);
    }

    /// As [`Conversions::serve`], for kinds without a converter: objects can be read between the installation of a CRD
    /// and the provider's start.
    pub fn offer(&self, component: &Arc<Provider>) {
        self.put(component, false);
        self.admissions.offer(component);
    }

    fn put(&self, component: &Arc<Provider>, replace: bool) {
        let descriptor = component.descriptor();
        let referred = descriptor.kinds.iter().map(|kind| ((kind.group.clone(), kind.kind.clone()), older(kind)));
        self.references.write().extend(referred);
        if !component.converts() {
            return;
        }
        let converter = Converter { provider: descriptor.name.clone(), component: component.clone() };
        let mut kinds = self.kinds.write();
        for kind in &descriptor.kinds {
            let key = (kind.group.clone(), kind.kind.clone());
            if replace || !kinds.contains_key(&key) {
                kinds.insert(key, converter.clone());
            }
        }
    }

    /// Removes the converters and admissions of an uninstalled provider.
    pub fn leave(&self, provider: &str) {
        self.kinds.write().retain(|_, converter| converter.provider != provider);
        self.admissions.leave(provider);
    }

    /// Makes CRDs name this `clientConfig` of the conversion webhook instead of the in-process converter.
    pub fn reached_by(&self, client_config: Value) {
        *self.client_config.write() = Some(Arc::new(client_config));
    }

    /// The `clientConfig` set by [`Conversions::reached_by`].
    pub fn client_config(&self) -> Option<Arc<Value>> {
        self.client_config.read().clone()
    }

    /// Metrics of conversions and admissions; to be registered, and shared with all other calls.
    pub fn calls(&self) -> &CallMetrics {
        &self.calls
    }

    /// Admission by the same components.
    pub fn admissions(&self) -> &Admissions {
        &self.admissions
    }

    /// `apiVersion` of a v1beta1 reference to a provider's kind; `None` when no provider of the kind was loaded.
    pub fn reference(&self, group: &str, kind: &str) -> Option<String> {
        self.references.read().get(&(group.to_owned(), kind.to_owned())).cloned()
    }

    /// Name of the provider that converts or admits a kind, if it is loaded or expected.
    pub fn provider_of(&self, group: &str, kind: &str) -> Option<String> {
        let converter = self.kinds.read().get(&(group.to_owned(), kind.to_owned())).map(|found| found.provider.clone());
        converter.or_else(|| Some(self.admissions.admitted(group, kind)?.provider))
    }

    /// Converts objects of one kind, in order, to version `to` (`group/version`). `provider` owns the CRD, for the
    /// message. Blocks the thread.
    ///
    /// # Errors
    /// When the provider is not loaded or does not convert them.
    pub fn convert(
        &self,
        group: &str,
        kind: &str,
        provider: Option<&str>,
        objects: &[Value],
        to: &str,
    ) -> Result<Vec<Value>, NotConverted> {
        let converter = self.kinds.read().get(&(group.to_owned(), kind.to_owned())).cloned();
        let Some(converter) = converter else {
            return Err(NotConverted::NotLoaded(match provider {
                Some(provider) => format!("provider {provider:?} is not loaded, or does not convert {kind}.{group}"),
                None => format!("no provider that converts {kind}.{group} is loaded"),
            }));
        };
        let texts = objects.iter().map(Value::to_string).collect();
        let failed = |why: String| NotConverted::Failed(format!("provider {:?}: {why}", converter.provider));
        let texts = self.ask(converter.clone(), texts, to).map_err(failed)?;
        let mut left = TREES;
        texts
            .iter()
            .zip(objects)
            .map(|(text, object)| checked(text, object, to, &mut left))
            .collect::<Result<_, _>>()
            .map_err(failed)
    }

    fn ask(&self, converter: Converter, objects: Vec<String>, to: &str) -> Result<Vec<String>, String> {
        let (answer, answered) = mpsc::sync_channel(1);
        let job = Job { converter, objects, to: to.to_owned(), span: tracing::Span::current(), answer };
        self.jobs.send(job).map_err(|_| "the thread of conversions ended".to_owned())?;
        blocking(|| answered.recv_timeout(PATIENCE)).unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => format!("no answer within {PATIENCE:?}"),
                RecvTimeoutError::Disconnected => "the conversion was given up".to_owned(),
            })
        })
    }
}

/// The version with the label of contract v1beta1, else the version of the component.
fn older(kind: &KindDescriptor) -> String {
    let labelled =
        meta::label(&kind.crd, "cluster.x-k8s.io/v1beta1").and_then(|versions| versions.split('_').next_back());
    format!("{}/{}", kind.group, labelled.unwrap_or(&kind.version))
}

/// Checks the provider's answer, for whose tree `left` bytes are left: the same object, in the requested version. Labels and annotations of the host stay, but for the
/// annotation of conversions.
fn checked(text: &str, before: &Value, to: &str, left: &mut usize) -> Result<Value, String> {
    let mut object = bounded::read_within(text.as_bytes(), left).map_err(unreadable)?;
    if json::text(&object, "/apiVersion") != Some(to) || meta::kind(&object) != meta::kind(before) {
        return Err(format!(
            "it answered {} {:?} when asked for {} {to:?}",
            meta::kind(&object),
            json::text(&object, "/apiVersion").unwrap_or_default(),
            meta::kind(before)
        ));
    }
    // Both keep what the other version cannot say.
    let is_data = |key: &str| [CONVERSION_DATA, capwasm_api::conversion::OLD_DATA_ANNOTATION].contains(&key);
    host_keys::keep(before, &mut object, is_data, |_, _| {});
    Ok(object)
}

/// Why an answer was not read.
pub(crate) fn unreadable(error: ReadError) -> String {
    match error {
        ReadError::NotJson(error) => format!("its answer is not JSON: {error}"),
        ReadError::TooLarge => "its answer takes more memory than there is for it".to_owned(),
    }
}

/// Blocks; on a multi-threaded runtime other tasks move to another thread.
fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        _ => wait(),
    }
}

async fn work(mut queue: UnboundedReceiver<Job>, calls: CallMetrics) {
    while let Some(Job { converter, objects, to, span, answer }) = queue.recv().await {
        let calls = calls.clone();
        let convert = async move {
            let call = converter.component.convert(objects, &to).await;
            calls.count_pure(&converter.provider, CONVERT, call.as_ref());
            let texts = match call {
                Ok(reply) => reply.answer.map_err(|problem| problem.to_string()),
                Err(error) => Err(chain(&error)),
            };
            // Nobody waits for it any more if this fails.
            let _ = answer.send(texts);
        };
        // A long one must not hold up the others; the runtime has places for some at a time.
        tokio::spawn(convert.instrument(span));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_the_same_in_another_version_and_belongs_to_the_same_cluster() {
        let of = |version: &str, kind: &str, metadata: Value| json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        let before = of("a.example/v2", "A", json!({"labels": {"cluster.x-k8s.io/cluster-name": "c"}}));
        let told = json!({"labels": {"cluster.x-k8s.io/cluster-name": "other", "x": "1"},
            "annotations": {"cluster.x-k8s.io/conversion-data": "{}", "cluster.x-k8s.io/paused": ""}});
        let kept = json!({"labels": {"cluster.x-k8s.io/cluster-name": "c", "x": "1"},
            "annotations": {"cluster.x-k8s.io/conversion-data": "{}"}});
        let asked = |answer: Value| checked(&answer.to_string(), &before, "a.example/v1", &mut TREES.clone());
        assert_eq!(asked(of("a.example/v1", "A", told)).unwrap(), of("a.example/v1", "A", kept));
        assert!(asked(of("a.example/v2", "A", json!({}))).is_err());
        assert!(asked(of("a.example/v1", "B", json!({}))).is_err());
        assert!(checked("{", &before, "a.example/v1", &mut TREES.clone()).is_err());
        // All objects of an answer share what there is for their trees.
        let (text, mut left) = (of("a.example/v1", "A", json!({"labels": {"x": "1"}})).to_string(), 5_000);
        let answered: Vec<_> = (0..3).map(|_| checked(&text, &before, "a.example/v1", &mut left)).collect();
        assert!(answered[0].is_ok() && answered[1].is_ok(), "{answered:?}");
        assert_eq!(answered[2], Err("its answer takes more memory than there is for it".to_owned()));
    }
}

//! Watches a kind into its [`Store`].

use std::{fmt::Debug, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Resource,
    core::{ApiResource, DynamicResourceScope, ObjectMeta, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Error, Event},
    },
};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Mark, Part,
    lean::Lean,
    store::{Listing, Store},
};
use crate::kind::Kind;

/// Servers that ignore the parameters of a streaming list never end it; after this time the kind is listed instead.
const STREAMING_LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// A running list is not replaced by another one before this time: many keys may ask for one meanwhile.
const LONGEST_LIST: Duration = Duration::from_secs(60);

/// Delays before an unserved kind is tried again: shorter than the watcher's own, as its CRD may be about to be
/// installed.
const LEAST_UNSERVED: Duration = Duration::from_millis(200);
const MOST_UNSERVED: Duration = Duration::from_secs(10);
/// Delay before a server that has more than is held of it is tried again.
const OVERFULL: Duration = Duration::from_secs(60);

/// The watch of one kind; its task ends when this is dropped.
pub(super) struct Watch {
    store: Arc<Store>,
    progress: watch::Receiver<Progress>,
    shared: Arc<Shared>,
    _end: DropGuard,
}

/// State of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The first list is not complete.
    Waiting,
    /// The store shows the server's objects.
    Synced,
    /// The server does not serve the kind; it is tried again.
    Unserved,
    /// The server has more than is held of it; it is tried again.
    Overfull,
}

#[derive(Default)]
struct Shared {
    problem: Mutex<String>,
    relist: Notify,
    /// Version that a list started now is known to include.
    floor: Mutex<u64>,
}

impl Watch {
    pub(super) fn start(
        client: kube::Client,
        store: Arc<Store>,
        part: Option<Part>,
        shutdown: CancellationToken,
    ) -> Self {
        let (sender, progress) = watch::channel(Progress::Waiting);
        let shared = Arc::new(Shared::default());
        let (task_store, task_shared) = (store.clone(), shared.clone());
        let end = shutdown.clone().drop_guard();
        tokio::spawn(async move {
            let resource = task_store.kind().api_resource();
            let labels = part.map(|part| part.selector().to_string()).unwrap_or_default();
            let follow = async {
                if metadata_only(task_store.kind()) {
                    let api: Api<PartialObjectMeta> = api(client, part, &resource);
                    follow(
                        api,
                        |object| serde_json::to_value(object).unwrap_or_default(),
                        &labels,
                        &task_store,
                        &task_shared,
                        &sender,
                    )
                    .await;
                } else {
                    let api: Api<Watched> = api(client, part, &resource);
                    follow(api, |object| object.object, &labels, &task_store, &task_shared, &sender).await;
                }
            };
            // `None` means shut down; following never ends by itself.
            shutdown.run_until_cancelled(follow).await;
        });
        Self { store, progress, shared, _end: end }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Waits until the first list is complete, or the kind is known to be unserved.
    pub(super) async fn synced(&self) -> Progress {
        match self.progress.clone().wait_for(|progress| *progress != Progress::Waiting).await {
            Ok(progress) => *progress,
            // The task has ended: nothing will come any more.
            Err(_) => Progress::Waiting,
        }
    }

    /// Whether the store has what the server has, as of a moment ago. One that is let go of is marked before it is emptied.
    pub(super) fn is_synced(&self) -> bool {
        *self.progress.borrow() == Progress::Synced
    }

    /// Whether it is given up for a while.
    pub(super) fn is_overfull(&self) -> bool {
        *self.progress.borrow() == Progress::Overfull
    }

    /// The last error; empty without one.
    pub(super) fn problem(&self) -> String {
        self.shared.problem.lock().clone()
    }

    /// Replaces the watch by a fresh list, which is known to include `mark`.
    pub(super) fn relist(&self, mark: &Mark) {
        if let Mark::Version(version) = mark {
            let mut floor = self.shared.floor.lock();
            *floor = (*floor).max(*version);
        }
        self.shared.relist.notify_one();
    }
}

/// Secrets would keep key material in memory, CRDs large schemas.
pub(super) fn metadata_only(kind: &Kind) -> bool {
    kind.is("", "Secret") || kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// How a watch gets its initial objects.
#[derive(Clone, Copy, PartialEq)]
enum Begin {
    /// Streaming list: cheap for the server, may be slightly stale.
    Streaming,
    /// List in pages: consistent.
    Pages,
}

fn api<K>(client: kube::Client, part: Option<Part>, resource: &ApiResource) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    match part {
        Some(part) => Api::namespaced_with(client, part.namespace, resource),
        None => Api::all_with(client, resource),
    }
}

async fn follow<K>(
    api: Api<K>,
    value: fn(K) -> Value,
    labels: &str,
    store: &Store,
    shared: &Shared,
    progress: &watch::Sender<Progress>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut begin = Begin::Streaming;
    let mut unserved = LEAST_UNSERVED;
    loop {
        let config = watcher::Config::default();
        let config = if labels.is_empty() { config } else { config.labels(labels) };
        let config = match begin {
            Begin::Streaming => config.streaming_lists(),
            Begin::Pages => config,
        };
        let floor = *shared.floor.lock();
        let begun = Instant::now();
        let mut stream = std::pin::pin!(watcher::watcher(api.clone(), config).default_backoff());
        let mut listing = None;
        let mut complete = false;
        loop {
            let patience = async {
                if complete || begin == Begin::Pages || listing.is_none() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(STREAMING_LIST_TIMEOUT).await;
            };
            let asked = async {
                if begin == Begin::Pages && !complete {
                    tokio::time::sleep_until(begun + LONGEST_LIST).await;
                }
                shared.relist.notified().await;
            };
            let event = tokio::select! {
                // The stream last: a server that sends without end is left all the same.
                biased;
                most = store.overfull() => {
                    let problem = format!("the API server has more than {} MiB of objects that are watched", most >> 20);
                    tracing::warn!(kind = %store.kind(), problem, "a watch is given up for a while");
                    *shared.problem.lock() = problem;
                    progress.send_replace(Progress::Overfull);
                    store.clear();
                    tokio::time::sleep(OVERFULL).await;
                    begin = Begin::Pages;
                    break;
                }
                () = asked => {
                    begin = Begin::Pages;
                    break;
                }
                () = patience => {
                    tracing::info!(kind = %store.kind(), "the server does not end its streaming list, listing in pages");
                    begin = Begin::Pages;
                    break;
                }
                event = stream.next() => event,
            };
            match event {
                Some(Ok(Event::Init)) => listing = Some(Listing::default()),
                Some(Ok(Event::InitApply(object))) => {
                    store.apply_listed(listing.get_or_insert_default(), value(object));
                }
                Some(Ok(Event::InitDone)) => {
                    // Only a consistent list proves anything about versions that it does not show.
                    let at_least = if begin == Begin::Pages { floor } else { 0 };
                    store.finish(listing.take().unwrap_or_default(), at_least);
                    complete = true;
                    shared.problem.lock().clear();
                    progress.send_replace(Progress::Synced);
                }
                Some(Ok(Event::Apply(object))) => store.apply(value(object)),
                Some(Ok(Event::Delete(object))) => store.delete(&value(object)),
                Some(Err(error)) => {
                    tracing::debug!(kind = %store.kind(), %error, "watch failed, trying again");
                    *shared.problem.lock() = error.to_string();
                    // A kind that was served once is not taken for gone: a restarting server may say so for a
                    // moment, and a reconciler that sees no machines would make new ones.
                    if is_unserved(&error) && *progress.borrow() != Progress::Synced {
                        progress.send_replace(Progress::Unserved);
                        tokio::time::sleep(unserved).await;
                        unserved = (unserved * 2).min(MOST_UNSERVED);
                        break;
                    }
                    if begin == Begin::Streaming && !complete && refuses_streaming(&error) {
                        begin = Begin::Pages;
                        break;
                    }
                }
                None => break,
            }
        }
    }
}

/// Servers without streaming lists refuse its parameters as invalid.
fn refuses_streaming(error: &Error) -> bool {
    matches!(error, Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 406 | 422))
}

fn is_unserved(error: &Error) -> bool {
    let (Error::InitialListFailed(error) | Error::WatchStartFailed(error)) = error else { return false };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The whole object, with the metadata that kube's watcher needs.
#[derive(Clone, Debug)]
struct Watched {
    metadata: ObjectMeta,
    object: Value,
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Lean(object) = Lean::deserialize(deserializer)?;
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        let metadata = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, object })
    }
}

impl Resource for Watched {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> std::borrow::Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use bytes::Bytes;
    use futures::stream;
    use http_body_util::StreamBody;
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::cache::room::Room;
    use crate::{interests::Interests, kind::Source};

    /// Lists take their time and are at version 3; watches deliver nothing; streaming lists are refused.
    fn slow_server() -> kube::Client {
        let service = tower::service_fn(|request: http::Request<Body>| async move {
            let uri = request.uri().to_string();
            let chunk = |value: Value| {
                Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from(value.to_string())))
            };
            let (code, body) = if uri.contains("sendInitialEvents") {
                (
                    422,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}),
                )
            } else if uri.contains("watch=true") {
                return Ok(http::Response::new(StreamBody::new(stream::pending().boxed())));
            } else {
                tokio::time::sleep(Duration::from_millis(200)).await;
                (
                    200,
                    json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "3"}, "items": []}),
                )
            };
            let body = StreamBody::new(stream::iter([chunk(body)]).boxed());
            Ok::<_, tower::BoxError>(http::Response::builder().status(code).body(body)?)
        });
        kube::Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_list_is_not_begun_anew_by_everybody_who_asks_for_it() {
        let kind = Kind::new("", "v1", "ConfigMap", "configmaps", true);
        let store = Arc::new(Store::new(Source::Management, kind, Interests::new(), &Room::new(usize::MAX)));
        let watch = Watch::start(slow_server(), store.clone(), None, CancellationToken::new());
        assert_eq!(watch.synced().await, Progress::Synced);
        let deadline = Instant::now() + Duration::from_secs(10);
        while store.reached(7).is_some() {
            assert!(Instant::now() < deadline, "no list comes to its end");
            watch.relist(&Mark::Version(7));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

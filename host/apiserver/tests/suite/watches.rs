//! Lists and watches.

use std::collections::BTreeMap;
use std::time::Duration;

use capwasm_apiserver::{Identity, Retention, Server, ServerConfig, Store};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::fixture::{both, status, until};

fn map(name: &str, labels: &[(&str, &str)]) -> ConfigMap {
    let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), labels: Some(labels), ..Default::default() },
        ..Default::default()
    }
}

async fn touch(api: &Api<ConfigMap>, name: &str, value: &str) -> ConfigMap {
    api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"data": {"v": value}}))).await.unwrap()
}

fn revision(object: &ConfigMap) -> String {
    object.metadata.resource_version.clone().unwrap()
}

#[tokio::test]
async fn a_watch_from_a_list_sees_everything_after_it_once() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        api.create(&PostParams::default(), &map("old", &[])).await.unwrap();
        let list = api.list(&ListParams::default()).await.unwrap();
        api.create(&PostParams::default(), &map("a", &[])).await.unwrap();
        let mut watch =
            api.watch(&WatchParams::default(), &list.metadata.resource_version.unwrap()).await.unwrap().boxed();
        touch(&api, "a", "1").await;
        api.delete("a", &DeleteParams::default()).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.push(match watch.try_next().await.unwrap().unwrap() {
                WatchEvent::Added(o) => ("added", revision(&o)),
                WatchEvent::Modified(o) => ("modified", revision(&o)),
                WatchEvent::Deleted(o) => ("deleted", revision(&o)),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(seen.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["added", "modified", "deleted"]);
        let numbers: Vec<u64> = seen.iter().map(|(_, revision)| revision.parse().unwrap()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "a deletion has its own revision: {numbers:?}");
    })
    .await;
}

#[tokio::test]
async fn objects_that_enter_or_leave_a_selector_are_added_and_deleted() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let list = api.list(&ListParams::default()).await.unwrap();
        let params = WatchParams::default().labels("colour=red");
        let mut watch = api.watch(&params, &list.metadata.resource_version.unwrap()).await.unwrap().boxed();
        api.create(&PostParams::default(), &map("a", &[("colour", "green")])).await.unwrap();
        let paint = async |colour: &str| {
            api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {"colour": colour}}})))
                .await
                .unwrap()
        };
        paint("red").await;
        touch(&api, "a", "1").await;
        let last = paint("green").await;
        assert!(matches!(watch.try_next().await.unwrap().unwrap(), WatchEvent::Added(_)));
        assert!(matches!(watch.try_next().await.unwrap().unwrap(), WatchEvent::Modified(_)));
        let WatchEvent::Deleted(gone) = watch.try_next().await.unwrap().unwrap() else { panic!("expected a deletion") };
        assert_eq!(revision(&gone), revision(&last));
    })
    .await;
}

#[tokio::test]
async fn the_runtimes_watcher_works_by_listing_and_by_streaming() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        for name in ["a", "b"] {
            api.create(&PostParams::default(), &map(name, &[])).await.unwrap();
        }
        for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
            let mut events = watcher::watcher(api.clone(), config).boxed();
            let mut initial = Vec::new();
            loop {
                match events.try_next().await.unwrap().unwrap() {
                    watcher::Event::InitApply(object) => initial.push(object.metadata.name.unwrap()),
                    watcher::Event::InitDone => break,
                    watcher::Event::Init => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(initial, ["a", "b"]);
            touch(&api, "a", &format!("{:?}", std::time::Instant::now())).await;
            assert!(matches!(events.try_next().await.unwrap().unwrap(), watcher::Event::Apply(_)));
        }
    })
    .await;
}

#[tokio::test]
async fn pages_show_the_state_of_the_first_page() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        for n in 0..7 {
            api.create(&PostParams::default(), &map(&format!("o{n}"), &[])).await.unwrap();
        }
        let first = api.list(&ListParams::default().limit(3)).await.unwrap();
        assert_eq!(first.metadata.remaining_item_count, Some(4));
        api.delete("o4", &DeleteParams::default()).await.unwrap();
        api.delete("o6", &DeleteParams::default()).await.unwrap();
        api.create(&PostParams::default(), &map("o5a", &[])).await.unwrap();
        let mut names: Vec<String> = first.items.iter().map(|o| o.metadata.name.clone().unwrap()).collect();
        let mut token = first.metadata.continue_;
        while let Some(next) = token.filter(|token| !token.is_empty()) {
            let page = api.list(&ListParams::default().limit(3).continue_token(&next)).await.unwrap();
            assert_eq!(page.metadata.resource_version, first.metadata.resource_version);
            names.extend(page.items.iter().map(|o| o.metadata.name.clone().unwrap()));
            token = page.metadata.continue_;
        }
        assert_eq!(names, ["o0", "o1", "o2", "o3", "o4", "o5", "o6"]);
    })
    .await;
}

async fn raw(client: &Client, uri: &str) -> Result<Value, kube::Error> {
    client.request::<Value>(http::Request::get(uri).body(Vec::new()).unwrap()).await
}

#[tokio::test]
async fn revisions_that_never_were_are_waited_for_and_nonsense_is_refused() {
    both(async |f| {
        let uri = |query: &str| format!("/api/v1/namespaces/default/configmaps?{query}");
        // In-process both times: the TLS client would try again for minutes.
        let client = f.server.client(Identity::admin("tester"));
        let future = status(raw(&client, &uri("resourceVersion=999999999")).await);
        assert_eq!((future.code, future.details.unwrap().causes[0].reason.as_str()), (504, "ResourceVersionTooLarge"));
        for (query, code) in [
            ("resourceVersion=x", 400),
            ("resourceVersionMatch=Exact", 422),
            ("resourceVersion=0&resourceVersionMatch=Exact", 422),
            ("resourceVersion=1&resourceVersionMatch=Sometimes", 422),
            ("sendInitialEvents=true", 422),
            ("continue=nonsense", 400),
            ("labelSelector=a+b+c", 400),
            ("watch=1&sendInitialEvents=true", 422),
        ] {
            assert_eq!(status(raw(&f.client, &uri(query)).await).code, code, "{query}");
        }
    })
    .await;
}

#[tokio::test]
async fn tables_and_metadata_come_in_lists_and_watches() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
        api.create(&PostParams::default(), &map("a", &[])).await.unwrap();
        let get = |uri: &str, accept: &str| http::Request::get(uri).header("accept", accept).body(Vec::new()).unwrap();
        let uri = "/api/v1/namespaces/default/configmaps";
        let table: Value =
            f.client.request(get(uri, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")).await.unwrap();
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["rows"][0]["cells"][0], "a");
        let partial: Value = f
            .client
            .request(get(uri, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"))
            .await
            .unwrap();
        assert_eq!(partial["items"][0]["kind"], "PartialObjectMetadata");
        assert!(partial["items"][0].get("data").is_none());
        let metadata = api.get_metadata("a").await.unwrap();
        assert_eq!(metadata.metadata.name.as_deref(), Some("a"));
        let mut watch = api.watch_metadata(&WatchParams::default(), "0").await.unwrap().boxed();
        assert!(matches!(watch.try_next().await.unwrap().unwrap(), WatchEvent::Added(_)));
    })
    .await;
}

#[tokio::test]
async fn a_watch_ends_at_its_deadline_with_a_bookmark_and_at_shutdown_at_once() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client);
        let list = api.list(&ListParams::default()).await.unwrap();
        let from = list.metadata.resource_version.unwrap();
        let short = api.watch(&WatchParams::default().timeout(1), &from).await.unwrap();
        let events: Vec<_> = short.try_collect().await.unwrap();
        assert!(matches!(events.as_slice(), [WatchEvent::Bookmark(_)]), "{events:?}");
        let long = api.watch(&WatchParams::default(), &from).await.unwrap();
        f.server.shutdown().await;
        tokio::time::timeout(Duration::from_secs(5), long.try_collect::<Vec<_>>()).await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_watch_from_a_forgotten_revision_is_told_so_and_the_runtime_starts_over() {
    let retention = Retention { age: Duration::from_secs(3600), versions: 3, bytes: 1 << 20 };
    let server = Server::start(Store::memory_with(retention).unwrap(), ServerConfig::new("test")).await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client(Identity::admin("tester")));
    api.create(&PostParams::default(), &map("a", &[])).await.unwrap();
    let first = revision(&api.get("a").await.unwrap());
    let told = until("history is compacted", async || {
        touch(&api, "a", &format!("{:?}", std::time::Instant::now())).await;
        let mut watch = api.watch(&WatchParams::default(), &first).await.unwrap().boxed();
        match watch.try_next().await.unwrap().unwrap() {
            WatchEvent::Error(status) => Some(status),
            _ => None,
        }
    })
    .await;
    assert_eq!((told.code, told.reason.as_str()), (410, "Expired"));
    server.shutdown().await;
}

/// R: what list and watch together tell is the store, at every revision.
#[tokio::test]
async fn a_list_and_its_watch_reconstruct_the_store_at_every_revision() {
    both(async |f| {
        let api: Api<ConfigMap> = Api::default_namespaced(f.client.clone());
        let start = api.list(&ListParams::default()).await.unwrap();
        let from = start.metadata.resource_version.unwrap();
        let mut watch = api.watch(&WatchParams::default(), &from).await.unwrap().boxed();
        // Several writers at once; what they do is fixed, how they interleave is not.
        let writers = (0..4_u32).map(|writer| {
            let api = api.clone();
            async move {
                for step in 0..25_u32 {
                    let name = format!("o{}", (writer * 7 + step * 3) % 5);
                    match step % 4 {
                        0 | 1 => drop(api.create(&PostParams::default(), &map(&name, &[])).await),
                        2 => drop(
                            api.patch(
                                &name,
                                &PatchParams::default(),
                                &Patch::Merge(json!({"data": {"v": format!("{writer}-{step}")}})),
                            )
                            .await,
                        ),
                        _ => drop(api.delete(&name, &DeleteParams::default()).await),
                    }
                }
            }
        });
        futures::future::join_all(writers).await;
        let marker = api.create(&PostParams::default(), &map("marker", &[])).await.unwrap();
        let mut state: BTreeMap<String, (String, Value)> = BTreeMap::new();
        let mut checked = 0;
        loop {
            let event = watch.try_next().await.unwrap().unwrap();
            let (object, gone) = match event {
                WatchEvent::Added(o) | WatchEvent::Modified(o) => (o, false),
                WatchEvent::Deleted(o) => (o, true),
                other => panic!("{other:?}"),
            };
            let (name, at) = (object.metadata.name.clone().unwrap(), revision(&object));
            if gone {
                state.remove(&name);
            } else {
                state.insert(name.clone(), (at.clone(), json!(object.data)));
            }
            let exact = raw(
                &f.client,
                &format!("/api/v1/namespaces/default/configmaps?resourceVersion={at}&resourceVersionMatch=Exact"),
            )
            .await
            .unwrap();
            let listed: BTreeMap<String, (String, Value)> = exact["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|o| {
                    (
                        o["metadata"]["name"].as_str().unwrap().to_owned(),
                        (
                            o["metadata"]["resourceVersion"].as_str().unwrap().to_owned(),
                            o.get("data").cloned().unwrap_or_default(),
                        ),
                    )
                })
                .collect();
            assert_eq!(listed, state, "at revision {at}");
            checked += 1;
            if name == "marker" {
                assert_eq!(at, revision(&marker));
                break;
            }
        }
        assert!(checked > 20, "only {checked} events");
    })
    .await;
}

#[tokio::test]
async fn a_watch_may_ask_for_any_time() {
    both(async |f| {
        for seconds in ["1000000", "9223372036854775807", "18446744073709551615"] {
            let uri = format!("/api/v1/namespaces?watch=1&timeoutSeconds={seconds}");
            let events =
                f.client.request_events::<serde_json::Value>(http::Request::get(uri).body(Vec::new()).unwrap());
            let mut events = Box::pin(events.await.unwrap());
            assert!(events.next().await.unwrap().is_ok(), "{seconds}");
        }
    })
    .await;
}

//! What caches hold, and how they are asked.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use capwasm_reconcile::{
    Cache, CacheError, ClusterId, Key, Kind, Selector, Source, View,
    cache::{Extent, Mark, Scope, Written, secret_kind},
    interests::Wake,
    queue::Urgency,
};
use serde_json::json;

use crate::support::{World, config_kind, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_cached_without_their_data() {
    let world = World::start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "b"}}, "stringData": {"key": "value"}});
    world.put("/api/v1/namespaces/default/secrets", secret).await;
    let view = View::unremembered(&world.cache);
    let cached = view.get(&secret_kind(), "default", "s").await.unwrap().unwrap();
    assert_eq!(cached["metadata"]["labels"]["a"], "b");
    assert_eq!((&cached["kind"], &cached["apiVersion"]), (&json!("Secret"), &json!("v1")));
    assert!(cached.get("data").is_none());
    let live = view.get_live(&secret_kind(), "default", "s").await.unwrap().unwrap();
    assert!(live["data"]["key"].is_string());
    let listed = view.list(&secret_kind(), None, &Selector::parse("a=b").unwrap()).await.unwrap();
    assert_eq!(listed.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_served_from_indexes_and_in_order() {
    let world = World::start().await;
    for index in [3, 1, 2] {
        let labels = json!({"cluster": format!("c{}", index % 2), "role": "worker"});
        world
            .add_config(
                &format!("m{index}"),
                json!({"labels": labels, "ownerReferences": [
            {"apiVersion": "v1", "kind": "K", "name": "o", "uid": format!("u{index}")}]}),
            )
            .await;
    }
    let names = |selector: Selector, namespace: Option<&'static str>| {
        let cache = world.cache.clone();
        async move {
            let listed = cache.list(&config_kind(), namespace, &selector).await.unwrap();
            listed.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(names(Selector::labels([("cluster", "c1")]), None).await, ["m1", "m3"]);
    assert_eq!(names(Selector::labels([("cluster", "c1"), ("role", "worker")]), Some("default")).await, ["m1", "m3"]);
    assert_eq!(names(Selector::labels([("cluster", "c1")]), Some("elsewhere")).await, Vec::<String>::new());
    assert_eq!(names(Selector::owned_by("u2"), None).await, ["m2"]);
    assert_eq!(names(Selector::owned_by("u9"), None).await, Vec::<String>::new());
    assert_eq!(names(Selector::everything().with_label("role"), None).await, ["m1", "m2", "m3"]);
    let (objects, bytes) = world.cache.size();
    assert!(objects >= 3 && bytes > 300);
    world.try_send("DELETE", "/api/v1/namespaces/default/configmaps/m1", None).await.unwrap();
    until("the deletion is seen", || async { names(Selector::labels([("cluster", "c1")]), None).await == ["m3"] })
        .await;
}

/// C5: a kind is watched when it is first read, and once, however many read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_watch_serves_a_kind_and_unknown_kinds_are_told_apart() {
    let world = World::start().await;
    let widget = world.cache.kind("test.capwasm.dev", "Widget").await.unwrap();
    assert_eq!((widget.clone(), &*widget.plural), (world.widget.clone(), "widgets"));
    for _ in 0..3 {
        world.cache.get(&widget, "default", "w").await.unwrap();
        world.cache.list(&widget, None, &Selector::everything()).await.unwrap();
    }
    assert_eq!(world.cache.watch_count(), 1);
    for unknown in [world.cache.kind("test.capwasm.dev", "Gadget").await, world.cache.kind_at("no.such/v1", "X").await]
    {
        assert!(matches!(unknown, Err(CacheError::UnknownKind { .. })), "{unknown:?}");
    }
    let gadget = Kind::new("test.capwasm.dev", "v1", "Gadget", "gadgets", true);
    let listed = world.cache.list(&gadget, None, &Selector::everything()).await;
    assert!(matches!(listed, Err(CacheError::UnknownKind { .. })), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_streaming_lists_are_listed_in_pages() {
    let world = World::start().await;
    world.tap.refuse_streaming_lists();
    world.add_config("before", json!({})).await;
    let count = || async {
        let listed = world.cache.list(&config_kind(), Some("default"), &Selector::everything()).await.unwrap();
        listed.len()
    };
    assert_eq!(count().await, 1);
    world.add_config("after", json!({})).await;
    until("the watch delivers", || async { count().await == 2 }).await;
}

/// Compressed, they take a hundredth of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_texts_ends_where_they_are_longer_than_its_reader_may_have() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        world.add_config(name, json!({"annotations": {"long": "x".repeat(100_000)}})).await;
    }
    let view = View::unremembered(&world.cache);
    let (kind, all) = (config_kind(), Selector::everything());
    let within = |most| view.list_texts_within(&kind, Some("default"), &all, most);
    let texts = within(400_000).await.unwrap();
    assert!(texts.len() == 3 && texts.iter().all(|text| text.len() > 100_000));
    let refused = within(250_000).await;
    assert!(matches!(refused, Err(CacheError::ListTooLarge { most: 250_000, .. })), "{refused:?}");
}

/// A part of a kind is watched when it is listed, and that list alone comes from the watch and wakes its reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_kind_is_watched_once_it_is_listed() {
    let world = World::start().await;
    const PART: Scope = Scope::Only(&[Extent::part("", "ConfigMap", "default", &[("tier", "a")])]);
    let source = Source::Workload(Arc::new(ClusterId::new("default", "c")));
    let cache = Cache::scoped(world.client.clone(), source, world.interests.clone(), PART, usize::MAX);
    let (woken, kind) = (Arc::new(AtomicUsize::new(0)), config_kind());
    let reader = world.interests.register(Arc::new(Count(woken.clone())));
    let reading = world.interests.begin(reader, &Key::new(&kind, "default", "reader"));
    let view = View::new(&cache, &world.interests, reading);
    world.add_config("in", json!({"labels": {"tier": "a"}})).await;
    world.add_config("out", json!({})).await;

    assert!(view.get(&kind, "default", "in").await.unwrap().is_some());
    assert_eq!(view.list(&kind, Some("default"), &Selector::everything()).await.unwrap().len(), 2);
    assert_eq!(cache.watch_count(), 0, "nothing but the list of the part starts its watch");
    let tier = Selector::parse("tier=a").unwrap();
    assert_eq!(view.list(&kind, Some("default"), &tier).await.unwrap().len(), 1);
    assert_eq!((cache.watch_count(), cache.size().0), (1, 1), "only the part is held");

    let seen = woken.load(Ordering::SeqCst);
    world.add_config("in-2", json!({"labels": {"tier": "a"}})).await;
    until("the reader of the part is woken", || async { woken.load(Ordering::SeqCst) > seen }).await;
    assert_eq!(cache.list(&kind, Some("default"), &tier).await.unwrap().len(), 2);
    let seen = woken.load(Ordering::SeqCst);
    world.add_config("out-2", json!({})).await;
    assert_eq!(cache.list(&kind, Some("default"), &Selector::everything()).await.unwrap().len(), 4, "read live");
    world.try_send("DELETE", "/api/v1/namespaces/default/configmaps/in", None).await.unwrap();
    until("its deletion wakes too", || async { woken.load(Ordering::SeqCst) > seen }).await;
    assert!(view.get(&kind, "default", "in").await.unwrap().is_none());
    let written = |name: &str| Written {
        source: cache.source().clone(),
        kind: kind.clone(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        mark: Mark::Version(u64::MAX),
    };
    let not_in_the_part = [written("out")];
    tokio::time::timeout(Duration::from_secs(5), cache.caught_up(&not_in_the_part)).await.expect("is not waited for");
}

/// Whoever controls an API server may have ever more objects there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_more_objects_than_may_be_held_is_left_and_nobody_takes_them_for_gone() {
    let world = World::start().await;
    const ALL: Scope = Scope::Only(&[Extent::whole("", "ConfigMap")]);
    let source = Source::Workload(Arc::new(ClusterId::new("default", "c")));
    let cache = Cache::scoped(world.client.clone(), source, world.interests.clone(), ALL, 1 << 20);
    world.add_config("first", json!({})).await;
    let list = async || cache.list(&config_kind(), None, &Selector::default()).await;
    let count = list().await.unwrap().len();
    let many = (0..60).map(|index| {
        let labels: serde_json::Map<_, _> =
            (0..200).map(|label| (format!("l{label}"), json!(index.to_string()))).collect();
        (format!("m{index}"), json!({"labels": labels}))
    });
    for (name, metadata) in many {
        world.add_config(&name, metadata).await;
    }
    until("it is given up", async || matches!(list().await, Err(CacheError::NotSynced { .. }))).await;
    let told = cache.get(&config_kind(), "default", "first").await.unwrap_err();
    assert!(told.to_string().contains("more than 1 MiB of objects"), "{told}");
    assert!(told.is_unavailable(), "it is tried again");
    assert_eq!(cache.size(), (0, 0));
    let elsewhere = world.cache.list(&config_kind(), None, &Selector::default()).await.unwrap();
    assert_eq!(elsewhere.len(), count + 60, "caches of other servers go on");
}

/// A kind outside of the scope, or only in part inside of it, is watched whole once somebody follows it, and wakes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_is_followed_is_watched_whole_and_wakes_whoever_read_it() {
    let world = World::start().await;
    const PART: Scope = Scope::Only(&[Extent::part("", "ConfigMap", "default", &[("tier", "a")])]);
    let source = Source::Workload(Arc::new(ClusterId::new("default", "c")));
    let cache = Cache::scoped(world.client.clone(), source, world.interests.clone(), PART, usize::MAX);
    let (woken, config, widget) = (Arc::new(AtomicUsize::new(0)), config_kind(), world.widget.clone());
    let reader = world.interests.register(Arc::new(Count(woken.clone())));
    let reading = world.interests.begin(reader, &Key::new(&config, "default", "reader"));
    let view = View::new(&cache, &world.interests, reading);
    world.add_config("out", json!({})).await;
    let tier = Selector::parse("tier=a").unwrap();
    assert_eq!(view.list(&config, Some("default"), &tier).await.unwrap().len(), 0);
    assert_eq!(cache.size().0, 0);

    cache.follow(&config);
    cache.follow(&config);
    cache.follow(&widget);
    assert!(view.get(&config, "default", "out").await.unwrap().is_some());
    assert!(view.get(&widget, "default", "w").await.unwrap().is_none());
    assert_eq!((cache.watch_count(), cache.size().0), (2, 1), "the whole in place of the part");
    let seen = woken.load(Ordering::SeqCst);
    world.add_widget("w", json!({})).await;
    until("what was not there has come", || async { woken.load(Ordering::SeqCst) > seen }).await;
    let seen = woken.load(Ordering::SeqCst);
    world.try_send("DELETE", "/api/v1/namespaces/default/configmaps/out", None).await.unwrap();
    until("what was there is gone", || async { woken.load(Ordering::SeqCst) > seen }).await;
}

struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(&self, _: &Key, _: Urgency) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Who read a part of an object is woken when that part changes, or the object comes or goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_part_sleep_through_other_changes() {
    let world = World::start().await;
    let (woken, kind) = (Arc::new(AtomicUsize::new(0)), world.widget.clone());
    let reader = world.interests.register(Arc::new(Count(woken.clone())));
    let reading = world.interests.begin(reader, &Key::new(&config_kind(), "default", "reader"));
    let view = View::new(&world.cache, &world.interests, reading);
    assert!(view.get_for_fields(&kind, "default", "w", &["/spec/a"]).await.unwrap().is_none());
    world.add_widget("w", json!({})).await;
    until("it has come", || async { woken.load(Ordering::SeqCst) == 1 }).await;
    world.patch_widget("w", json!({"spec": {"b": 1}, "metadata": {"labels": {"a": "b"}}})).await;
    world.patch_widget("w", json!({"spec": {"a": 1}})).await;
    until("the part has changed", || async { woken.load(Ordering::SeqCst) > 1 }).await;
    assert_eq!(woken.load(Ordering::SeqCst), 2);
    world.try_send("DELETE", &crate::support::widgets(Some("w")), None).await.unwrap();
    until("it is gone", || async { woken.load(Ordering::SeqCst) == 3 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_name_leads_nowhere() {
    let world = World::start().await;
    world.add_config("there", json!({})).await;
    let kind = config_kind();
    for name in ["there?x=y", "../configmaps/there", "there#", "..", "%2e%2e/secrets/s"] {
        assert!(world.cache.get_live(&kind, "default", name).await.unwrap().is_none(), "{name}");
        assert!(world.cache.get_live(&kind, name, "there").await.unwrap().is_none(), "{name} as a namespace");
    }
    let listed = world.cache.list_live(&kind, Some("default/configmaps/there?"), &Selector::everything()).await;
    assert!(listed.is_err_and(|error| !error.is_unavailable()), "a list of no namespace is refused");
}

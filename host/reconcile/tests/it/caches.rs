//! What caches hold, and how they are asked.

use capwasm_reconcile::{CacheError, Kind, Selector, View, cache::secret_kind};
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

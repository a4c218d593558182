//! When passes run, and what they see.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use capwasm_object::{meta, owners};
use capwasm_reconcile::{
    Action, Cache, ClusterId, Manager, ManagerOptions, Metrics, Operation, Plan, Selector, Source, Unavailable,
    Verdict, Workloads, cache::node_kind,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Closure, World, config, config_kind, configs, crd, until, widgets};

fn mark_ready(object: &Value) -> Value {
    let mut desired = object.clone();
    desired["status"]["ready"] = json!(true);
    desired
}

/// Creates a ConfigMap of a new name in each pass that sees none of its own.
fn creator() -> Closure {
    let serial = Arc::new(AtomicUsize::new(0));
    Closure::new(move |pass| {
        let serial = serial.clone();
        Box::pin(async move {
            let own = Selector::owned_by(meta::uid(&pass.object));
            let mut plan = Plan::nothing();
            if pass.view.list(&config_kind(), Some("default"), &own).await?.is_empty() {
                let mut object = config(&format!("made-{}", serial.fetch_add(1, Ordering::SeqCst)));
                owners::set(&mut object, owners::reference_to(&pass.object, true));
                plan.operations.push(Operation::management("make", Action::Create(object)));
            }
            Ok(plan)
        })
    })
}

/// A key does not run on a cache that is older than what the key itself wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_watch_never_makes_a_second_create() {
    let world = World::start().await;
    world.cache.synced(&config_kind()).await.unwrap();
    world.tap.hold(Some("configmaps"));
    let creator = creator();
    world.add_widget("w", json!({})).await;
    let handle = world.add(creator.clone(), 4);
    until("the create", || async { world.list(configs()).await.len() == 1 }).await;
    for round in 0..20 {
        let seen = world.patch_widget("w", json!({"metadata": {"labels": {"round": format!("{round}")}}})).await;
        handle.trigger_all();
        until("the change is in the cache", || async {
            let cached = world.cache.get(&world.widget, "default", "w").await.unwrap().unwrap();
            cached["metadata"]["resourceVersion"] == seen["metadata"]["resourceVersion"]
        })
        .await;
    }
    assert_eq!(creator.passes("w"), 1);
    world.tap.hold(None);
    until("a pass after the watch came back", || async { creator.passes("w") > 1 }).await;
    assert_eq!(world.list(configs()).await.len(), 1);
    assert_eq!(world.tap.writes().iter().filter(|write| write.starts_with("POST")).count(), 1);
}

/// The names are new in each try, so only knowing what happened to the first can prevent a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_whose_answer_is_lost_is_not_repeated() {
    let world = World::start().await;
    world.cache.synced(&config_kind()).await.unwrap();
    world.tap.hold(Some("configmaps"));
    world.tap.lose_the_next_answer();
    let creator = creator();
    world.add(creator.clone(), 1);
    world.add_widget("w", json!({})).await;
    until("the create", || async { world.list(configs()).await.len() == 1 }).await;
    world.patch_widget("w", json!({"metadata": {"labels": {"a": "b"}}})).await;
    world.tap.hold(None);
    until("another pass", || async { creator.passes("w") > 1 }).await;
    assert_eq!(world.list(configs()).await.len(), 1);
}

/// A watch that stays silent is replaced by a consistent list, so the key goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_lost_after_a_write_does_not_block_the_key() {
    let world = World::start().await;
    world.cache.synced(&config_kind()).await.unwrap();
    world.tap.hold(Some("configmaps"));
    let creator = creator();
    world.add_widget("w", json!({})).await;
    world.add(creator.clone(), 4);
    until("the create", || async { world.list(configs()).await.len() == 1 }).await;
    world.patch_widget("w", json!({"metadata": {"labels": {"a": "1"}}})).await;
    assert_eq!(creator.passes("w"), 1);
    until("the pass after the list", || async { creator.passes("w") > 1 }).await;
    assert_eq!(world.list(configs()).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pass_sees_what_the_pass_before_wrote() {
    let world = World::start().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    world.add(
        Closure::new(move |pass| {
            let count = pass.object["status"]["count"].as_u64().unwrap_or(0);
            log.lock().unwrap().push(count);
            let mut desired = Value::clone(&pass.object);
            desired["status"]["count"] = json!((count + 1).min(20));
            Box::pin(async move { Ok(Plan { wake_when_applied: count < 20, ..Plan::desire(desired) }) })
        }),
        4,
    );
    world.add_widget("w", json!({})).await;
    until("20", || async { seen.lock().unwrap().last() == Some(&20) }).await;
    let mut seen = seen.lock().unwrap().clone();
    seen.dedup();
    assert_eq!(seen, (0..=20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_is_decided_again_on_fresh_data() {
    let world = World::start().await;
    let outsider = world.client.clone();
    let first = Arc::new(AtomicUsize::new(0));
    let closure = Closure::new(move |pass| {
        let (outsider, first) = (outsider.clone(), first.clone());
        Box::pin(async move {
            let mut desired = Value::clone(&pass.object);
            if first.fetch_add(1, Ordering::SeqCst) == 0 {
                let patch = json!({"metadata": {"finalizers": ["test.capwasm.dev/theirs"]}}).to_string();
                let request = http::Request::patch(widgets(Some("w")))
                    .header("content-type", "application/merge-patch+json")
                    .body(patch.into_bytes());
                outsider.request::<Value>(request.unwrap()).await.unwrap();
            }
            meta::add_finalizer(&mut desired, "test.capwasm.dev/ours");
            Ok(Plan::desire(desired))
        })
    });
    world.add(closure.clone(), 1);
    world.add_widget("w", json!({})).await;
    until("both finalizers", || async {
        let object = world.get_widget("w").await.unwrap();
        meta::has_finalizer(&object, "test.capwasm.dev/ours") && meta::has_finalizer(&object, "test.capwasm.dev/theirs")
    })
    .await;
    assert!(closure.passes("w") >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_in_steady_state() {
    let world = World::start().await;
    let closure = Closure::new(|pass| {
        Box::pin(async move {
            let mut desired = mark_ready(&pass.object);
            meta::add_finalizer(&mut desired, "test.capwasm.dev/ours");
            desired["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"namespace": "default", "name": "applied"}, "data": {"a": "b"}});
            let apply = Action::Apply { object, manager: "test".to_owned(), force: true };
            let target = capwasm_reconcile::Target::new(&config_kind(), "default", "applied");
            let merge = json!({"metadata": {"labels": {"l": "1"}}});
            let patch = Action::Patch { target, merge, resource_version: None, subresource: None };
            pass.view.get(&config_kind(), "default", "applied").await?;
            Ok(Plan {
                operations: vec![Operation::management("apply", apply), Operation::management("patch", patch)],
                ..Plan::desire(desired)
            })
        })
    });
    let handle = world.add(closure.clone(), 1);
    world.add_widget("w", json!({})).await;
    let idle = || async {
        let (passes, writes) = (closure.passes("w"), world.tap.writes().len());
        handle.trigger_all();
        until("another pass", || async { closure.passes("w") > passes }).await;
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        world.tap.writes().len() == writes && writes > 0
    };
    until("no more writes", idle).await;
    let (version, writes) =
        (world.get_widget("w").await.unwrap()["metadata"]["resourceVersion"].clone(), world.tap.writes());
    for _ in 0..5 {
        assert!(idle().await, "{:?}", world.tap.writes());
    }
    assert_eq!(world.get_widget("w").await.unwrap()["metadata"]["resourceVersion"], version);
    assert_eq!(world.tap.writes(), writes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_fails_one_key_only() {
    let world = World::start().await;
    let closure = Closure::new(|pass| {
        assert_ne!(pass.key.name, "bad", "on purpose");
        let desired = mark_ready(&pass.object);
        Box::pin(async move { Ok(Plan::desire(desired)) })
    });
    world.add(closure.clone(), 1);
    for name in ["good", "bad", "fine"] {
        world.add_widget(name, json!({})).await;
    }
    for name in ["good", "fine"] {
        until("ready", || async { world.get_widget(name).await.unwrap()["status"]["ready"] == true }).await;
    }
    until("the bad one is tried again", || async { closure.passes("bad") >= 3 }).await;
    assert!(world.get_widget("bad").await.unwrap().get("status").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_what_is_not_there_wake_when_it_comes() {
    let world = World::start().await;
    let closure = Closure::new(|pass| {
        Box::pin(async move {
            let mut desired = Value::clone(&pass.object);
            let selector = Selector::labels([("team", "a")]);
            let listed = pass.view.list(&config_kind(), Some("default"), &selector).await?;
            desired["status"]["found"] = json!(pass.view.get(&config_kind(), "default", "late").await?.is_some());
            desired["status"]["listed"] = json!(listed.len());
            desired["status"]["kind"] = json!(pass.view.kind("test.capwasm.dev", "Gadget").await.is_ok());
            Ok(Plan::desire(desired))
        })
    });
    world.add(closure.clone(), 1);
    world.add_widget("w", json!({})).await;
    let status = |found: bool, listed: usize, kind: bool| {
        let expected = json!({"found": found, "listed": listed, "kind": kind});
        let world = &world;
        async move {
            until(&expected.to_string(), || async { world.get_widget("w").await.unwrap()["status"] == expected }).await
        }
    };
    status(false, 0, false).await;
    world.add_config("late", json!({})).await;
    status(true, 0, false).await;
    world.add_config("labelled", json!({"labels": {"team": "b"}})).await;
    let relabel = |team: &str| {
        world.try_send(
            "PATCH",
            "/api/v1/namespaces/default/configmaps/labelled",
            Some(json!({"metadata": {"labels": {"team": team}}})),
        )
    };
    relabel("a").await.unwrap();
    status(true, 1, false).await;
    relabel("b").await.unwrap();
    status(true, 0, false).await;
    world.put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd("gadgets", "Gadget")).await;
    status(true, 0, true).await;
    // The last status is written before the pass that sees it.
    let resting = || async {
        let passes = closure.passes("w");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        passes == closure.passes("w")
    };
    until("it rests", resting).await;
    let passes = closure.passes("w");
    world.add_config("unrelated", json!({"labels": {"team": "c"}})).await;
    until("the cache has it", || async {
        world.cache.get(&config_kind(), "default", "unrelated").await.unwrap().is_some()
    })
    .await;
    until("it rests", resting).await;
    assert_eq!(closure.passes("w"), passes, "what was not read wakes nobody");
}

/// A namespace in a read of a cluster-scoped kind is ignored, by the read and by what wakes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_cluster_scoped_kinds_wake_whatever_namespace_was_given() {
    let world = World::start().await;
    world.add(
        Closure::new(|pass| {
            Box::pin(async move {
                let nodes = pass.view.list(&node_kind(), Some("default"), &Selector::everything()).await?;
                let one = pass.view.get(&node_kind(), "default", "n").await?;
                let mut desired = Value::clone(&pass.object);
                desired["status"] = json!({"nodes": nodes.len(), "one": one.is_some()});
                Ok(Plan::desire(desired))
            })
        }),
        1,
    );
    world.add_widget("w", json!({})).await;
    for (nodes, name) in [(0, "m"), (1, "n"), (2, "o")] {
        let expected = json!({"nodes": nodes, "one": nodes == 2});
        until("the nodes", || async { world.get_widget("w").await.unwrap()["status"] == expected }).await;
        world.put("/api/v1/nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})).await;
    }
}

/// Groups exclude over controllers, and the concurrency is a limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_one_group_never_run_at_the_same_time() {
    let world = World::start().await;
    let (running, groups, most) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (log, peak) = (groups.clone(), most.clone());
    let closure = Closure::new(move |pass| {
        let (running, log, peak) = (running.clone(), log.clone(), peak.clone());
        let desired = mark_ready(&pass.object);
        Box::pin(async move {
            let group = desired["metadata"]["labels"]["group"].clone();
            {
                let mut groups = log.lock().unwrap();
                assert!(!groups.contains(&group), "two of group {group} at a time");
                groups.push(group.clone());
            }
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            log.lock().unwrap().retain(|held| *held != group);
            Ok(Plan::desire(desired))
        })
    })
    .grouped(|object| object["metadata"]["labels"]["group"].as_str().map(str::to_owned));
    for index in 0..120 {
        world.add_widget(&format!("w{index}"), json!({"labels": {"group": format!("g{}", index % 6)}})).await;
    }
    world.add(closure.clone(), 3);
    until("all are ready", || async {
        world.list(&widgets(None)).await.iter().all(|widget| widget["status"]["ready"] == true)
    })
    .await;
    assert!((0..120).all(|index| closure.passes(&format!("w{index}")) <= 4), "no panic was retried");
    assert!((2..=3).contains(&most.load(Ordering::SeqCst)), "{most:?} at a time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_object_is_released_and_forgotten() {
    let world = World::start().await;
    let closure = Closure::new(|pass| {
        Box::pin(async move {
            pass.view.get(&config_kind(), "default", "anything").await?;
            if meta::is_deleting(&pass.object) {
                return Ok(Plan { release: vec!["test.capwasm.dev/ours".to_owned()], ..Plan::nothing() });
            }
            let mut desired = Value::clone(&pass.object);
            meta::add_finalizer(&mut desired, "test.capwasm.dev/ours");
            Ok(Plan::desire(desired))
        })
    });
    world.add(closure.clone(), 1);
    world.add_widget("w", json!({})).await;
    let held = || async { meta::has_finalizer(&world.get_widget("w").await.unwrap(), "test.capwasm.dev/ours") };
    until("the finalizer", held).await;
    world.try_send("DELETE", &widgets(Some("w")), None).await.unwrap();
    until("it is gone", || async { world.get_widget("w").await.is_none() }).await;
    until("its reads are forgotten", || async { world.interests.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_reconciler_takes_over_and_a_stopped_one_rests() {
    let world = World::start().await;
    let named = |name: &'static str| {
        Closure::new(move |pass| {
            let mut desired = Value::clone(&pass.object);
            desired["status"]["by"] = json!(name);
            Box::pin(async move { Ok(Plan { verdict: Verdict::Waiting, ..Plan::desire(desired) }) })
        })
    };
    let (old, new) = (named("old"), named("new"));
    let handle = world.add(old.clone(), 1);
    world.add_widget("w", json!({})).await;
    until("old", || async { world.get_widget("w").await.unwrap()["status"]["by"] == "old" }).await;
    handle.replace(Arc::new(new.clone()));
    until("new", || async { world.get_widget("w").await.unwrap()["status"]["by"] == "new" }).await;
    handle.stop().await;
    let passes = new.passes("w");
    world.patch_widget("w", json!({"metadata": {"labels": {"a": "b"}}})).await;
    handle.trigger_all();
    tokio::task::yield_now().await;
    assert_eq!(new.passes("w"), passes);
}

/// Shutdown lets a pass finish, writes its plan, and starts no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_drains_what_runs() {
    let world = World::start().await;
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, awaited) = (entered.clone(), go.clone());
    let closure = Closure::new(move |pass| {
        let (told, awaited, desired) = (told.clone(), awaited.clone(), mark_ready(&pass.object));
        Box::pin(async move {
            told.notify_one();
            awaited.notified().await;
            Ok(Plan { wake_when_applied: true, ..Plan::desire(desired) })
        })
    });
    world.add(closure.clone(), 1);
    world.add_widget("w", json!({})).await;
    world.add_widget("waits", json!({})).await;
    entered.notified().await;
    let running = world.shut_down();
    go.notify_one();
    running.await;
    let ready = world.list(&widgets(None)).await.iter().filter(|widget| widget["status"]["ready"] == true).count();
    assert_eq!(ready, 1);
    assert_eq!(closure.passes("w") + closure.passes("waits"), 1);
}

/// A workload cluster that can be lost for good: its requests are never answered again.
struct Loseable {
    cache: Cache,
    lost: Arc<AtomicBool>,
    /// How often it was asked for its cache.
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl Workloads for Loseable {
    async fn cache(&self, cluster: &ClusterId) -> Result<Cache, Unavailable> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.lost.load(Ordering::SeqCst) {
            false => Ok(self.cache.clone()),
            true => Err(Unavailable { cluster: cluster.clone(), message: "lost".to_owned() }),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_cluster_that_is_lost_after_a_write_does_not_block_the_key() {
    let world = World::start().await;
    let (id, lost) = (ClusterId::new("default", "c"), Arc::new(AtomicBool::new(false)));
    let service = tower::service_fn({
        let (client, lost) = (world.cache.client().clone(), lost.clone());
        move |request: http::Request<kube::client::Body>| {
            let (client, lost) = (client.clone(), lost.clone());
            async move {
                if lost.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                client.send(request).await
            }
        }
    });
    let source = Source::Workload(Arc::new(id.clone()));
    let cache = Cache::new(kube::Client::new(service, "default"), source, world.interests.clone());
    cache.synced(&config_kind()).await.unwrap();
    world.tap.hold(Some("configmaps"));
    let asked = Arc::new(AtomicUsize::new(0));
    let workloads = Arc::new(Loseable { cache, lost: lost.clone(), asked: asked.clone() });
    let metrics = Arc::new(Metrics::unregistered());
    let (management, interests) = (world.cache.clone(), world.interests.clone());
    let manager = Manager::new(management, interests, workloads, metrics, ManagerOptions::default());
    let writer = Closure::new(move |_| {
        let create = Operation::workload("create", &id, Action::Create(config("c")));
        Box::pin(async move { Ok(Plan { operations: vec![create], ..Plan::default() }) })
    });
    manager.add(world.widget.clone(), Arc::new(writer.clone()), 1);
    world.add_widget("w", json!({})).await;
    // Once to write, once to wait.
    until("the key waits", || async { asked.load(Ordering::SeqCst) >= 2 }).await;
    lost.store(true, Ordering::SeqCst);
    world.patch_widget("w", json!({"metadata": {"labels": {"a": "b"}}})).await;
    until("the pass after the loss", || async { writer.passes("w") > 1 }).await;
}

/// A status that is no news waits for the next that is; on its own it is written after a moment, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_without_news_waits_and_is_written_once() {
    let world = World::start().await;
    let closure = Closure::new(|pass| {
        let mut desired = (*pass.object).clone();
        let step = desired["spec"]["step"].as_u64().unwrap_or(0);
        desired["status"]["step"] = json!(step);
        let status_may_wait = step < 3;
        Box::pin(async move { Ok(Plan { status_may_wait, ..Plan::desire(desired) }) })
    });
    let reconciler = closure.clone();
    world.add(closure, 1);
    for name in ["quick", "slow"] {
        world.add_widget(name, json!({})).await;
        until("a first pass", || async { reconciler.passes(name) > 0 }).await;
    }
    let started = std::time::Instant::now();
    for step in 1..=3 {
        let passes = reconciler.passes("quick");
        world.patch_widget("quick", json!({"spec": {"step": step}})).await;
        until("a pass", || async { reconciler.passes("quick") > passes }).await;
    }
    until("the news are written", || async { world.get_widget("quick").await.unwrap()["status"]["step"] == 3 }).await;
    let took = started.elapsed();
    until("what waits is written too", || async { world.get_widget("slow").await.unwrap()["status"]["step"] == 0 })
        .await;
    let writes =
        |name: &str| world.tap.writes().iter().filter(|write| write.ends_with(&format!("{name}/status"))).count();
    assert_eq!(writes("slow"), 1);
    // On a machine that is too busy the steps may take longer than a status waits.
    let most = if took < capwasm_reconcile::status_delay::LONGEST / 2 { 1 } else { 4 };
    assert!(writes("quick") <= most, "{} writes in {took:?}", writes("quick"));
}

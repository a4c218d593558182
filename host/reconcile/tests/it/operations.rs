//! How operations are carried out.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use capwasm_object::{meta, owners};
use capwasm_reconcile::{Action, Event, Operation, Plan, Refusal, Results, Target, Verdict, apply::CREATED_FOR};
use serde_json::{Value, json};

use crate::support::{Closure, World, config, config_kind, configs, until, widgets};

fn owned(pass_object: &Value, name: &str) -> Value {
    let mut object = config(name);
    owners::set(&mut object, owners::reference_to(pass_object, true));
    object
}

/// One plan per pass, made from the object; collects the results that the next pass gets.
fn once(plan: impl Fn(&Value) -> Plan + Send + Sync + 'static) -> (Closure, Arc<Mutex<Vec<Results>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = told.clone();
    let closure = Closure::new(move |pass| {
        log.lock().unwrap().push(pass.results.clone());
        let plan = plan(&pass.object);
        Box::pin(async move { Ok(plan) })
    });
    (closure, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_failure_stops_the_rest_and_keeps_the_finalizer() {
    let world = World::start().await;
    world.add_config("theirs", json!({})).await;
    let (closure, told) = once(|object| {
        let create = |name: &str| Operation::management(name, Action::Create(owned(object, name)));
        let mut desired = object.clone();
        desired["status"]["reached"] = json!(true);
        let without = desired.clone();
        desired["status"]["done"] = json!(true);
        Plan {
            operations: vec![create("mine"), create("theirs"), create("never")],
            release: vec!["test.capwasm.dev/ours".to_owned()],
            fallback: Some(without),
            ..Plan::desire(desired)
        }
    });
    world.add(closure, 1);
    world.add_widget("w", json!({"finalizers": ["test.capwasm.dev/ours"]})).await;
    until("results", || async { told.lock().unwrap().iter().any(|results| !results.is_empty()) }).await;
    let results = told.lock().unwrap().iter().find(|results| !results.is_empty()).unwrap().clone();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0], ("mine".to_owned(), Ok(())));
    assert_eq!(results[1].1.as_ref().unwrap_err().refusal, Refusal::Conflict);
    assert_eq!(results[1].1.as_ref().unwrap_err().reason, "OwnedByAnother");
    let object = world.get_widget("w").await.unwrap();
    assert_eq!(object["status"]["reached"], true, "the status is written whatever the operations did");
    assert_eq!(object["status"].get("done"), None, "but not what only the operations make true");
    assert!(meta::has_finalizer(&object, "test.capwasm.dev/ours"));
    let names: Vec<_> = world.list(configs()).await.iter().map(|c| c["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["mine", "theirs"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_create_meets_itself() {
    let world = World::start().await;
    let (closure, told) = once(|object| Plan {
        operations: vec![
            Operation::management("owned", Action::Create(owned(object, "owned"))),
            Operation::management("annotated", Action::Create(config("annotated"))),
        ],
        ..Plan::nothing()
    });
    let handle = world.add(closure, 1);
    let widget = world.add_widget("w", json!({})).await;
    until("both", || async { world.list(configs()).await.len() == 2 }).await;
    let passes = told.lock().unwrap().len();
    handle.trigger_all();
    until("another two passes", || async {
        handle.trigger_all();
        told.lock().unwrap().len() > passes + 1
    })
    .await;
    let last = told.lock().unwrap().last().unwrap().clone();
    assert_eq!(last, [("owned".to_owned(), Ok(())), ("annotated".to_owned(), Ok(()))]);
    let configs = world.list(configs()).await;
    assert_eq!(configs.len(), 2);
    assert_eq!(configs[0]["metadata"]["annotations"][CREATED_FOR], widget["metadata"]["uid"]);
    assert_eq!(configs[1]["metadata"].get("annotations"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletes_hit_the_meant_object_only() {
    let world = World::start().await;
    let kept = world.add_config("kept", json!({})).await;
    let gone = world.add_config("gone", json!({})).await;
    let uid = |object: &Value| Some(meta::uid(object).to_owned());
    let (gone_uid, other_uid) = (uid(&gone), uid(&gone));
    let delete = |name: &str, uid: Option<String>| {
        let target = Target::new(&config_kind(), "default", name);
        Operation::management(name, Action::Delete { target, uid, propagation: None })
    };
    let operations = vec![delete("kept", other_uid), delete("gone", gone_uid), delete("absent", None)];
    let (closure, told) = once(move |_| Plan { operations: operations.clone(), ..Plan::nothing() });
    let handle = world.add(closure, 1);
    world.add_widget("w", json!({})).await;
    until("results", || async {
        handle.trigger_all();
        told.lock().unwrap().last().is_some_and(|results| results.len() == 3)
    })
    .await;
    assert!(told.lock().unwrap().last().unwrap().iter().all(|(_, result)| result.is_ok()));
    let left = world.list(configs()).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["metadata"]["uid"], kept["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_on_another_object_leaves_its_others_alone() {
    let world = World::start().await;
    world.add_widget("other", json!({})).await;
    let theirs = json!({"status": {"conditions": [{"type": "Theirs", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    world.try_send("PATCH", &format!("{}/status", widgets(Some("other"))), Some(theirs)).await.unwrap();
    let (closure, _) = once(|object| {
        if object["metadata"]["name"] == "other" {
            return Plan::nothing();
        }
        let target = Target { name: "other".to_owned(), ..Target::of(object) };
        let condition = json!({"type": "Ours", "status": "True", "reason": "R", "message": ""});
        Plan {
            operations: vec![Operation::management("c", Action::SetCondition { target, condition })],
            ..Plan::nothing()
        }
    });
    let handle = world.add(closure.clone(), 1);
    world.add_widget("w", json!({})).await;
    let conditions =
        || async { world.get_widget("other").await.unwrap()["status"]["conditions"].as_array().unwrap().clone() };
    until("both conditions", || async { conditions().await.len() == 2 }).await;
    let before = conditions().await;
    assert_eq!(before[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
    assert!(before[1]["lastTransitionTime"].is_string());
    let passes = closure.passes("w");
    handle.trigger_all();
    until("another pass", || async { closure.passes("w") > passes }).await;
    assert_eq!(conditions().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_events_are_one_event_with_a_count() {
    let world = World::start().await;
    let closure = Closure::new(|_| {
        Box::pin(async move {
            let retry_after = Some(Duration::from_millis(20));
            let message = "still broken".to_owned();
            let verdict = Verdict::Failed { reason: "Broken".to_owned(), message, retry_after, backoff: true };
            Ok(Plan { events: vec![Event::normal("Tried", "tried")], verdict, ..Plan::nothing() })
        })
    });
    world.add(closure.clone(), 1);
    world.add_widget("w", json!({})).await;
    let events = || async { world.list("/api/v1/namespaces/default/events").await };
    until("a count", || async { events().await.iter().any(|event| event["count"].as_u64() > Some(3)) }).await;
    let events = events().await;
    assert_eq!(events.len(), 2, "{events:?}");
    let broken = events.iter().find(|event| event["reason"] == "Broken").unwrap();
    assert_eq!((&broken["type"], &broken["involvedObject"]["name"]), (&json!("Warning"), &json!("w")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbouring_conditions_of_one_object_are_one_write() {
    let world = World::start().await;
    world.add_widget("other", json!({})).await;
    let (closure, told) = once(|object| {
        let target = Target {
            api_version: "test.capwasm.dev/v1".to_owned(),
            kind: "Widget".to_owned(),
            namespace: "default".to_owned(),
            name: "other".to_owned(),
        };
        let set = |name: &str| {
            let condition = json!({"type": name, "status": "True", "reason": "R", "message": ""});
            Operation::management(name, Action::SetCondition { target: target.clone(), condition })
        };
        let operations = if object["metadata"]["name"] == "w" { vec![set("A"), set("B"), set("C")] } else { vec![] };
        Plan { operations, ..Plan::default() }
    });
    world.add(closure, 1);
    world.add_widget("w", json!({})).await;
    // The pass that sees the first change may be the one that plans.
    let changes = AtomicU64::new(0);
    until("results", || async {
        told.lock().unwrap().iter().any(|results| results.len() == 3) || {
            let change = changes.fetch_add(1, Ordering::Relaxed);
            world.patch_widget("w", json!({"spec": {"change": change}})).await;
            false
        }
    })
    .await;
    let conditions = world.get_widget("other").await.unwrap()["status"]["conditions"].clone();
    assert_eq!(conditions.as_array().unwrap().len(), 3);
    assert_eq!(world.tap.writes().iter().filter(|write| write.ends_with("other/status")).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plan_creates_is_born_with_the_finalizers_of_its_reconciler() {
    let world = World::start().await;
    let (closure, _) = once(|object| {
        let child = json!({"apiVersion": "test.capwasm.dev/v1", "kind": "Widget", "metadata": {"name": "child", "namespace": "default",
            "ownerReferences": [owners::reference_to(object, true)]}});
        let parent = object["metadata"]["name"] == "w";
        Plan {
            operations: if parent { vec![Operation::management("c", Action::Create(child))] } else { vec![] },
            ..Plan::default()
        }
    });
    world.add(closure.with_finalizers(&["test.capwasm.dev/born"]), 1);
    world.add_widget("w", json!({})).await;
    until("the child is there", || async { world.get_widget("child").await.is_some() }).await;
    let child = world.get_widget("child").await.unwrap();
    assert_eq!(child["metadata"]["finalizers"], json!(["test.capwasm.dev/born"]));
    assert_eq!(
        world.get_widget("w").await.unwrap()["metadata"].get("finalizers"),
        None,
        "its own are the reconciler's to add"
    );
}

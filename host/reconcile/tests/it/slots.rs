//! Slots that are shared, divided, and more or fewer than before.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use capwasm_reconcile::{Pass, Plan, ReconcileError, WorkerSlots};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::{Closure, World, until, widgets};

/// Passes over widgets with label `hangs` do not end before they may.
#[derive(Clone)]
struct Hanging {
    now: Arc<Mutex<HashSet<String>>>,
    most: Arc<Mutex<usize>>,
    free: watch::Sender<bool>,
}

impl Hanging {
    fn new() -> Self {
        Self { now: Arc::default(), most: Arc::default(), free: watch::Sender::new(false) }
    }

    fn now(&self) -> usize {
        self.now.lock().unwrap().len()
    }

    fn most(&self) -> usize {
        *self.most.lock().unwrap()
    }

    fn release(&self) {
        self.free.send_replace(true);
    }

    fn closure(&self) -> Closure {
        let hanging = self.clone();
        Closure::new(move |pass| Box::pin(hanging.clone().reconcile(pass))).divided_by("cluster")
    }

    async fn reconcile(self, pass: &Pass<'_>) -> Result<Plan, ReconcileError> {
        if pass.object["metadata"]["labels"]["hangs"].is_string() {
            let name = pass.key.name.clone();
            {
                let mut now = self.now.lock().unwrap();
                assert!(now.insert(name.clone()), "{name} runs twice at a time");
                let mut most = self.most.lock().unwrap();
                *most = now.len().max(*most);
            }
            let _ = self.free.subscribe().wait_for(|free| *free).await;
            self.now.lock().unwrap().remove(&name);
        }
        let mut desired = Value::clone(&pass.object);
        desired["status"]["ready"] = json!(true);
        Ok(Plan::desire(desired))
    }
}

async fn ready(world: &World, prefix: &str) -> usize {
    let widgets = world.list(&widgets(None)).await;
    let of = |widget: &&Value| widget["metadata"]["name"].as_str().unwrap().starts_with(prefix);
    widgets.iter().filter(of).filter(|widget| widget["status"]["ready"] == true).count()
}

/// Slot hogging by one cluster (CONTRACT.md, Capabilities and grants): its passes hang, more of them wait, and all others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_passes_hang_has_a_quarter_of_the_slots_and_others_go_on() {
    let world = World::start().await;
    let hanging = Hanging::new();
    for index in 0..40 {
        world.add_widget(&format!("hog{index}"), json!({"labels": {"cluster": "hog", "hangs": "yes"}})).await;
    }
    let closure = hanging.closure();
    world.add(closure.clone(), 8);
    until("a quarter of the slots hangs", || async { hanging.now() == 2 }).await;
    for index in 0..6 {
        world.add_widget(&format!("other{index}"), json!({"labels": {"cluster": format!("c{}", index % 2)}})).await;
        world.add_widget(&format!("alone{index}"), json!({})).await;
    }
    // They begin after all of the hog's have begun to wait, and end before any of these does.
    until("all others are ready", || async { ready(&world, "other").await + ready(&world, "alone").await == 12 }).await;
    world.patch_widget("other0", json!({"metadata": {"annotations": {"again": "yes"}}})).await;
    until("a change is seen too", || async { closure.passes("other0") >= 2 }).await;
    assert_eq!((hanging.now(), ready(&world, "hog").await), (2, 0));
    hanging.release();
    until("no key was lost", || async { ready(&world, "hog").await == 40 }).await;
    assert_eq!(hanging.most(), 2);
}

/// `spec.limits.concurrency` of a provider that runs: more slots are used at once, fewer as passes end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_number_of_slots_holds_for_a_controller_that_runs() {
    let world = World::start().await;
    let hanging = Hanging::new();
    for index in 0..24 {
        let labels = json!({"cluster": format!("c{}", index % 6), "hangs": "yes"});
        world.add_widget(&format!("w{index}"), json!({"labels": labels})).await;
    }
    let slots = WorkerSlots::new(4);
    let controller = world.manager.add_to(&slots, world.widget.clone(), Arc::new(hanging.closure()));
    until("all slots are taken", || async { hanging.now() == 4 }).await;
    controller.resize(12);
    until("those that were added as well", || async { hanging.now() == 12 }).await;
    controller.resize(1);
    assert_eq!(hanging.now(), 12, "nobody is stopped for it");
    let before = hanging.clone();
    let one_by_one = Hanging::new();
    controller.replace(Arc::new(one_by_one.closure()));
    before.release();
    until("the others have ended, and one runs", || async { before.now() == 0 && one_by_one.now() == 1 }).await;
    assert_eq!(one_by_one.most(), 1);
    one_by_one.release();
    until("all are ready", || async { ready(&world, "w").await == 24 }).await;
    assert_eq!(one_by_one.most(), 1);
    controller.stop().await;
}

/// A controller that is stopped leaves no slot taken and nobody waiting in front of the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_controller_gives_its_slots_back() {
    let world = World::start().await;
    let hanging = Hanging::new();
    for index in 0..8 {
        world.add_widget(&format!("w{index}"), json!({"labels": {"cluster": "c", "hangs": "yes"}})).await;
    }
    let slots = WorkerSlots::new(2);
    let stopped = world.manager.add_to(&slots, world.widget.clone(), Arc::new(hanging.closure()));
    until("one hangs", || async { hanging.now() == 1 }).await;
    let end = tokio::spawn(async move { stopped.stop().await });
    let next = Hanging::new();
    next.release();
    let closure = next.closure();
    world.manager.add_to(&slots, world.widget.clone(), Arc::new(closure.clone()));
    hanging.release();
    end.await.unwrap();
    until("the next has all", || async { (0..8).all(|index| closure.passes(&format!("w{index}")) > 0) }).await;
}

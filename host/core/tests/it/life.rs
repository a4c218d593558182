//! From a user's manifests to running Machines, and back to nothing.

use std::collections::BTreeSet;

use capwasm_api::conditions;
use capwasm_object::{json, meta};
use serde_json::{Value, json};

use crate::provider;
use crate::world::{Core, World, list, of, quiet, until};

const KINDS: [&str; 10] = [
    "clusters",
    "machinedeployments",
    "machinesets",
    "machines",
    "infras",
    "boots",
    "infratemplates",
    "boottemplates",
    "infraclusters",
    "planes",
];

async fn runs(world: &World, machines: usize) -> bool {
    let all = world.list("machines").await;
    let cluster = world.get(&format!("{}/c", of("clusters"))).await.unwrap_or_default();
    let deployment = world.get(&format!("{}/md", of("machinedeployments"))).await.unwrap_or_default();
    all.len() == machines
        && all.iter().all(|machine| {
            json::text(machine, "/status/phase") == Some("Running") && conditions::is_true(machine, "Available")
        })
        && conditions::is_true(&cluster, "Available")
        && json::number(&deployment, "/status/availableReplicas") == i64::try_from(machines).ok()
        && json::text(&deployment, "/status/phase") == Some("Running")
}

async fn is_empty(world: &World) -> bool {
    for kind in KINDS {
        if !world.list(kind).await.is_empty() {
            return false;
        }
    }
    true
}

/// Failure message: what exists.
async fn what_is_there(world: &World) -> String {
    let mut text = String::new();
    for kind in KINDS {
        for object in world.list(kind).await {
            let bad: Vec<String> = json::items(&object, "/status/conditions")
                .iter()
                .map(|one| format!("{}={} {}", one["type"], one["status"], one["message"]))
                .collect();
            text.push_str(&format!("\n{kind} {} {} {bad:?}", meta::name(&object), object["status"]["phase"]));
        }
    }
    text
}

async fn until_runs(world: &World, core: &Core, machines: usize) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !runs(world, machines).await {
        assert!(
            std::time::Instant::now() < deadline,
            "not running:{}\n{:#?}",
            what_is_there(world).await,
            core.tap.writes()
        );
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

fn names(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().map(|object| meta::name(object).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c3_to_c20_r2a_r5_g15_manifests_become_running_machines_and_go_without_a_trace() {
    let world = World::with_admission().await;
    let _provider = provider::start(&world);
    let core = world.core(usize::MAX);
    world.apply_cluster().await;
    until_runs(&world, &core, 2).await;

    // R2a: exactly one config and one infrastructure per Machine, each owned by its Machine alone.
    let machines = world.list("machines").await;
    for kind in ["boots", "infras"] {
        let clones = world.list(kind).await;
        assert_eq!(names(&clones), names(&machines));
        for clone in clones {
            let owners = json::items(&clone, "/metadata/ownerReferences");
            assert_eq!(
                (owners.len(), &owners[0]["kind"], &owners[0]["controller"]),
                (1, &json!("Machine"), &json!(true))
            );
            assert_eq!(clone["spec"]["size"], 7);
        }
    }
    let nodes = list(&world.workload, "/api/v1/nodes").await;
    for node in &nodes {
        assert_eq!(meta::annotation(node, "cluster.x-k8s.io/machine"), Some(meta::name(node)));
        assert!(json::items(node, "/spec/taints").is_empty(), "the taint of uninitialized nodes is gone");
    }
    let cluster = world.get(&format!("{}/c", of("clusters"))).await.unwrap();
    assert_eq!(cluster["status"]["phase"], "Provisioned");
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "h", "port": 6443}));
    assert_eq!(cluster["status"]["workers"]["availableReplicas"], 2);

    // Nothing is written in the steady state, and little on the way there.
    quiet(&core).await;
    let writes = core.tap.writes();
    for name in names(&machines) {
        let of_machine: Vec<&String> = writes.iter().filter(|write| write.contains(&name)).collect();
        println!("writes of core for {name}, besides 3 creates: {} {of_machine:#?}", of_machine.len());
        assert!(of_machine.len() <= 7, "{of_machine:#?}");
    }
    println!("writes of core in all: {}", writes.len());

    // G15: one goes, its clones and its Node with it.
    world.patch("machinedeployments", "md", json!({"spec": {"replicas": 1}})).await;
    until_runs(&world, &core, 1).await;
    let left = names(&world.list("machines").await);
    until("clones and Node are gone", || async {
        let nodes = list(&world.workload, "/api/v1/nodes").await;
        names(&nodes) == left && names(&world.list("infras").await) == left && names(&world.list("boots").await) == left
    })
    .await;

    world.delete("clusters", "c").await;
    until("nothing is left", || is_empty(&world)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_version_replaces_every_machine() {
    let world = World::start().await;
    let _provider = provider::start(&world);
    let core = world.core(usize::MAX);
    world.apply_cluster().await;
    until_runs(&world, &core, 2).await;
    let before = names(&world.list("machines").await);
    world.patch("machinedeployments", "md", json!({"spec": {"template": {"spec": {"version": "v1.36.1"}}}})).await;
    world
        .patch(
            "machinedeployments",
            "md",
            json!({"metadata": {"annotations": {"machineset.cluster.x-k8s.io/skip-preflight-checks": "All"}}}),
        )
        .await;
    until("all are new", || async {
        let now = world.list("machines").await;
        now.len() == 2
            && now.iter().all(|machine| machine["spec"]["version"] == "v1.36.1")
            && names(&now).is_disjoint(&before)
    })
    .await;
    until_runs(&world, &core, 2).await;
    until("the old set is gone", || async { world.list("machinesets").await.len() == 1 }).await;
}

/// Core dies after each number of writes, and another takes over: the end is the same, with no object too many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r2a_c10_core_may_die_after_any_write() {
    for writes in (1..36).step_by(3) {
        let world = World::start().await;
        let _provider = provider::start(&world);
        let first = world.core(writes);
        world.apply_cluster().await;
        until("the first core is dead, or done", || async {
            first.tap.writes().len() >= writes || runs(&world, 2).await
        })
        .await;
        drop(first);
        let second = world.core(usize::MAX);
        until_runs(&world, &second, 2).await;
        quiet(&second).await;
        for (kind, count) in [("machinesets", 1), ("machines", 2), ("infras", 2), ("boots", 2)] {
            assert_eq!(world.list(kind).await.len(), count, "{kind} after a death at write {writes}");
        }
    }
}

/// The same when it dies while everything goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g15_core_may_die_after_any_write_of_a_deletion() {
    for writes in (1..20).step_by(4) {
        let world = World::start().await;
        let _provider = provider::start(&world);
        let builder = world.core(usize::MAX);
        world.apply_cluster().await;
        until_runs(&world, &builder, 2).await;
        drop(builder);
        let first = world.core(writes);
        world.delete("clusters", "c").await;
        until("the first core is dead, or done", || async {
            first.tap.writes().len() >= writes || is_empty(&world).await
        })
        .await;
        drop(first);
        let _second = world.core(usize::MAX);
        until("nothing is left", || is_empty(&world)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_providers_of_the_older_contract_are_read_at_their_own_paths() {
    let world = World::with("v1beta1", Vec::new()).await;
    let _provider = provider::start(&world);
    let core = world.core(usize::MAX);
    world.apply_cluster().await;
    until_runs(&world, &core, 2).await;
    world.delete("clusters", "c").await;
    until("nothing is left", || is_empty(&world)).await;
}

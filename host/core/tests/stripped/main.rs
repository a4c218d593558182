//! Owner references, labels and finalizers are taken away from any objects of a cluster, at any step, as upstream's end-to-end
//! tests and restored backups do: it comes to the same end, with no Machine more and none replaced, and goes without a trace.
//!
//! The world is that of `it`. A sample in the first tier; `cargo xtask test --seed` repeats it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
// `it` uses the rest.
#![allow(dead_code, reason = "modules of another test")]

#[path = "../it/provider.rs"]
mod provider;
#[path = "../it/world.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use capwasm_api::conditions;
use capwasm_object::{json, meta};
use capwasm_test_support::skip;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Map, Value, json};

use crate::world::{Core, World, of, quiet, send};

/// Kinds of a cluster's objects, those of providers last.
const KINDS: [&str; 10] = [
    "clusters",
    "machinedeployments",
    "machinesets",
    "machines",
    "infraclusters",
    "planes",
    "infratemplates",
    "boottemplates",
    "infras",
    "boots",
];
/// Those that users write, and that are nobody's as long as no set looks after them.
const TEMPLATES: [&str; 2] = ["/infratemplates/", "/boottemplates/"];
/// As many as the sample has.
const WORKERS: usize = 2;
/// Core's writes until such a cluster runs, about.
const WRITES_TO_RUN: usize = 40;
/// The same until it is gone.
const WRITES_TO_GO: usize = 15;
/// What may be taken away.
const ALL: [&str; 3] = ["ownerReferences", "labels", "finalizers"];
/// Cases of the first tier.
const SAMPLE: u64 = 3;
/// Cases of the second tier.
const WHOLE: u64 = 60;

/// `CAPWASM_TEST_SEED`, or a random one.
fn seed() -> u64 {
    let told = std::env::var("CAPWASM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = told.unwrap_or_else(rand::random);
    eprintln!("CAPWASM_TEST_SEED={seed}");
    seed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_stripped_heals_and_nothing_is_left_at_the_end() {
    let every = skip::whole("faults", "whatever_is_stripped_heals_and_nothing_is_left_at_the_end");
    let seed = seed();
    for case in 0..if every { WHOLE } else { SAMPLE } {
        life(seed.wrapping_add(case)).await;
    }
}

/// One cluster, stripped while it comes, while it runs and while it goes.
async fn life(seed: u64) {
    eprintln!("case {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    // Where the server does not default what is written, core does.
    let world = if random.random() { World::with_admission().await } else { World::start().await };
    let _provider = provider::start(&world);
    let core = world.core(usize::MAX);
    world.apply_cluster().await;
    for _ in 0..random.random_range(1..4) {
        after(&core, random.random_range(0..WRITES_TO_RUN / 2)).await;
        strip(&world, &mut random, &ALL, |_| true).await;
    }
    settled(&world, "after it was stripped on its way").await;
    let machines = identities(&world, "machines").await;
    until("all but the Cluster have owners again", || async {
        let owned = |object: &Value| !json::items(object, "/metadata/ownerReferences").is_empty();
        let all = objects(&world).await.into_iter();
        all.filter(|(path, object)| !owned(object) && !path.contains("/clusters/")).map(|(path, _)| path).collect()
    })
    .await;
    quiet(&core).await;
    let whole = objects(&world).await;

    strip(&world, &mut random, &ALL, |_| true).await;
    until("all is as it was", || async { missing(&whole, &objects(&world).await) }).await;
    settled(&world, "after it was stripped").await;
    assert_eq!(identities(&world, "machines").await, machines, "none was replaced");

    world.delete("clusters", "c").await;
    for _ in 0..random.random_range(1..3) {
        after(&core, random.random_range(0..WRITES_TO_GO)).await;
        // Whoever takes a finalizer away from what is being deleted lets it go unattended; a template whose set is gone is its
        // user's.
        let is_kept = |path: &str| !TEMPLATES.iter().any(|kind| path.contains(kind));
        strip(&world, &mut random, &["ownerReferences", "labels"], is_kept).await;
    }
    until("nothing is left", || async {
        objects(&world).await.into_iter().map(|(path, object)| format!("{path} {}", object["metadata"])).collect()
    })
    .await;
}

/// Takes some of `fields` away from about half of the objects.
async fn strip(world: &World, random: &mut StdRng, fields: &[&str], of: impl Fn(&str) -> bool) {
    for path in objects(world).await.into_keys().filter(|path| of(path)) {
        let taken: Map<String, Value> =
            fields.iter().filter(|_| random.random_bool(0.4)).map(|field| ((*field).to_owned(), Value::Null)).collect();
        if !taken.is_empty() {
            eprintln!("  {path} loses {:?}", taken.keys().collect::<Vec<_>>());
            // It may be gone meanwhile.
            let _ = send(&world.client, "PATCH", &path, Some(json!({"metadata": taken}))).await;
        }
    }
}

/// All objects by path.
async fn objects(world: &World) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for kind in KINDS {
        for object in world.list(kind).await {
            all.insert(format!("{}/{}", of(kind), meta::name(&object)), object);
        }
    }
    all
}

async fn identities(world: &World, kind: &str) -> BTreeSet<String> {
    world.list(kind).await.iter().map(|object| meta::uid(object).to_owned()).collect()
}

/// Waits until core has written so many times more, or has nothing to write.
async fn after(core: &Core, writes: usize) {
    let wanted = core.tap.writes().len() + writes;
    let deadline = Instant::now() + Duration::from_secs(2);
    while core.tap.writes().len() < wanted && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the wanted Machines run, and asserts that no others were ever made.
async fn settled(world: &World, when: &str) {
    until("it runs", || async {
        let (machines, sets) = (world.list("machines").await, world.list("machinesets").await);
        let deployment = world.get(&format!("{}/md", of("machinedeployments"))).await.unwrap_or_default();
        let cluster = world.get(&format!("{}/c", of("clusters"))).await.unwrap_or_default();
        assert!(machines.len() <= WORKERS && sets.len() <= 1, "{when}: too many: {machines:#?} {sets:#?}");
        let mut wrong: Vec<String> = machines
            .iter()
            .filter(|machine| json::text(machine, "/status/phase") != Some("Running"))
            .map(|machine| format!("{} {}", meta::name(machine), machine["status"]["phase"]))
            .collect();
        let used = sets.first().and_then(|set| meta::annotation(set, "capwasm.dev/next-slot"));
        let revision = meta::annotation(&deployment, "machinedeployment.clusters.x-k8s.io/revision");
        for (what, is, wanted) in [
            ("Machines", json!(machines.len()), json!(WORKERS)),
            ("available replicas", deployment["status"]["availableReplicas"].clone(), json!(WORKERS)),
            ("replicas", deployment["status"]["replicas"].clone(), json!(WORKERS)),
            ("slots ever used", json!(used), json!(WORKERS.to_string())),
            ("revisions ever made", json!(revision), json!("1")),
            ("Cluster available", json!(conditions::is_true(&cluster, "Available")), json!(true)),
        ] {
            if is != wanted {
                wrong.push(format!("{what}: {is}"));
            }
        }
        wrong
    })
    .await;
}

/// What objects had `before` and have no more: owners, finalizers, labels of core's kinds, the cluster's label of others.
fn missing(before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> Vec<String> {
    let owners = |object: &Value| -> BTreeSet<String> {
        json::items(object, "/metadata/ownerReferences").iter().map(Value::to_string).collect()
    };
    let mut wrong = Vec::new();
    for (path, object) in before {
        let Some(found) = now.get(path) else {
            wrong.push(format!("{path} is gone"));
            continue;
        };
        if owners(object) != owners(found) {
            wrong.push(format!("{path} is owned by {:?}, not by {:?}", owners(found), owners(object)));
        }
        if object["metadata"]["finalizers"] != found["metadata"]["finalizers"] {
            wrong.push(format!("{path} has finalizers {}", found["metadata"]["finalizers"]));
        }
        let of_core = path.contains("/cluster.x-k8s.io/");
        for (label, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
            let lacks = meta::label(found, label) != value.as_str();
            if lacks && (of_core || label == "cluster.x-k8s.io/cluster-name") {
                wrong.push(format!("{path} lacks the label {label}"));
            }
        }
    }
    wrong
}

/// Waits until nothing is wrong.
async fn until<F: Future<Output = Vec<String>>>(what: &str, wrong: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let seen = wrong().await;
        if seen.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "not in time: {what}:\n{}", seen.join("\n"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

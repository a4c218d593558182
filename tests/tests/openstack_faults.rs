//! What goes wrong around the OpenStack provider: hosts that are killed, services that refuse, fail, are slow or gone, quotas.
//! Each test runs twice: on the fake, and on real services with a proxy in front of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use capwasm_tests::management::Management;
use capwasm_tests::objects::{condition, is, name_of, text};
use capwasm_tests::openstack::proxy::{Action, Call};
use capwasm_tests::openstack::{self, Bed, LOOK, manifests, shape};
use capwasm_tests::seed::seed;
use capwasm_tests::{skip, wait};
use http::Method;
use serde_json::{Value, json};

const NAMESPACE: &str = "faults";
/// Somebody who tries again and again is seen within this.
const QUIET: Duration = Duration::from_secs(15);
/// One write in so many is the last one of a host in the first tier.
const SAMPLE: u64 = 4;
/// What answers of the proxy say.
const TOLD: &str = "said by a test";

/// Makes tests for both beds of functions that take one.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod fake {
            use super::*;
            $(#[tokio::test]
            async fn $test() {
                let bed = Bed::fake(NAMESPACE).await;
                super::$test(&bed).await;
                bed.end().await;
            })*
        }

        mod real {
            use super::*;
            $(#[tokio::test]
            async fn $test() {
                let test = concat!("openstack_faults::real::", stringify!($test));
                let Some(admin) = openstack::real(test) else { return };
                let bed = Bed::real(&admin, NAMESPACE).await;
                super::$test(&bed).await;
                bed.end().await;
            })*
        }
    };
}

on_both!(
    the_host_is_killed_after_every_call_and_comes_to_the_same_end,
    two_clusters_of_one_project_do_not_touch_each_other,
    a_cluster_is_deleted_in_the_midst_of_its_creation,
    requests_that_are_answered_401_once_get_a_new_token,
    requests_that_are_answered_403_once_are_told_and_go_on_when_something_changes,
    requests_that_are_answered_409_once_only_delay,
    requests_that_are_answered_429_once_only_delay,
    requests_that_are_answered_500_once_only_delay,
    requests_that_are_answered_503_once_only_delay,
    services_that_are_slow_or_gone_or_lose_their_answers_only_delay,
    credentials_that_are_refused_are_told_and_do_not_make_a_storm,
    exhausted_quotas_are_told_and_larger_ones_are_used,
);

/// A cluster `c` with a load balancer, a control-plane machine `m` with a volume and a trunk, and a worker `n`.
async fn create(bed: &Bed) {
    create_one(bed).await;
    bed.create(worker("c", "n")).await;
}

/// The same without the worker, which asks for nothing that the other does not ask for.
async fn create_one(bed: &Bed) {
    // Of the one before.
    bed.objects.delete("Secret", "m-bootstrap").await;
    bed.create(manifests::cluster(NAMESPACE, "c", manifests::cluster_spec())).await;
    bed.create(control_plane("c", "m")).await;
}

fn control_plane(cluster: &str, name: &str) -> [Value; 3] {
    let mut spec = manifests::machine_spec();
    spec["rootVolume"] = json!({"sizeGiB": 1});
    spec["trunk"] = true.into();
    spec["tags"] = json!(["of-a-machine"]);
    // Nova would choose any zone.
    manifests::machine(NAMESPACE, cluster, name, true, "az1", spec)
}

fn worker(cluster: &str, name: &str) -> [Value; 3] {
    manifests::machine(NAMESPACE, cluster, name, false, "", manifests::machine_spec())
}

/// Whether all of [`create`] is.
async fn is_ready(bed: &Bed) -> bool {
    let cluster = bed.objects.get("OpenStackCluster", "c").await;
    let machines = bed.objects.list("OpenStackMachine").await;
    let leads_to = |machine: &Value| name_of(machine) != "m" || is(machine, "APIServerIngressReadyCondition");
    is(&cluster, "Ready") && machines.iter().all(|machine| is(machine, "Ready") && leads_to(machine))
}

/// Waits until all of [`create`] is.
async fn ready(bed: &Bed) {
    wait::until_every(LOOK, "the cluster and its machines are ready", async || {
        if is_ready(bed).await { Ok(()) } else { Err(states(bed).await) }
    })
    .await;
}

/// Status of all that is in OpenStack.
async fn states(bed: &Bed) -> String {
    let mut states = String::new();
    for kind in ["OpenStackCluster", "OpenStackMachine", "OpenStackServer"] {
        for object in bed.objects.list(kind).await {
            states.push_str(&format!("{kind} {}: {}\n", name_of(&object), object["status"]["conditions"]));
        }
    }
    states
}

/// What is in the project when no service works at it any more.
async fn picture(bed: &Bed) -> Value {
    wait::until_every(LOOK, "nothing is pending", async || {
        let picture = bed.project.picture().await;
        let text = picture.to_string();
        if text.contains("PENDING_") || text.contains("BUILD") { Err(text) } else { Ok(picture) }
    })
    .await
}

/// Waits until the project is as it was.
async fn is_as(bed: &Bed, wanted: &Value) {
    wait::until_every(LOOK, "the project is as it should be", async || {
        let differences = shape::differences(wanted, &bed.project.picture().await, true);
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    })
    .await;
}

async fn the_host_is_killed_after_every_call_and_comes_to_the_same_end(bed: &Bed) {
    create_one(bed).await;
    ready(bed).await;
    let wanted = picture(bed).await;
    bed.delete(&["c"]).await;

    // Each kill costs a start of the host: after reads it is killed on real services alone, and after every write in the second
    // tier.
    let every = bed.is_real()
        || skip::whole(
            "faults",
            "openstack_faults::fake::the_host_is_killed_after_every_call_and_comes_to_the_same_end",
        );
    let seed = seed();
    let cut = || match (bed.is_real(), every) {
        (true, _) => bed.proxy.cut_after_every_call(),
        (false, true) => bed.proxy.cut_after_every_write(),
        (false, false) => bed.proxy.cut_after_some_writes(seed, SAMPLE),
    };
    cut();
    create_one(bed).await;
    let made = bed.killed_after_every_call(async || is_ready(bed).await).await;
    is_as(bed, &wanted).await;
    cut();
    bed.objects.delete("Cluster", "c").await;
    let deleted = bed.killed_after_every_call(async || bed.objects.find("Cluster", "c").await.is_none()).await;
    eprintln!("killed {made} times while it was made and {deleted} times while it was deleted");
    bed.nothing_is_left().await;
}

async fn two_clusters_of_one_project_do_not_touch_each_other(bed: &Bed) {
    create(bed).await;
    ready(bed).await;
    let alone = picture(bed).await;
    bed.create(manifests::cluster(NAMESPACE, "c2", manifests::cluster_spec())).await;
    bed.create(manifests::machine(NAMESPACE, "c2", "m2", true, "", manifests::machine_spec())).await;
    bed.cluster_ready("c2").await;
    bed.machine_ready("m2").await;
    assert_ne!(picture(bed).await, alone);
    bed.objects.delete("Cluster", "c2").await;
    bed.objects.gone("Cluster", "c2").await;
    is_as(bed, &alone).await;
    ready(bed).await;
    bed.delete(&["c"]).await;
}

async fn a_cluster_is_deleted_in_the_midst_of_its_creation(bed: &Bed) {
    // The moments: after so many resources were made. Those before are deleted meanwhile.
    for moment in [1, 3, 6, 9, 12, 15, 18] {
        bed.proxy.clear();
        let cluster = format!("c{moment}");
        bed.create(manifests::cluster(NAMESPACE, &cluster, manifests::cluster_spec())).await;
        bed.create(control_plane(&cluster, &format!("m{moment}"))).await;
        bed.create(worker(&cluster, &format!("n{moment}"))).await;
        wait::until(&format!("{moment} resources were made"), async || {
            let made = bed.proxy.calls().iter().filter(|call| call.method == Method::POST && !call.is_token()).count();
            if made >= moment { Ok(()) } else { Err(made.to_string()) }
        })
        .await;
        bed.objects.delete("Cluster", &cluster).await;
    }
    bed.nothing_is_left().await;
}

async fn requests_that_are_answered_401_once_get_a_new_token(bed: &Bed) {
    answered_once(bed, 401).await;
}

async fn requests_that_are_answered_403_once_are_told_and_go_on_when_something_changes(bed: &Bed) {
    answered_once(bed, 403).await;
}

async fn requests_that_are_answered_409_once_only_delay(bed: &Bed) {
    answered_once(bed, 409).await;
}

async fn requests_that_are_answered_429_once_only_delay(bed: &Bed) {
    answered_once(bed, 429).await;
}

async fn requests_that_are_answered_500_once_only_delay(bed: &Bed) {
    answered_once(bed, 500).await;
}

async fn requests_that_are_answered_503_once_only_delay(bed: &Bed) {
    answered_once(bed, 503).await;
}

/// Each request but those for tokens is answered with this status once: all comes all the same, once, and all goes again.
async fn answered_once(bed: &Bed, status: u16) {
    let mut seen = BTreeSet::new();
    bed.proxy.rule(move |call| {
        if call.is_token() || !seen.insert(call.pattern()) {
            return Action::Pass;
        }
        let told = json!({"error": {"code": status, "title": "of a test", "message": TOLD}});
        Action::Answer(status, vec![("retry-after", "1".to_owned())], told)
    });
    create(bed).await;
    // What is forbidden is tried again when something changes.
    let mut woken = BTreeMap::new();
    wait::until_every(LOOK, "the cluster and its machines are ready", async || {
        if status == 403 {
            wake_who_was_told(bed, &mut woken).await;
        }
        if is_ready(bed).await { Ok(()) } else { Err(states(bed).await) }
    })
    .await;
    for (resource, times) in bed.project.counts().await {
        assert_eq!(times, 1, "{resource} is there {times} times");
    }
    bed.objects.delete("Cluster", "c").await;
    wait::until_every(LOOK, "the cluster is gone", async || {
        if status == 403 {
            wake_who_was_told(bed, &mut woken).await;
        }
        if bed.objects.find("Cluster", "c").await.is_none() { Ok(()) } else { Err(states(bed).await) }
    })
    .await;
    bed.nothing_is_left().await;
    let answered = bed.proxy.calls().iter().filter(|call| call.status == Some(status)).count();
    let tokens = bed.proxy.calls().iter().filter(|call| call.is_token()).count();
    eprintln!("{answered} requests were answered {status}; {tokens} tokens");
    assert!(answered > 40, "{answered}");
    assert_eq!(woken.is_empty(), status != 403, "{woken:?}");
    let most = if status == 401 { answered + 1 } else { 1 };
    assert!(tokens <= most, "{tokens} tokens after {answered} answers");
}

/// Changes each object whose conditions have news of what the proxy said.
async fn wake_who_was_told(bed: &Bed, woken: &mut BTreeMap<String, String>) {
    for kind in ["OpenStackCluster", "OpenStackServer", "OpenStackMachine"] {
        for object in bed.objects.list(kind).await {
            let conditions = object["status"]["conditions"].to_string();
            let key = format!("{kind} {}", name_of(&object));
            if !conditions.contains(TOLD) || woken.get(&key) == Some(&conditions) {
                continue;
            }
            let patch = json!({"metadata": {"annotations": {"of-a-test": object["metadata"]["resourceVersion"]}}});
            bed.objects.merge_if_there(kind, name_of(&object), patch).await;
            woken.insert(key, conditions);
        }
    }
}

async fn services_that_are_slow_or_gone_or_lose_their_answers_only_delay(bed: &Bed) {
    bed.proxy.rule(|_| Action::Late(Duration::from_millis(150)));
    bed.create(manifests::cluster(NAMESPACE, "c", manifests::cluster_spec())).await;
    bed.cluster_ready("c").await;
    // Gone in the middle of a machine's creation, and back.
    bed.proxy.rule(|call| if call.service == "compute" { Action::Drop } else { Action::Pass });
    bed.create(manifests::machine(NAMESPACE, "c", "m", false, "", manifests::machine_spec())).await;
    let waits = |object: &Value| !is(object, "Ready") && !condition(object, "Ready").1.is_empty();
    bed.objects.until("OpenStackServer", "m", "it says that it waits", waits).await;
    bed.proxy.pass();
    bed.machine_ready("m").await;
    // Every other write is carried out, and its answer lost.
    let mut lost = 0;
    bed.proxy.rule(move |call| {
        lost += usize::from(call.is_write());
        if call.is_write() && lost % 2 == 1 { Action::Lose } else { Action::Pass }
    });
    bed.create(manifests::machine(NAMESPACE, "c", "n", false, "", manifests::machine_spec())).await;
    bed.machine_ready("n").await;
    let resources = bed.project.resources().await;
    let servers: Vec<&String> = resources.iter().filter(|name| name.starts_with("server ")).collect();
    assert_eq!(servers, ["server m", "server n"]);
    bed.delete(&["c"]).await;
}

async fn credentials_that_are_refused_are_told_and_do_not_make_a_storm(bed: &Bed) {
    // Keystone itself refuses it.
    let mut wrong = bed.project.access.at(bed.proxy.auth_url());
    wrong.auth["password"] = "wrong".into();
    bed.objects.merge("Secret", "cloud-config", json!({"stringData": {"clouds.yaml": wrong.clouds_yaml()}})).await;
    bed.create(manifests::cluster(NAMESPACE, "c", manifests::cluster_spec())).await;
    let told = |object: &Value| condition(object, "OpenStackAuthenticationSucceeded").0 == "False";
    let cluster = bed.objects.until("OpenStackCluster", "c", "it says so", told).await;
    let (_, reason, message) = condition(&cluster, "OpenStackAuthenticationSucceeded");
    assert_eq!(reason, "OpenStackAuthenticationFailed");
    assert!(message.contains("The request you have made requires authentication"), "{message}");
    // Whatever was on its way has come by now; after it, nobody tries again and again.
    let settled = bed.proxy.calls().len();
    tokio::time::sleep(QUIET).await;
    let storm = bed.proxy.calls().len() - settled;
    assert!(storm <= 3, "{storm} more requests in {QUIET:?}");

    // A new Secret wakes it.
    let clouds = bed.project.access.at(bed.proxy.auth_url()).clouds_yaml_with(json!({"verify": true}));
    bed.objects.merge("Secret", "cloud-config", json!({"stringData": {"clouds.yaml": clouds}})).await;
    bed.cluster_ready("c").await;

    // A token that was good and is not any more is replaced.
    let mut is_refused = false;
    bed.proxy.rule(move |call| {
        if call.service == "compute" && !std::mem::replace(&mut is_refused, true) {
            return Action::status(401, TOLD);
        }
        Action::Pass
    });
    bed.create(manifests::machine(NAMESPACE, "c", "m", false, "", manifests::machine_spec())).await;
    bed.machine_ready("m").await;
    let is_boot = |call: &Call| call.method == Method::POST && call.path == "/servers";
    bed.proxy.rule(move |call| if is_boot(call) { Action::status(403, TOLD) } else { Action::Pass });
    bed.create(manifests::machine(NAMESPACE, "c", "n", false, "", manifests::machine_spec())).await;
    let told = |object: &Value| condition(object, "Ready").2.contains(TOLD);
    bed.objects.until("OpenStackServer", "n", "it says that it is forbidden", told).await;
    let tried = bed.proxy.calls().iter().filter(|call| is_boot(call)).count();
    assert!(tried <= 3, "{tried} tries to boot what is forbidden");
    bed.proxy.pass();
    bed.delete(&["c"]).await;
}

/// Services, what they limit, and the object that needs it; in the order in which a cluster and then a machine do.
const QUOTAS: [(&str, &str, &str, &str); 9] = [
    ("network", "network", "OpenStackCluster", "c"),
    ("network", "subnet", "OpenStackCluster", "c"),
    ("network", "router", "OpenStackCluster", "c"),
    ("network", "security_group", "OpenStackCluster", "c"),
    ("load-balancer", "load_balancer", "OpenStackCluster", "c"),
    ("load-balancer", "listener", "OpenStackCluster", "c"),
    ("load-balancer", "pool", "OpenStackCluster", "c"),
    ("block-storage", "volumes", "OpenStackServer", "m"),
    ("compute", "instances", "OpenStackServer", "m"),
];

async fn exhausted_quotas_are_told_and_larger_ones_are_used(bed: &Bed) {
    for (service, resource, ..) in QUOTAS {
        limit(bed, service, resource, 0).await;
    }
    create(bed).await;
    for (service, resource, kind, name) in QUOTAS {
        let word = resource.replace('_', " ");
        let told = |object: &Value| {
            let said = object["status"]["conditions"].to_string().to_lowercase().replace('_', " ");
            said.contains("quotaexceeded") && said.contains(&word)
        };
        let what = format!("it says that its quota of {service} {resource} is used up");
        bed.objects.until(kind, name, &what, told).await;
        limit(bed, service, resource, -1).await;
        // Something that it watches: it need not wait until it would look again.
        let patch = json!({"metadata": {"annotations": {"of-a-test": format!("{service}-{resource}")}}});
        bed.objects.merge(kind, name, patch.clone()).await;
        if service == "compute" {
            bed.objects.merge(kind, "n", patch).await;
        }
    }
    ready(bed).await;
    for (resource, times) in bed.project.counts().await {
        assert_eq!(times, 1, "{resource} is there {times} times");
    }
    bed.delete(&["c"]).await;
}

async fn limit(bed: &Bed, service: &str, resource: &str, limit: i64) {
    let (path, key) = match service {
        "network" => ("/v2.0/quotas", "quota"),
        "load-balancer" => ("/v2/lbaas/quotas", "quota"),
        _ => ("/os-quota-sets", "quota_set"),
    };
    let path = format!("{path}/{}", bed.project.cloud.project_id);
    bed.project.admin.put(service, &path, &json!({ key: { resource: limit } })).await;
}

#[tokio::test]
async fn the_fake_is_read_once_for_each_object_in_a_period() {
    let bed = Bed::fake_under(Management::start_syncing(PERIOD), NAMESPACE).await;
    one_read_for_each_object_in_a_period(&bed).await;
    bed.end().await;
}

#[tokio::test]
async fn real_services_are_read_once_for_each_object_in_a_period() {
    let test = "openstack_faults::real_services_are_read_once_for_each_object_in_a_period";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real_under(Management::start_syncing(PERIOD), &admin, NAMESPACE).await;
    one_read_for_each_object_in_a_period(&bed).await;
    bed.end().await;
}

/// Time between two looks at an unchanged object, in place of ten minutes.
const PERIOD: &str = "3s";
/// Periods that are looked at.
const PERIODS: usize = 4;

/// An unchanged server is read once in each period. Of an unchanged cluster one part is read in each ten minutes, whatever the
/// host's period is; nothing is read for machines and templates.
async fn one_read_for_each_object_in_a_period(bed: &Bed) {
    create(bed).await;
    ready(bed).await;
    picture(bed).await;
    let server = |name: &str| {
        let objects = bed.objects.clone();
        let name = name.to_owned();
        async move { text(&objects.get("OpenStackServer", &name).await, "/status/instanceID").to_owned() }
    };
    let servers = [server("m").await, server("n").await];
    let reads_of = |id: &str| {
        let path = format!("/servers/{id}");
        bed.proxy.calls().iter().filter(|call| call.path == path).count()
    };
    // The last passes may still be under way.
    wait::until("the passes come to an end", async || {
        let before = bed.objects.versions().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        if bed.objects.versions().await == before { Ok(()) } else { Err("something changes".to_owned()) }
    })
    .await;
    bed.proxy.clear();
    wait::until_every(LOOK, "some periods are over", async || {
        let reads: Vec<usize> = servers.iter().map(|id| reads_of(id)).collect();
        if reads.iter().all(|reads| *reads >= PERIODS) { Ok(()) } else { Err(format!("{reads:?}")) }
    })
    .await;
    let calls = bed.proxy.calls();
    let others: Vec<String> = calls
        .iter()
        .filter(|call| !servers.iter().any(|id| call.path == format!("/servers/{id}")))
        .map(Call::pattern)
        .collect();
    // One at most: a new ten minutes may have begun.
    assert!(others.len() <= 1, "{others:?}");
    assert!(calls.iter().all(|call| call.method == Method::GET), "{calls:?}");
    let reads: Vec<usize> = servers.iter().map(|id| reads_of(id)).collect();
    // Periods differ by a tenth.
    assert!(reads.iter().all(|reads| *reads <= PERIODS + 1), "{reads:?}");
    bed.delete(&["c"]).await;
}

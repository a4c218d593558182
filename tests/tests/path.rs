//! The whole path on the simulator, arrow by arrow: what a user creates, what controllers make of it, and in which order.
//!
//! One cluster is provisioned while every version of every object is recorded; most tests look at that record.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use capwasm_tests::binary;
use capwasm_tests::history::{self, History, Version};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{condition, flag, is, is_control_plane, name_of, owner, secret_text, text};
use capwasm_tests::sample::{Sample, is_provisioned};
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

const CLUSTER: &str = "path";
const CONTROL_PLANE: &str = "path-control-plane";
const WORKERS: &str = "path-md-0";

/// How long something has to stay as it is to count as steady.
const STEADY: Duration = Duration::from_secs(4);

/// Objects with their resourceVersions.
type Versions = Vec<(String, String)>;

/// What was seen of the recorded cluster.
struct Run {
    versions: Vec<Version>,
    /// Revision of the first version of the Cluster: before that, the DockerCluster had no owner.
    cluster_created: u64,
    /// Passes of DockerClusters while there was only one without owner, at two moments.
    ownerless_passes: (u64, u64),
    containers: Vec<String>,
    /// When each container was made, as the engine says.
    created: Vec<(String, String)>,
    /// What the engine holds of each machine's kubeadm configuration.
    kubeadm_files: Vec<(String, Vec<u8>)>,
    events: Vec<(String, String, u64)>,
    steady: (Versions, Versions),
    nodes: Vec<Node>,
}

/// Provisions the recorded cluster, once for all tests.
fn run() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        let provisioned = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(provision()));
        provisioned.join().expect("the recorded cluster is provisioned")
    })
}

async fn provision() -> Run {
    let management = Management::shared();
    let objects = management.objects(CLUSTER).await;
    let history = History::record(&objects).await;
    let mut sample = Sample::new(CLUSTER, 1, 2);
    for infrastructure in sample.take("DockerCluster") {
        objects.create(&infrastructure).await;
    }
    let passes =
        || management.metric("controller_runtime_reconcile_total{controller=\"dockercluster\",result=\"success\"}");
    wait::until(
        "the ownerless DockerCluster was looked at",
        async || if passes() > 0 { Ok(()) } else { Err(String::new()) },
    )
    .await;
    let before = passes();
    wait::unchanged("an ownerless DockerCluster", STEADY / 2, async || objects.versions().await).await;
    let ownerless_passes = (before, passes());

    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let engine = management.engine();
    let containers = engine.containers(CLUSTER).await;
    let (mut created, mut kubeadm_files) = (Vec::new(), Vec::new());
    for container in &containers {
        created.push((container.clone(), text(&engine.inspect(container).await, "/Created").to_owned()));
        let mut files = engine.archive(container, "/run/kubeadm/kubeadm.yaml").await;
        files.extend(engine.archive(container, "/run/kubeadm/kubeadm-join-config.yaml").await);
        kubeadm_files.push((container.clone(), files));
    }
    let versions = history.complete(&objects).await;
    let nodes: Api<Node> = Api::all(objects.workload(CLUSTER).await);
    let nodes = nodes.list(&ListParams::default()).await.expect("the workload API answers over TLS").items;
    // The nodes' heartbeats and the last conditions that follow from them settle first.
    let first = wait::until("nothing is written any more", async || {
        let before = objects.versions().await;
        tokio::time::sleep(STEADY / 4).await;
        if before == objects.versions().await { Ok(before) } else { Err("something was written".to_owned()) }
    })
    .await;
    tokio::time::sleep(STEADY).await;
    let steady = (first, objects.versions().await);
    let cluster_created = history::of(&versions, "Cluster", CLUSTER)[0].revision;
    let events = objects.events("Cluster", CLUSTER).await;
    Run { versions, cluster_created, ownerless_passes, containers, created, kubeadm_files, events, steady, nodes }
}

impl Run {
    fn first(&self, kind: &str, name: &str, is: impl Fn(&Value) -> bool) -> &Version {
        history::first(&self.versions, kind, name, is)
    }

    fn last(&self, kind: &str, name: &str) -> &Value {
        &history::of(&self.versions, kind, name)
            .last()
            .unwrap_or_else(|| panic!("there never was {kind} {name}"))
            .object
    }

    /// The objects of a kind, each in its last version.
    fn all(&self, kind: &str) -> Vec<&Value> {
        let names: BTreeSet<&str> =
            self.versions.iter().filter(|seen| seen.kind == kind).map(|seen| name_of(&seen.object)).collect();
        names.into_iter().map(|name| self.last(kind, name)).collect()
    }

    fn machines_of_workers(&self) -> Vec<&Value> {
        self.all("Machine").into_iter().filter(|machine| owner(machine, "MachineSet").is_some()).collect()
    }

    fn infrastructure_provisioned(&self) -> u64 {
        self.first("DockerCluster", CLUSTER, is_provisioned).revision
    }
}

fn endpoint(object: &Value) -> Option<(String, i64)> {
    let endpoint = object.pointer("/spec/controlPlaneEndpoint")?;
    let (host, port) = (text(endpoint, "/host"), endpoint["port"].as_i64()?);
    (!host.is_empty() && port > 0).then(|| (host.to_owned(), port))
}

fn has_finalizer(object: &Value) -> bool {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty())
}

#[test]
fn c1_c2_an_infrastructure_object_without_owner_is_stored_looked_at_once_and_left_alone() {
    let run = run();
    let versions = history::of(&run.versions, "DockerCluster", CLUSTER);
    let before: Vec<_> = versions.iter().filter(|version| version.revision < run.cluster_created).collect();
    assert_eq!(before.len(), 1, "C2: nothing is written: {before:?}");
    assert!(!has_finalizer(&before[0].object) && before[0].object.get("status").is_none());
    assert_eq!(run.ownerless_passes.0, run.ownerless_passes.1, "C2: it is not looked at again and again");
    let lb = run.created.iter().find(|(name, _)| name == "path-lb").unwrap();
    let cluster = text(&run.first("Cluster", CLUSTER, |_| true).object, "/metadata/creationTimestamp");
    assert!(
        lb.1.as_str() >= cluster.trim_end_matches('Z'),
        "C2: nothing is made before there is an owner: {lb:?} {cluster}"
    );
}

/// Whether the control plane has told the health of one of its Machines.
fn is_reported(machine: &Value) -> bool {
    condition(machine, "APIServerPodHealthy") != ("", "", "")
}

/// Whether a version of a Machine or DockerMachine tells people what it waits for, and nothing else.
fn tells_that_it_waits(before: &Value, after: &Value) -> bool {
    let written = |object: &Value| {
        let metadata = &object["metadata"];
        let kept = ["labels", "annotations", "finalizers", "ownerReferences"].map(|key| metadata.get(key).cloned());
        (kept, object.get("spec").cloned())
    };
    written(before) == written(after)
        && !is_provisioned(after)
        && text(after, "/status/nodeRef/name").is_empty()
        && !is_reported(after)
}

/// A status that tells people what is waited for, and a Machine's Node before the control plane has looked at it, are written by
/// themselves only after they have waited for a second: the writes of a slow machine, which come on top.
fn writes_of_slowness(versions: &[Version], machine: &str) -> usize {
    let waits = |kind: &str| {
        let seen = history::of(versions, kind, machine);
        seen.windows(2).filter(|pair| tells_that_it_waits(&pair[0].object, &pair[1].object)).count()
    };
    let told_alone = history::of(versions, "Machine", machine)
        .into_iter()
        .find(|seen| !text(&seen.object, "/status/nodeRef/name").is_empty())
        .is_some_and(|seen| is_control_plane(&seen.object) && !is_reported(&seen.object));
    waits("Machine") + waits("DockerMachine") + usize::from(told_alone)
}

#[tokio::test]
async fn every_machine_costs_at_most_twelve_writes() {
    const LONGEST_HOLD: Duration = Duration::from_secs(1);
    const MOST: usize = 12;
    let objects = Management::shared().objects("costs").await;
    let history = History::record(&objects).await;
    let sample = Sample::new("costs", 3, 2);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    wait::until("every machine is available", async || {
        let machines = objects.list("Machine").await;
        let waits = machines.iter().find(|machine| !is(machine, "Available"));
        waits.map_or(Ok(()), |machine| Err(machine["status"].to_string()))
    })
    .await;
    let versions = history.complete(&objects).await;
    let mut above = Vec::new();
    for machine in objects.list("Machine").await {
        let name = name_of(&machine);
        let counts = ["Machine", "KubeadmConfig", "DockerMachine", "Secret"].map(|kind| {
            let count = history::of(&versions, kind, name).iter().filter(|seen| !seen.deleted).count();
            assert!(count > 0, "{kind} {name} is a machine's");
            (kind, count)
        });
        let created = history::first(&versions, "Machine", name, |_| true).at;
        let running = history::first(&versions, "Machine", name, |machine| text(machine, "/status/phase") == "Running");
        let took = running.at.saturating_duration_since(created);
        let more = if took < LONGEST_HOLD { 0 } else { writes_of_slowness(&versions, name) };
        let sum: usize = counts.iter().map(|(_, count)| count).sum();
        let line = format!("{name}: {sum} in {took:?}, {more} of them because it took so long: {counts:?}");
        println!("{line}");
        if sum - more > MOST {
            above.push(line);
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}

#[test]
fn c3_c19_the_phase_goes_from_pending_over_provisioning_to_provisioned() {
    let mut phases: Vec<&str> = Vec::new();
    let versions = history::of(&run().versions, "Cluster", CLUSTER);
    for phase in versions.iter().map(|version| text(&version.object, "/status/phase")).filter(|phase| !phase.is_empty())
    {
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
    }
    // A pass that sees more has no reason to stop at Pending.
    let allowed: [&[&str]; 2] = [&["Pending", "Provisioning", "Provisioned"], &["Provisioning", "Provisioned"]];
    assert!(allowed.contains(&phases.as_slice()), "{phases:?}");
    for version in versions.iter().filter(|version| text(&version.object, "/status/phase") == "Provisioned") {
        assert!(endpoint(&version.object).is_some(), "C19: Provisioned only with an endpoint");
    }
}

#[test]
fn c4_c6_c7_c8_g1_the_infrastructure_gets_owner_and_label_in_one_patch_of_its_metadata() {
    let run = run();
    let versions = history::of(&run.versions, "DockerCluster", CLUSTER);
    let at = versions.iter().position(|version| owner(&version.object, "Cluster").is_some()).unwrap();
    let (before, after) = (&versions[at - 1].object, &versions[at].object);
    let owner = owner(after, "Cluster").unwrap();
    assert_eq!(owner["uid"], run.last("Cluster", CLUSTER)["metadata"]["uid"], "C6");
    assert!(!flag(owner, "/controller"), "C6: controller only with a topology");
    assert_eq!(text(after, "/metadata/labels/cluster.x-k8s.io~1cluster-name"), CLUSTER, "C6");
    assert_eq!(before["spec"], after["spec"], "C7: only metadata is patched");
    assert_eq!(before.get("status"), after.get("status"), "C7: only metadata is patched");
    assert!(versions.len() > at + 1, "C8, G1: its provider was woken and went on");
}

#[test]
fn c6_c7_nothing_is_written_in_steady_state() {
    let (before, after) = &run().steady;
    assert_eq!(before, after);
}

#[test]
fn c10_c13_the_finalizer_is_stored_before_anything_else_happens() {
    let run = run();
    for kind in ["DockerCluster", "DockerMachine", "KubeadmControlPlane"] {
        for object in run.all(kind) {
            let held = run.first(kind, name_of(object), has_finalizer);
            assert!(endpoint(&held.object).is_none() && !is_provisioned(&held.object), "{kind}: {}", held.object);
        }
    }
    for (kind, effect) in [("DockerCluster", "LoadBalancerAvailable"), ("DockerMachine", "ContainerProvisioned")] {
        for object in run.all(kind) {
            let held = run.first(kind, name_of(object), has_finalizer).revision;
            assert!(held < run.first(kind, name_of(object), |object| is(object, effect)).revision, "{kind}");
        }
    }
}

#[test]
fn c11_c12_the_infrastructure_is_provisioned_once_the_endpoint_and_all_parts_are_there() {
    let run = run();
    let provisioned = run.first("DockerCluster", CLUSTER, is_provisioned);
    assert!(endpoint(&provisioned.object).is_some(), "C11");
    assert!(is(&provisioned.object, "LoadBalancerAvailable"), "C12");
    let after = history::of(&run.versions, "DockerCluster", CLUSTER)
        .into_iter()
        .filter(|seen| seen.revision > provisioned.revision);
    for version in after {
        assert!(is_provisioned(&version.object), "it never goes back");
        assert_eq!(endpoint(&version.object), endpoint(&provisioned.object), "it never changes");
    }
}

#[test]
fn c14_the_cluster_follows_its_infrastructure_without_polling() {
    let run = run();
    let provisioned = run.first("DockerCluster", CLUSTER, is_provisioned);
    let followed =
        run.first("Cluster", CLUSTER, |cluster| flag(cluster, "/status/initialization/infrastructureProvisioned"));
    let late = followed.at.saturating_duration_since(provisioned.at);
    assert!(late < Duration::from_secs(5), "{late:?}: shorter than any polling");
}

#[test]
fn c15_nothing_is_copied_before_the_infrastructure_is_provisioned() {
    let run = run();
    for version in history::of(&run.versions, "Cluster", CLUSTER) {
        if version.revision < run.infrastructure_provisioned() {
            assert!(endpoint(&version.object).is_none());
            assert!(!flag(&version.object, "/status/initialization/infrastructureProvisioned"));
        }
    }
}

#[test]
fn c16_c17_c18_endpoint_and_flag_are_copied_with_a_single_event() {
    let run = run();
    let cluster = run.last("Cluster", CLUSTER);
    assert_eq!(endpoint(cluster), endpoint(run.last("DockerCluster", CLUSTER)), "C17");
    assert!(endpoint(cluster).is_some(), "C17");
    assert!(is(cluster, "InfrastructureReady"), "C18");
    let told: Vec<_> = run.events.iter().filter(|(reason, _, _)| reason == "InfrastructureReady").collect();
    assert!(matches!(told.as_slice(), [(_, _, 1)]), "C18: one event: {told:?}");
}

#[test]
fn r1_the_cluster_infrastructure_is_there_before_any_machine_is_created() {
    let run = run();
    let (lb, machines): (Vec<_>, Vec<_>) = run.created.iter().partition(|(name, _)| name == "path-lb");
    assert_eq!((lb.len(), machines.len()), (1, 3), "{:?}", run.containers);
    for machine in &machines {
        assert!(lb[0].1 < machine.1, "{lb:?} {machine:?}");
    }
    for machine in run.all("DockerMachine") {
        let made = run.first("DockerMachine", name_of(machine), |machine| is(machine, "ContainerProvisioned"));
        assert!(run.infrastructure_provisioned() < made.revision);
    }
}

#[test]
fn r2a_a_deployment_makes_as_many_machines_with_clones_of_its_templates() {
    let run = run();
    let machines = run.machines_of_workers();
    assert_eq!(machines.len(), 2);
    for kind in ["Machine", "DockerMachine", "KubeadmConfig"] {
        assert_eq!(run.all(kind).len(), 3, "{kind}: 1 for the control plane and 2 workers, ever");
    }
    let mut referenced = BTreeSet::new();
    for machine in &machines {
        assert!(flag(owner(machine, "MachineSet").unwrap(), "/controller"));
        for (kind, pointer, template) in [
            ("DockerMachine", "/spec/infrastructureRef/name", "DockerMachineTemplate"),
            ("KubeadmConfig", "/spec/bootstrap/configRef/name", "KubeadmConfigTemplate"),
        ] {
            let clone = run.first(kind, text(machine, pointer), |_| true);
            assert!(referenced.insert((kind, name_of(&clone.object).to_owned())), "each is referenced by one Machine");
            let template = &run.last(template, WORKERS)["spec"]["template"];
            let empty = json!({});
            let spec = |object: &Value| object.get("spec").filter(|spec| !spec.is_null()).unwrap_or(&empty).clone();
            assert_eq!(spec(&clone.object), spec(template), "{kind} as it was created");
            let last = run.last(kind, name_of(&clone.object));
            assert_eq!(owner(last, "Machine").unwrap()["uid"], machine["metadata"]["uid"]);
            assert_eq!(text(last, "/metadata/annotations/cluster.x-k8s.io~1cloned-from-name"), WORKERS);
        }
    }
}

#[test]
fn r3_g9_each_bootstrap_configuration_has_one_secret_that_belongs_to_it() {
    let run = run();
    for config in run.all("KubeadmConfig") {
        let name = text(config, "/status/dataSecretName");
        assert!(flag(config, "/status/initialization/dataSecretCreated"));
        let secret = run.last("Secret", name);
        assert!(secret_text(secret, "value").starts_with("#"), "cloud-config");
        assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
        let owner = owner(secret, "KubeadmConfig").expect("G9: it goes with its configuration");
        assert_eq!((&owner["uid"], flag(owner, "/controller")), (&config["metadata"]["uid"], true));
        let ready =
            run.first("Cluster", CLUSTER, |cluster| flag(cluster, "/status/initialization/infrastructureProvisioned"));
        assert!(
            ready.revision < run.first("Secret", name, |_| true).revision,
            "R3: after the cluster's infrastructure"
        );
    }
}

#[test]
fn r4_g2_a_container_is_made_after_its_bootstrap_data_and_runs_exactly_that() {
    let run = run();
    for machine in run.all("Machine") {
        let name = text(machine, "/spec/bootstrap/dataSecretName");
        let secret = run.first("Secret", name, |_| true);
        let made = run.first("DockerMachine", text(machine, "/spec/infrastructureRef/name"), |machine| {
            is(machine, "ContainerProvisioned")
        });
        assert!(secret.revision < made.revision, "G2, R4a");
        let (_, files) =
            run.kubeadm_files.iter().find(|(container, _)| container == name_of(machine)).expect("R4b: its container");
        let (files, data) = (String::from_utf8_lossy(files), secret_text(&secret.object, "value"));
        let lines: Vec<&str> =
            files.lines().map(str::trim).filter(|line| line.len() > 30 && !line.contains('\0')).collect();
        assert!(!lines.is_empty(), "R4b: kubeadm's configuration is in the container");
        for line in lines {
            assert!(data.contains(line), "R4b: {line:?} of the container is not in the Secret");
        }
    }
}

#[test]
fn r5_g15_what_the_infrastructure_found_is_copied_to_the_machine_and_not_before() {
    let run = run();
    for machine in run.all("Machine") {
        let infrastructure = text(machine, "/spec/infrastructureRef/name");
        let provisioned = run.first("DockerMachine", infrastructure, is_provisioned);
        let docker = run.last("DockerMachine", infrastructure);
        assert_eq!(text(machine, "/spec/providerID"), text(docker, "/spec/providerID"));
        assert_eq!(text(machine, "/spec/providerID"), format!("docker:////{}", name_of(machine)));
        assert_eq!(machine["status"]["addresses"], docker["status"]["addresses"]);
        assert!(machine["status"]["addresses"].as_array().is_some_and(|addresses| !addresses.is_empty()));
        assert!(flag(machine, "/status/initialization/infrastructureProvisioned"));
        for version in history::of(&run.versions, "Machine", name_of(machine)) {
            if version.revision < provisioned.revision {
                assert!(text(&version.object, "/spec/providerID").is_empty());
                assert!(version.object.pointer("/status/addresses").is_none());
                assert!(!flag(&version.object, "/status/initialization/infrastructureProvisioned"));
            }
        }
    }
}

#[test]
fn r6_r7_g4_g14_workers_join_after_the_control_plane_is_initialized() {
    let run = run();
    let initialized = |object: &Value| flag(object, "/status/initialization/controlPlaneInitialized");
    let control_plane = run.first("KubeadmControlPlane", CONTROL_PLANE, initialized);
    let cluster =
        run.first("Cluster", CLUSTER, |cluster| flag(cluster, "/status/initialization/controlPlaneInitialized"));
    assert!(control_plane.revision < cluster.revision, "R7");
    for machine in run.machines_of_workers() {
        let secret = run.first("Secret", text(machine, "/spec/bootstrap/dataSecretName"), |_| true);
        assert!(control_plane.revision < secret.revision, "R6a: a worker's data need an initialized control plane");
    }
    assert_eq!(run.nodes.len(), 3, "R6b, G14: the kubeconfig of the Secret works and lists the nodes");
    for node in &run.nodes {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref()).unwrap();
        assert!(conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"));
        let identity = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        assert!(run.all("Machine").iter().any(|machine| Some(text(machine, "/spec/providerID")) == identity));
    }
}

#[tokio::test]
async fn r8_get_kubeconfig_prints_the_secret() {
    run();
    let management = Management::shared();
    let objects = management.objects(CLUSTER).await;
    let kubeconfig = management.kubeconfig();
    let printed = binary::output(&[
        "get",
        "kubeconfig",
        CLUSTER,
        "--namespace",
        CLUSTER,
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ]);
    assert_eq!(printed, objects.kubeconfig(CLUSTER).await);
}

#[test]
fn g3_g10_g11_there_is_one_container_for_each_infrastructure_machine() {
    let run = run();
    let mut expected: Vec<String> = run.all("Machine").iter().map(|machine| name_of(machine).to_owned()).collect();
    expected.push("path-lb".to_owned());
    expected.sort();
    assert_eq!(run.containers, expected);
}

#[test]
fn g5_g8_g12_g13_templates_are_never_treated_as_instances() {
    let run = run();
    for kind in ["DockerMachineTemplate", "KubeadmConfigTemplate"] {
        for template in run.all(kind) {
            assert!(!has_finalizer(template), "{kind}");
            assert!(condition(template, "Ready").0.is_empty(), "{kind}");
            assert_eq!(template["metadata"]["generation"], 1, "{kind}: its spec stays");
        }
    }
    assert_eq!(run.all("KubeadmControlPlane").len(), 1);
    assert!(is(run.last("KubeadmControlPlane", CONTROL_PLANE), "Available"), "G13");
}

#[tokio::test]
async fn c20_the_order_of_creation_does_not_matter() {
    let management = Management::shared();
    let objects = management.objects("order").await;
    let mut sample = Sample::new("order", 1, 1);
    // Each document before everything that it refers to.
    sample.documents.sort_by_key(|document| match document["kind"].as_str().unwrap() {
        "Cluster" => 0,
        "MachineDeployment" => 1,
        "KubeadmControlPlane" => 2,
        "DockerCluster" => 4,
        _ => 3,
    });
    for document in &sample.documents {
        objects.create(document).await;
        let looked_at = objects.get("Cluster", "order").await;
        objects
            .until("Cluster", "order", "it was looked at", |cluster| !text(cluster, "/status/phase").is_empty())
            .await;
        assert!(!flag(&looked_at, "/status/initialization/infrastructureProvisioned"));
    }
    sample.provisioned(&objects).await;
}

#[tokio::test]
async fn c9_nothing_is_provisioned_while_the_object_or_its_cluster_is_paused() {
    let management = Management::shared();
    let objects = management.objects("paused").await;
    let mut sample = Sample::new("paused", 1, 0);
    sample.document("Cluster")["spec"]["paused"] = json!(true);
    sample.document("DockerCluster")["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    sample.create(&objects).await;
    let paused = |object: &Value| is(object, "Paused");
    objects.until("Cluster", "paused", "it says that it is paused", paused).await;
    wait::unchanged("a paused cluster", STEADY / 2, async || objects.versions().await).await;

    objects.merge("Cluster", "paused", json!({"spec": {"paused": false}})).await;
    objects.until("DockerCluster", "paused", "its own annotation still pauses it", paused).await;
    let engine = management.engine();
    wait::unchanged("what a paused provider made", STEADY / 2, async || engine.containers("paused").await).await;
    assert_eq!(engine.containers("paused").await, Vec::<String>::new());
    assert!(!has_finalizer(&objects.get("DockerCluster", "paused").await));

    let unpause = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    objects.merge("DockerCluster", "paused", unpause).await;
    sample.provisioned(&objects).await;
}

#[tokio::test]
async fn c17_an_endpoint_that_the_user_gave_is_never_overwritten() {
    let objects = Management::shared().objects("endpoint").await;
    let mut sample = Sample::new("endpoint", 1, 0);
    sample.document("Cluster")["spec"]["controlPlaneEndpoint"] = json!({"host": "api.example.org", "port": 1234});
    let cluster = sample.take("Cluster").remove(0);
    objects.create(&cluster).await;
    objects.create(&sample.take("DockerCluster").remove(0)).await;
    let provisioned = |cluster: &Value| flag(cluster, "/status/initialization/infrastructureProvisioned");
    let cluster = objects.until("Cluster", "endpoint", "its infrastructure is provisioned", provisioned).await;
    assert_eq!(endpoint(&cluster), Some(("api.example.org".to_owned(), 1234)));
    assert_ne!(endpoint(&objects.get("DockerCluster", "endpoint").await), endpoint(&cluster));
    sample.delete(&objects).await;
}

#[tokio::test]
async fn c18_failure_domains_are_copied_from_the_infrastructure() {
    let objects = Management::shared().objects("domains").await;
    let mut sample = Sample::new("domains", 1, 0);
    let domains = json!([{"name": "fd1", "controlPlane": true}, {"name": "fd2", "controlPlane": false}]);
    sample.document("DockerCluster")["spec"] = json!({"failureDomains": domains});
    sample.create(&objects).await;
    let cluster = sample.provisioned(&objects).await;
    assert_eq!(cluster["status"]["failureDomains"], domains);
    let machine = objects.list("Machine").await.remove(0);
    assert_eq!(text(&machine, "/status/failureDomain"), "fd1", "R5: the control plane goes where it may: {machine}");
}

#[tokio::test]
async fn r2b_r4a_a_bare_machine_gets_no_clones_and_no_container_before_its_bootstrap_data() {
    let management = Management::shared();
    let objects = management.objects("bare").await;
    let sample = Sample::new("bare", 1, 0);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let reference = |group: &str, kind: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": "bare-worker"});
    objects
        .create(&json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": {"name": "bare-worker", "namespace": "bare", "annotations": {"cluster.x-k8s.io/paused": ""}}}))
        .await;
    objects
        .create(&json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DockerMachine",
            "metadata": {"name": "bare-worker", "namespace": "bare"}, "spec": {}}))
        .await;
    objects
        .create(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "bare-worker", "namespace": "bare"},
            "spec": {"clusterName": "bare", "version": "v1.34.0", "infrastructureRef": reference("infrastructure", "DockerMachine"),
                "bootstrap": {"configRef": reference("bootstrap", "KubeadmConfig")}}}))
        .await;
    objects
        .until("DockerMachine", "bare-worker", "it waits for its data", |machine| {
            condition(machine, "Ready").0 == "False"
        })
        .await;
    let engine = management.engine();
    let containers = wait::unchanged("the containers", STEADY / 2, async || engine.containers("bare").await).await;
    assert_eq!(containers.len(), 2, "R4a: {containers:?}");
    assert_eq!(objects.names("DockerMachine").await.len(), 2, "R2b: no clone is made");
    assert_eq!(objects.names("KubeadmConfig").await.len(), 2, "R2b: no clone is made");

    let unpause = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    objects.merge("KubeadmConfig", "bare-worker", unpause).await;
    let running = |machine: &Value| text(machine, "/status/phase") == "Running";
    objects.until("Machine", "bare-worker", "it runs once its data are there", running).await;
    assert_eq!(engine.containers("bare").await.len(), 3);
}

#[tokio::test]
async fn r2c_a_changed_template_is_for_later_clones_and_scaling_is_exact() {
    let management = Management::shared();
    let objects = management.objects("scale").await;
    let mut sample = Sample::new("scale", 1, 1);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let of_workers = async || {
        let mut configs = objects.list("KubeadmConfig").await;
        configs.retain(|config| !name_of(config).starts_with("scale-control-plane"));
        configs
    };
    let first = of_workers().await.remove(0);
    let commands = json!(["echo later"]);
    objects
        .merge(
            "KubeadmConfigTemplate",
            "scale-md-0",
            json!({"spec": {"template": {"spec": {"preKubeadmCommands": commands}}}}),
        )
        .await;
    objects.merge("MachineDeployment", "scale-md-0", json!({"spec": {"replicas": 2}})).await;
    sample.machines = 3;
    sample.provisioned(&objects).await;
    let configs = of_workers().await;
    assert_eq!(configs.len(), 2);
    for config in &configs {
        if name_of(config) == name_of(&first) {
            assert_eq!(config["spec"], first["spec"], "R2c: what exists stays as it is");
        } else {
            assert_eq!(config["spec"]["preKubeadmCommands"], commands, "R2c: later clones have it");
        }
    }

    objects.merge("MachineDeployment", "scale-md-0", json!({"spec": {"replicas": 0}})).await;
    sample.machines = 1;
    sample.provisioned(&objects).await;
    let engine = management.engine();
    wait::until("containers and clones of the workers are gone", async || {
        let left = (engine.containers("scale").await, objects.names("DockerMachine").await, of_workers().await.len());
        if left.0.len() == 2 && left.1.len() == 1 && left.2 == 0 { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

#[tokio::test]
async fn r6_three_control_plane_machines_join_one_cluster() {
    let objects = Management::shared().objects("three").await;
    let sample = Sample::new("three", 3, 0);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let nodes: Api<Node> = Api::all(objects.workload("three").await);
    let names: Vec<_> = nodes
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|node| node.metadata.name)
        .collect();
    assert_eq!(names, objects.names("Machine").await);
}

#[tokio::test]
async fn g6_g9_deletion_goes_backwards_and_leaves_nothing_but_events() {
    let management = Management::shared();
    let objects = management.objects("gone").await;
    let sample = Sample::new("gone", 1, 2);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let history = History::record(&objects).await;
    sample.delete(&objects).await;
    let engine = management.engine();
    wait::until("nothing is left", async || {
        let left = (objects.versions().await, engine.containers("gone").await);
        if left.0.is_empty() && left.1.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    let ended = wait::until("the watch delivers the end of the Cluster", async || {
        let versions = history.so_far();
        let ended = |kind: &str| {
            versions
                .iter()
                .filter(|seen| seen.kind == kind && seen.deleted)
                .map(|seen| seen.revision)
                .collect::<Vec<_>>()
        };
        match ended("Cluster").as_slice() {
            [cluster] => Ok((ended("Machine"), ended("KubeadmControlPlane"), ended("DockerCluster"), *cluster)),
            _ => Err("it is not there".to_owned()),
        }
    })
    .await;
    let (machines, control_planes, infrastructure, cluster) = ended;
    assert_eq!((machines.len(), control_planes.len(), infrastructure.len()), (3, 1, 1));
    assert!(machines.iter().all(|machine| *machine < control_planes[0]), "machines, then the control plane");
    assert!(
        control_planes[0] < infrastructure[0] && infrastructure[0] < cluster,
        "then the infrastructure, then the Cluster"
    );
}

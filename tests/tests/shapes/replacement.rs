//! Control-plane machines that are replaced for time, misfortune or another template, or taken over.

use std::collections::BTreeSet;
use std::time::Duration;

use capwasm_sim_service::faults::NodeFault;
use capwasm_tests::history::History;
use capwasm_tests::objects::{condition, flag, name_of, owner, text};
use capwasm_tests::sample::VERSION;
use capwasm_tests::wait;
use serde_json::{Value, json};

use crate::cluster::{BOOTSTRAP, CONTROL_PLANE_LABEL, CORE, Cluster, INFRASTRUCTURE, KCP, NEWER, in_days};

const EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";

/// Certificate expiry: a machine whose certificates end too soon is replaced, once.
#[tokio::test]
async fn certificates_that_end_soon_replace_a_machine_once() {
    let mut cluster = Cluster::new("expiry", 1, 0).await;
    cluster.config()["clusterConfiguration"]["certificateValidityPeriodDays"] = json!(20);
    cluster.provisioned().await;
    let mut names = cluster.settled(1, VERSION).await;
    measured(&cluster, 20).await;
    let history = History::record(&cluster.objects).await;
    let longer = json!({"clusterConfiguration": {"certificateValidityPeriodDays": 365}});
    cluster
        .change(json!({"spec": {"kubeadmConfigSpec": longer, "rollout": {"before": {"certificatesExpiryDays": 30}}}}))
        .await;
    replaced(&cluster, &mut names, &history, "Certificates will expire soon").await;
    let config = measured(&cluster, 365).await;
    // With nothing else that differs: the date alone.
    let history = History::record(&cluster.objects).await;
    let early = json!({"metadata": {"annotations": {EXPIRY: in_days(10)}}});
    cluster.objects.merge("KubeadmConfig", &config, early).await;
    replaced(&cluster, &mut names, &history, "Certificates will expire soon").await;
    measured(&cluster, 365).await;
    let look = async || cluster.names(true).await;
    assert_eq!(wait::unchanged("the machine", Duration::from_secs(2), look).await, names, "once is enough");
    cluster.delete().await;
}

/// Waits until the sole machine's certificates are known to end in so many days; its KubeadmConfig's name.
async fn measured(cluster: &Cluster, days: i64) -> String {
    wait::until(&format!("the certificates end in {days} days"), async || {
        let machine = cluster.machines(true).await.into_iter().next().ok_or("no Machine")?;
        let name = text(&machine, "/spec/bootstrap/configRef/name").to_owned();
        let config = cluster.objects.find("KubeadmConfig", &name).await.ok_or("no KubeadmConfig")?;
        let noted = config["metadata"]["annotations"][EXPIRY].as_str().unwrap_or_default();
        let shown = text(&machine, "/status/certificatesExpiryDate");
        let right = noted == shown && shown > in_days(days - 1).as_str() && shown < in_days(days + 1).as_str();
        if right { Ok(name) } else { Err(format!("{noted:?} and {shown:?}")) }
    })
    .await
}

/// Waits until the sole machine is another one; the machine before was told to be outdated for this reason.
async fn replaced(cluster: &Cluster, names: &mut BTreeSet<String>, history: &History, reason: &str) {
    wait::until(&format!("{names:?} is replaced"), async || {
        let now = cluster.names(true).await;
        if now.len() == 1 && now.is_disjoint(names) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    let versions = history.so_far();
    let told = versions.iter().filter(|version| version.kind == "Machine" && names.contains(name_of(&version.object)));
    let told: Vec<&str> = told.map(|version| condition(&version.object, "UpToDate").2).collect();
    assert!(told.iter().any(|message| message.contains(reason)), "{told:?}");
    *names = cluster.settled(1, VERSION).await;
}

/// Remediation during a rollout: a new machine is lost while old ones are still there; all ends well with the new version.
#[tokio::test]
async fn a_machine_that_is_lost_during_a_rollout_is_replaced_before_the_rollout_goes_on() {
    let cluster = Cluster::new("amidst", 3, 0).await;
    cluster.provisioned().await;
    let before = cluster.settled(3, VERSION).await;
    let silent = |status: &str| json!({"type": "Ready", "status": status, "timeoutSeconds": 1});
    let conditions = json!([silent("Unknown"), silent("False")]);
    cluster.check_health(CONTROL_PLANE_LABEL, "", json!({"unhealthyNodeConditions": conditions})).await;
    cluster.change(json!({"spec": {"version": NEWER}})).await;
    let victim = wait::until("a machine of the new version is a Node", async || {
        let machines = cluster.machines(true).await;
        let fresh = machines
            .iter()
            .find(|machine| !before.contains(name_of(machine)) && !text(machine, "/status/nodeRef/name").is_empty());
        fresh.map(|machine| name_of(machine).to_owned()).ok_or(format!("{} machines", machines.len()))
    })
    .await;
    // What its member of etcd cannot do holds the rollout until the machine is given up.
    cluster.inject(&victim, NodeFault::EtcdLost).await;
    cluster.inject(&victim, NodeFault::Silent).await;
    wait::until("the lost machine is given up", async || {
        let names = cluster.names(true).await;
        if names.contains(&victim) { Err(format!("{names:?}")) } else { Ok(()) }
    })
    .await;
    let old = cluster.names(true).await.intersection(&before).count();
    assert!(old > 0, "the rollout was still under way");
    let after = cluster.settled(3, NEWER).await;
    assert!(after.is_disjoint(&before) && !after.contains(&victim));
    let plane = cluster.objects.get(KCP, &cluster.plane).await;
    assert_eq!(text(&plane, "/status/lastRemediation/machine"), victim);
    cluster.delete().await;
}

/// Rollout on time and on another template; what can be changed in place replaces nothing.
#[tokio::test]
async fn time_and_another_template_replace_machines_and_metadata_does_not() {
    let cluster = Cluster::new("rotated", 1, 0).await;
    cluster.provisioned().await;
    let mut names = cluster.settled(1, VERSION).await;
    cluster
        .change(json!({"spec": {"machineTemplate": {
            "metadata": {"labels": {"team": "blue"}, "annotations": {"example.org/note": "kept"}},
            "spec": {"deletion": {"nodeDrainTimeoutSeconds": 7, "nodeDeletionTimeoutSeconds": 9}},
        }}}))
        .await;
    let machine = names.first().unwrap().clone();
    let machine = cluster
        .objects
        .until("Machine", &machine, "has what is changed in place", |machine| {
            text(machine, "/metadata/labels/team") == "blue"
                && text(machine, "/metadata/annotations/example.org~1note") == "kept"
                && machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 7
                && machine["spec"]["deletion"]["nodeDeletionTimeoutSeconds"] == 9
        })
        .await;
    for (kind, pointer) in
        [("KubeadmConfig", "/spec/bootstrap/configRef/name"), ("DockerMachine", "/spec/infrastructureRef/name")]
    {
        let labelled = |object: &Value| text(object, "/metadata/labels/team") == "blue";
        cluster.objects.until(kind, text(&machine, pointer), "is labelled too", labelled).await;
    }
    assert_eq!(cluster.settled(1, VERSION).await, names, "nothing was replaced");

    let history = History::record(&cluster.objects).await;
    cluster.change(json!({"spec": {"rollout": {"after": in_days(0)}}})).await;
    replaced(&cluster, &mut names, &history, "rollout.after").await;

    let template = json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DockerMachineTemplate",
        "metadata": {"name": "rotated-second", "namespace": "rotated"},
        "spec": {"template": {"spec": {"bootstrapTimeout": "4m0s"}}},
    });
    cluster.objects.create(&template).await;
    let history = History::record(&cluster.objects).await;
    let second = json!({"infrastructureRef": {"name": "rotated-second"}});
    cluster.change(json!({"spec": {"machineTemplate": {"spec": second}}})).await;
    replaced(&cluster, &mut names, &history, "DockerMachine is not up-to-date").await;
    let machine = cluster.machines(true).await.remove(0);
    let docker = cluster.objects.get("DockerMachine", text(&machine, "/spec/infrastructureRef/name")).await;
    assert_eq!(text(&docker, "/spec/bootstrapTimeout"), "4m0s");
    assert_eq!(text(&docker, "/metadata/annotations/cluster.x-k8s.io~1cloned-from-name"), "rotated-second");
    assert_eq!(text(&machine, "/metadata/labels/team"), "blue", "a new machine has it from the start");
    cluster.delete().await;
}

/// Adoption: a control-plane Machine that was there before its control plane is taken over as it is, with the certificates.
#[tokio::test]
async fn a_machine_that_stood_alone_is_taken_over_by_its_control_plane() {
    let mut cluster = Cluster::new("adopted", 1, 0).await;
    let plane = cluster.sample.take(KCP).remove(0);
    let spec = cluster.sample.document("Cluster")["spec"].as_object_mut().unwrap();
    let plane_ref = spec.remove("controlPlaneRef").unwrap();
    cluster.create().await;
    let meta = json!({"name": "adopted-0", "namespace": "adopted", "labels": {
        "cluster.x-k8s.io/cluster-name": "adopted", CONTROL_PLANE_LABEL: "",
    }});
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "adopted-0"});
    for object in [
        json!({"apiVersion": format!("{BOOTSTRAP}/v1beta2"), "kind": "KubeadmConfig", "metadata": meta,
            "spec": plane["spec"]["kubeadmConfigSpec"]}),
        json!({"apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DockerMachine", "metadata": meta, "spec": {}}),
        json!({"apiVersion": CORE, "kind": "Machine", "metadata": meta, "spec": {
            "clusterName": "adopted", "version": VERSION,
            "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfig")},
            "infrastructureRef": reference(INFRASTRUCTURE, "DockerMachine"),
        }}),
    ] {
        cluster.objects.create(&object).await;
    }
    let runs = |machine: &Value| text(machine, "/status/phase") == "Running";
    let alone = cluster.objects.until("Machine", "adopted-0", "runs alone", runs).await;
    assert!(owner(&alone, KCP).is_none());
    let authority = cluster.objects.get("Secret", "adopted-ca").await;

    cluster.objects.create(&plane).await;
    cluster.objects.merge("Cluster", "adopted", json!({"spec": {"controlPlaneRef": plane_ref}})).await;
    assert_eq!(cluster.settled(1, VERSION).await, BTreeSet::from(["adopted-0".to_owned()]));
    let machine = cluster.objects.get("Machine", "adopted-0").await;
    assert_eq!(machine["metadata"]["uid"], alone["metadata"]["uid"], "it is the same machine");
    let owner = owner(&machine, KCP).expect("it has an owner");
    assert!(flag(owner, "/controller"), "{owner}");
    assert_eq!(cluster.objects.get("Secret", "adopted-ca").await["data"], authority["data"], "and the same authority");
    cluster.change(json!({"spec": {"replicas": 3}})).await;
    assert!(cluster.settled(3, VERSION).await.contains("adopted-0"));
    cluster.change(json!({"spec": {"replicas": 1}})).await;
    assert!(!cluster.settled(1, VERSION).await.contains("adopted-0"), "the oldest goes first");
    cluster.delete().await;
}

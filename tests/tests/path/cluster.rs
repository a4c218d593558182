//! The Cluster and its infrastructure: owner, finalizer, endpoint, phases.

use std::time::Duration;

use capwasm_tests::history;
use capwasm_tests::objects::{condition, flag, is, name_of, owner, text};
use capwasm_tests::sample::is_provisioned;

use crate::run::{CLUSTER, CONTROL_PLANE, endpoint, has_finalizer, run};

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

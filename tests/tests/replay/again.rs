//! Recorded calls come to the same: in the component, natively, on the command line, and in a rehearsal.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use capwasm_contract::recording::Request;
use capwasm_providers::rehearse::{LiveReads, Paint, Report, With, rehearse};
use capwasm_reconcile::{Cache, Interests, Source};
use capwasm_remote::Remote;
use capwasm_runtime::record::{self, Recording, Replay};
use capwasm_runtime::{Runtime, RuntimeOptions};
use capwasm_sdk::test::replay;
use capwasm_tests::binary::{output, run};
use capwasm_tests::folder::Folder;
use capwasm_tests::guests::fixture;
use capwasm_tests::wait;
use serde_json::json;

use crate::recorded::{path, recorded, said};

#[tokio::test]
async fn every_call_of_a_cluster_s_life_comes_to_the_same_again_in_wasm_and_natively() {
    let recorded = recorded();
    let aot_dir = Some(recorded.management.data_dir().join("aot"));
    let runtime = Runtime::new(RuntimeOptions { aot_dir, ..RuntimeOptions::default() }).unwrap();
    let mut functions: BTreeMap<String, usize> = BTreeMap::new();
    for name in ["docker-infra", "kubeadm-bootstrap", "kubeadm-control-plane"] {
        let component = std::fs::read(recorded.providers().join(format!("{name}.wasm"))).unwrap();
        let mut provider = None;
        for file in recorded.files(&[&format!("-{name}-")]) {
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            let recording = record::read(std::fs::File::open(&file).unwrap()).unwrap();
            let provider = match &provider {
                Some(provider) => provider,
                None => provider.insert(runtime.load(&component, recording.limits.clone()).await.unwrap()),
            };
            let replayed = provider.replay(&recording, &Replay::Exact).await.unwrap();
            assert!(replayed.is_as_recorded(&recording), "{}: {replayed:?}", file.display());
            natively(&file, &recording);
            *functions.entry(recording.function.name().to_owned()).or_default() += 1;
        }
    }
    let called: Vec<&str> = functions.keys().map(String::as_str).collect();
    assert_eq!(
        called,
        [
            "bootstrap.generate",
            "control-plane.delete",
            "control-plane.reconcile",
            "infrastructure-cluster.deprovision",
            "infrastructure-cluster.provision",
            "infrastructure-machine.deprovision",
            "infrastructure-machine.provision",
        ],
        "{functions:?}"
    );
}

/// The test kit comes to the same as the component, through the provider's own code.
fn natively(file: &Path, recording: &Recording) {
    let (interface, _) = recording.function.name().split_once('.').unwrap();
    let interface = interface.replace('-', "_");
    let replay = match interface.as_str() {
        "infrastructure_cluster" => {
            replay::run(file, &interface, replay::infrastructure_cluster::<docker_infra::Docker>)
        }
        "infrastructure_machine" => {
            replay::run(file, &interface, replay::infrastructure_machine::<docker_infra::Docker>)
        }
        "bootstrap" => replay::run(file, &interface, replay::bootstrap::<kubeadm_bootstrap::KubeadmBootstrap>),
        _ => replay::run(file, &interface, replay::control_plane::<kubeadm_control_plane::KubeadmControlPlane>),
    };
    replay.as_recorded();
}

#[tokio::test]
async fn a_failed_call_fails_in_the_same_way_on_the_command_line() {
    let recorded = recorded();
    for (deed, part) in [("panic", "the guest's own words"), ("loop", "limits.cpuTimeMs")] {
        let file = recorded.file(&["-fixture-infrastructure-machine.provision-", deed, "-failed.json"]).await;
        let again = output(&["replay", path(&file), "--provider-dir", path(&recorded.providers())]);
        assert!(again.contains(part) && again.contains("replayed  the same, 0 requests"), "{again}");
    }
    let nowhere = Folder::new();
    let file = recorded.file(&["-fixture-", "-panic-failed.json"]).await;
    let lost = run(&["replay", path(&file), "--provider-dir", path(&nowhere.join("."))]);
    assert_eq!(lost.status.code(), Some(1), "{}", said(&lost));
    assert!(said(&lost).contains("has the recorded digest sha256:"), "{}", said(&lost));
    let none = run(&["replay", path(&fixture("guest"))]);
    assert!(none.status.code() == Some(1) && said(&none).contains("this is no recording"), "{}", said(&none));
}

/// A rehearsal in a host reads what is not recorded from its caches, as it is now; but opens no Secret.
#[tokio::test]
async fn a_rehearsal_reads_live_what_is_not_recorded_but_no_secret() {
    let recorded = recorded();
    let client = recorded.management.client().await;
    let interests = Interests::new();
    let cache = Cache::new(client, Source::Management, interests.clone());
    let with =
        With { live: Some(LiveReads::new(&cache, Remote::new(cache.clone(), interests.clone()))), ..With::default() };
    let runtime = Runtime::new(RuntimeOptions {
        aot_dir: Some(recorded.management.data_dir().join("aot")),
        ..RuntimeOptions::default()
    })
    .unwrap();
    let component = std::fs::read(fixture("guest")).unwrap();
    let of = |name: &str| {
        let file =
            recorded.files(&["-fixture-", name]).pop().unwrap_or_else(|| panic!("no call of {name} is recorded"));
        record::read(std::fs::File::open(file).unwrap()).unwrap()
    };
    let mut secret = of("-secret.json");
    let provider = runtime.load(&component, secret.limits.clone()).await.unwrap();
    let rehearsed = async |recording: &Recording, with: &With| rehearse(&provider, with, [recording]).await;
    let diverged = |report: &Report| report.people(Paint::Plain).contains("diverged at");
    assert_eq!(rehearsed(&secret, &with).await.same, 1, "as it is recorded");

    // The tape has lost the Secret's part: what the guest would see now is not for a rehearsal to tell.
    let opens = |request: &Request| matches!(request, Request::SecretOpen(_));
    assert!(secret.tape.iter().any(|entry| opens(&entry.request)), "the call opens a Secret");
    secret.tape.retain(|entry| !opens(&entry.request));
    assert!(diverged(&rehearsed(&secret, &with).await));

    // It has lost the look at an object.
    let mut lookup = of("-lookup.json");
    lookup.tape.clear();
    assert!(diverged(&rehearsed(&lookup, &With::default()).await), "without caches nobody answers");
    let report = rehearsed(&lookup, &with).await;
    assert_eq!((report.same, report.total), (1, 1), "{report:?}");
    let fixtures = recorded.management.objects("fixtures").await;
    fixtures.merge("ConfigMap", "data", json!({"data": {"changed": "yes"}})).await;
    wait::until("it is read as it is now", async || {
        let report = rehearsed(&lookup, &with).await.people(Paint::Plain);
        if report.contains("changed") && report.contains("1 different") { Ok(()) } else { Err(report) }
    })
    .await;
    assert_eq!(cache.watch_count(), 1, "one kind was read");
    assert!(interests.is_empty(), "and nobody is woken by it");
}

//! Calls of a running host, recorded, and made again without it: by the same components, by another one, and natively.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use capwasm_runtime::record::{self, Ended, Recording, Replay};
use capwasm_runtime::{Runtime, RuntimeOptions};
use capwasm_sdk::test::replay;
use capwasm_tests::binary::{self, output, run};
use capwasm_tests::folder::Folder;
use capwasm_tests::guests::fixture;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, condition, is, name_of};
use capwasm_tests::sample::{Sample, is_provisioned};
use capwasm_tests::wait;
use serde_json::{Value, json};

/// What machines of the fixture provider do, and the reason on their condition.
const DEEDS: [(&str, &str); 3] = [("panic", "ProviderTrapped"), ("loop", "ProviderCpuLimit"), ("wait", "NotYet")];

/// A host that has recorded a small cluster from its first call to its last, and the fixture's deeds.
struct Recorded {
    folder: Folder,
    management: Management,
}

impl Recorded {
    fn providers(&self) -> PathBuf {
        self.folder.join("plugins")
    }

    fn recordings(&self) -> PathBuf {
        self.folder.join("recordings")
    }

    /// Files whose name has all of these parts, the oldest first.
    fn files(&self, parts: &[&str]) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.recordings()) else { return Vec::new() };
        let named = |file: &PathBuf| {
            let name = file.file_name().unwrap().to_str().unwrap();
            !name.starts_with('.') && parts.iter().all(|part| name.contains(part))
        };
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(named).collect();
        files.sort();
        files
    }

    async fn file(&self, parts: &[&str]) -> PathBuf {
        wait::until(&format!("a call is recorded: {parts:?}"), async || {
            self.files(parts).into_iter().next().ok_or_else(|| format!("{:?}", self.files(&[])))
        })
        .await
    }
}

fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let made = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(record()));
        made.join().expect("a host records")
    })
}

async fn record() -> Recorded {
    let folder = Folder::new();
    let providers = folder.join("plugins");
    std::fs::create_dir(&providers).unwrap();
    for name in binary::PLUGINS {
        let file = format!("{name}.wasm");
        std::fs::copy(binary::provider_dir().join(&file), providers.join(&file)).unwrap();
    }
    std::fs::copy(fixture("guest"), providers.join("fixture.wasm")).unwrap();
    let recordings = folder.join("recordings");
    let management = Management::start_with_options(providers, &["--record", recordings.to_str().unwrap()]);
    let objects = management.objects("default").await;
    let spec = json!({
        "source": {"file": "fixture.wasm"},
        "crdGroups": ["infrastructure.fixture.example"],
        "grants": {"endpoints": {"engine": {"unix": "/nonexistent/engine.sock"}}},
        "limits": {"cpuTimeMs": 300}
    });
    let fixture = json!({"apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "fixture"}, "spec": spec});
    objects.create(&fixture).await;
    objects.until("WasmProvider", "fixture", "it serves", |provider| is(provider, "Ready")).await;
    management.keep_compiled();

    let sample = Sample::new("sample", 1, 0);
    let objects = management.objects("sample").await;
    sample.create(&objects).await;
    let fixtures = management.objects("fixtures").await;
    machines(&fixtures).await;
    for (deed, reason) in DEEDS {
        let told = |machine: &Value| condition(machine, "Ready").1 == reason;
        fixtures.until("FixtureMachine", deed, "it says how it ended", told).await;
    }
    fixtures.until("FixtureMachine", "secret", "it is provisioned", is_provisioned).await;
    sample.provisioned(&objects).await;
    sample.delete(&objects).await;
    let recorded = Recorded { folder, management };
    // Written a moment after the call.
    for function in ["control-plane.delete", "infrastructure-cluster.deprovision"] {
        recorded.file(&[function]).await;
    }
    recorded
}

/// A Cluster on the fixture provider, with a machine for each deed.
async fn machines(objects: &Objects) {
    let namespace = objects.namespace();
    let infrastructure = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "infrastructure.fixture.example/v1beta2", "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    };
    let core = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    };
    let reference =
        |kind: &str, name: &str| json!({"apiGroup": "infrastructure.fixture.example", "kind": kind, "name": name});
    objects.create(&infrastructure("FixtureCluster", "c", json!({}))).await;
    objects.create(&core("Cluster", "c", json!({"infrastructureRef": reference("FixtureCluster", "c")}))).await;
    let data = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "data", "namespace": namespace},
        "stringData": {"value": "x"}});
    objects.create(&data).await;
    // One is denied a Secret, says so in its status, and is done.
    for deed in DEEDS.into_iter().map(|(deed, _)| deed).chain(["secret"]) {
        objects.create(&infrastructure("FixtureMachine", deed, json!({"do": deed, "name": "data"}))).await;
        let spec = json!({"clusterName": "c", "version": "v1.34.0", "bootstrap": {"dataSecretName": "data"},
            "infrastructureRef": reference("FixtureMachine", deed)});
        objects.create(&core("Machine", deed, spec)).await;
    }
}

/// The fixture with another word in it: the same component, but for what it says to whom it lets wait.
fn another_version(folder: &Path) -> PathBuf {
    let mut component = std::fs::read(fixture("guest")).unwrap();
    let (old, new) = (b"somebody else first", b"nobody else for now");
    let places: Vec<usize> = (0..component.len() - old.len()).filter(|at| component[*at..].starts_with(old)).collect();
    assert!(!places.is_empty(), "the fixture says what it waits for");
    for at in places {
        component[at..at + new.len()].copy_from_slice(new);
    }
    let file = folder.join("fixture-2.wasm");
    std::fs::write(&file, component).unwrap();
    file
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

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

#[tokio::test]
async fn what_another_version_would_do_otherwise_is_shown_by_object() {
    let (recorded, folder) = (recorded(), Folder::new());
    let (same, other) = (fixture("guest"), another_version(&folder.join(".")));
    recorded.file(&["-fixture-", "-wait.json"]).await;
    let diff = |file: &Path, more: &[&str]| {
        let recordings = recorded.recordings();
        let arguments = ["provider", "diff", "fixture", path(file), "--recordings", path(&recordings)];
        run(&[&arguments, more].concat())
    };
    let nothing = diff(&same, &[]);
    assert!(nothing.status.success(), "{}", said(&nothing));
    let differs = diff(&other, &[]);
    assert_eq!(differs.status.code(), Some(3), "{}", said(&differs));
    let text = String::from_utf8(differs.stdout).unwrap();
    for part in [
        "FixtureMachine fixtures/wait  infrastructure-machine.provision",
        "~ result",
        r#"/problem/message: "somebody else first" -> "nobody else for now""#,
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("FixtureMachine fixtures/secret") && !text.contains('\x1b'), "{text}");
    let report: Value = serde_json::from_slice(&diff(&other, &["-o", "json"]).stdout).unwrap();
    let objects: Vec<&str> =
        report["calls"].as_array().unwrap().iter().map(|call| call["object"].as_str().unwrap()).collect();
    assert_eq!(objects, ["FixtureMachine fixtures/wait"]);
    assert!(report["total"].as_u64() > report["same"].as_u64(), "{report}");

    let one = recorded.file(&["-fixture-", "-wait.json"]).await;
    let again = run(&["replay", path(&one), "--provider", path(&other)]);
    assert!(again.status.code() == Some(3) && said(&again).contains("nobody else for now"), "{}", said(&again));
    let nobody = run(&["provider", "diff", "nobody", path(&same), "--recordings", path(&recorded.recordings())]);
    assert!(nobody.status.code() == Some(1) && said(&nobody).contains("--record DIR"), "{}", said(&nobody));
}

#[tokio::test]
async fn an_export_has_no_key_and_says_that_it_is_inexact() {
    let (recorded, folder) = (recorded(), Folder::new());
    let with_key = |file: &PathBuf| {
        let recording = record::read(std::fs::File::open(file).unwrap()).unwrap();
        matches!(recording.ended, Ended::Replied { .. })
            && std::fs::read_to_string(file).unwrap().contains("PRIVATE KEY")
    };
    let file = recorded.files(&["-kubeadm-bootstrap-bootstrap.generate-"]).into_iter().find(with_key).expect("a key");
    let copy = folder.join("to-share.json");
    output(&["replay", "export", path(&file), "--redact", "--to", path(&copy)]);
    let text = std::fs::read_to_string(&copy).unwrap();
    let exported: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&exported["inexact"], &exported["format"]), (&json!(true), &json!(1)));
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let original: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let mut revealed = 0;
    for entry in original["tape"].as_array().unwrap() {
        let Some(secret) = entry.pointer("/answer/given/bytes/text").and_then(Value::as_str) else { continue };
        revealed += 1;
        for line in secret.lines().filter(|line| line.len() > 20 && !line.starts_with("-----")) {
            assert!(!text.contains(line), "{line} is in the export of {}", name_of(&exported));
        }
    }
    assert!(revealed > 0, "the call opened Secrets");
    let twice = run(&["replay", "export", path(&file), "--to", path(&copy)]);
    assert!(twice.status.code() == Some(1) && said(&twice).contains("unable to make"), "{}", said(&twice));
}

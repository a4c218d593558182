//! Calls of a running host, recorded, and made again without it: by the same components, by another one, and natively.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use capwasm_contract::recording::{Ended, Request};
use capwasm_providers::rehearse::{LiveReads, Paint, Report, With, rehearse};
use capwasm_reconcile::{Cache, Interests, Source};
use capwasm_remote::Remote;
use capwasm_runtime::record::{self, Recording, Replay};
use capwasm_runtime::{Runtime, RuntimeOptions};
use capwasm_sdk::test::replay;
use capwasm_tests::binary::{self, output, run};
use capwasm_tests::folder::Folder;
use capwasm_tests::guests::{fixture, fixture_file};
use capwasm_tests::management::{self, Management, Process};
use capwasm_tests::objects::{Objects, condition, is, name_of};
use capwasm_tests::sample::{Sample, is_provisioned};
use capwasm_tests::{skip, wait};
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

/// The bundled components and the fixture's into a provider folder.
fn fill(providers: &Path) {
    for name in binary::PLUGINS {
        let file = format!("{name}.wasm");
        std::fs::copy(binary::provider_dir().join(&file), providers.join(&file)).unwrap();
    }
    std::fs::copy(fixture("guest"), providers.join("fixture.wasm")).unwrap();
}

async fn record() -> Recorded {
    let folder = Folder::new();
    let providers = folder.join("plugins");
    std::fs::create_dir(&providers).unwrap();
    fill(&providers);
    let recordings = folder.join("recordings");
    let management = Management::start_with_options(providers, &["--record", recordings.to_str().unwrap()]);
    let objects = management.objects("default").await;
    let spec = json!({
        "source": {"file": "fixture.wasm"},
        "crdGroups": ["infrastructure.fixture.example"],
        "grants": {
            "endpoints": {"engine": {"unix": "/nonexistent/engine.sock"}},
            "reads": [{"group": "", "kind": "ConfigMap"}]
        },
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
    for machine in ["secret", "lookup"] {
        fixtures.until("FixtureMachine", machine, "it is provisioned", is_provisioned).await;
    }
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
    objects
        .create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data", "namespace": namespace}}))
        .await;
    // One is denied a Secret, and one reads a ConfigMap: they say so in their status, and are done.
    let lookup = json!({"do": "get", "apiVersion": "v1", "kind": "ConfigMap", "name": "data"});
    let deeds = DEEDS.into_iter().map(|(deed, _)| deed).chain(["secret"]);
    let deeds = deeds.map(|deed| (deed, json!({"do": deed, "name": "data"})));
    for (deed, spec) in deeds.chain([("lookup", lookup)]) {
        objects.create(&infrastructure("FixtureMachine", deed, spec)).await;
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

/// A host whose fixture provider is recorded because its spec says so.
struct OneRecorded {
    folder: Folder,
    management: Management,
    objects: Objects,
}

impl OneRecorded {
    async fn start() -> OneRecorded {
        let folder = Folder::new();
        let providers = folder.join("plugins");
        std::fs::create_dir(&providers).unwrap();
        fill(&providers);
        let management = Management::start_with(providers);
        let objects = management.objects("default").await;
        install(&objects).await;
        OneRecorded { folder, management, objects }
    }

    fn recordings(&self) -> PathBuf {
        self.management.data_dir().join("recordings")
    }

    fn counted(&self, result: &str) -> u64 {
        self.management.metric(&format!("capwasm_recordings_total{{provider=\"fixture\",result=\"{result}\"}}"))
    }

    /// Makes another lease, which has to be called whatever happens to its recording.
    async fn lease(&self, name: &str) {
        self.objects.create(&lease(name)).await;
        leased(&self.objects, name).await;
    }
}

/// The fixture provider, recorded.
async fn install(objects: &Objects) {
    let provider = json!({"apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "fixture"},
        "spec": {"source": {"file": "fixture.wasm"}, "crdGroups": [GROUP], "record": true,
            "grants": {"endpoints": {"engine": {"unix": "/nonexistent/engine.sock"}}}}});
    objects.create(&provider).await;
    objects.until("WasmProvider", "fixture", "it serves", |provider| is(provider, "Ready")).await;
}

const GROUP: &str = "infrastructure.fixture.example";

fn lease(name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "FixtureLease", "metadata": {"name": name, "namespace": "default"}, "spec": {}})
}

async fn leased(objects: &Objects, name: &str) {
    wait::until(&format!("{name} is leased"), async || {
        match objects.find_at(&format!("{GROUP}/v1alpha1"), "FixtureLease", name).await {
            Some(object) if object["status"].to_string().contains("Resting") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Whole recordings of a folder, by name; a file that is none fails the test.
fn whole(folder: &Path) -> Vec<(PathBuf, Recording)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|file| !file.file_name().unwrap().to_str().unwrap().starts_with('.'));
    let read = |file: &PathBuf| {
        record::read(std::fs::File::open(file).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    files.iter().map(|file| (file.clone(), read(file))).collect()
}

/// Part 6 of the lifecycle: `spec.record`, with the real binary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_provider_is_recorded_and_neither_a_kill_nor_a_full_disk_costs_more_than_recordings() {
    let host = OneRecorded::start().await;
    host.lease("first").await;
    wait::until("the call is in a file", async || {
        if whole(&host.recordings()).is_empty() { Err("there is none".to_owned()) } else { Ok(()) }
    })
    .await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&host.recordings()), 0o700);
    let (file, recording) = whole(&host.recordings()).remove(0);
    assert_eq!((mode(&file), recording.provider.as_str()), (0o600, "fixture"));
    let providers = host.folder.join("plugins");
    let again = output(&["replay", path(&file), "--provider-dir", path(&providers)]);
    assert!(again.contains("replayed  the same"), "{again}");

    // Killed while it writes, again and again: what has a name is whole.
    for round in 0..3 {
        let changes = async {
            for n in 0.. {
                host.objects
                    .merge_at(
                        &format!("{GROUP}/v1alpha1"),
                        "FixtureLease",
                        "first",
                        json!({"spec": {"value": round * 1_000 + n}}),
                    )
                    .await;
            }
        };
        let before = whole(&host.recordings()).len();
        let recorded = wait::until("calls are recorded", async || {
            let now = whole(&host.recordings()).len();
            if now >= before + 5 { Ok(()) } else { Err(format!("{before} became {now}")) }
        });
        tokio::select! {
            () = changes => {}
            () = recorded => {}
        }
        host.management.kill();
        assert!(whole(&host.recordings()).len() >= before + 5);
        host.management.restart();
        leased(&host.objects, "first").await;
    }
    let draft = host.recordings().join(".0000000000001-000001-fixture-x.json.part");
    std::fs::write(&draft, "{").unwrap();
    let diff = run(&["provider", "diff", "fixture", path(&fixture("guest")), "--recordings", path(&host.recordings())]);
    assert!(diff.status.success(), "{}", said(&diff));

    // A file where the folder should be.
    host.management.kill();
    std::fs::remove_dir_all(host.recordings()).unwrap();
    std::fs::write(host.recordings(), "").unwrap();
    host.management.restart();
    host.lease("without-a-folder").await;
    let lost = async |more: u64| {
        wait::until("recordings are lost", async || match host.counted("Failed") {
            failed if failed > more => Ok(()),
            failed => Err(format!("{failed}")),
        })
        .await;
    };
    lost(0).await;
    let told = || std::fs::read_to_string(host.management.log()).unwrap().matches("recordings are lost").count();
    assert_eq!(told(), 1, "once, not for each call");
    std::fs::remove_file(host.recordings()).unwrap();
    let written = host.counted("Written");
    host.lease("with-a-folder").await;
    wait::until("it goes on by itself", async || match host.counted("Written") {
        now if now > written => Ok(()),
        now => Err(format!("{now}")),
    })
    .await;

    // A full disk.
    std::fs::remove_dir_all(host.recordings()).unwrap();
    std::fs::DirBuilder::new().create(host.recordings()).unwrap();
    let Some(_small) = Small::mount(host.recordings()) else {
        return skip::skip("replay::a full disk", "nothing can be mounted here");
    };
    let failed = host.counted("Failed");
    for n in 0..12 {
        host.lease(&format!("on-a-full-disk-{n}")).await;
    }
    lost(failed).await;
    assert!(!whole(&host.recordings()).is_empty(), "what fitted is whole");
    let parts = |entry: &std::io::Result<std::fs::DirEntry>| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with('.')))
    };
    wait::until("nothing is left of what did not fit", async || {
        let left = std::fs::read_dir(host.recordings()).unwrap().filter(parts).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} drafts")) }
    })
    .await;
    let log = std::fs::read_to_string(host.management.log()).unwrap();
    assert_eq!(log.matches("No space left on device").count(), 1, "it is told, once");
}

/// A file system of four pages.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf) -> Option<Small> {
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k,mode=0700", "tmpfs"]).arg(&at).output();
        done.is_ok_and(|done| done.status.success()).then_some(Small(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Part 6 of the lifecycle: `--record DIR` of `capwasm run`, with the real binary; that of `up` is what the other tests replay.
#[tokio::test]
async fn a_host_on_another_api_server_records_what_replays_exactly() {
    let folder = Folder::new();
    let mut server = Command::new(binary::capwasm());
    server.arg("apiserver").arg("--data-dir").arg(folder.join("server")).args(["--listen", "127.0.0.1:0"]);
    server.arg("--kubeconfig").arg(folder.join("kubeconfig"));
    let server = Process::spawn(server, &folder.join("server.log"), "capwasm apiserver is ready on");
    let (providers, recordings, data) = (folder.join("plugins"), folder.join("made/recordings"), folder.join("data"));
    std::fs::create_dir(&providers).unwrap();
    fill(&providers);
    management::give_compiled(&data.join("aot"));
    let mut host = Command::new(binary::capwasm());
    host.arg("run").arg("--kubeconfig").arg(folder.join("kubeconfig")).args(["--engine", "sim"]);
    host.arg("--data-dir").arg(&data).arg("--provider-dir").arg(&providers).arg("--record").arg(&recordings);
    host.args(["--diagnostics", &management::free_address()]);
    let host = Process::spawn(host, &folder.join("run.log"), "capwasm runs");
    let objects = Objects::in_new(management::client(&folder.join("kubeconfig")).await, "default").await;
    install(&objects).await;
    objects.create(&lease("one")).await;
    leased(&objects, "one").await;
    // What is queued is written before the end.
    assert!(host.stop(), "SIGTERM ends it in order");
    server.kill();
    let recorded = whole(&recordings);
    assert!(recorded.iter().any(|(_, recording)| recording.provider == "fixture"), "{}", recorded.len());
    for (file, _) in &recorded {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = output(&["replay", path(file), "--provider-dir", path(&providers)]);
        assert!(again.contains("replayed  the same"), "{again}");
    }
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

/// Part 4 of the lifecycle: commands that look at a component bear whatever it is, as the host does.
#[test]
fn hostile_components_neither_hang_nor_exhaust_who_looks_at_them() {
    let folder = Folder::new();
    let mut hostile: Vec<PathBuf> =
        std::fs::read_dir(fixture_file("hostile")).unwrap().map(|entry| entry.unwrap().path()).collect();
    hostile.sort();
    let endless = Path::new("/dev/zero");
    let mut refused = Vec::new();
    for file in hostile.iter().map(PathBuf::as_path).chain([endless]) {
        let component = if file == endless {
            file.to_owned()
        } else {
            let to = folder.join("hostile.wasm");
            std::fs::write(&to, wat::parse_file(file).unwrap()).unwrap();
            to
        };
        let seen = run(&["provider", "inspect", path(&component)]);
        // One that only misbehaves when it is called is a provider all the same.
        assert!(matches!(seen.status.code(), Some(0 | 1)), "{}: {}", file.display(), said(&seen));
        assert!(!said(&seen).contains('\x1b'), "{}: {:?}", file.display(), said(&seen));
        if seen.status.code() == Some(1) {
            refused.push(file.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    for name in ["endless-loop", "endless-start", "memory-bomb", "acting-descriptor", "deep-recursion", "zero"] {
        assert!(refused.iter().any(|refused| refused == name), "{name} is not among {refused:?}");
    }
}

/// What compiles a stranger's component is a child that the kernel limits, never the command itself.
#[tokio::test]
async fn each_command_that_takes_a_component_compiles_it_in_a_child() {
    let recorded = recorded();
    let component = recorded.providers().join("docker-infra.wasm");
    let any = recorded.file(&["-docker-infra-"]).await;
    let recordings = recorded.recordings();
    let commands: [&[&str]; 4] = [
        &["provider", "inspect", path(&component)],
        &["provider", "push", path(&component), "127.0.0.1:1/a/b:1"],
        &["provider", "diff", "docker-infra", path(&component), "--recordings", path(&recordings), "--last", "1"],
        &["replay", path(&any), "--provider", path(&component)],
    ];
    for command in commands {
        let mut child =
            Command::new(binary::capwasm()).args(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut compiled = false;
        while child.try_wait().unwrap().is_none() {
            compiled |= compiles(child.id());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(compiled, "{command:?}");
    }
}

/// Whether a process has a child that compiles.
fn compiles(parent: u32) -> bool {
    let children = |task: &Path| std::fs::read_to_string(task.join("children")).unwrap_or_default();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return false };
    let all: String = tasks.filter_map(Result::ok).map(|task| children(&task.path())).collect();
    all.split_whitespace().any(|child| {
        std::fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.contains("compile-component"))
    })
}

//! The life of a provider: swapped under load, refused, approved, rehearsed, rolled back by people and by the host.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use capwasm_tests::folder::Folder;
use capwasm_tests::guests::{fixture, fixture_file, variant};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, condition, is, name_of, text};
use capwasm_tests::{binary, wait};
use futures::{StreamExt, stream};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

const GROUP: &str = "infrastructure.fixture.example";
const OBJECTS: usize = 1_000;
const SWAPS: usize = 50;
/// Different components among the swaps; the others are known already.
const COMPONENTS: usize = 5;

/// A management cluster with the fixture provider's component in its provider folder.
struct World {
    management: Management,
    objects: Objects,
    folder: Folder,
    component: Vec<u8>,
}

impl World {
    async fn new() -> World {
        let folder = Folder::new();
        let providers = folder.join("plugins");
        std::fs::create_dir(&providers).unwrap();
        for name in binary::PLUGINS {
            let file = format!("{name}.wasm");
            std::fs::copy(binary::provider_dir().join(&file), providers.join(&file)).unwrap();
        }
        let component = std::fs::read(fixture("guest")).unwrap();
        let management = Management::start_with(providers);
        let objects = management.objects("default").await;
        let world = World { management, objects, folder, component };
        world.put("fixture.wasm", &world.component);
        world
    }

    /// Grants it what it wants, and waits until it serves.
    async fn install(&self, more: Value) -> Value {
        let mut object = json!({"apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "fixture"},
            "spec": {"source": {"file": "fixture.wasm"}, "crdGroups": [GROUP],
                "grants": {"endpoints": {"engine": {"unix": self.folder.join("engine.sock")}}}}});
        for (name, value) in more.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        self.objects.create(&object).await;
        self.objects.until("WasmProvider", "fixture", "it serves", |provider| is(provider, "UpToDate")).await
    }

    fn providers(&self) -> PathBuf {
        self.folder.join("plugins")
    }

    /// Puts a component into the provider folder, in place of what is there.
    fn put(&self, file: &str, component: &[u8]) {
        let draft = self.folder.join("draft");
        std::fs::write(&draft, component).unwrap();
        std::fs::rename(draft, self.providers().join(file)).unwrap();
    }

    fn variant(&self, name: &str) -> Vec<u8> {
        variant(&self.component, name)
    }

    async fn provider(&self) -> Value {
        self.objects.get("WasmProvider", "fixture").await
    }

    async fn provider_until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.objects.until("WasmProvider", "fixture", what, is).await
    }

    async fn version(&self, version: &str) -> Value {
        let version = format!("0.1.0+{version}");
        self.provider_until(&format!("{version} serves"), |provider| text(provider, "/status/version") == version).await
    }

    /// `capwasm provider …` on this host.
    fn command(&self, arguments: &[&str]) -> Output {
        self.command_in(Path::new("."), arguments)
    }

    fn command_in(&self, folder: &Path, arguments: &[&str]) -> Output {
        let kubeconfig = self.management.kubeconfig();
        Command::new(binary::capwasm())
            .current_dir(folder)
            .arg("provider")
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .output()
            .unwrap()
    }

    /// What it prints; it has to succeed.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What it complains of; it has to fail.
    fn complaint(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    async fn lease(&self, name: &str, spec: Value) {
        self.objects.create(&lease(name, spec)).await;
    }

    async fn lease_until(&self, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        wait::until(&format!("FixtureLease {name}: {what}"), async || {
            match self.objects.find_at(&format!("{GROUP}/v1alpha1"), "FixtureLease", name).await {
                Some(object) if is(&object) => Ok(object),
                other => Err(format!("{:?}", other.map(|object| object["status"].clone()))),
            }
        })
        .await
    }

    async fn merge_lease(&self, name: &str, patch: Value) {
        self.objects.merge_at(&format!("{GROUP}/v1alpha1"), "FixtureLease", name, patch).await;
    }
}

fn lease(name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "FixtureLease",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// The engine that leases report to: it sees which calls overlap.
#[derive(Default)]
struct Reports {
    running: Mutex<HashMap<String, String>>,
    /// The variant that was called last, by object.
    last: Mutex<HashMap<String, String>>,
    /// Every variant that was called.
    variants: Mutex<BTreeSet<String>>,
    calls: AtomicUsize,
    overlaps: Mutex<Vec<String>>,
}

impl Reports {
    fn take(&self, path: &str) {
        let mut parts = path.trim_start_matches('/').split('/');
        let (moment, name, variant) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        self.variants.lock().unwrap().insert(variant.to_owned());
        let mut running = self.running.lock().unwrap();
        match moment {
            "begin" => {
                self.calls.fetch_add(1, Ordering::Relaxed);
                if let Some(other) = running.insert(name.to_owned(), variant.to_owned()) {
                    self.overlaps.lock().unwrap().push(format!("{name}: {variant} beside {other}"));
                }
            }
            _ => {
                running.remove(name);
                self.last.lock().unwrap().insert(name.to_owned(), variant.to_owned());
            }
        }
    }

    fn serve(self: Arc<Self>, socket: &Path) {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let reports = self.clone();
                let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    reports.take(request.uri().path());
                    async { Ok::<_, Infallible>(http::Response::new(http_body_util::Empty::<bytes::Bytes>::new())) }
                });
                tokio::spawn(async move {
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    // Whoever is called no more hangs up.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
    }
}

/// Every object is changed again and again while the provider under it is replaced again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_objects_lose_no_reconcile_in_fifty_swaps() {
    let world = World::new().await;
    let reports = Arc::new(Reports::default());
    reports.clone().serve(&world.folder.join("engine.sock"));
    let names: Vec<String> = (0..COMPONENTS).map(|n| format!("number-{n}")).collect();
    for name in &names {
        world.put(&format!("{name}.wasm"), &world.variant(name));
    }
    world.install(json!({"source": {"file": "number-0.wasm"}})).await;
    stream::iter(0..OBJECTS)
        .for_each_concurrent(16, async |n| {
            world.objects.create(&lease(&format!("l-{n}"), json!({"do": "report", "value": 0}))).await;
        })
        .await;

    let swapping = AtomicBool::new(true);
    let changes = AtomicUsize::new(0);
    let change = async {
        // Whichever comes next, over and over; the last round below changes all of them.
        let mut round = 0;
        while swapping.load(Ordering::Relaxed) {
            let n = round * 7 % OBJECTS;
            world.merge_lease(&format!("l-{n}"), json!({"spec": {"value": round + 1}})).await;
            changes.fetch_add(1, Ordering::Relaxed);
            round += 1;
        }
    };
    let swap = async {
        let mut resident = 0;
        for swap in 1..=SWAPS {
            let name = &names[swap % COMPONENTS];
            let source = json!({"file": format!("{name}.wasm")});
            world.objects.merge("WasmProvider", "fixture", json!({"spec": {"source": source}})).await;
            world.version(name).await;
            if swap == SWAPS / 5 {
                resident = world.management.resident();
            }
        }
        swapping.store(false, Ordering::Relaxed);
        resident
    };
    let ((), early) = tokio::join!(change, swap);
    assert!(changes.load(Ordering::Relaxed) > SWAPS, "objects changed meanwhile");

    let last = &names[SWAPS % COMPONENTS];
    wait::until("every object was called by the last component", async || {
        let called = reports.last.lock().unwrap();
        let behind = (0..OBJECTS).filter(|n| called.get(&format!("l-{n}")) != Some(last)).count();
        if behind == 0 { Ok(()) } else { Err(format!("{behind} were not")) }
    })
    .await;
    wait::until("every object's last value was seen", async || {
        let leases = world.objects.list_at(&format!("{GROUP}/v1alpha1"), "FixtureLease").await;
        assert_eq!(leases.len(), OBJECTS);
        let behind: Vec<&str> = leases
            .iter()
            .filter(|lease| {
                lease["status"]["seen"]["value"] != lease["spec"]["value"]
                    || text(lease, "/status/seen/variant") != last
            })
            .map(name_of)
            .collect();
        if behind.is_empty() { Ok(()) } else { Err(format!("{} are behind, {:?} first", behind.len(), behind[0])) }
    })
    .await;
    assert_eq!(*reports.overlaps.lock().unwrap(), Vec::<String>::new(), "two calls at once for one key");
    // What never happened is no line at all: that there are others says that the controller is called so.
    let label = "controller=\"fixturelease\"";
    let passes = world.management.metric(&format!("controller_runtime_reconcile_total{{{label},result=\"success\"}}"));
    assert!(passes > OBJECTS as u64, "{passes} passes");
    for what in ["controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_panics_total"] {
        assert_eq!(world.management.metric(&format!("{what}{{{label}}}")), 0, "{what}");
    }
    let swaps = world.management.metric("capwasm_provider_swaps_total{provider=\"fixture\",result=\"swapped\"}");
    assert_eq!(swaps, SWAPS as u64);
    let provider = world.provider().await;
    assert_eq!(provider["status"]["calls"]["traps"], 0);
    let (now, calls) = (world.management.resident(), reports.calls.load(Ordering::Relaxed));
    println!("{calls} calls; {} MB resident after {} swaps, {} MB after {SWAPS}", early >> 20, SWAPS / 5, now >> 20);
    assert!(now < early + (32 << 20), "{} MB became {} MB", early >> 20, now >> 20);
}

/// What must not take effect does not, and the object says why; what serves goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_that_must_not_serve_leave_the_old_one_serving_and_say_why() {
    let world = World::new().await;
    let installed = world.install(json!({})).await;
    let digest = text(&installed, "/status/digest");
    let hostile = |name: &str| wat::parse_file(fixture_file(&format!("hostile/{name}.wat"))).unwrap();
    let half = world.component[..world.component.len() / 2].to_vec();
    let cases = [
        ("broken", half, "LoadFailed", "not valid"),
        ("no component", b"#!/bin/sh".to_vec(), "LoadFailed", "no WebAssembly component"),
        ("hostile", hostile("endless-loop"), "LoadFailed", "TimeMs)"),
        ("of another world", hostile("unknown-import"), "LoadFailed", "evil:host/exec"),
        ("over-asking", world.variant("wants"), "MissingGrants", "pki: true"),
        ("narrowing", world.variant("narrow"), "CRDNarrowed", "status.seen is gone"),
        ("of another contract", world.variant("contract"), "LoadFailed", "speaks contract \"0.9\""),
        (
            "another provider",
            std::fs::read(world.providers().join("docker-infra.wasm")).unwrap(),
            "NameMismatch",
            "docker-infra",
        ),
    ];
    for (round, (name, component, reason, part)) in cases.into_iter().enumerate() {
        world.put("fixture.wasm", &component);
        let refused = |provider: &Value| {
            let (status, why, message) = condition(provider, "UpToDate");
            status == "False" && why == reason && message.contains(part)
        };
        let provider = world.provider_until(&format!("{name} is refused"), refused).await;
        assert!(is(&provider, "Ready"), "{name}");
        assert_eq!(text(&provider, "/status/digest"), digest, "{name}");
        assert_eq!(text(&provider, "/status/candidate/reason"), reason, "{name}");
        let lease = format!("after-{round}");
        world.lease(&lease, json!({})).await;
        world.lease_until(&lease, "what serves is still called", is_leased).await;
    }
    let events = world.objects.events("WasmProvider", "fixture").await;
    assert!(events.iter().any(|(reason, _, _)| reason == "CRDNarrowed"), "{events:?}");

    // A signature is asked for, and there is none.
    let key = rcgen::KeyPair::generate().unwrap().public_key_pem();
    world.objects.merge("WasmProvider", "fixture", json!({"spec": {"verification": {"publicKeys": [key]}}})).await;
    world.put("fixture.wasm", &world.variant("signed"));
    let unsigned = |provider: &Value| condition(provider, "UpToDate").1 == "SignatureInvalid";
    let provider = world.provider_until("an unsigned component is refused", unsigned).await;
    assert!(is(&provider, "Ready") && text(&provider, "/status/digest") == digest);
    world.objects.merge("WasmProvider", "fixture", json!({"spec": {"verification": null}})).await;
    world.version("signed--").await;

    // What is taken away is denied at once, to what serves.
    world.objects.merge("WasmProvider", "fixture", json!({"spec": {"grants": {"endpoints": null}}})).await;
    let denied = |provider: &Value| condition(provider, "UpToDate").1 == "MissingGrants";
    let provider = world.provider_until("it says what it lacks", denied).await;
    assert_eq!(provider["status"]["missingGrants"], json!(["endpoints: engine"]));
    world.lease("two", json!({"do": "report"})).await;
    world.lease_until("two", "it is denied", |lease| lease["status"].to_string().contains("NotReported")).await;
}

fn is_leased(lease: &Value) -> bool {
    lease["status"]["conditions"].to_string().contains("Resting")
}

/// People decide when, and which; a host that starts again remembers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_approve_swap_and_roll_back_and_a_restart_forgets_nothing() {
    let world = World::new().await;
    let first = world.install(json!({"update": {"policy": "Manual"}, "historyLimit": 2})).await;
    let original = text(&first, "/status/digest").to_owned();

    // A file that is dropped waits for approval.
    world.put("fixture.wasm", &world.variant("second"));
    let waits = |provider: &Value| condition(provider, "UpToDate").1 == "AwaitingApproval";
    let provider = world.provider_until("it waits", waits).await;
    assert_eq!(text(&provider, "/status/digest"), original);
    assert!(world.told(&["list"]).contains("AwaitingApproval"));
    assert!(world.told(&["approve", "fixture"]).contains("0.1.0+second"));

    // From a file of another folder.
    let elsewhere = world.folder.join("third.wasm");
    std::fs::write(&elsewhere, world.variant("wider")).unwrap();
    let complaint = world.complaint(&["swap", "fixture", elsewhere.to_str().unwrap()]);
    assert!(complaint.contains("AwaitingApproval"), "{complaint}");
    assert!(world.told(&["swap", "fixture", elsewhere.to_str().unwrap(), "--approve"]).contains("0.1.0+wider"));
    let provider = world.provider().await;
    let previous = provider["status"]["previous"].as_array().unwrap();
    assert_eq!(previous.len(), 2);
    assert_eq!(previous[1]["digest"], original.as_str());

    // Back, though the CRD of the older one is narrower: it stays wide.
    assert!(world.told(&["rollback", "fixture"]).contains("0.1.0+second"));
    assert!(world.told(&["rollback", "fixture", "--to", &original]).contains("(0.1.0)"));
    let crd = world
        .objects
        .find_at("apiextensions.k8s.io/v1", "CustomResourceDefinition", &format!("fixtureleases.{GROUP}"))
        .await;
    assert!(crd.unwrap().to_string().contains("\"later\""));
    assert!(world.complaint(&["rollback", "fixture", "--to", "sha256:00"]).contains("is not kept"));

    // Neither the source nor a pin is needed to start again with what served.
    std::fs::remove_file(world.providers().join("fixture.wasm")).unwrap();
    world
        .objects
        .merge("WasmProvider", "fixture", json!({"spec": {"source": {"file": "gone.wasm"}, "update": {"pin": null}}}))
        .await;
    world
        .provider_until("its source is gone", |provider| condition(provider, "UpToDate").1 == "SourceUnreadable")
        .await;
    world.management.restart();
    world.lease("after", json!({})).await;
    world.lease_until("after", "it is called", is_leased).await;
    let provider = world.provider().await;
    assert_eq!((text(&provider, "/status/digest"), is(&provider, "Ready")), (original.as_str(), true));

    // CRDs go when that is asked for, and their objects before them.
    world.objects.merge("WasmProvider", "fixture", json!({"spec": {"removeCRDs": true}})).await;
    world.objects.delete("WasmProvider", "fixture").await;
    world.objects.gone("WasmProvider", "fixture").await;
    let crd = world
        .objects
        .find_at("apiextensions.k8s.io/v1", "CustomResourceDefinition", &format!("fixtureleases.{GROUP}"))
        .await;
    assert_eq!(crd, None);
    let kept: Vec<_> = std::fs::read_dir(world.management.data_dir().join("components")).unwrap().collect();
    assert_eq!(kept.len(), binary::PLUGINS.len(), "components of others are kept: {kept:?}");
}

/// The host goes back by itself from a component that traps, and rehearses one before it serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traps_bring_the_last_component_back_and_rehearsals_hold_up_what_differs() {
    let world = World::new().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"password": "hush"}});
    world.objects.create(&secret).await;
    let from =
        json!([{"secret": {"namespace": "default", "name": "s"}, "key": "password", "pointer": "/auth/password"}]);
    let first = world.install(json!({"configuration": {"a": 1}, "configurationFrom": from})).await;
    let original = text(&first, "/status/digest").to_owned();
    for n in 0..6 {
        world.lease(&format!("l-{n}"), json!({})).await;
        world.lease_until(&format!("l-{n}"), "it is leased", is_leased).await;
    }
    world.lease("configured", json!({"do": "configuration"})).await;
    let configured = |password: &'static str| {
        move |lease: &Value| {
            lease["status"]["seen"]["configuration"]
                .as_str()
                .is_some_and(|text| text.contains(password) && text.contains("\"a\":1"))
        }
    };
    world.lease_until("configured", "it has the Secret's value", configured("hush")).await;
    world.objects.merge("Secret", "s", json!({"stringData": {"password": "louder"}})).await;
    world.lease_until("configured", "it has the Secret's new value", configured("louder")).await;

    world.put("fixture.wasm", &world.variant("trap"));
    let back = |provider: &Value| {
        condition(provider, "UpToDate").1 == "RolledBack" && text(provider, "/status/digest") == original
    };
    let provider = world.provider_until("it is rolled back", back).await;
    assert!(is(&provider, "Ready"));
    assert_eq!(text(&provider, "/status/candidate/version"), "0.1.0+trap----");
    assert_eq!(world.management.metric("capwasm_provider_swaps_total{provider=\"fixture\",result=\"rolled_back\"}"), 1);
    wait::until("an event tells", async || {
        let events = world.objects.events("WasmProvider", "fixture").await;
        let told = events.iter().any(|(reason, message, _)| reason == "RolledBack" && message.contains("given up"));
        if told { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await;
    world.lease_until("l-0", "it is called again", |lease| condition(lease, "Ready").1 != "ProviderTrapped").await;

    world.objects.merge("WasmProvider", "fixture", json!({"spec": {"update": {"policy": "RehearseFirst"}}})).await;
    world.put("fixture.wasm", &world.variant("same"));
    world.version("same----").await;
    world.put("fixture.wasm", &world.variant("differs"));
    let held = |provider: &Value| condition(provider, "UpToDate").1 == "RehearsalDiffers";
    let provider = world.provider_until("it is held up", held).await;
    let rehearsal = &provider["status"]["candidate"]["rehearsal"];
    assert!(
        rehearsal["differences"].as_u64().unwrap() > 0 && text(rehearsal, "/summary").contains("Moving"),
        "{rehearsal}"
    );
    assert!(world.told(&["approve", "fixture"]).contains("0.1.0+differs-"));
}

/// Part 3 of the lifecycle: where nothing is recorded, live calls decide; what they show is told to people, here and by
/// `provider diff`; and none of it has an effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_waits_makes_live_calls_along_without_effect_and_serves_when_they_are_the_same() {
    let world = World::new().await;
    let reports = Arc::new(Reports::default());
    reports.clone().serve(&world.folder.join("engine.sock"));
    let policy = |policy: &str| json!({"spec": {"update": {"policy": policy}}});
    world.install(policy("RehearseFirst")["spec"].clone()).await;
    let diff = |component: &[u8]| {
        let file = world.folder.join("candidate.wasm");
        std::fs::write(&file, component).unwrap();
        world.command_in(&world.folder.join("."), &["diff", "fixture", file.to_str().unwrap()])
    };
    let said = |output: &Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };

    // Nothing was ever called, so nothing is recorded.
    world.put("fixture.wasm", &world.variant("same"));
    let nothing = |provider: &Value| condition(provider, "UpToDate").1 == "NothingRecorded";
    world.provider_until("it waits for calls", nothing).await;
    let none = diff(&world.variant("same"));
    assert!(none.status.code() == Some(1) && said(&none).contains("there was none yet"), "{}", said(&none));
    let stranger = diff(&world.variant("stranger"));
    let advice = said(&stranger);
    assert!(stranger.status.code() == Some(1) && advice.contains("capwasm provider swap fixture"), "{advice}");
    // The only object there is, once.
    world.lease("one", json!({"do": "wait"})).await;
    world.version("same----").await;

    // What is recorded is the same; live calls differ, in what they ask the world and in what they say. It is told at once.
    world.objects.merge("WasmProvider", "fixture", policy("Manual")).await;
    let other = world.variant("differs");
    world.put("fixture.wasm", &other);
    let waits = |provider: &Value| condition(provider, "UpToDate").1 == "AwaitingApproval";
    let provider = world.provider_until("it waits for somebody", waits).await;
    assert_eq!(provider["status"]["candidate"]["rehearsal"]["differences"], 0, "{provider}");
    world.lease("two", json!({"do": "report"})).await;
    world.lease("three", json!({})).await;
    let seen = |provider: &Value| provider["status"]["candidate"]["rehearsal"]["differences"].as_u64() > Some(0);
    world.provider_until("a live call differs", seen).await;
    world.objects.merge("WasmProvider", "fixture", policy("RehearseFirst")).await;
    let differs = |provider: &Value| condition(provider, "UpToDate").1 == "RehearsalDiffers";
    let provider = world.provider_until("it is held up", differs).await;
    let rehearsal = provider["status"]["candidate"]["rehearsal"].clone();
    assert!(world.management.metric("capwasm_rehearsed_calls_total{provider=\"fixture\",result=\"Different\"}") > 0);
    wait::until("the lease was reported", async || {
        let variants = reports.variants.lock().unwrap().clone();
        if variants.contains("same----") { Ok(()) } else { Err(format!("{variants:?}")) }
    })
    .await;
    let told = diff(&other);
    assert!(told.status.code() == Some(3) && said(&told).contains("rehearsed by the host"), "{}", said(&told));

    // A start of the host makes nothing better, though nothing differs any more.
    for name in ["two", "three"] {
        world.merge_lease(name, json!({"spec": {"do": "wait"}})).await;
        world.lease_until(name, "it waits", |lease| condition(lease, "Ready").1 == "NotYet").await;
    }
    world.management.restart();
    let same = "capwasm_rehearsed_calls_total{provider=\"fixture\",result=\"Same\"}";
    wait::until("every object was called, and came to the same", async || match world.management.metric(same) {
        calls if calls >= 3 => Ok(()),
        calls => Err(format!("{calls} calls")),
    })
    .await;
    let provider = world.provider_until("it goes on waiting", differs).await;
    let now = &provider["status"]["candidate"]["rehearsal"];
    assert!(now["differences"].as_u64() >= rehearsal["differences"].as_u64(), "{rehearsal} became {now}");
    let variants = reports.variants.lock().unwrap().clone();
    assert!(!variants.contains("differs-"), "what waits has no effect: {variants:?}");

    // With recordings in files the host need not be asked for its opinion.
    world.objects.merge("WasmProvider", "fixture", json!({"spec": {"record": true}})).await;
    world.lease("four", json!({})).await;
    wait::until("calls are compared", async || {
        world.merge_lease("four", json!({"spec": {"value": 1}})).await;
        let output = diff(&other);
        let text = said(&output);
        let compared =
            output.status.code() == Some(3) && text.contains("compared with the calls in") && text.contains("Moving");
        if compared { Ok(()) } else { Err(text) }
    })
    .await;
}

/// The compiler's process limits itself, and says what is wrong.
#[test]
fn components_are_compiled_under_limits_of_the_kernel() {
    let component = std::fs::read(fixture("guest")).unwrap();
    let compile = |component: &[u8], memory: u64, cpu: u64| {
        let mut child = Command::new(binary::capwasm())
            .args(["compile-component", &memory.to_string(), &cpu.to_string()])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let component = component.to_vec();
        // It may be killed before it has read everything.
        let feed = std::thread::spawn(move || drop(std::io::Write::write_all(&mut stdin, &component)));
        let output = child.wait_with_output().unwrap();
        feed.join().unwrap();
        output
    };
    let good = compile(&component, 2 << 30, 120);
    assert!(good.status.success() && good.stdout.len() > component.len(), "{}", String::from_utf8_lossy(&good.stderr));
    let broken = compile(b"nonsense", 2 << 30, 120);
    assert_eq!((broken.status.code(), broken.stdout.len()), (Some(2), 0));
    assert!(!compile(&component, 96 << 20, 120).status.success(), "no memory");
    let large = std::fs::read(binary::provider_dir().join("openstack-infra.wasm")).unwrap();
    assert!(!compile(&large, 2 << 30, 0).status.success(), "no time");
}

//! Broken and hostile providers, and broken input: one object fails and says why, everything else goes on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use capwasm_tests::binary;
use capwasm_tests::folder::Folder;
use capwasm_tests::guests::{fixture, fixture_file, hostile};
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, condition, flag, is, name_of, owner, text};
use capwasm_tests::sample::{Sample, VERSION, is_provisioned};
use capwasm_tests::wait;
use serde_json::{Value, json};

/// What a machine of the fixture provider does, with the reason on its condition and a part of the message.
const DEEDS: [(&str, &str, &str); 7] = [
    ("panic", "ProviderTrapped", "the guest's own words"),
    ("recurse", "ProviderTrapped", "recurse"),
    ("loop", "ProviderCpuLimit", "limits.cpuTimeMs"),
    ("bomb", "ProviderMemoryLimit", "limits.memoryBytes"),
    ("events", "ProviderResultLimit", "limits.resultBytes"),
    ("sleep", "ProviderTimeout", "limits.wallTimeMs"),
    ("wait", "NotYet", "somebody else first"),
];

/// A management cluster whose provider folder holds the fixture provider and all broken components too.
fn management() -> &'static Management {
    static SHARED: OnceLock<(Folder, Management)> = OnceLock::new();
    let (_, management) = SHARED.get_or_init(|| {
        let folder = Folder::new();
        let management = Management::start_with(provider_dir(&folder));
        (folder, management)
    });
    management
}

fn provider_dir(folder: &Folder) -> PathBuf {
    let providers = folder.join("plugins");
    std::fs::create_dir(&providers).unwrap();
    for name in binary::PLUGINS {
        let file = format!("{name}.wasm");
        std::fs::copy(binary::provider_dir().join(&file), providers.join(&file)).unwrap();
    }
    std::fs::copy(fixture("guest"), providers.join("fixture.wasm")).unwrap();
    for (name, _) in hostile() {
        let component = wat::parse_file(fixture_file(&format!("hostile/{name}.wat"))).unwrap();
        std::fs::write(providers.join(format!("{name}.wasm")), component).unwrap();
    }
    providers
}

fn wasm_provider(name: &str, spec: Value) -> Value {
    let mut object =
        json!({"apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": name}, "spec": spec});
    object["spec"]["source"] = json!({"file": format!("{name}.wasm")});
    object
}

/// The fixture provider's WasmProvider before and after it was granted what it wants; once for all tests.
fn granted() -> &'static (Value, Value) {
    static GRANTED: OnceLock<(Value, Value)> = OnceLock::new();
    GRANTED.get_or_init(|| {
        let done = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(grant()));
        done.join().expect("the fixture provider serves")
    })
}

async fn grant() -> (Value, Value) {
    let objects = management().objects("default").await;
    objects.create(&wasm_provider("fixture", json!({}))).await;
    let refused = |provider: &Value| {
        condition(provider, "Ready").0 == "False" && condition(provider, "Ready").1 == "MissingGrants"
    };
    let before = objects.until("WasmProvider", "fixture", "it is refused", refused).await;
    let spec = json!({
        "crdGroups": ["infrastructure.fixture.example"],
        "grants": {"endpoints": {"engine": {"unix": "/nonexistent/engine.sock"}}},
        "limits": {"cpuTimeMs": 300, "wallTimeMs": 1500, "memoryBytes": 16 << 20, "resultBytes": 256 << 10}
    });
    objects.merge("WasmProvider", "fixture", json!({"spec": spec})).await;
    let after = objects.until("WasmProvider", "fixture", "it serves", |provider| is(provider, "Ready")).await;
    management().keep_compiled();
    (before, after)
}

fn fixture_object(kind: &str, namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "infrastructure.fixture.example/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// A Cluster on the fixture provider.
async fn fixture_cluster(objects: &Objects) {
    let namespace = objects.namespace();
    objects.create(&fixture_object("FixtureCluster", namespace, "c", &json!({}))).await;
    let reference = json!({"apiGroup": "infrastructure.fixture.example", "kind": "FixtureCluster", "name": "c"});
    objects
        .create(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": namespace},
            "spec": {"infrastructureRef": reference}}))
        .await;
    objects.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "data", "namespace": namespace}, "stringData": {"value": "x"}})).await;
}

/// A Machine of it whose provider is told what to do.
async fn fixture_machine(objects: &Objects, name: &str, spec: &Value) {
    let namespace = objects.namespace();
    objects.create(&fixture_object("FixtureMachine", namespace, name, spec)).await;
    let reference = json!({"apiGroup": "infrastructure.fixture.example", "kind": "FixtureMachine", "name": name});
    objects
        .create(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterName": "c", "version": VERSION, "bootstrap": {"dataSecretName": "data"}, "infrastructureRef": reference}}))
        .await;
}

#[tokio::test]
async fn components_that_are_no_providers_are_refused_with_the_reason_while_others_serve() {
    let objects = management().objects("default").await;
    let corpus = hostile();
    for (name, _) in &corpus {
        objects.create(&wasm_provider(name, json!({}))).await;
    }
    objects.create(&wasm_provider("nowhere", json!({}))).await;
    let nowhere = ("nowhere".to_owned(), "nowhere.wasm".to_owned());
    for (name, part) in corpus.iter().chain([&nowhere]) {
        let expected = if name == "nowhere" { "SourceUnreadable" } else { "LoadFailed" };
        // On a busy machine one that loops may first run out of wall time, which is tried again.
        let refused = |provider: &Value| {
            let (status, reason, message) = condition(provider, "Ready");
            status == "False" && reason == expected && message.contains(part.as_str())
        };
        objects.until("WasmProvider", name, &format!("it is refused: {part}"), refused).await;
    }
    for name in binary::PLUGINS {
        assert!(is(&objects.get("WasmProvider", name).await, "Ready"), "{name}");
    }
}

#[tokio::test]
async fn a_provider_without_its_grants_does_not_serve_and_each_missing_grant_is_named() {
    let (before, after) = granted();
    let (_, _, message) = condition(before, "Ready");
    for part in ["crdGroups: infrastructure.fixture.example", "endpoints: engine"] {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
        assert!(before["status"]["missingGrants"].as_array().unwrap().contains(&json!(part)));
    }
    assert!(after.pointer("/status/missingGrants").is_none());
    assert!(text(after, "/status/digest").starts_with("sha256:"));
    assert_eq!(after["status"]["kinds"].as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn a_hostile_machine_fails_alone_and_says_why() {
    granted();
    let objects = management().objects("hostile").await;
    fixture_cluster(&objects).await;
    for (deed, _, _) in DEEDS {
        fixture_machine(&objects, deed, &json!({"do": deed})).await;
    }
    fixture_machine(&objects, "good", &json!({"do": "typical"})).await;
    let beside = management().objects("beside").await;
    let sample = Sample::new("beside", 1, 1);
    sample.create(&beside).await;

    for (deed, reason, part) in DEEDS {
        let failed = |machine: &Value| condition(machine, "Ready").1 == reason;
        let machine = objects.until("FixtureMachine", deed, "it says why it fails", failed).await;
        let (status, _, message) = condition(&machine, "Ready");
        assert!(status != "True" && message.contains(part), "{deed}: {part:?} is not in {message:?}");
        assert!(!is_provisioned(&machine));
        if reason.starts_with("Provider") {
            assert!(
                message.contains("provider fixture (sha256:") && message.contains("infrastructure-machine.provision"),
                "{message}"
            );
            let told = wait::until(&format!("{deed}: an event tells"), async || {
                let events = objects.events("FixtureMachine", deed).await;
                events.iter().find(|(told, _, _)| told == reason).cloned().ok_or_else(|| format!("{events:?}"))
            })
            .await;
            assert!(told.1.contains(part), "{told:?}");
        }
    }
    objects.until("FixtureMachine", "good", "it is provisioned", is_provisioned).await;
    let copied = |machine: &Value| text(machine, "/spec/providerID") == "fixture:////machine";
    objects.until("Machine", "good", "R5: what its provider found is copied", copied).await;
    sample.provisioned(&beside).await;
}

#[tokio::test]
async fn what_is_not_granted_is_denied() {
    granted();
    let objects = management().objects("denied").await;
    fixture_cluster(&objects).await;
    let cases = [
        ("http", json!({"do": "http", "method": "GET", "url": "https://example.org/"})),
        ("metadata", json!({"do": "http", "method": "GET", "url": "http://169.254.169.254/latest"})),
        (
            "other-endpoint",
            json!({"do": "http", "method": "GET", "url": "http://docker.endpoint/v1.41/containers/json"}),
        ),
        ("secret", json!({"do": "secret", "name": "data", "key": "value"})),
        ("keys", json!({"do": "keys", "count": 1})),
        ("get", json!({"do": "get", "apiVersion": "v1", "kind": "Secret", "name": "data", "namespace": "denied"})),
        (
            "elsewhere",
            json!({"do": "get", "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "kube-system"}),
        ),
    ];
    for (name, spec) in &cases {
        fixture_machine(&objects, name, spec).await;
    }
    for (name, _) in &cases {
        let seen = |machine: &Value| machine.pointer("/status/seen").is_some();
        let machine = objects.until("FixtureMachine", name, "it says what it saw", seen).await;
        let seen = machine["status"]["seen"].to_string();
        assert!(seen.contains("Denied") && !seen.contains("\"ok\""), "{name}: {seen}");
    }
    // A guest's writes of what was not granted are not done either.
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "denied"}});
    fixture_machine(&objects, "write", &json!({"do": "write", "object": object})).await;
    let refused =
        |machine: &Value| !condition(machine, "Ready").1.is_empty() && condition(machine, "Ready").0 != "True";
    let machine = objects.until("FixtureMachine", "write", "it says that it may not", refused).await;
    assert!(condition(&machine, "Ready").2.to_lowercase().contains("grant"), "{}", machine["status"]);
    assert!(objects.find("ConfigMap", "made").await.is_none());
}

#[tokio::test]
async fn a_guest_sees_nothing_of_the_machine_it_runs_on() {
    granted();
    let objects = management().objects("world").await;
    fixture_cluster(&objects).await;
    fixture_machine(&objects, "world", &json!({"do": "world"})).await;
    let seen = |machine: &Value| machine.pointer("/status/seen").is_some();
    let machine = objects.until("FixtureMachine", "world", "it says what it saw", seen).await;
    let seen = &machine["status"]["seen"];
    assert_eq!((&seen["env"], &seen["files"], &seen["dns"]), (&json!(0), &json!(0), &json!(0)), "{seen}");
    assert!(!flag(seen, "/write") && !flag(seen, "/tcp"), "{seen}");
}

#[tokio::test]
async fn malformed_manifests_are_refused_with_the_field() {
    let objects = management().objects("malformed").await;
    let good = Sample::new("malformed", 1, 1);
    let cases: [(&str, &str, &str, Value, &str); 9] = [
        (
            "a Machine Deployment of no cluster",
            "MachineDeployment",
            "/spec/clusterName",
            Value::Null,
            "spec.clusterName",
        ),
        (
            "a template of no cluster",
            "MachineDeployment",
            "/spec/template/spec/clusterName",
            Value::Null,
            "clusterName",
        ),
        ("replicas in words", "MachineDeployment", "/spec/replicas", json!("two"), "spec.replicas"),
        (
            "a reference without a kind",
            "Cluster",
            "/spec/infrastructureRef/kind",
            Value::Null,
            "spec.infrastructureRef.kind",
        ),
        (
            "a kind that is none",
            "Cluster",
            "/spec/infrastructureRef/kind",
            json!("not a kind"),
            "spec.infrastructureRef.kind",
        ),
        (
            "a network that is none",
            "Cluster",
            "/spec/clusterNetwork/pods/cidrBlocks/0",
            json!("300.0.0.0/8"),
            "300.0.0.0/8",
        ),
        (
            "a port that is none",
            "Cluster",
            "/spec/controlPlaneEndpoint",
            json!({"host": "a", "port": 70000}),
            "controlPlaneEndpoint.port",
        ),
        ("no version", "KubeadmControlPlane", "/spec/version", Value::Null, "spec.version"),
        ("a list for an object", "DockerMachineTemplate", "/spec/template", json!([]), "spec.template"),
    ];
    for (name, kind, pointer, value, complaint) in cases {
        let mut document = good.clone().document(kind).clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        match document.pointer_mut(parent).unwrap() {
            Value::Object(parent) if value.is_null() => drop(parent.remove(field)),
            Value::Object(parent) => drop(parent.insert(field.to_owned(), value)),
            Value::Array(parent) => parent[field.parse::<usize>().unwrap()] = value,
            other => panic!("{name}: {other}"),
        }
        let refused = objects.try_create(&document).await.expect_err(name);
        assert!(refused.contains(complaint), "{name}: {complaint:?} is not in {refused:?}");
    }
    assert_eq!(objects.versions().await, []);
}

#[tokio::test]
async fn a_missing_template_is_said_and_waited_for() {
    let objects = management().objects("missing").await;
    let mut sample = Sample::new("missing", 1, 1);
    let templates = sample.take("KubeadmConfigTemplate");
    sample.create(&objects).await;
    let said = wait::until("it is said that the template is missing", async || {
        for kind in ["MachineDeployment", "MachineSet"] {
            for object in objects.list(kind).await {
                let conditions = object["status"]["conditions"].to_string();
                if conditions.contains("KubeadmConfigTemplate") && conditions.contains("missing-md-0") {
                    return Ok(conditions);
                }
                let events = objects.events(kind, name_of(&object)).await;
                if let Some((_, message, _)) =
                    events.into_iter().find(|(_, message, _)| message.contains("KubeadmConfigTemplate"))
                {
                    return Ok(message);
                }
            }
        }
        Err(format!("{:?}", objects.list("MachineSet").await))
    })
    .await;
    assert!(said.contains("missing-md-0"), "{said}");
    let workers = objects
        .list("DockerMachine")
        .await
        .into_iter()
        .filter(|machine| owner(machine, "KubeadmControlPlane").is_none());
    assert!(workers.count() <= 1, "no infrastructure without its bootstrap configuration");
    objects.create(&templates[0]).await;
    sample.provisioned(&objects).await;
    assert_eq!(objects.names("DockerMachine").await.len(), 2, "what was made before its Machine is not left over");
}

#[tokio::test]
async fn a_broken_bootstrap_is_told_with_the_end_of_its_log() {
    let management = management();
    let objects = management.objects("broken").await;
    let mut sample = Sample::new("broken", 1, 0);
    let commands = json!(["echo this is the reason; exit 3"]);
    sample.document("KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]["preKubeadmCommands"] = commands;
    sample.create(&objects).await;
    let name =
        wait::until("the machine is made", async || objects.names("DockerMachine").await.pop().ok_or_else(String::new))
            .await;
    let failed = |machine: &Value| {
        let (status, reason, _) = condition(machine, "BootstrapExecSucceeded");
        status == "False" && !["NotSucceeded", "WaitingForBootstrapData"].contains(&reason)
    };
    let machine = objects.until("DockerMachine", &name, "its bootstrap has failed", failed).await;
    let (_, _, message) = condition(&machine, "BootstrapExecSucceeded");
    assert!(message.contains("this is the reason") && message.contains('3'), "{message}");
    wait::until("an event tells it as well", async || {
        let events = objects.events("DockerMachine", &name).await;
        let told = events.iter().any(|(_, message, _)| message.contains("this is the reason"));
        if told { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await;
    let engine = management.engine();
    wait::unchanged("a machine that failed is not tried again", Duration::from_secs(2), async || {
        engine.containers("broken").await
    })
    .await;
    assert!(!flag(&objects.get("Cluster", "broken").await, "/status/initialization/controlPlaneInitialized"));
    sample.delete(&objects).await;
    assert_eq!(engine.containers("broken").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_version_that_is_none_stops_its_machines_with_the_reason() {
    let objects = management().objects("version").await;
    let mut sample = Sample::new("version", 1, 0);
    sample.document("KubeadmControlPlane")["spec"]["version"] = json!("banana");
    let document = sample.document("KubeadmControlPlane").clone();
    let refused = objects.try_create(&document).await;
    if let Err(message) = refused {
        assert!(message.contains("version"), "{message}");
        return;
    }
    sample.take("KubeadmControlPlane");
    sample.create(&objects).await;
    wait::until("it is said that the version is none", async || {
        let mut said = Vec::new();
        for kind in ["KubeadmControlPlane", "KubeadmConfig", "DockerMachine"] {
            for object in objects.list(kind).await {
                said.push(object["status"]["conditions"].to_string());
            }
        }
        if said.iter().any(|said| said.contains("banana")) { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    assert_eq!(management().engine().containers("version").await.len(), 1, "only the load balancer");
}

//! A host that has recorded a small cluster, and what tests do with its recordings.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use capwasm_tests::binary;
use capwasm_tests::folder::Folder;
use capwasm_tests::guests::fixture;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, condition, is};
use capwasm_tests::sample::{Sample, is_provisioned};
use capwasm_tests::wait;
use serde_json::{Value, json};

/// What machines of the fixture provider do, and the reason on their condition.
const DEEDS: [(&str, &str); 3] = [("panic", "ProviderTrapped"), ("loop", "ProviderCpuLimit"), ("wait", "NotYet")];

/// A host that has recorded a small cluster from its first call to its last, and the fixture's deeds.
pub struct Recorded {
    folder: Folder,
    pub management: Management,
}

impl Recorded {
    pub fn providers(&self) -> PathBuf {
        self.folder.join("plugins")
    }

    pub fn recordings(&self) -> PathBuf {
        self.folder.join("recordings")
    }

    /// Files whose name has all of these parts, the oldest first.
    pub fn files(&self, parts: &[&str]) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.recordings()) else { return Vec::new() };
        let named = |file: &PathBuf| {
            let name = file.file_name().unwrap().to_str().unwrap();
            !name.starts_with('.') && parts.iter().all(|part| name.contains(part))
        };
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(named).collect();
        files.sort();
        files
    }

    pub async fn file(&self, parts: &[&str]) -> PathBuf {
        wait::until(&format!("a call is recorded: {parts:?}"), async || {
            self.files(parts).into_iter().next().ok_or_else(|| format!("{:?}", self.files(&[])))
        })
        .await
    }
}

pub fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let made = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(record()));
        made.join().expect("a host records")
    })
}

/// The bundled components and the fixture's into a provider folder.
pub fn fill(providers: &Path) {
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

pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

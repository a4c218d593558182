//! Every command as a user calls it, and a host apart from its API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use capwasm_sim_service::docker::Docker;
use capwasm_tests::binary::{self, output, run};
use capwasm_tests::folder::Folder;
use capwasm_tests::guests;
use capwasm_tests::management::{Management, Process, client, free_address};
use capwasm_tests::objects::{Objects, owner, text};
use capwasm_tests::sample::Sample;
use capwasm_tests::wait;
use rustix::process::Signal;
use serde_json::{Value, json};

fn path(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn provider_inspect_tells_what_a_component_is_and_wants() {
    let file = binary::provider_dir().join("docker-infra.wasm");
    let text = output(&["provider", "inspect", path(&file)]);
    for part in [
        "docker-infra",
        "contract 0.1",
        "sha256:",
        "MB",
        "DockerMachine",
        "infrastructure-machine",
        "endpoints",
        "docker",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let inspected: Value =
        serde_json::from_str(&output(&["provider", "inspect", path(&file), "--output", "json"])).unwrap();
    assert_eq!(inspected["kinds"].as_array().unwrap().len(), 6);
    assert_eq!(inspected["wants"]["endpoints"], json!(["docker"]));
}

#[test]
fn crds_prints_every_definition_and_those_of_providers_with_contract_labels() {
    let providers = binary::provider_dir();
    let crds: Vec<Value> = serde_saphyr::from_multiple(&output(&["crds", "--provider-dir", path(&providers)])).unwrap();
    let kinds: Vec<&str> = crds.iter().map(|crd| text(crd, "/spec/names/kind")).collect();
    for kind in [
        "Cluster",
        "Machine",
        "MachineSet",
        "MachineDeployment",
        "WasmProvider",
        "DockerCluster",
        "KubeadmConfig",
        "KubeadmControlPlane",
        "OpenStackCluster",
        "OpenStackServer",
    ] {
        assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
    }
    let groups = ["infrastructure", "bootstrap", "controlplane"].map(|part| format!("{part}.cluster.x-k8s.io"));
    for crd in crds.iter().filter(|crd| groups.iter().any(|group| text(crd, "/spec/group") == group)) {
        // OpenStack's kinds are those of its provider's release 0.14, whose contract is v1beta1.
        let contract = if text(crd, "/spec/names/kind").starts_with("OpenStack") { "v1beta1" } else { "v1beta2" };
        let label = format!("/metadata/labels/cluster.x-k8s.io~1{contract}");
        assert!(crd.pointer(&label).is_some(), "{}", crd["metadata"]);
    }
    let core = output(&["crds", "--core-only"]);
    assert!(core.contains("kind: Cluster") && !core.contains("kind: DockerCluster"));
}

#[test]
fn completion_is_printed_for_each_shell() {
    for (shell, part) in
        [("bash", "complete -F _capwasm"), ("zsh", "#compdef capwasm"), ("fish", "complete -c capwasm")]
    {
        assert!(output(&["completion", shell]).contains(part), "{shell}");
    }
}

#[test]
fn mistakes_end_with_exit_code_1_and_say_what_is_wrong() {
    let folder = Folder::new();
    let (nowhere, empty) = (folder.join("nowhere"), folder.join("empty"));
    std::fs::create_dir(&empty).unwrap();
    let module = folder.join("module.wasm");
    std::fs::write(&module, wat::parse_str("(module)").unwrap()).unwrap();
    let dead = folder.join("dead.kubeconfig");
    let cluster = json!({"name": "c", "cluster": {"server": format!("https://{}", free_address())}});
    let context = json!({"name": "c", "context": {"cluster": "c", "user": "u"}});
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster], "contexts": [context],
        "users": [{"name": "u", "user": {}}]});
    std::fs::write(&dead, kubeconfig.to_string()).unwrap();
    let (nowhere, empty, module, dead) = (path(&nowhere), path(&empty), path(&module), path(&dead));
    let data = folder.join("data");
    let cases: [(&[&str], &str); 8] = [
        (&["provider", "inspect", nowhere], "unable to read"),
        (&["provider", "inspect", module], "is not a provider"),
        (&["provider", "list", "--kubeconfig", nowhere], "unable to read kubeconfig"),
        (&["describe", "cluster", "c", "--kubeconfig", dead], "no API server answers"),
        (&["get", "kubeconfig", "c", "--kubeconfig", dead], "no API server answers"),
        (&["run", "--kubeconfig", dead, "--engine", "sim", "--provider-dir", empty], "no API server answers"),
        (
            &["up", "--data-dir", path(&data), "--listen", "127.0.0.1:0", "--engine", "sim", "--provider-dir", empty],
            "docker-infra.wasm is not in",
        ),
        (
            &["quickstart", "--engine", "docker", "--docker-socket", nowhere, "--provider-dir", empty],
            "no Docker engine answers",
        ),
    ];
    for (arguments, complaint) in cases {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("error: ") && said.contains(complaint), "{arguments:?}: {complaint:?} is not in {said}");
    }
}

#[tokio::test]
async fn a_quick_start_on_the_simulator_shows_a_cluster_and_tears_it_down() {
    let folder = Folder::new();
    let (data, providers) = (folder.join("data"), binary::provider_dir());
    let said =
        output(&["quickstart", "--engine", "sim", "--data-dir", path(&data), "--provider-dir", path(&providers)]);
    assert!(said.contains("Cluster/quick") && said.contains("SIMULATED"), "{said}");
    assert_eq!(said.matches("─Machine/").count(), 3, "{said}");
    let engine = capwasm_tests::engine::Engine::on(&data.join("sim.sock"));
    wait::until("its simulated engine ends", async || if engine.runs() { Err(String::new()) } else { Ok(()) }).await;
}

#[tokio::test]
async fn describe_and_list_show_what_runs() {
    let management = Management::shared();
    let kubeconfig = management.kubeconfig();
    let objects = management.objects("shown").await;
    let sample = Sample::new("shown", 1, 1);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    let tree = output(&["describe", "cluster", "shown", "--namespace", "shown", "--kubeconfig", path(&kubeconfig)]);
    for part in [
        "Cluster/shown",
        "ClusterInfrastructure - DockerCluster/shown",
        "ControlPlane - KubeadmControlPlane/shown-control-plane",
        "MachineDeployment/shown-md-0",
        "Available",
        "Ready",
    ] {
        assert!(tree.contains(part), "{part:?} is not in {tree}");
    }
    let list = output(&["provider", "list", "--kubeconfig", path(&kubeconfig)]);
    for name in binary::PLUGINS {
        let line = list.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name} is not in {list}"));
        assert!(line.contains("True") && line.contains("sha256:"), "{line}");
    }
    for (arguments, complaint) in
        [(["describe", "cluster"], "nobody"), (["get", "kubeconfig"], "no Secret shown/nobody-kubeconfig")]
    {
        let failed =
            run(&[&arguments[..], &["nobody", "--namespace", "shown", "--kubeconfig", path(&kubeconfig)]].concat());
        let said = String::from_utf8_lossy(&failed.stderr);
        assert!(failed.status.code() == Some(1) && said.contains(complaint), "{said}");
    }
}

#[tokio::test]
async fn a_host_that_ends_in_order_ends_its_simulated_engine_unless_that_has_containers() {
    let management = Management::start();
    let engine = management.engine();
    let docker = Docker::unix(management.data_dir().join("sim.sock"));
    let image = "/v1.41/images/create?fromImage=kindest/node&tag=v1.34.0";
    docker.json(http::Method::POST, image, &Value::Null).await.unwrap();
    let container = json!({"Image": "kindest/node:v1.34.0"});
    docker.json(http::Method::POST, "/v1.41/containers/create?name=left", &container).await.unwrap();
    assert!(management.stop());
    assert!(engine.runs(), "somebody may want its containers");
    management.restart();
    engine.remove("left").await;
    assert!(management.stop());
    assert!(!engine.answers().await);
    wait::until("its process ends", async || if engine.runs() { Err(String::new()) } else { Ok(()) }).await;
}

#[tokio::test]
async fn a_simulated_engine_that_dies_is_started_again_with_its_containers() {
    let management = Management::start();
    let engine = management.engine();
    let docker = Docker::unix(management.data_dir().join("sim.sock"));
    let image = "/v1.41/images/create?fromImage=kindest/node&tag=v1.34.0";
    docker.json(http::Method::POST, image, &Value::Null).await.unwrap();
    let container = json!({"Image": "kindest/node:v1.34.0"});
    docker.json(http::Method::POST, "/v1.41/containers/create?name=left", &container).await.unwrap();
    engine.signal(Signal::KILL);
    wait::until("the engine is gone", async || if engine.runs() { Err(String::new()) } else { Ok(()) }).await;
    wait::until("there is another", async || if engine.answers().await { Ok(()) } else { Err(String::new()) }).await;
    assert_eq!(engine.inspect("left").await["Name"], "/left");
    engine.remove("left").await;
    assert!(management.stop());
    assert!(!engine.answers().await, "who started it ends it");
}

#[test]
fn the_admin_kubeconfig_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let kubeconfig = Management::shared().kubeconfig();
    assert_eq!(std::fs::metadata(kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
}

/// An API server alone, and hosts against it.
struct Apart {
    folder: Folder,
    server: Option<Process>,
}

impl Apart {
    fn start() -> Apart {
        let folder = Folder::new();
        let mut command = Command::new(binary::capwasm());
        command.arg("apiserver").arg("--data-dir").arg(folder.join("server")).args(["--listen", "127.0.0.1:0"]);
        command.arg("--kubeconfig").arg(folder.join("kubeconfig"));
        let server = Process::spawn(command, &folder.join("server.log"), "capwasm apiserver is ready on");
        Apart { folder, server: Some(server) }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(&format!("{name}.log"))
    }

    fn host(&self, core: bool) -> Command {
        self.host_with(core, &binary::provider_dir())
    }

    fn host_with(&self, core: bool, providers: &Path) -> Command {
        let mut command = Command::new(binary::capwasm());
        command.arg("run").arg("--kubeconfig").arg(self.kubeconfig()).args(["--engine", "sim"]);
        command.arg("--data-dir").arg(self.folder.join("host")).arg("--provider-dir").arg(providers);
        command.args(["--diagnostics", &free_address(), &format!("--core={core}")]);
        command
    }

    fn run(&self, name: &str, core: bool) -> Process {
        Process::spawn(self.host(core), &self.log(name), "capwasm runs")
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill();
        }
    }
}

#[test]
fn a_store_is_checked_and_repaired_while_no_server_has_it() {
    let mut apart = Apart::start();
    let folder = apart.folder.join("server");
    let of = |what: &str, more: &[&str]| {
        let ended = binary::run(&[&["apiserver", what, "--data-dir", path(&folder)], more].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ended.status.success(), text(&ended.stdout), text(&ended.stderr))
    };
    let (success, _, error) = of("check", &[]);
    assert!(!success && error.contains("another process has the database open"), "{error}");
    assert!(apart.server.take().unwrap().stop());
    let (success, told, _) = of("check", &[]);
    assert!(success && told.contains("nothing is damaged"), "{told}");

    let store = folder.join("store.redb");
    let mut bytes = std::fs::read(&store).unwrap();
    let name = b"\"name\":\"kube-public\"";
    let spoilt: Vec<usize> = (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(name)).collect();
    spoilt.iter().for_each(|at| bytes[*at] ^= 1);
    std::fs::write(&store, &bytes).unwrap();
    let (success, told, error) = of("check", &["-o", "json"]);
    let told: Value = serde_json::from_str(&told).expect(&error);
    assert!(!success && told["damaged"][0]["object"] == "namespaces/kube-public", "{told}");
    let (success, told, _) = of("repair", &[]);
    assert!(!success && told.contains("lost namespaces/kube-public"), "something is lost: {told}");
    assert_eq!(std::fs::read(folder.join("store.redb.damaged-1")).unwrap(), bytes);
    let (success, told, _) = of("check", &[]);
    assert!(success && told.contains("nothing is damaged"), "{told}");
}

#[tokio::test]
async fn a_host_apart_from_its_api_server_provisions_and_a_second_one_waits_for_the_lease() {
    let apart = Apart::start();
    let mut first = apart.run("first", true);
    assert!(first.ready.contains("core: true"), "{}", first.ready);
    let second = std::thread::spawn({
        let (command, log) = (apart.host(true), apart.log("second"));
        move || Process::spawn(command, &log, "capwasm runs")
    });
    let objects = Objects::in_new(client(&apart.kubeconfig()).await, "apart").await;
    let sample = Sample::new("apart", 1, 1);
    sample.create(&objects).await;
    sample.provisioned(&objects).await;
    wait::until("the second host says what it waits for", async || {
        match std::fs::read_to_string(apart.log("second")) {
            Ok(log) if log.contains("waiting for the Lease") => Ok(()),
            log => Err(format!("{log:?}")),
        }
    })
    .await;
    assert!(first.runs() && !second.is_finished(), "one at a time");
    assert!(first.stop(), "SIGTERM ends it in order");
    let second = second.join().expect("the second takes over");
    sample.delete(&objects).await;
    assert!(second.stop());
}

/// What a host would write is there when it goes on: a new cluster, of which it learns by the watches that it still has. The other host
/// stands still meanwhile, so that every write is the first one's.
#[tokio::test]
async fn a_host_that_was_stopped_until_another_took_over_writes_nothing_more() {
    let apart = Apart::start();
    let mut first = apart.run("first", true);
    let second = std::thread::spawn({
        let (command, log) = (apart.host(true), apart.log("second"));
        move || Process::spawn(command, &log, "capwasm runs")
    });
    let client = client(&apart.kubeconfig()).await;
    let clusters = async |names: [&str; 6]| {
        let mut all = Vec::new();
        for name in names {
            let objects = Objects::in_new(client.clone(), name).await;
            Sample::new(name, 1, 0).create(&objects).await;
            all.push(objects);
        }
        all
    };
    // It is stopped in the middle of its work.
    let mut all = clusters(["a", "b", "c", "d", "e", "f"]).await;
    all[5].until("DockerCluster", "f", "the first host works", |object| owner(object, "Cluster").is_some()).await;
    first.signal(Signal::STOP);
    let second = second.join().expect("the second takes over");
    second.signal(Signal::STOP);
    all.extend(clusters(["g", "h", "i", "j", "k", "l"]).await);
    let versions = async || {
        let mut found = Vec::new();
        for objects in &all {
            found.extend(objects.versions().await);
        }
        found
    };
    let before = versions().await;
    first.signal(Signal::CONT);
    wait::until("the first host leaves", async || if first.runs() { Err("it runs".to_owned()) } else { Ok(()) }).await;
    assert_eq!(versions().await, before, "the first host wrote");
    let told = std::fs::read_to_string(apart.log("first")).unwrap();
    assert!(told.contains("the Lease was lost"), "{told}");
    second.kill();
}

#[tokio::test]
async fn no_core_runs_beside_upstreams_but_providers_do() {
    let apart = Apart::start();
    let objects = Objects::in_new(client(&apart.kubeconfig()).await, "capi-system").await;
    let renewed = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.000000Z"]).output().unwrap();
    let renewed = String::from_utf8(renewed.stdout).unwrap();
    objects
        .create(&json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "controller-leader-election-capi", "namespace": "capi-system"},
            "spec": {"holderIdentity": "capi-controller-manager-0", "leaseDurationSeconds": 600, "renewTime": renewed.trim()}}))
        .await;
    let refused = apart.host(true).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("capi-controller-manager-0") && said.contains("--core=false"), "{said}");

    // Upstream would have installed these.
    for crd in serde_saphyr::from_multiple::<Value>(&output(&["crds", "--core-only"])).unwrap() {
        let api: kube::Api<kube::api::DynamicObject> = kube::Api::all_with(
            objects.client(),
            &kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
                "apiextensions.k8s.io",
                "v1",
                "CustomResourceDefinition",
            )),
        );
        api.create(&Default::default(), &serde_json::from_value(crd).unwrap()).await.unwrap();
    }
    let host = apart.run("providers", false);
    assert!(host.ready.contains("core: false"), "{}", host.ready);
    let objects = Objects::in_new(objects.client(), "providers").await;
    Sample::new("providers", 1, 1).create(&objects).await;
    wait::unchanged("what only a core acts on", std::time::Duration::from_secs(2), async || objects.versions().await)
        .await;

    // As upstream's core would: the owner is what the provider waits for.
    let cluster = objects.get("Cluster", "providers").await;
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "providers", "uid": cluster["metadata"]["uid"]});
    let labels = json!({"cluster.x-k8s.io/cluster-name": "providers"});
    objects
        .merge("DockerCluster", "providers", json!({"metadata": {"ownerReferences": [owner], "labels": labels}}))
        .await;
    objects
        .until("DockerCluster", "providers", "its provider provisions it", capwasm_tests::sample::is_provisioned)
        .await;
    assert!(host.stop());
}

/// With a CRD of somebody else the provider of its kind says so, and all else serves. Core runs alone where none is chosen.
#[tokio::test]
async fn a_bundled_provider_that_cannot_serve_is_a_condition_and_none_need_be_installed() {
    let apart = Apart::start();
    let kind = kube::api::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let crds: kube::Api<kube::api::DynamicObject> =
        kube::Api::all_with(client(&apart.kubeconfig()).await, &kube::api::ApiResource::from_gvk(&kind));
    let foreign = |crd: &Value| crd["metadata"]["name"] == "dockerclusters.infrastructure.cluster.x-k8s.io";
    let all = serde_saphyr::from_multiple::<Value>(&output(&["crds"])).unwrap();
    let mut theirs = all.into_iter().find(foreign).unwrap();
    theirs["metadata"].as_object_mut().unwrap().remove("labels");
    crds.create(&Default::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();

    let alone = |names: &str| {
        let mut command = apart.host_with(true, apart.folder.path());
        command.args(["--providers", names]);
        command
    };
    let core = Process::spawn(alone("none"), &apart.log("core"), "capwasm runs");
    let providers = || output(&["provider", "list", "--kubeconfig", path(&apart.kubeconfig())]);
    assert!(!providers().contains("infra"), "{}", providers());
    assert!(crds.get_opt("clusters.cluster.x-k8s.io").await.unwrap().is_some());
    assert!(core.stop());
    let missing = alone("docker-infra").output().unwrap();
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(
        !missing.status.success() && said.contains("docker-infra.wasm is not in") && said.contains("--providers"),
        "{said}"
    );

    let host = apart.run("host", true);
    let listed = providers();
    let line = |name: &str| listed.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(line("docker-infra").contains("CRDConflict"), "{listed}");
    assert!(line("kubeadm-bootstrap").contains("True   True"), "{listed}");
    let told = std::fs::read_to_string(apart.log("host")).unwrap();
    assert!(told.contains("docker-infra") && told.contains("was installed by somebody else"), "{told}");
    assert!(host.stop());
}

#[test]
fn an_unknown_component_in_the_folder_is_left_alone() {
    let folder = Folder::new();
    let providers = folder.join("plugins");
    std::fs::create_dir(&providers).unwrap();
    for name in binary::PLUGINS {
        let file = format!("{name}.wasm");
        std::fs::copy(binary::provider_dir().join(&file), providers.join(&file)).unwrap();
    }
    std::fs::copy(guests::fixture("guest"), providers.join("guest.wasm")).unwrap();
    let management = Management::start_with(providers);
    let list = output(&["provider", "list", "--kubeconfig", path(&management.kubeconfig())]);
    assert!(!list.contains("fixture"), "nothing is granted to a file by being there: {list}");
}

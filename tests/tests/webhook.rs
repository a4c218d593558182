//! `capwasm run` with its webhook, against the real kube-apiserver: versions of core and provider kinds, admission by a
//! provider, and a CA that is replaced.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use capwasm_tests::folder::Folder;
use capwasm_tests::management::{self, Process, client_of, free_address};
use capwasm_tests::objects::Objects;
use capwasm_tests::{binary, guests, real, wait};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const GROUP: &str = "infrastructure.fixture.example";
const TOKEN: &str = "0123456789abcdef";

/// etcd and kube-apiserver as processes in a folder, which ends them.
struct RealServer {
    kubeconfig: PathBuf,
    _processes: [Child; 2],
}

impl RealServer {
    async fn start(folder: &Folder, program: &Path) -> RealServer {
        let spawn = |name: &str, arguments: &[String]| {
            let link = folder.join(name);
            std::os::unix::fs::symlink(program, &link).expect("a link");
            let log = std::fs::File::create(folder.join(&format!("{name}.log"))).expect("a log");
            Command::new(link)
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect(name)
        };
        let (client, peer, listen) = (free_address(), free_address(), free_address());
        let path = |name: &str| folder.join(name).to_str().expect("a path of letters").to_owned();
        let etcd = spawn(
            "etcd",
            &[
                format!("--data-dir={}", path("etcd-data")),
                format!("--listen-client-urls=http://{client}"),
                format!("--advertise-client-urls=http://{client}"),
                format!("--listen-peer-urls=http://{peer}"),
                "--unsafe-no-fsync=true".to_owned(),
            ],
        );
        let key = rcgen::KeyPair::generate().expect("a key");
        std::fs::write(folder.join("sa.key"), key.serialize_pem()).expect("a file");
        std::fs::write(folder.join("sa.pub"), key.public_key_pem()).expect("a file");
        std::fs::write(folder.join("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n")).expect("a file");
        let port = listen.rsplit_once(':').expect("a port").1;
        let server = spawn(
            "kube-apiserver",
            &[
                format!("--etcd-servers=http://{client}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                format!("--cert-dir={}", path("certificates")),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-key-file={}", path("sa.pub")),
                format!("--service-account-signing-key-file={}", path("sa.key")),
                format!("--token-auth-file={}", path("tokens.csv")),
                "--authorization-mode=RBAC".to_owned(),
                "--service-cluster-ip-range=10.96.0.0/24".to_owned(),
                "--disable-admission-plugins=ServiceAccount".to_owned(),
            ],
        );
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": {"server": format!("https://{listen}"), "insecure-skip-tls-verify": true}}],
            "users": [{"name": "real", "user": {"token": TOKEN}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
        });
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, config.to_string()).expect("a file");
        let log = folder.join("kube-apiserver.log");
        let asking = client_of(&config.to_string()).await;
        wait::until("kube-apiserver is ready", async || {
            let request = http::Request::get("/readyz").body(Vec::new()).expect("a request");
            match asking.request_text(request).await {
                Ok(text) if text == "ok" => Ok(()),
                other => Err(format!("{other:?}; its log ends with: {}", last_line(&log))),
            }
        })
        .await;
        RealServer { kubeconfig, _processes: [etcd, server] }
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        for process in &mut self._processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// `capwasm run` with its webhook, and with the fixture provider in its folder.
struct Host {
    process: Option<Process>,
    arguments: Vec<String>,
    log: PathBuf,
    data: PathBuf,
}

impl Host {
    fn start(folder: &Folder, server: &RealServer) -> Host {
        let providers = folder.join("plugins");
        std::fs::create_dir(&providers).expect("a folder");
        for name in binary::PLUGINS {
            let file = format!("{name}.wasm");
            std::fs::copy(binary::provider_dir().join(&file), providers.join(&file)).expect("a copy");
        }
        std::fs::copy(guests::fixture("guest"), providers.join("fixture.wasm")).expect("a copy");
        let (webhook, diagnostics) = (free_address(), free_address());
        let data = folder.join("data");
        management::give_compiled(&data.join("aot"));
        let text = |path: &Path| path.to_str().expect("a path of letters").to_owned();
        let arguments = [
            "run",
            "--kubeconfig",
            &text(&server.kubeconfig),
            "--engine=sim",
            "--provider-dir",
            &text(&providers),
            "--data-dir",
            &text(&data),
            "--diagnostics",
            &diagnostics,
            "--webhook",
            &webhook,
            "--webhook-url",
            &format!("https://{webhook}"),
        ];
        let arguments = arguments.map(str::to_owned).to_vec();
        let mut host = Host { process: None, arguments, log: folder.join("run.log"), data };
        host.restart();
        management::keep_compiled(&host.data.join("aot"));
        host
    }

    fn restart(&mut self) {
        self.stop();
        let mut command = Command::new(binary::capwasm());
        command.args(&self.arguments);
        self.process = Some(Process::spawn(command, &self.log, "capwasm runs"));
    }

    fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            assert!(process.stop(), "it ends when it is told to");
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }
}

fn last_line(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default().lines().last().unwrap_or_default().to_owned()
}

fn pool(name: &str, admit: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixturePool",
        "metadata": {"name": name, "annotations": {"fixture.example/admit": admit}}, "spec": spec})
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

fn cluster_scoped(client: &kube::Client, group: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind)))
}

fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("expected a refusal: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_api_server_converts_and_admits_through_the_hosts_webhook() {
    let test = "the_real_api_server_converts_and_admits_through_the_hosts_webhook";
    let Some(program) = real::kubeadm(real::NEWER.folder, test) else { return };
    let folder = Folder::new();
    let server = RealServer::start(&folder, &program).await;
    let mut host = Host::start(&folder, &server);
    let client = management::client(&server.kubeconfig).await;
    let objects = Objects::in_new(client.clone(), "webhook").await;

    // Core kinds, natively: written in the older version, stored in the newer one.
    let old_clusters = objects.api_of("cluster.x-k8s.io/v1beta1", "Cluster");
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"paused": true, "infrastructureRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerCluster", "name": "c"}}});
    old_clusters.create(&PostParams::default(), &object(cluster)).await.unwrap();
    let stored = objects.get("Cluster", "c").await;
    assert_eq!(
        stored["spec"]["infrastructureRef"],
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerCluster", "name": "c"})
    );
    let shown = old_clusters.get("c").await.unwrap();
    assert_eq!(shown.data["spec"]["infrastructureRef"]["kind"], "DockerCluster");
    assert_eq!(old_clusters.list(&Default::default()).await.unwrap().items.len(), 1);

    // Kinds of a bundled provider, by the provider.
    let old_docker = objects.api_of("infrastructure.cluster.x-k8s.io/v1beta1", "DockerCluster");
    let docker = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerCluster",
        "metadata": {"name": "d"}, "spec": {"loadBalancer": {"customHAProxyConfigTemplateRef": {"name": "t"}}}});
    old_docker.create(&PostParams::default(), &object(docker)).await.unwrap();
    assert_eq!(objects.get("DockerCluster", "d").await["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta2");

    // A third party's, which are admitted as well.
    let wasm_provider = json!({"apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider",
        "metadata": {"name": "fixture"}, "spec": {"source": {"file": "fixture.wasm"}, "crdGroups": [GROUP],
            "grants": {"endpoints": {"engine": {"unix": "/nowhere.sock"}}}}});
    let providers = objects.api("WasmProvider");
    providers.create(&PostParams::default(), &object(wasm_provider)).await.unwrap();
    objects.until("WasmProvider", "fixture", "it serves", is_ready).await;
    let (pools, old_pools) = (objects.api("FixturePool"), objects.api_of(&format!("{GROUP}/v1beta1"), "FixturePool"));
    let configurations = cluster_scoped(&client, "admissionregistration.k8s.io", "ValidatingWebhookConfiguration");
    wait::until("the API server asks about the kind", async || {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        match pools.create(&dry, &object(pool("p", "forbid", json!({})))).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let configuration = configurations.get("capwasm").await.unwrap();
    let webhooks = configuration.data["webhooks"].as_array().unwrap().len();
    assert_eq!(webhooks, 1, "no kind but the one whose descriptor says so");
    assert_eq!(configuration.metadata.generation, Some(2), "written when it is made and when the kind comes");

    let created = pools.create(&PostParams::default(), &object(pool("p", "zone", json!({})))).await.unwrap();
    assert_eq!(created.data["spec"], json!({"placement": {"zone": "z"}}), "defaulted");
    assert_eq!(old_pools.get("p").await.unwrap().data["spec"], json!({"zone": "z"}));
    let other = Patch::Merge(json!({"spec": {"zone": "other"}}));
    let (code, message) = refusal(old_pools.patch("p", &PatchParams::default(), &other).await);
    assert_eq!(code, 422, "{message}");
    let expected =
        "admission webhook \"fixturepools.infrastructure.fixture.example\" denied the request: spec.placement.zone";
    assert!(message.contains(expected), "{message}");
    let status = Patch::Merge(json!({"status": {"replicas": 1}}));
    pools.patch_status("p", &PatchParams::default(), &status).await.unwrap();

    // The CA goes: another one is made, and trusted everywhere.
    let crds = cluster_scoped(&client, "apiextensions.k8s.io", "CustomResourceDefinition");
    let trusted = async || {
        let bundle = |object: &DynamicObject, pointer: &str| object.data.pointer(pointer).cloned().unwrap_or_default();
        let crd = crds.get("clusters.cluster.x-k8s.io").await.unwrap();
        let configuration = configurations.get("capwasm").await.unwrap();
        (
            bundle(&crd, "/spec/conversion/webhook/clientConfig/caBundle"),
            bundle(&configuration, "/webhooks/0/clientConfig/caBundle"),
        )
    };
    let before = trusted().await;
    assert_eq!(before.0, before.1);
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client.clone(), "kube-system");
    secrets.delete("capwasm-webhook", &Default::default()).await.unwrap();
    wait::until("the new CA is trusted", async || match trusted().await {
        (crd, configuration) if crd != before.0 && crd == configuration => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    wait::until("the webhook is asked as before", async || {
        let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        let converted = old_clusters.patch("c", &PatchParams::default(), &label).await.map(drop);
        let admitted = pools.patch("p", &PatchParams::default(), &label).await.map(drop);
        converted.and(admitted).map_err(|error| error.to_string())
    })
    .await;

    // While the host is down nothing of the kind is stored, except that what is being deleted may go.
    let held = json!({"metadata": {"finalizers": ["fixture.example/held"]}});
    pools.patch("p", &PatchParams::default(), &Patch::Merge(held)).await.unwrap();
    host.stop();
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "c"}}}));
    assert_eq!(refusal(pools.patch("p", &PatchParams::default(), &label).await).0, 500);
    pools.delete("p", &Default::default()).await.unwrap();
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pools.patch("p", &PatchParams::default(), &release).await.unwrap();
    // It starts with the same CA, and takes the kind back when its provider goes.
    let bundle = trusted().await;
    host.restart();
    assert_eq!(trusted().await, bundle);
    objects.until("WasmProvider", "fixture", "it serves", is_ready).await;
    providers.delete("fixture", &Default::default()).await.unwrap();
    wait::until("nobody is asked any more", async || {
        let live = configurations.get("capwasm").await.unwrap();
        match live.data.get("webhooks").and_then(Value::as_array).map_or(0, Vec::len) {
            0 => Ok(()),
            left => Err(format!("{left} webhooks")),
        }
    })
    .await;
    host.stop();
}

fn is_ready(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(ready))
}

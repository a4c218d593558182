//! A management cluster in this process: readiness, and what it compiles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use capwasm_apiserver::Store;
use capwasm_runtime::{
    CompileError, Compiler, InProcess, NamedEndpoint, Precompiled, RuntimeOptions, attach_precompiled,
};
use capwasm_sim_service::docker::Address;
use capwasm_test_support::guests;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use anyhow::Result;
use capwasm_server::engine::{Engine, Machines};
use capwasm_server::up::{Options, Up, start};
use capwasm_server::{embedded, host};
use tokio_util::sync::CancellationToken;

const GROUP: &str = "infrastructure.fixture.example";

/// Compiles when permitted, and counts requests.
#[derive(Debug)]
struct Counting {
    may: Semaphore,
    asked: AtomicUsize,
}

impl Counting {
    fn with(permits: usize) -> Arc<Self> {
        Arc::new(Counting { may: Semaphore::new(permits), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Compiler for Counting {
    async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.may.acquire().await.unwrap().forget();
        InProcess.compile(component).await
    }
}

fn component() -> Vec<u8> {
    std::fs::read(guests::fixture("guest")).unwrap()
}

/// A management cluster with the fixture provider only.
fn options(folder: &Path, compiler: Arc<Counting>, precompiled: Option<Precompiled>) -> Options {
    // An error only says that there is one already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let plugins = folder.join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join("fixture.wasm"), component()).unwrap();
    let data_dir = folder.join("data");
    let runtime = RuntimeOptions {
        max_in_flight: 32,
        aot_dir: Some(folder.join("aot")),
        precompiled: precompiled.map(Arc::new),
        compiler,
        ..RuntimeOptions::default()
    };
    let host = host::Options {
        runtime,
        bundled: vec!["fixture".to_owned()],
        endpoints: vec![("engine".to_owned(), NamedEndpoint::unix("/nowhere.sock"))],
        ..host::Options::new(plugins, &data_dir)
    };
    let server = embedded::Options { data_dir, listen: ([127, 0, 0, 1], 0).into(), kubeconfig: None };
    Options { server, host, diagnostics: Some(free_address()) }
}

fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn no_engine() -> Engine {
    Engine { address: Address::Unix("/nowhere.sock".into()), machines: Machines::Simulated, simulator: None }
}

fn begin(options: &Options) -> tokio::task::JoinHandle<Result<Up>> {
    let options = options.clone();
    tokio::spawn(async move { start(&options, no_engine(), &CancellationToken::new()).await })
}

/// Over TLS, as `kubectl` connects.
async fn client_of(options: &Options) -> kube::Client {
    let path = options.server.data_dir.join("kubeconfig");
    let text = until("there is a kubeconfig", async || std::fs::read_to_string(&path).ok()).await;
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    // A 503 is an answer here, not a reason to ask again.
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

async fn create(client: &kube::Client, manifest: serde_json::Value) {
    let (group, version) = manifest["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let kind = GroupVersionKind::gvk(group, version, manifest["kind"].as_str().unwrap());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind));
    api.create(&PostParams::default(), &serde_json::from_value(manifest).unwrap()).await.unwrap();
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let search = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), search).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Response of the API server to a path: status code, and text or message.
async fn api_server(client: &kube::Client, path: &str) -> (u16, String) {
    match client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await {
        Ok(text) => (200, text),
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

/// Response of the host's diagnostics to a path.
async fn host_says(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: capwasm\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// `kubectl apply` right after `/readyz` must not fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_ready_when_the_last_bundled_kind_is_served_and_says_what_is_missing_before() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = Counting::with(0);
    let mut options = options(folder.path(), compiler.clone(), None);
    // So that what the host looks into and what the loader loads are compiled separately.
    options.host.runtime.aot_dir = None;
    let starting = begin(&options);
    let client = client_of(&options).await;
    let diagnostics = options.diagnostics.unwrap();
    let missing = (503, "not served yet: provider fixture".to_owned());
    until("only the provider is missing", async || {
        let said = api_server(&client, "/readyz").await;
        assert!(said.0 == 503 && said.1.contains("provider fixture"), "{said:?}");
        (said == missing).then_some(())
    })
    .await;
    assert_eq!(host_says(diagnostics, "/readyz").await, missing);
    for path in ["/livez", "/healthz"] {
        assert_eq!(api_server(&client, path).await.0, 200, "{path}");
        assert_eq!(host_says(diagnostics, path).await.0, 200, "{path}");
    }
    assert!(!starting.is_finished());

    compiler.may.add_permits(2);
    let up = starting.await.unwrap().unwrap();
    assert_eq!(api_server(&client, "/readyz").await, (200, "ok".to_owned()));
    assert_eq!(host_says(diagnostics, "/readyz").await, (200, "ok".to_owned()));
    let pool = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "FixturePool", "metadata": {"name": "p"},
        "spec": {"zone": "a"}});
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"paused": true, "infrastructureRef": {"apiVersion": format!("{GROUP}/v1beta1"), "kind": "FixtureCluster", "name": "c"}}});
    for manifest in [pool, cluster] {
        create(&client, manifest).await;
    }
    up.stop().await.unwrap();

    // What the earlier process wrote into the WasmProvider's status is not enough.
    options.server.listen = free_address();
    std::fs::remove_file(options.server.data_dir.join("kubeconfig")).unwrap();
    let store = options.server.data_dir.join("store.redb");
    until("the store is let go of", async || Store::open(&store, 1 << 20).ok().map(drop)).await;
    compiler.may.add_permits(1);
    let starting = begin(&options);
    until("the loader wants its component compiled", async || (compiler.asked() == 4).then_some(())).await;
    let again = client_of(&options).await;
    let said = api_server(&again, "/readyz").await;
    assert!(said.0 == 503 && said.1.contains("provider fixture") && !starting.is_finished(), "{said:?}");
    compiler.may.add_permits(1);
    let up = starting.await.unwrap().unwrap();
    assert_eq!(api_server(&again, "/readyz").await.0, 200);
    up.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_on_a_new_folder_compiles_only_what_the_program_has_not_compiled_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (bare, program) = (folder.path().join("bare"), folder.path().join("program"));
    std::fs::write(&bare, "the image of a program").unwrap();
    let code = InProcess.compile(&component()).await.unwrap();
    attach_precompiled(&bare, &program, &[(component(), code)]).unwrap();
    let mut other = std::fs::read(&program).unwrap();
    let key = br#""engine":""#;
    let at = other.windows(key.len()).rposition(|window| window == key).unwrap() + key.len();
    other[at] = if other[at] == b'0' { b'1' } else { b'0' };
    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, other).unwrap();

    for (name, image, compilations) in
        [("ours", &program, 0), ("for another engine", &elsewhere, 1), ("none", &bare, 1)]
    {
        let compiler = Counting::with(8);
        let new = folder.path().join(name.replace(' ', "-"));
        let options = options(&new, compiler.clone(), Precompiled::of(image).unwrap());
        let up = start(&options, no_engine(), &CancellationToken::new()).await.unwrap();
        assert_eq!(compiler.asked(), compilations, "{name}");
        let kept = std::fs::read_dir(new.join("aot")).unwrap().count();
        assert_eq!(kept, 1, "{name}: it is mapped from the folder");
        up.stop().await.unwrap();
    }
}

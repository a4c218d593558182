//! A provider's slots, through real components whose calls hang.

use std::collections::BTreeSet;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::*;

/// Counts calls of leases with `do: report`. Calls of leases named `hog…` get no answer.
#[derive(Clone)]
struct Engine {
    told: Arc<Mutex<Told>>,
    free: watch::Sender<bool>,
}

#[derive(Default)]
struct Told {
    hanging: BTreeSet<String>,
    most: usize,
    ended: BTreeSet<String>,
}

impl Engine {
    fn start(socket: &Path) -> Engine {
        let engine = Engine { told: Arc::default(), free: watch::Sender::new(false) };
        let listener = UnixListener::bind(socket).unwrap();
        let answering = engine.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let engine = answering.clone();
                // A host that hangs up is no failure of the engine's.
                tokio::spawn(async move { engine.answer(stream).await });
            }
        });
        engine
    }

    async fn answer(self, mut stream: UnixStream) -> std::io::Result<()> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await?);
        }
        let request = String::from_utf8_lossy(&request).into_owned();
        let mut path = request.split(' ').nth(1).unwrap_or_default().split('/').skip(1);
        let (moment, name) = (path.next().unwrap_or_default(), path.next().unwrap_or_default().to_owned());
        if moment == "begin" && name.starts_with("hog") {
            {
                let mut told = self.told.lock();
                assert!(told.hanging.insert(name.clone()), "{name} is called twice at a time");
                told.most = told.most.max(told.hanging.len());
            }
            let _ = self.free.subscribe().wait_for(|free| *free).await;
            self.told.lock().hanging.remove(&name);
        }
        if moment == "end" {
            self.told.lock().ended.insert(name);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await
    }

    fn hanging(&self) -> usize {
        self.told.lock().hanging.len()
    }

    fn most(&self) -> usize {
        self.told.lock().most
    }

    async fn until_hanging(&self, count: usize) {
        let what = format!("{count} calls hang");
        until(&what, async || (self.hanging() == count).then_some(())).await;
    }

    async fn until_ended(&self, prefix: &str, count: usize) {
        let ended = || self.told.lock().ended.iter().filter(|name| name.starts_with(prefix)).count();
        until(&format!("{count} calls of {prefix} ended"), async || (ended() == count).then_some(())).await;
    }
}

async fn lease(world: &World, cluster: &str, index: usize) {
    let spec = json!({"do": "report"});
    let mut lease = object(json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "FixtureLease",
        "metadata": {"name": format!("{cluster}{index}")}, "spec": spec}));
    lease.labels_mut().insert("cluster.x-k8s.io/cluster-name".to_owned(), cluster.to_owned());
    let leases = api(&world.client, GROUP, "v1alpha1", "FixtureLease", "default");
    leases.create(&PostParams::default(), &lease).await.unwrap();
}

/// Slot hogging by one cluster (CONTRACT.md, Capabilities and grants), and `spec.limits.concurrency` of a provider that serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_cluster_that_hang_leave_the_slots_of_others_free() {
    let world = world().await;
    let host = providers(&world, Some(world.conversions.clone())).await;
    let socket = world.folder.path().join("engine.sock");
    let engine = Engine::start(&socket);
    let wasm_providers = api(&world.client, "capwasm.dev", "v1alpha1", "WasmProvider", "");
    let slots = async |concurrency: u32| {
        let limits = json!({"concurrency": concurrency, "wallTimeMs": 3_600_000});
        let spec = json!({"grants": {"endpoints": {"engine": {"unix": socket}}}, "limits": limits});
        let patch = Patch::Merge(json!({"spec": spec}));
        wasm_providers.patch("fixture", &PatchParams::default(), &patch).await.unwrap();
    };
    slots(8).await;
    for cluster in ["hog", "calm"] {
        let infrastructure = json!({"apiGroup": GROUP, "kind": "FixtureCluster", "name": "i"});
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": cluster},
            "spec": {"infrastructureRef": infrastructure}});
        world.core("v1beta2", "Cluster").create(&PostParams::default(), &object(cluster)).await.unwrap();
    }
    for index in 0..12 {
        lease(&world, "hog", index).await;
    }
    engine.until_hanging(2).await;
    for index in 0..6 {
        lease(&world, "calm", index).await;
    }
    engine.until_ended("calm", 6).await;
    assert_eq!(engine.hanging(), 2, "they hang as before");
    assert_eq!(engine.most(), 2, "a quarter of 8");

    slots(16).await;
    engine.until_hanging(4).await;
    slots(4).await;
    until("fewer are told", async || metrics(&world).contains("{controller=\"fixturelease\"} 4\n").then_some(())).await;
    assert_eq!(engine.hanging(), 4, "no call is stopped for it");
    lease(&world, "calm", 6).await;
    engine.free.send_replace(true);
    engine.until_ended("calm", 7).await;
    engine.until_ended("hog", 12).await;
    assert_eq!(engine.most(), 4);
    let metrics = metrics(&world);
    let failed: Vec<_> = metrics.lines().filter(|line| line.contains("result=\"Provider")).collect();
    assert!(failed.is_empty(), "no call was lost: {failed:?}");
    host.stop().await;
}

fn metrics(world: &World) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &world.diagnostics.registry.lock()).unwrap();
    text
}

//! What was answered survives SIGKILL (R: durability).

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};

use crate::fixture::until;

/// Environment variable of the child process: the database to write to.
const CHILD: &str = "CAPWASM_APISERVER_TEST_DATABASE";
const CACHE: usize = 4 << 20;

struct Opened {
    store: Arc<Store>,
    server: Server,
    api: Api<ConfigMap>,
}

async fn open(path: &Path) -> Opened {
    let store = Store::open(path, CACHE).unwrap();
    let server = Server::start(Arc::clone(&store), ServerConfig::new("test")).await.unwrap();
    let api = Api::default_namespaced(server.client(Identity::admin("tester")));
    Opened { store, server, api }
}

/// Closes the database, which the client's worker task releases a little later than its last handle.
async fn close(Opened { mut store, server, api }: Opened) {
    server.shutdown().await;
    drop((server, api));
    until("the store is released", async || (Arc::strong_count(&store) == 1).then_some(())).await;
    assert!(Arc::get_mut(&mut store).is_some());
}

/// The child: writes for ever, with several writers, and prints what was acknowledged. Does nothing in an ordinary run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let Opened { api, .. } = &open(Path::new(&path)).await;
    let round = api.list(&ListParams::default()).await.unwrap().items.len();
    let writers = (0..8).map(|writer| {
        let api = api.clone();
        async move {
            for n in 0.. {
                let name = format!("o{round}-{writer}-{n}");
                let object = ConfigMap {
                    metadata: ObjectMeta { name: Some(name.clone()), ..Default::default() },
                    ..Default::default()
                };
                let created = api.create(&PostParams::default(), &object).await.unwrap();
                println!("written {name} {}", created.metadata.resource_version.unwrap());
            }
        }
    });
    futures::future::join_all(writers).await;
}

fn write_and_kill(path: &Path, count: usize) -> Vec<(String, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "restart::child_that_writes_until_it_is_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut written = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The test harness prints on the same stream.
        let Some((_, entry)) = line.split_once("written ") else { continue };
        let (name, revision) = entry.split_once(' ').unwrap();
        written.push((name.to_owned(), revision.parse().unwrap()));
        if written.len() == count {
            break;
        }
    }
    // SIGKILL, in the middle of writes.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(written.len(), count, "the child died early");
    written
}

#[tokio::test]
async fn acknowledged_writes_survive_being_killed_and_revisions_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let mut all = Vec::new();
    let mut highest = 0;
    for round in 0..3 {
        let written = write_and_kill(&path, 60);
        assert!(written.iter().all(|(_, revision)| *revision > highest), "round {round}: a revision came back");
        all.extend(written);
        let opened = open(&path).await;
        let api = &opened.api;
        for (name, revision) in &all {
            let found = api.get(name).await.unwrap_or_else(|error| panic!("{name} is lost: {error}"));
            assert_eq!(found.metadata.resource_version.unwrap(), revision.to_string());
        }
        let list = api.list(&ListParams::default()).await.unwrap();
        highest = list.metadata.resource_version.unwrap().parse().unwrap();
        close(opened).await;
    }
}

#[tokio::test]
async fn a_watch_goes_on_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let map = |name: &str| ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..Default::default() },
        ..Default::default()
    };
    let opened = open(&path).await;
    let from = opened.api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    opened.api.create(&PostParams::default(), &map("before")).await.unwrap();
    close(opened).await;
    let Opened { api, .. } = &open(&path).await;
    let mut watch = api.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    api.create(&PostParams::default(), &map("after")).await.unwrap();
    for expected in ["before", "after"] {
        let WatchEvent::Added(object) = watch.try_next().await.unwrap().unwrap() else {
            panic!("expected an addition")
        };
        assert_eq!(object.metadata.name.as_deref(), Some(expected));
    }
}

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use arbitrary::Unstructured;
use serde_json::json;

use super::super::{Change, Encoded, Key, Retention, Store};
use super::*;
use crate::{Identity, Server, ServerConfig};

/// Objects by key, with their documents.
type Objects = BTreeMap<String, Vec<u8>>;

const KEYSPACE: &str = "management";

/// A store with a history, closed cleanly: some objects were changed, some are deleted.
async fn stored(path: &Path) -> Objects {
    let store = Store::open_with(path, 1 << 20, Retention::default()).unwrap();
    let keyspace = store.keyspace(KEYSPACE);
    let mut objects = Objects::new();
    for n in 0..60_usize {
        let key = Key::new("things", "default", &format!("thing-{n}"));
        let (mut expected, mut data) = (None, Vec::new());
        for round in 0..n % 4 + 1 {
            let value =
                Encoded::of(&json!({"metadata": {"name": n.to_string()}, "round": round, "data": "x".repeat(n * 20)}));
            let change = Change { key: key.clone(), expected, previous: None, value, delete: false };
            let event = store.write(&keyspace, change).await.unwrap();
            (expected, data) = (Some(event.revision), event.data.to_vec());
        }
        if n % 7 == 0 {
            let value = Encoded::of(&json!({"metadata": {"name": n.to_string()}, "gone": format!("gone {n}.")}));
            store.write(&keyspace, Change { key, expected, previous: None, value, delete: true }).await.unwrap();
        } else {
            objects.insert(key.as_str().to_owned(), data);
        }
    }
    objects
}

/// What the store says of each key, and of all in a list.
fn read(store: &Arc<Store>, keys: impl Iterator<Item = String>) -> (Vec<(String, Read)>, Result<Objects, StoreError>) {
    let keyspace = store.keyspace(KEYSPACE);
    let one = |key: &str| store.read(&keyspace, |view| view.get(&Key::parse(key)));
    let each = keys.map(|key| (key.clone(), one(&key).map(|found| found.map(|record| record.data.to_vec())))).collect();
    let mut all = Objects::new();
    let listed = store.read(&keyspace, |view| {
        view.walk(&Key::prefix("things", None), None, None, &mut |record| {
            all.insert(record.key.as_str().to_owned(), record.data.to_vec());
            true
        })
    });
    (each, listed.map(|()| all))
}

type Read = Result<Option<Vec<u8>>, StoreError>;

/// With one flipped bit: nothing is read that was not written, nothing is missing without a word, the check finds it, and a repair
/// leaves a store that says which objects are gone.
fn flipped(sound: &[u8], objects: &Objects, at: usize, bit: u8) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let mut bytes = sound.to_vec();
    bytes[at] ^= 1 << bit;
    std::fs::write(&path, &bytes).unwrap();
    let what = format!("byte {at}, bit {bit}");

    let found = check(&path);
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}: a check changes nothing");
    let mut seen = match Store::open(&path, 1 << 20) {
        Err(_) => true,
        Ok(store) => {
            let (each, all) = read(&store, objects.keys().cloned());
            for (key, read) in &each {
                assert!(!matches!(read, Ok(found) if found.as_ref() != objects.get(key)), "{what}: {key}: {read:?}");
            }
            assert!(!matches!(&all, Ok(all) if all != objects), "{what}: the list");
            all.is_err() || each.iter().any(|(_, read)| read.is_err())
        }
    };
    seen |= found.as_ref().is_ok_and(|found| found.unreadable_versions > 0);
    let Ok(found) = found else { return };
    assert!(!seen || !found.sound(), "{what}: not found");

    std::fs::write(&path, &bytes).unwrap();
    let Ok(repaired) = repair(&path) else {
        return assert!(!found.sound(), "{what}");
    };
    assert_eq!(std::fs::read(&repaired.before).unwrap(), bytes, "{what}: what was is kept");
    assert!(check(&path).unwrap().sound(), "{what}");
    let store = Store::open(&path, 1 << 20).unwrap();
    let (each, all) = read(&store, objects.keys().cloned());
    let told = |key: &str| repaired.restored.iter().chain(&repaired.lost).any(|told| told.object == shown(key));
    for (key, read) in each {
        assert!(read.unwrap().as_ref() == objects.get(&key) || told(&key), "{what}: {key}: {repaired:?}");
    }
    assert!(all.unwrap().keys().all(|key| objects.contains_key(key) || told(key)), "{what}");
}

#[test]
fn flipped_bits_are_found_and_never_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let objects = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(stored(&path));
    assert_eq!(check(&path).unwrap(), Findings { objects: objects.len(), ..Findings::default() });
    let sound = std::fs::read(&path).unwrap();
    // Most of a new file is empty.
    let used: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    arbtest::arbtest(|u: &mut Unstructured<'_>| {
        flipped(&sound, &objects, *u.choose(&used)?, u.int_in_range(0..=7)?);
        Ok(())
    })
    .budget_ms(2000);
}

/// Flips a bit wherever a text is in the file.
fn spoil(path: &Path, text: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let at: Vec<usize> =
        bytes.windows(text.len()).enumerate().filter(|(_, at)| *at == text.as_bytes()).map(|(at, _)| at).collect();
    assert!(!at.is_empty());
    at.iter().for_each(|at| bytes[*at] ^= 1);
    std::fs::write(path, bytes).unwrap();
}

/// What says that an object is deleted is damaged: the index does not have the object, so nothing is wrong with those that it has.
#[tokio::test]
async fn an_object_does_not_come_back_because_its_deletion_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let objects = stored(&path).await;
    spoil(&path, "gone 7.");
    let found = check(&path).unwrap();
    assert_eq!((found.damaged.len(), found.unreadable_versions), (0, 1), "{found:?}");
    let store = Store::open(&path, 1 << 20).unwrap();
    assert_eq!(read(&store, std::iter::empty()).1.unwrap(), objects);
    store.close();
    let repaired = repair(&path).unwrap();
    assert_eq!((repaired.kept, repaired.restored.len()), (objects.len(), 0), "{repaired:?}");
    assert!(repaired.lost.len() == 1 && repaired.lost[0].why.contains("deleted, it seems"), "{repaired:?}");
    let store = Store::open(&path, 1 << 20).unwrap();
    assert_eq!(read(&store, std::iter::empty()).1.unwrap(), objects);
}

/// A store whose log cannot be walked through some revisions, though each can be asked for.
struct Gap<'a>(&'a dyn Snapshot, std::ops::Range<u64>);

impl Snapshot for Gap<'_> {
    fn revision(&self) -> Result<u64, StoreError> {
        self.0.revision()
    }

    fn keyspaces(&self) -> Result<Vec<StoredKeyspace>, StoreError> {
        self.0.keyspaces()
    }

    fn compacted(&self, keyspace: u32) -> Result<u64, StoreError> {
        self.0.compacted(keyspace)
    }

    fn head(&self, keyspace: u32, key: &str) -> Result<Option<Head>, StoreError> {
        self.0.head(keyspace, key)
    }

    fn version(&self, keyspace: u32, revision: u64) -> Result<Option<Version>, StoreError> {
        self.0.version(keyspace, revision)
    }

    fn heads(
        &self,
        keyspace: u32,
        prefix: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(&str, Head) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        self.0.heads(keyspace, prefix, after, visit)
    }

    fn log(
        &self,
        keyspace: u32,
        after: u64,
        visit: &mut dyn FnMut((u64, Result<Version, &'static str>)) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let broken = || StoreError::Backend { act: "read", message: "a page of it is damaged".to_owned() };
        if self.1.contains(&after) {
            return Err(broken());
        }
        self.0.log(keyspace, after, &mut |(at, version)| {
            if self.1.contains(&at) { Err(broken()) } else { visit((at, version)) }
        })
    }
}

#[tokio::test]
async fn what_the_index_leads_to_is_kept_where_the_log_cannot_be_walked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let objects = stored(&path).await;
    let (source, _lock) = open(&path).unwrap();
    let (keyspaces, target) =
        (source.salvaged().unwrap(), RedbBackend::open(&folder.path().join("new"), CACHE).unwrap());
    let mut repaired = Repaired::default();
    source.read(&mut |snapshot| rebuild(&keyspaces, &Gap(snapshot, 20..90), &target, &mut repaired)).unwrap();
    assert_eq!((repaired.kept, repaired.restored.len()), (objects.len(), 0), "{repaired:?}");
    assert!(repaired.lost.iter().all(|lost| lost.why.contains("deleted, it seems")), "{repaired:?}");
}

#[tokio::test]
async fn a_damaged_object_is_an_error_of_its_own_until_the_store_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": format!("data of {name}")}});
    let begin = async || {
        let server = Server::start(Store::open(&path, 1 << 20).unwrap(), ServerConfig::new(KEYSPACE)).await.unwrap();
        (server.client(Identity::admin("tester")), server)
    };
    let ask = async |client: &kube::Client, method: &str, path: &str, body: &serde_json::Value| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        match client.request_text(request.body(body.to_string().into_bytes()).unwrap()).await {
            Ok(text) => (200, text),
            Err(kube::Error::Api(status)) => (status.code, status.message),
            Err(error) => panic!("{error}"),
        }
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    let (client, server) = begin().await;
    for name in ["spoilt", "sound"] {
        assert_eq!(ask(&client, "POST", maps, &map(name)).await.0, 200);
    }
    server.shutdown().await;
    drop((client, server));

    while let Err(StoreError::InUse) = check(&path) {
        tokio::task::yield_now().await;
    }
    spoil(&path, "data of spoilt");
    let (client, server) = begin().await;
    assert!(matches!(check(&path), Err(StoreError::InUse)) && matches!(repair(&path), Err(StoreError::InUse)));
    let none = json!({});
    let (one, another) = (format!("{maps}/spoilt"), format!("{maps}/sound"));
    let secrets = "/api/v1/namespaces/default/secrets";
    for (method, path, body, code, said) in [
        ("GET", &*one, &none, 500, "configmaps/default/spoilt is damaged in the database: its checksum is another"),
        ("GET", maps, &none, 500, "configmaps/default/spoilt is damaged"),
        ("PUT", &one, &map("spoilt"), 500, "configmaps/default/spoilt is damaged"),
        ("DELETE", &one, &none, 500, "configmaps/default/spoilt is damaged"),
        ("GET", &another, &none, 200, "data of sound"),
        ("PUT", &another, &map("sound"), 200, "data of sound"),
        ("GET", secrets, &none, 200, ""),
        ("GET", "/readyz", &none, 200, "1 objects are damaged in the store"),
    ] {
        let (found, text) = ask(&client, method, path, body).await;
        assert!(found == code && text.contains(said), "{method} {path}: {found} {text}");
    }
    server.shutdown().await;
    drop((client, server));

    let found = loop {
        match check(&path) {
            Err(StoreError::InUse) => tokio::task::yield_now().await,
            found => break found.unwrap(),
        }
    };
    let object = "configmaps/default/spoilt";
    assert!(found.damaged.len() == 1 && found.damaged[0].object == object && found.pages.is_some(), "{found:?}");
    let repaired = repair(&path).unwrap();
    assert!(
        repaired.lost.len() == 1 && repaired.lost[0].object == object && repaired.restored.is_empty(),
        "{repaired:?}"
    );
    let (client, _server) = begin().await;
    assert_eq!(ask(&client, "GET", &one, &none).await.0, 404);
    assert_eq!(ask(&client, "GET", maps, &none).await.0, 200);
    assert_eq!(ask(&client, "POST", maps, &map("spoilt")).await.0, 200);
    assert_eq!(ask(&client, "GET", "/readyz", &none).await.1, "ok");
}

#[test]
fn what_is_no_store_is_neither_checked_nor_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    assert!(check(&path).is_err() && !path.exists());
    for content in ["", "no database"] {
        std::fs::write(&path, content).unwrap();
        assert!(check(&path).is_err() && repair(&path).is_err(), "{content:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{content:?}");
    }
}

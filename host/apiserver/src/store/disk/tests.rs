#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use serde_json::json;

use super::super::redb::RedbBackend;
use super::super::{Change, Encoded, Key, Keyspace, Retention, Store};
use super::*;
use crate::{Identity, Server, ServerConfig};

/// What a disk does from now on.
#[derive(Default)]
struct Fault {
    /// There is no room beyond what was written so far.
    full: AtomicBool,
    written: AtomicU64,
    /// Acts until everything fails; 0 for never.
    left: AtomicU64,
    /// Acts that fail then; 0 for all.
    outage: AtomicU64,
}

impl Fault {
    fn act(&self, end: u64) -> Result<(), Error> {
        let count = |left: u64| (left > 1).then(|| left - 1);
        let dead = self.left.load(Ordering::Relaxed) == 1;
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
        if dead {
            if self.outage.load(Ordering::Relaxed) == 1 {
                self.left.store(0, Ordering::Relaxed);
            }
            let _ = self.outage.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
            return Err(Error::other("the disk is gone"));
        }
        if self.full.load(Ordering::Relaxed) && end > self.written.load(Ordering::Relaxed) {
            return Err(Error::from(ErrorKind::StorageFull));
        }
        self.written.fetch_max(end, Ordering::Relaxed);
        Ok(())
    }

    fn mend(&self) {
        self.full.store(false, Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
    }
}

struct FaultyFile {
    file: FileBackend,
    fault: Arc<Fault>,
}

impl std::fmt::Debug for FaultyFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a file that fails")
    }
}

impl StorageBackend for FaultyFile {
    fn len(&self) -> Result<u64, Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.fault.act(0)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.fault.act(0)?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.fault.act(0)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.fault.act(offset + data.len() as u64)?;
        self.file.write(offset, data)
    }

    fn close(&self) -> Result<(), Error> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

fn store_on(path: &Path, fault: &Arc<Fault>) -> Arc<Store> {
    let (path, fault) = (path.to_owned(), fault.clone());
    let open = move || {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        let backend = FaultyFile { file: FileBackend::new(file)?, fault: fault.clone() };
        Ok(Database::builder().set_cache_size(1 << 20).create_with_backend(backend)?)
    };
    let backend = RedbBackend::open_with(Box::new(open), 0, Duration::ZERO).unwrap();
    Store::start(Box::new(backend), Retention::default()).unwrap()
}

async fn write(store: &Store, keyspace: &Arc<Keyspace>, name: &str, bytes: usize) -> Result<(), StoreError> {
    let value = Encoded::of(&json!({"value": "x".repeat(bytes)}));
    let change = Change { key: Key::new("things", "ns", name), expected: None, previous: None, value, delete: false };
    store.write(keyspace, change).await.map(drop)
}

fn names(store: &Store, keyspace: &Keyspace) -> Result<Vec<String>, StoreError> {
    store.read(keyspace, |view| {
        let mut found = Vec::new();
        view.walk(&Key::prefix("things", None), None, None, &mut |record| {
            found.push(record.key.name().to_owned());
            true
        })?;
        Ok(found)
    })
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_nothing_else_until_there_is_room() {
    let (folder, fault) = (tempfile::tempdir().unwrap(), Arc::new(Fault::default()));
    let store = store_on(&folder.path().join("s.redb"), &fault);
    let keyspace = store.keyspace("k");
    write(&store, &keyspace, "before", 10).await.unwrap();
    fault.full.store(true, Ordering::Relaxed);
    for name in ["first", "second"] {
        let refused = write(&store, &keyspace, name, 8 << 20).await;
        assert!(matches!(refused, Err(StoreError::Disk { full: true, .. })), "{name}: {refused:?}");
        assert_eq!(names(&store, &keyspace).unwrap(), ["before"], "{name}");
    }
    assert!(store.trouble().unwrap().contains("make room"), "{:?}", store.trouble());
    fault.mend();
    write(&store, &keyspace, "first", 8 << 20).await.unwrap();
    assert_eq!((store.trouble(), names(&store, &keyspace).unwrap().len()), (None, 2));
}

#[tokio::test]
async fn a_server_on_a_full_disk_says_so_and_goes_on_answering() {
    let (folder, fault) = (tempfile::tempdir().unwrap(), Arc::new(Fault::default()));
    let store = store_on(&folder.path().join("s.redb"), &fault);
    let server = Server::start(store, ServerConfig::new("test")).await.unwrap();
    let client = server.client(Identity::admin("tester"));
    let ask = async |method: &str, path: &str, body: &serde_json::Value| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        match client.request_text(request.body(body.to_string().into_bytes()).unwrap()).await {
            Ok(_) => (200, String::new()),
            Err(kube::Error::Api(status)) => (status.code, status.message),
            Err(error) => panic!("{error}"),
        }
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"a": "x".repeat(900_000)}});
    fault.full.store(true, Ordering::Relaxed);
    let mut refused = (200, String::new());
    for name in 0..20 {
        let mut one = large.clone();
        one["metadata"]["name"] = json!(format!("m-{name}"));
        refused = ask("POST", maps, &one).await;
        if refused.0 != 200 {
            break;
        }
    }
    assert!(refused.0 == 507 && refused.1.contains("make room"), "{refused:?}");
    let none = json!({});
    let rows = [("/readyz", 503), ("/healthz", 503), ("/livez", 200), (maps, 200)];
    for (path, code) in rows {
        assert_eq!(ask("GET", path, &none).await.0, code, "{path}");
    }
    fault.mend();
    assert_eq!(ask("POST", maps, &large).await.0, 200);
    assert_eq!(ask("GET", "/readyz", &none).await.0, 200);
}

/// Every act of a commit is once the one from which on the disk is gone: for three acts, or until somebody mends it.
#[tokio::test]
async fn what_was_acknowledged_is_there_wherever_the_disk_fails_and_what_was_refused_is_not() {
    let (mut refused, mut unknown) = (0, 0);
    for (cut, outage) in (1..30).flat_map(|cut| [(cut, 3), (cut, 0)]) {
        let (folder, fault) = (tempfile::tempdir().unwrap(), Arc::new(Fault::default()));
        let path = folder.path().join("s.redb");
        let store = store_on(&path, &fault);
        let keyspace = store.keyspace("k");
        write(&store, &keyspace, "before", 10).await.unwrap();
        fault.outage.store(outage, Ordering::Relaxed);
        fault.left.store(cut, Ordering::Relaxed);
        let result = write(&store, &keyspace, "during", 100).await;
        fault.mend();
        let mut expected = vec!["before"];
        let doubtful = match &result {
            Ok(()) => {
                expected.push("during");
                false
            }
            Err(StoreError::Disk { .. }) => false,
            Err(StoreError::Doubtful) => true,
            Err(other) => panic!("{cut}: {other}"),
        };
        refused += usize::from(result.is_err());
        unknown += usize::from(doubtful);
        if doubtful {
            assert!(
                write(&store, &keyspace, "after", 10).await.is_err(),
                "{cut}: nothing is built on what nobody knows"
            );
            assert!(store.trouble().is_some(), "{cut}");
        } else {
            assert_eq!(names(&store, &keyspace).unwrap(), expected, "{cut}");
            write(&store, &keyspace, "after", 10).await.unwrap();
            expected.insert(0, "after");
            assert_eq!(
                (names(&store, &keyspace).unwrap(), store.trouble()),
                (expected.iter().map(ToString::to_string).collect(), None),
                "{cut}"
            );
        }
        drop((keyspace, store));
        let store = store_on(&path, &fault);
        let found = names(&store, &store.keyspace("k")).unwrap();
        assert!(expected.iter().all(|name| found.iter().any(|it| it == name)), "{cut}: {found:?}");
        assert!(doubtful || found.len() == expected.len(), "{cut}: {found:?}");
    }
    assert!(unknown > 1 && refused - unknown > 1, "{unknown} of {refused} that were refused are unknown");
}

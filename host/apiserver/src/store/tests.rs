//! Guarantees of the store that both back ends must give.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::*;

fn stores(retention: Retention) -> Vec<(&'static str, Arc<Store>, Option<tempfile::TempDir>)> {
    let dir = tempfile::tempdir().unwrap();
    let durable = Store::open_with(&dir.path().join("s.redb"), 1 << 20, retention).unwrap();
    vec![("memory", Store::memory_with(retention).unwrap(), None), ("redb", durable, Some(dir))]
}

fn keep(versions: usize) -> Retention {
    Retention { age: Duration::from_secs(3600), versions, bytes: 1 << 30 }
}

fn change(name: &str, expected: Option<u64>, value: u64, delete: bool) -> Change {
    let value = Encoded::of(&json!({"value": value}));
    Change { key: Key::new("things", "ns", name), expected, previous: None, value, delete }
}

fn list(store: &Store, keyspace: &Keyspace, at: Option<u64>) -> Result<BTreeMap<String, u64>, StoreError> {
    store.read(keyspace, |view| {
        let mut found = BTreeMap::new();
        view.walk(&Key::prefix("things", None), None, at, &mut |record| {
            found.insert(record.key.name().to_owned(), record.revision);
            true
        })?;
        Ok(found)
    })
}

fn events(store: &Store, keyspace: &Keyspace, after: u64) -> Result<Vec<Arc<Event>>, StoreError> {
    store.read(keyspace, |view| {
        let mut found = Vec::new();
        view.events("", after, &mut |event| {
            found.push(event);
            true
        })?;
        Ok(found)
    })
}

#[tokio::test]
async fn a_write_succeeds_only_on_the_revision_it_was_decided_on() {
    for (name, store, _dir) in stores(keep(100)) {
        let keyspace = store.keyspace("k");
        let first = store.write(&keyspace, change("a", None, 1, false)).await.unwrap().revision;
        let again = store.write(&keyspace, change("a", None, 1, false)).await;
        assert!(matches!(again, Err(StoreError::Conflict { current: Some(now) }) if now == first), "{name}");
        let second = store.write(&keyspace, change("a", Some(first), 2, false)).await.unwrap().revision;
        assert!(second > first, "{name}");
        assert!(store.write(&keyspace, change("a", Some(first), 3, true)).await.is_err(), "{name}");
        store.write(&keyspace, change("a", Some(second), 3, true)).await.unwrap();
        let gone = store.write(&keyspace, change("a", Some(second), 3, true)).await;
        assert!(matches!(gone, Err(StoreError::Conflict { current: None })), "{name}");
    }
}

#[tokio::test]
async fn of_many_writers_on_one_revision_one_wins() {
    for (name, store, _dir) in stores(keep(100)) {
        let keyspace = store.keyspace("k");
        let first = store.write(&keyspace, change("a", None, 0, false)).await.unwrap().revision;
        let writes = (0..50).map(|value| store.write(&keyspace, change("a", Some(first), value, false)));
        let won = futures::future::join_all(writes).await.into_iter().filter(Result::is_ok).count();
        assert_eq!(won, 1, "{name}");
    }
}

#[tokio::test]
async fn every_retained_revision_can_be_listed_and_older_ones_are_refused() {
    for (name, store, _dir) in stores(keep(20)) {
        let keyspace = store.keyspace("k");
        let (mut state, mut states) = (BTreeMap::new(), Vec::new());
        for step in 0..60_u64 {
            let object = format!("o{}", step % 7);
            let before: Option<u64> = state.get(&object).copied();
            let delete = before.is_some() && step % 3 == 0;
            let revision = store.write(&keyspace, change(&object, before, step, delete)).await.unwrap().revision;
            if delete {
                state.remove(&object);
            } else {
                state.insert(object, revision);
            }
            states.push((revision, state.clone()));
        }
        let oldest = states.iter().position(|(revision, _)| list(&store, &keyspace, Some(*revision)).is_ok()).unwrap();
        for (revision, expected) in &states[oldest..] {
            assert_eq!(&list(&store, &keyspace, Some(*revision)).unwrap(), expected, "{name} at {revision}");
        }
        assert_eq!(list(&store, &keyspace, None).unwrap(), state, "{name}");
    }
}

#[tokio::test]
async fn history_beyond_the_retention_is_compacted() {
    for (name, store, _dir) in stores(keep(5)) {
        let keyspace = store.keyspace("k");
        let mut revision = store.write(&keyspace, change("a", None, 0, false)).await.unwrap().revision;
        let first = revision;
        // Compaction looks at most once per second, with the writes.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            revision = store.write(&keyspace, change("a", Some(revision), 1, false)).await.unwrap().revision;
            let events = events(&store, &keyspace, first);
            if matches!(events, Err(StoreError::Compacted { asked, .. }) if asked == first) {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{name}: nothing was compacted");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(
            list(&store, &keyspace, None).unwrap().get("a"),
            Some(&revision),
            "{name}: the newest version stays"
        );
    }
}

#[tokio::test]
async fn keyspaces_share_revisions_and_nothing_else() {
    for (name, store, _dir) in stores(keep(100)) {
        let mut highest = 0;
        for n in 0..300 {
            let keyspace = store.keyspace(&format!("cluster/{n}"));
            let revision = store.write(&keyspace, change("a", None, n, false)).await.unwrap().revision;
            assert!(revision > highest, "{name}");
            highest = revision;
        }
        assert_eq!(list(&store, &store.keyspace("cluster/7"), None).unwrap().len(), 1, "{name}");
        let mut watch = store.keyspace("cluster/7").subscribe("");
        store.remove_keyspace("cluster/7").await.unwrap();
        assert!(watch.recv().await.is_none(), "{name}: its watches end");
        assert_eq!(list(&store, &store.keyspace("cluster/7"), None).unwrap().len(), 0, "{name}");
        assert_eq!(list(&store, &store.keyspace("cluster/8"), None).unwrap().len(), 1, "{name}");
        let again = store.write(&store.keyspace("cluster/7"), change("a", None, 1, false)).await.unwrap();
        assert!(again.revision > highest, "{name}");
    }
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_cut_off() {
    for (name, store, _dir) in stores(keep(10_000)) {
        let keyspace = store.keyspace("k");
        let mut slow = keyspace.subscribe("things\0");
        let writes = (0..1500).map(|n| store.write(&keyspace, change(&format!("o{n}"), None, n, false)));
        futures::future::join_all(writes).await;
        let mut received = 0;
        while slow.recv().await.is_some() {
            received += 1;
        }
        assert!(received < 1500, "{name}: {received}");
    }
}

#[tokio::test]
async fn a_watcher_that_lags_by_many_bytes_is_cut_off() {
    for (name, store, _dir) in stores(keep(10_000)) {
        let keyspace = store.keyspace("k");
        let large = |n: usize, bytes| {
            let value = Encoded::of(&json!({"metadata": {"name": n.to_string()}, "data": "x".repeat(bytes)}));
            Change { value, ..change(&format!("o{n}"), None, 0, false) }
        };
        let mut slow = keyspace.subscribe("things\0");
        let mut reads = keyspace.subscribe("things\0");
        for n in 0..12 {
            // The first is larger than all that may wait, and comes alone.
            store.write(&keyspace, large(n, if n == 0 { 9 << 20 } else { 1 << 20 })).await.unwrap();
            assert!(reads.recv().await.is_some(), "{name}: who reads loses nothing");
        }
        assert!(slow.recv().await.is_some(), "{name}");
        assert!(slow.recv().await.is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_reopened_database_goes_on_where_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let store = Store::open(&path, 1 << 20).unwrap();
    let keyspace = store.keyspace("k");
    let first = store.write(&keyspace, change("a", None, 1, false)).await.unwrap().revision;
    let second = store.write(&keyspace, change("a", Some(first), 2, false)).await.unwrap().revision;
    drop((keyspace, store));
    let store = Store::open(&path, 1 << 20).unwrap();
    let keyspace = store.keyspace("k");
    assert_eq!(store.revision(), second);
    assert_eq!(events(&store, &keyspace, first).unwrap().len(), 1, "history survives");
    assert!(store.write(&keyspace, change("b", None, 1, false)).await.unwrap().revision > second);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

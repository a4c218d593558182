//! The durable back end: four tables in one redb file.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | `"revision"` | highest revision |
//! | `meta` | `"checksums"` | versions above this revision have checksums |
//! | `meta` | `"sum/..."` | [checksums](super::sums) of the other numbers |
//! | `keyspaces` | name | id |
//! | `compacted` | id | revision up to which history is incomplete |
//! | `heads` | id + key | created, modified |
//! | `versions` | id + revision | [a record](super::record) |
//!
//! Integers in keys are big-endian, so that byte order is number order.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use redb::{AccessGuard, Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::StoreError;
use super::backend::{Act, Backend, Batch, Head, Snapshot, StoredKeyspace, Version, Visit, VisitHeads};
use super::damage::guarded;
use super::disk::{Disk, Open};
use super::overlay::Overlay;
use super::record;
use super::sums;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const KEYSPACES: TableDefinition<'_, &str, u32> = TableDefinition::new("keyspaces");
const COMPACTED: TableDefinition<'_, u32, u64> = TableDefinition::new("compacted");
const HEADS: TableDefinition<'_, &[u8], (u64, u64)> = TableDefinition::new("heads");
const VERSIONS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("versions");
const REVISION: &str = "revision";
const CHECKSUMS: &str = "checksums";

/// Smaller files are never compacted.
const COMPACT_ABOVE: u64 = 64 << 20;

/// Numbers that a keyspace whose entry is damaged may have.
const KEYSPACES_TRIED: u32 = 1 << 16;

/// Between two attempts on a disk that failed.
const RETRY: Duration = Duration::from_secs(3);

pub(super) struct RedbBackend {
    disk: Disk,
    /// Versions above this revision have checksums.
    unchecked: u64,
}

/// The error of a database, and whether it is the disk's.
pub(super) fn failed(act: &'static str) -> impl Fn(redb::Error) -> StoreError {
    move |error| match error {
        redb::Error::Io(error) => {
            let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            StoreError::Disk { act, full, message: error.to_string() }
        }
        redb::Error::PreviousIo => StoreError::Disk { act, full: false, message: "an earlier act failed".to_owned() },
        redb::Error::DatabaseAlreadyOpen => StoreError::InUse,
        other => StoreError::Backend { act, message: other.to_string() },
    }
}

impl RedbBackend {
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let path = path.to_owned();
        let open = move || Ok(Database::builder().set_cache_size(cache_bytes).create_file(private_file(&path)?)?);
        Self::open_with(Box::new(open), length, RETRY)
    }

    /// On a file that is only read. It is not opened again after failures.
    pub fn over(overlay: Overlay) -> Result<Self, StoreError> {
        let overlay = Mutex::new(Some(overlay));
        let open = move || {
            let overlay = overlay.lock().take().ok_or_else(|| std::io::Error::other("a page of it is damaged"))?;
            Ok(Database::builder().create_with_backend(overlay)?)
        };
        let (database, unchecked) = prepared(&open, 0)?;
        // What is wrong with its numbers is for whoever reads them.
        let unchecked = unchecked.unwrap_or(u64::MAX);
        Ok(Self { disk: Disk::new(Box::new(open), database, |_| Ok(0), RETRY)?, unchecked })
    }

    /// On a file of `length` bytes, which `open` opens now and after failures.
    pub(super) fn open_with(open: Open, length: u64, retry: Duration) -> Result<Self, StoreError> {
        let (database, unchecked) = prepared(&open, length)?;
        let unchecked = unchecked.ok_or(StoreError::Corrupt("what has checksums is not what was written"))?;
        Ok(Self { disk: Disk::new(open, database, |database| snapshot(database, 0)?.revision(), retry)?, unchecked })
    }
}

/// Opens a database and makes what is missing in it. With the revision above which versions have checksums, unless that is damaged.
fn prepared(
    open: &dyn Fn() -> Result<Database, redb::Error>,
    length: u64,
) -> Result<(Database, Option<u64>), StoreError> {
    let prepare = || -> Result<_, redb::Error> {
        let mut database = open()?;
        if length > COMPACT_ABOVE && wasteful(&database, length)? {
            database.compact()?;
        }
        let txn = database.begin_write()?;
        let unchecked = begin(&txn)?;
        txn.commit()?;
        Ok((database, unchecked))
    };
    guarded(|| prepare().map_err(failed("open")), |message| StoreError::Backend { act: "open", message })
}

fn begin(txn: &WriteTransaction) -> Result<Option<u64>, redb::Error> {
    let mut meta = txn.open_table(META)?;
    let keyspaces = txn.open_table(KEYSPACES)?;
    let compacted = txn.open_table(COMPACTED)?;
    txn.open_table(HEADS)?;
    txn.open_table(VERSIONS)?;
    let value = |found: Option<AccessGuard<'_, u64>>| found.map(|found| found.value());
    if let Some(unchecked) = value(meta.get(CHECKSUMS)?) {
        return Ok(sums::confirm(&meta, CHECKSUMS, unchecked)?.then_some(unchecked));
    }
    // New, or begun without checksums.
    let present = value(meta.get(REVISION)?).unwrap_or_default();
    for name in [CHECKSUMS, REVISION] {
        meta.insert(name, present)?;
        sums::write(&mut meta, name, present)?;
    }
    for entry in keyspaces.iter()? {
        let (name, id) = entry?;
        sums::write(&mut meta, &sums::keyspace(name.value()), id.value().into())?;
    }
    for entry in compacted.iter()? {
        let (id, revision) = entry?;
        sums::write(&mut meta, &sums::compacted(id.value()), revision.value())?;
    }
    Ok(Some(present))
}

/// Whether less than a third of the file is in use. redb reuses pages but gives none back.
fn wasteful(database: &Database, length: u64) -> Result<bool, redb::Error> {
    let txn = database.begin_write()?;
    let stats = txn.stats()?;
    let used = stats.stored_bytes() + stats.metadata_bytes();
    txn.abort()?;
    Ok(used * 3 < length)
}

/// Opens or creates the file for its owner only: it holds Secrets.
fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn snapshot(database: &Database, unchecked: u64) -> Result<RedbSnapshot, StoreError> {
    let open = || -> Result<RedbSnapshot, redb::Error> {
        let txn = database.begin_read()?;
        Ok(RedbSnapshot {
            meta: txn.open_table(META)?,
            keyspaces: txn.open_table(KEYSPACES)?,
            compacted: txn.open_table(COMPACTED)?,
            heads: txn.open_table(HEADS)?,
            versions: txn.open_table(VERSIONS)?,
            unchecked,
        })
    };
    open().map_err(failed("read"))
}

impl Backend for RedbBackend {
    fn read(&self, act: Act<'_>) -> Result<(), StoreError> {
        self.disk.read(|database| {
            let snapshot = snapshot(database, self.unchecked)?;
            act(&snapshot)
        })
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.disk.commit(batch.revision, |database| try_commit(database, batch).map_err(failed("write")))
    }

    fn close(&self) {
        self.disk.close();
    }

    fn trouble(&self) -> Option<String> {
        self.disk.trouble()
    }
}

fn try_commit(database: &Database, batch: &Batch) -> Result<(), redb::Error> {
    let txn = database.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        let mut keyspaces = txn.open_table(KEYSPACES)?;
        let mut compacted = txn.open_table(COMPACTED)?;
        let mut heads = txn.open_table(HEADS)?;
        let mut versions = txn.open_table(VERSIONS)?;
        meta.insert(REVISION, batch.revision)?;
        sums::write(&mut meta, REVISION, batch.revision)?;
        for stored in &batch.keyspaces {
            keyspaces.insert(stored.name.as_str(), stored.id)?;
            compacted.insert(stored.id, stored.compacted)?;
            sums::write(&mut meta, &sums::keyspace(&stored.name), stored.id.into())?;
            sums::write(&mut meta, &sums::compacted(stored.id), stored.compacted)?;
        }
        for id in &batch.removed {
            let (low, high) = (id.to_be_bytes(), (id + 1).to_be_bytes());
            heads.retain_in::<&[u8], _>(low.as_slice()..high.as_slice(), |_, _| false)?;
            versions.retain_in::<&[u8], _>(low.as_slice()..high.as_slice(), |_, _| false)?;
        }
        for (keyspace, revision, version) in &batch.versions {
            let key = head_key(*keyspace, &version.key);
            if version.deleted {
                heads.remove(key.as_slice())?;
            } else {
                heads.insert(key.as_slice(), (version.created, *revision))?;
            }
            let place = record::place(*keyspace, *revision);
            versions.insert(place.as_slice(), record::encode(&place, version).as_slice())?;
        }
        for (keyspace, revision) in &batch.purged {
            versions.remove(record::place(*keyspace, *revision).as_slice())?;
        }
    }
    txn.commit()?;
    Ok(())
}

fn head_key(keyspace: u32, key: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + key.len());
    bytes.extend_from_slice(&keyspace.to_be_bytes());
    bytes.extend_from_slice(key.as_bytes());
    bytes
}

struct RedbSnapshot {
    meta: ReadOnlyTable<&'static str, u64>,
    keyspaces: ReadOnlyTable<&'static str, u32>,
    compacted: ReadOnlyTable<u32, u64>,
    heads: ReadOnlyTable<&'static [u8], (u64, u64)>,
    versions: ReadOnlyTable<&'static [u8], &'static [u8]>,
    unchecked: u64,
}

impl RedbSnapshot {
    fn confirmed(&self, name: &str, value: u64, damage: &'static str) -> Result<u64, StoreError> {
        let confirmed = sums::confirm(&self.meta, name, value).map_err(unreadable)?;
        if confirmed { Ok(value) } else { Err(StoreError::Corrupt(damage)) }
    }
}

fn unreadable<E: Into<redb::Error>>(error: E) -> StoreError {
    failed("read")(error.into())
}

impl RedbBackend {
    /// The keyspaces, also those whose entries are damaged but for their checksums.
    pub fn salvaged(&self) -> Result<Vec<StoredKeyspace>, StoreError> {
        let mut found = Vec::new();
        self.disk.read(|database| {
            let snapshot = snapshot(database, self.unchecked)?;
            for (name, sum) in sums::keyspaces(&snapshot.meta).map_err(unreadable)? {
                let id = (0..KEYSPACES_TRIED).find(|id| sums::of(&sums::keyspace(&name), (*id).into()) == sum);
                found.extend(id.map(|id| StoredKeyspace { name, id, compacted: 0 }));
            }
            for entry in snapshot.keyspaces.iter().map_err(unreadable)? {
                let (name, id) = entry.map_err(unreadable)?;
                let (name, id) = (name.value().to_owned(), id.value());
                if !found.iter().any(|known| known.name == name || known.id == id) {
                    found.push(StoredKeyspace { name, id, compacted: 0 });
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl Snapshot for RedbSnapshot {
    fn revision(&self) -> Result<u64, StoreError> {
        let revision = self.meta.get(REVISION).map_err(unreadable)?.map_or(0, |revision| revision.value());
        self.confirmed(REVISION, revision, "its revision is not what was written")
    }

    fn keyspaces(&self) -> Result<Vec<StoredKeyspace>, StoreError> {
        let mut found = Vec::new();
        for entry in self.keyspaces.iter().map_err(unreadable)? {
            let (name, id) = entry.map_err(unreadable)?;
            let (name, id) = (name.value().to_owned(), id.value());
            self.confirmed(&sums::keyspace(&name), id.into(), "a keyspace is not what was written")?;
            found.push(StoredKeyspace { compacted: self.compacted(id)?, name, id });
        }
        if found.len() != sums::keyspaces(&self.meta).map_err(unreadable)?.len() {
            return Err(StoreError::Corrupt("a keyspace is gone"));
        }
        Ok(found)
    }

    fn compacted(&self, keyspace: u32) -> Result<u64, StoreError> {
        let Some(stored) = self.compacted.get(keyspace).map_err(unreadable)? else { return Ok(0) };
        let reaches = self.confirmed(&sums::compacted(keyspace), stored.value(), "");
        // Without it, no history is relied on.
        reaches.or_else(|_| self.revision())
    }

    fn head(&self, keyspace: u32, key: &str) -> Result<Option<Head>, StoreError> {
        let found = self.heads.get(head_key(keyspace, key).as_slice()).map_err(unreadable)?;
        Ok(found.map(|head| head.value()).map(|(created, modified)| Head { created, modified }))
    }

    fn version(&self, keyspace: u32, revision: u64) -> Result<Option<Version>, StoreError> {
        let place = record::place(keyspace, revision);
        let found = self.versions.get(place.as_slice()).map_err(unreadable)?;
        let checked = revision > self.unchecked;
        found.map(|bytes| record::decode(&place, bytes.value(), checked).map_err(StoreError::Corrupt)).transpose()
    }

    fn heads(&self, keyspace: u32, prefix: &str, after: Option<&str>, visit: VisitHeads<'_>) -> Result<(), StoreError> {
        let mut start = head_key(keyspace, prefix);
        if let Some(after) = after.filter(|after| *after >= prefix) {
            start = head_key(keyspace, after);
            // The least key that is greater.
            start.push(0);
        }
        for entry in self.heads.range(start.as_slice()..).map_err(unreadable)? {
            let (key, head) = entry.map_err(unreadable)?;
            let (id, key) = key.value().split_first_chunk::<4>().ok_or(StoreError::Corrupt("a key is too short"))?;
            // Of a key that is no text, no object is found.
            let key = &*String::from_utf8_lossy(key);
            let (created, modified) = head.value();
            if u32::from_be_bytes(*id) != keyspace
                || !key.starts_with(prefix)
                || !visit(key, Head { created, modified })?
            {
                break;
            }
        }
        Ok(())
    }

    fn log(
        &self,
        keyspace: u32,
        after: u64,
        visit: Visit<'_, (u64, Result<Version, &'static str>)>,
    ) -> Result<(), StoreError> {
        let (start, end) = (record::place(keyspace, after.saturating_add(1)), record::place(keyspace, u64::MAX));
        for entry in self.versions.range(start.as_slice()..=end.as_slice()).map_err(unreadable)? {
            let (key, bytes) = entry.map_err(unreadable)?;
            let place = key.value().first_chunk::<12>().ok_or(StoreError::Corrupt("a key is too short"))?;
            let revision = place.last_chunk::<8>().map_or(0, |revision| u64::from_be_bytes(*revision));
            if !visit((revision, record::decode(place, bytes.value(), revision > self.unchecked)))? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_store_that_was_begun_without_checksums_is_read_and_gets_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.redb");
        let version = |revision: u64| {
            let data = Bytes::from(format!("data {revision}"));
            Version {
                key: format!("things\0\0{revision}").into(),
                previous: 0,
                created: revision,
                deleted: false,
                data,
            }
        };
        let backend = RedbBackend::open(&path, 1 << 20).unwrap();
        let keyspaces = vec![StoredKeyspace { name: "k".into(), id: 0, compacted: 0 }];
        backend
            .commit(&Batch { revision: 1, keyspaces, versions: vec![(0, 1, version(1))], ..Batch::default() })
            .unwrap();
        drop(backend);
        // As it was written before.
        let database = Database::open(&path).unwrap();
        let txn = database.begin_write().unwrap();
        {
            let mut meta = txn.open_table(META).unwrap();
            meta.retain(|name, _| name == REVISION).unwrap();
            let place = record::place(0, 1);
            let mut plain = record::encode(&place, &version(1));
            plain.truncate(plain.len() - 4);
            plain[16] = 0;
            txn.open_table(VERSIONS).unwrap().insert(place.as_slice(), plain.as_slice()).unwrap();
        }
        txn.commit().unwrap();
        drop(database);
        let backend = RedbBackend::open(&path, 1 << 20).unwrap();
        assert_eq!(backend.unchecked, 1);
        backend.commit(&Batch { revision: 2, versions: vec![(0, 2, version(2))], ..Batch::default() }).unwrap();
        drop(backend);
        let backend = RedbBackend::open(&path, 1 << 20).unwrap();
        let read = |snapshot: &dyn Snapshot| {
            assert_eq!(snapshot.keyspaces()?.len(), 1);
            for revision in [1, 2] {
                assert_eq!(snapshot.version(0, revision)?, Some(version(revision)));
            }
            Ok(())
        };
        backend.read(&mut { read }).unwrap();
        assert_eq!(backend.unchecked, 1, "what comes later must have checksums");
    }
}

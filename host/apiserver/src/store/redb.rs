//! The durable back end: four tables in one redb file.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | `"revision"` | highest revision |
//! | `keyspaces` | name | id |
//! | `compacted` | id | revision up to which history is incomplete |
//! | `heads` | id + key | created, modified |
//! | `versions` | id + revision | previous, created, flags, key, JSON |
//!
//! Integers in keys are big-endian, so that byte order is number order.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};

use super::StoreError;
use super::backend::{Act, Backend, Batch, Head, Snapshot, StoredKeyspace, Version, Visit, VisitHeads};
use super::disk::{Disk, Open};

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const KEYSPACES: TableDefinition<'_, &str, u32> = TableDefinition::new("keyspaces");
const COMPACTED: TableDefinition<'_, u32, u64> = TableDefinition::new("compacted");
const HEADS: TableDefinition<'_, &[u8], (u64, u64)> = TableDefinition::new("heads");
const VERSIONS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("versions");
const REVISION: &str = "revision";

/// Smaller files are never compacted.
const COMPACT_ABOVE: u64 = 64 << 20;

/// Between two attempts on a disk that failed.
const RETRY: Duration = Duration::from_secs(3);

pub(super) struct RedbBackend {
    disk: Disk,
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

    /// On a file of `length` bytes, which `open` opens now and after failures.
    pub(super) fn open_with(open: Open, length: u64, retry: Duration) -> Result<Self, StoreError> {
        let prepare = || -> Result<Database, redb::Error> {
            let mut database = open()?;
            if length > COMPACT_ABOVE && wasteful(&database, length)? {
                database.compact()?;
            }
            let txn = database.begin_write()?;
            txn.open_table(META)?;
            txn.open_table(KEYSPACES)?;
            txn.open_table(COMPACTED)?;
            txn.open_table(HEADS)?;
            txn.open_table(VERSIONS)?;
            txn.commit()?;
            Ok(database)
        };
        let database = prepare().map_err(failed("open"))?;
        Ok(Self { disk: Disk::new(open, database, |database| snapshot(database)?.revision(), retry)? })
    }
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

fn snapshot(database: &Database) -> Result<RedbSnapshot, StoreError> {
    let open = || -> Result<RedbSnapshot, redb::Error> {
        let txn = database.begin_read()?;
        Ok(RedbSnapshot {
            meta: txn.open_table(META)?,
            keyspaces: txn.open_table(KEYSPACES)?,
            compacted: txn.open_table(COMPACTED)?,
            heads: txn.open_table(HEADS)?,
            versions: txn.open_table(VERSIONS)?,
        })
    };
    open().map_err(failed("read"))
}

impl Backend for RedbBackend {
    fn read(&self, act: Act<'_>) -> Result<(), StoreError> {
        self.disk.read(|database| {
            let snapshot = snapshot(database)?;
            act(&snapshot)
        })
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.disk.commit(batch.revision, |database| try_commit(database, batch).map_err(failed("write")))
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
        for stored in &batch.keyspaces {
            keyspaces.insert(stored.name.as_str(), stored.id)?;
            compacted.insert(stored.id, stored.compacted)?;
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
            versions.insert(version_key(*keyspace, *revision).as_slice(), encode(version).as_slice())?;
        }
        for (keyspace, revision) in &batch.purged {
            versions.remove(version_key(*keyspace, *revision).as_slice())?;
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

fn version_key(keyspace: u32, revision: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&keyspace.to_be_bytes());
    bytes[4..].copy_from_slice(&revision.to_be_bytes());
    bytes
}

fn encode(version: &Version) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(21 + version.key.len() + version.data.len());
    bytes.extend_from_slice(&version.previous.to_be_bytes());
    bytes.extend_from_slice(&version.created.to_be_bytes());
    bytes.push(u8::from(version.deleted));
    bytes.extend_from_slice(&u32::try_from(version.key.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(version.key.as_bytes());
    bytes.extend_from_slice(&version.data);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Version> {
    let (previous, rest) = bytes.split_first_chunk::<8>()?;
    let (created, rest) = rest.split_first_chunk::<8>()?;
    let (flags, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (key, data) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    Some(Version {
        key: std::str::from_utf8(key).ok()?.into(),
        previous: u64::from_be_bytes(*previous),
        created: u64::from_be_bytes(*created),
        deleted: *flags == 1,
        data: Bytes::copy_from_slice(data),
    })
}

struct RedbSnapshot {
    meta: ReadOnlyTable<&'static str, u64>,
    keyspaces: ReadOnlyTable<&'static str, u32>,
    compacted: ReadOnlyTable<u32, u64>,
    heads: ReadOnlyTable<&'static [u8], (u64, u64)>,
    versions: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

fn unreadable<E: Into<redb::Error>>(error: E) -> StoreError {
    failed("read")(error.into())
}

impl Snapshot for RedbSnapshot {
    fn revision(&self) -> Result<u64, StoreError> {
        Ok(self.meta.get(REVISION).map_err(unreadable)?.map_or(0, |revision| revision.value()))
    }

    fn keyspaces(&self) -> Result<Vec<StoredKeyspace>, StoreError> {
        let mut found = Vec::new();
        for entry in self.keyspaces.iter().map_err(unreadable)? {
            let (name, id) = entry.map_err(unreadable)?;
            found.push(StoredKeyspace {
                name: name.value().to_owned(),
                id: id.value(),
                compacted: self.compacted(id.value())?,
            });
        }
        Ok(found)
    }

    fn compacted(&self, keyspace: u32) -> Result<u64, StoreError> {
        Ok(self.compacted.get(keyspace).map_err(unreadable)?.map_or(0, |revision| revision.value()))
    }

    fn head(&self, keyspace: u32, key: &str) -> Result<Option<Head>, StoreError> {
        let found = self.heads.get(head_key(keyspace, key).as_slice()).map_err(unreadable)?;
        Ok(found.map(|head| head.value()).map(|(created, modified)| Head { created, modified }))
    }

    fn version(&self, keyspace: u32, revision: u64) -> Result<Option<Version>, StoreError> {
        let found = self.versions.get(version_key(keyspace, revision).as_slice()).map_err(unreadable)?;
        found.map(|bytes| decode(bytes.value()).ok_or(StoreError::Corrupt("version"))).transpose()
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
            let (id, key) = key.value().split_first_chunk::<4>().ok_or(StoreError::Corrupt("key"))?;
            let key = std::str::from_utf8(key).map_err(|_| StoreError::Corrupt("key"))?;
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

    fn log(&self, keyspace: u32, after: u64, visit: Visit<'_, (u64, Version)>) -> Result<(), StoreError> {
        let (start, end) = (version_key(keyspace, after.saturating_add(1)), version_key(keyspace, u64::MAX));
        for entry in self.versions.range(start.as_slice()..=end.as_slice()).map_err(unreadable)? {
            let (key, bytes) = entry.map_err(unreadable)?;
            let revision =
                key.value().last_chunk::<8>().map(|r| u64::from_be_bytes(*r)).ok_or(StoreError::Corrupt("key"))?;
            if !visit((revision, decode(bytes.value()).ok_or(StoreError::Corrupt("version"))?))? {
                break;
            }
        }
        Ok(())
    }
}

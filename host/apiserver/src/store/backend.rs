//! What a database must do for the store: consistent snapshots and atomic, durable batches.

use bytes::Bytes;

use super::StoreError;

/// Revisions of the creation and of the newest version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub created: u64,
    pub modified: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub key: Box<str>,
    /// Revision of the preceding version; 0 when the key did not exist.
    pub previous: u64,
    pub created: u64,
    pub deleted: bool,
    pub data: Bytes,
}

#[derive(Clone, Debug)]
pub(super) struct StoredKeyspace {
    pub name: String,
    pub id: u32,
    /// History at or below this revision is incomplete.
    pub compacted: u64,
}

#[derive(Default)]
pub(super) struct Batch {
    pub revision: u64,
    pub keyspaces: Vec<StoredKeyspace>,
    pub versions: Vec<(u32, u64, Version)>,
    pub purged: Vec<(u32, u64)>,
    /// Keyspaces to be emptied.
    pub removed: Vec<u32>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.keyspaces.is_empty() && self.versions.is_empty() && self.purged.is_empty() && self.removed.is_empty()
    }
}

/// Called for each entry of a scan; `false` ends it.
pub(super) type Visit<'a, T> = &'a mut dyn FnMut(T) -> Result<bool, StoreError>;

pub(super) type VisitHeads<'a> = &'a mut dyn FnMut(&str, Head) -> Result<bool, StoreError>;

pub(super) trait Snapshot {
    fn revision(&self) -> Result<u64, StoreError>;
    fn keyspaces(&self) -> Result<Vec<StoredKeyspace>, StoreError>;
    /// History of the keyspace at or below this revision is incomplete.
    fn compacted(&self, keyspace: u32) -> Result<u64, StoreError>;
    fn head(&self, keyspace: u32, key: &str) -> Result<Option<Head>, StoreError>;
    fn version(&self, keyspace: u32, revision: u64) -> Result<Option<Version>, StoreError>;
    /// Live keys with `prefix` that sort after `after`, in order.
    fn heads(&self, keyspace: u32, prefix: &str, after: Option<&str>, visit: VisitHeads<'_>) -> Result<(), StoreError>;
    /// Versions written after `after`, oldest first; of one that is damaged, what is wrong.
    fn log(
        &self,
        keyspace: u32,
        after: u64,
        visit: Visit<'_, (u64, Result<Version, &'static str>)>,
    ) -> Result<(), StoreError>;
}

pub(super) type Act<'a> = &'a mut dyn FnMut(&dyn Snapshot) -> Result<(), StoreError>;

/// A database. Only the writer thread calls `commit`.
pub(super) trait Backend: Send + Sync {
    /// Runs `act` on the state as of now. A closure, so that nobody holds a snapshot across an await: it would hold back
    /// commits (memory) or the reuse of pages (redb).
    fn read(&self, act: Act<'_>) -> Result<(), StoreError>;
    /// Applies all of `batch` or nothing, and returns once it is durable.
    /// A batch that changes nothing finds out whether writing works.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;
    /// Closes it for good; whoever asks later is refused.
    fn close(&self) {}
    /// Why nothing can be written at present.
    fn trouble(&self) -> Option<String> {
        None
    }
}

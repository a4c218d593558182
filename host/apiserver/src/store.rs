//! A revisioned key-value store of JSON documents, shared by many API servers.
//!
//! - One global, durable, strictly growing `u64` revision numbers every write of every keyspace. It is never reset, so a
//!   `resourceVersion` never means two things, not even after a crash.
//! - A value is written once: the index maps a key to the revision of its newest version, and old versions stay readable
//!   for a bounded history. That history *is* the event log: watches resume from it across restarts, and lists at an older
//!   revision are exact.
//! - One writer thread per [`Store`] (not per keyspace) collects whatever is waiting into one commit; watchers hear of a
//!   write only after it is durable.
//! - Documents are kept as the bytes that clients receive: the writer stamps the revision into a gap that the encoder left
//!   ([`Encoded`]), so reads, lists and watches copy bytes instead of parsing JSON.

mod backend;
mod damage;
mod disk;
mod encoded;
mod history;
mod keyspace;
mod memory;
mod overlay;
mod record;
mod redb;
mod repair;
mod sums;
#[cfg(test)]
mod tests;
mod view;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{oneshot, watch};

pub use repair::{Finding, Findings, Repaired, check, repair};

pub(crate) use encoded::Encoded;
pub(crate) use keyspace::{Event, Key, Keyspace, Subscription};
pub(crate) use view::{Record, View};
use writer::Command;

/// How much superseded history a keyspace keeps for watches that resume and for lists at an older revision.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Versions superseded longer ago than this are dropped.
    pub age: Duration,
    /// At most this many superseded versions per keyspace are kept.
    pub versions: usize,
    /// At most this many bytes of superseded versions per keyspace are kept.
    pub bytes: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: Duration::from_secs(300), versions: 10_000, bytes: 32 << 20 }
    }
}

/// Files up to this size are audited before they are used, larger ones meanwhile. A megabyte takes about a millisecond.
const AUDITED_FIRST: u64 = 64 << 20;

/// Why a store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database could not be opened, read or written.
    #[error("unable to {act} the database: {message}")]
    Backend {
        /// `open`, `read`, `write` and the like.
        act: &'static str,
        /// Error of the database.
        message: String,
    },
    /// The disk failed. It is tried again.
    #[error("unable to {act} the database: {message}{}", if *full { "; make room on the disk" } else { "" })]
    Disk {
        /// `open`, `read`, `write` and the like.
        act: &'static str,
        /// There is no room left.
        full: bool,
        /// Error of the file system.
        message: String,
    },
    /// Another process has the database.
    #[error("another process has the database open: is another capwasm running on this folder?")]
    InUse,
    /// The disk failed in the middle of a commit and did not come back: what it wrote is seen at the next start.
    #[error(
        "the disk failed while something was written, and the database cannot be opened again: mend it, then restart"
    )]
    Doubtful,
    /// Something in the database is not what was written: what is wrong.
    #[error("the database is damaged: {0}; `capwasm apiserver check` says what else")]
    Corrupt(&'static str),
    /// An entry is not what was written.
    #[error(
        "{entry} is damaged in the database: {why}; others are not. Stop the server, then `capwasm apiserver repair`"
    )]
    Damaged {
        /// Its key: resource, namespace and name.
        entry: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The writer thread could not be started.
    #[error("unable to start the writer thread: {0}")]
    Thread(String),
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
    /// The key is not at the revision that the write was decided on.
    #[error("the key is at revision {current:?}, not at the expected one")]
    Conflict {
        /// Present revision of the key; `None` when it does not exist.
        current: Option<u64>,
    },
    /// A revision before the retained history was asked for.
    #[error("revision {asked} is older than the retained history, which starts at {oldest}")]
    Compacted {
        /// Requested revision.
        asked: u64,
        /// Oldest revision that is readable.
        oldest: u64,
    },
}

/// State shared by the handles and the writer thread.
struct Shared {
    backend: Box<dyn backend::Backend>,
    damage: damage::Damage,
    /// Highest revision delivered to the buffers of all watchers.
    published: watch::Sender<u64>,
    keyspaces: Mutex<Keyspaces>,
}

impl Shared {
    /// Notes all that is damaged.
    fn audit(&self) {
        let audited = self.backend.read(&mut |snapshot| {
            let seen = damage::audit(snapshot, &mut |keyspace, key, why| drop(self.damage.note(keyspace, key, why)))?;
            if seen.unreadable > 0 {
                tracing::error!(
                    versions = seen.unreadable,
                    "the database is damaged: stop the server, then `capwasm apiserver check`"
                );
            }
            Ok(())
        });
        if let Err(error) = audited {
            tracing::error!(%error, "the database cannot be audited");
        }
    }
}

/// The keyspaces by name. Numbers are never reused; a removed keyspace keeps its own.
#[derive(Default)]
struct Keyspaces {
    by_name: HashMap<String, Arc<Keyspace>>,
    next: u32,
}

/// A database of any number of keyspaces. Dropping the last handle closes it.
pub struct Store {
    shared: Arc<Shared>,
    commands: RwLock<Option<mpsc::Sender<Command>>>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// One write to one key, decided by the caller on the revision in `expected`.
pub(crate) struct Change {
    pub key: Key,
    /// Revision that the key must be at; `None`: it must not exist.
    pub expected: Option<u64>,
    /// The state on which the decision was made, for watchers whose selector the object may have left.
    pub previous: Option<bytes::Bytes>,
    /// The new state, or the last state of a deleted key.
    pub value: Encoded,
    pub delete: bool,
}

impl Store {
    /// Opens or creates the database file at `path`, with at most `cache_bytes` of page cache.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Arc<Self>, StoreError> {
        Self::open_with(path, cache_bytes, Retention::default())
    }

    /// As [`Store::open`], with a retention other than the default.
    pub fn open_with(path: &Path, cache_bytes: usize, retention: Retention) -> Result<Arc<Self>, StoreError> {
        let length = std::fs::metadata(path).map_or(0, |file| file.len());
        let store = Self::start(Box::new(redb::RedbBackend::open(path, cache_bytes)?), retention)?;
        let shared = Arc::clone(&store.shared);
        if length <= AUDITED_FIRST {
            shared.audit();
        } else {
            let audit = std::thread::Builder::new().name("apiserver-audit".to_owned());
            audit.spawn(move || shared.audit()).map_err(|error| StoreError::Thread(error.to_string()))?;
        }
        Ok(store)
    }

    /// A store in memory.
    pub fn memory() -> Result<Arc<Self>, StoreError> {
        Self::memory_with(Retention::default())
    }

    /// As [`Store::memory`], with a retention other than the default.
    pub fn memory_with(retention: Retention) -> Result<Arc<Self>, StoreError> {
        Self::start(Box::new(memory::MemoryBackend::default()), retention)
    }

    fn start(backend: Box<dyn backend::Backend>, retention: Retention) -> Result<Arc<Self>, StoreError> {
        let mut keyspaces = Keyspaces::default();
        let mut revision = 0;
        backend.read(&mut |snapshot| {
            revision = snapshot.revision()?;
            for stored in snapshot.keyspaces()? {
                keyspaces.next = keyspaces.next.max(stored.id + 1);
                keyspaces.by_name.insert(stored.name.clone(), Arc::new(Keyspace::stored(stored)));
            }
            Ok(())
        })?;
        let shared = Arc::new(Shared {
            published: watch::Sender::new(revision),
            keyspaces: Mutex::new(keyspaces),
            damage: damage::Damage::default(),
            backend,
        });
        let (commands, inbox) = mpsc::channel();
        let writer = writer::Writer::new(Arc::clone(&shared), revision, retention)?;
        let thread = std::thread::Builder::new()
            .name("apiserver-store".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|e| StoreError::Thread(e.to_string()))?;
        Ok(Arc::new(Self { shared, commands: RwLock::new(Some(commands)), writer: Mutex::new(Some(thread)) }))
    }

    /// Keyspace of this name; stored with its first write.
    pub(crate) fn keyspace(&self, name: &str) -> Arc<Keyspace> {
        let mut keyspaces = self.shared.keyspaces.lock();
        if let Some(known) = keyspaces.by_name.get(name) {
            return Arc::clone(known);
        }
        let created = Arc::new(Keyspace::fresh(keyspaces.next, name));
        keyspaces.next += 1;
        keyspaces.by_name.insert(name.to_owned(), Arc::clone(&created));
        created
    }

    /// Why nothing can be written at present: the disk is full, say. Reads go on; writing is tried again by itself.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.backend.trouble()
    }

    /// Objects that are known to be damaged, which are errors where they are read.
    #[must_use]
    pub fn damaged(&self) -> usize {
        self.shared.damage.count()
    }

    /// Names of the keyspaces that are stored or in use.
    #[must_use]
    pub fn keyspaces(&self) -> Vec<String> {
        self.shared.keyspaces.lock().by_name.keys().cloned().collect()
    }

    /// Deletes a keyspace with everything in it and ends its watches. A server that still uses it sees it empty.
    pub async fn remove_keyspace(&self, name: &str) -> Result<(), StoreError> {
        let Some(keyspace) = self.shared.keyspaces.lock().by_name.get(name).map(Arc::clone) else { return Ok(()) };
        let (reply, answer) = oneshot::channel();
        self.send(Command::Remove { keyspace, reply })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Writes one change durably. When this returns, reads see it and watchers have been notified.
    pub(crate) async fn write(&self, keyspace: &Arc<Keyspace>, change: Change) -> Result<Arc<Event>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Write { keyspace: Arc::clone(keyspace), change, reply })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, command: Command) -> Result<(), StoreError> {
        let commands = self.commands.read();
        let commands = commands.as_ref().ok_or(StoreError::Closed)?;
        commands.send(command).map_err(|_| StoreError::Closed)
    }

    /// Runs `act` on a consistent view of one keyspace, as of now.
    pub(crate) fn read<T>(
        &self,
        keyspace: &Keyspace,
        act: impl FnOnce(&View<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut act = Some(act);
        let mut result = None;
        self.shared.backend.read(&mut |snapshot| {
            let view = View::new(snapshot, &self.shared.damage, keyspace.id())?;
            // Once: after a failure in its middle, who asked asks again.
            if let Some(act) = act.take() {
                result = Some(act(&view));
            }
            Ok(())
        })?;
        let broken = "a page of it could not be read: ask again; where that stays so, stop the server, then `capwasm apiserver check`";
        result.unwrap_or_else(|| Err(StoreError::Backend { act: "read", message: broken.to_owned() }))
    }

    /// Highest revision that watchers have been notified of.
    #[must_use]
    pub fn revision(&self) -> u64 {
        *self.shared.published.borrow()
    }

    /// Waits until [`Store::revision`] has reached `revision`.
    pub(crate) async fn reached(&self, revision: u64) {
        let mut published = self.shared.published.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _ = published.wait_for(|now| *now >= revision).await;
    }
}

impl Store {
    /// Waits for pending writes and closes the database, whoever still has a handle. A database that is not closed is read as a whole
    /// when it is opened, and what is damaged in it cannot be told from the rest then. Blocks.
    pub fn close(&self) {
        drop(self.commands.write().take());
        if let Some(writer) = self.writer.lock().take()
            && writer.join().is_err()
        {
            tracing::error!("the store's writer thread panicked");
        }
        self.shared.backend.close();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

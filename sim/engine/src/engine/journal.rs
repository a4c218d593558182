//! What an engine keeps on disk: one table of keys and values, written by one task that commits whatever waits as one
//! transaction.
//!
//! Keys: `meta/<name>`, `container/<id>`, `exec/<id>`, `network/<name>`, `image/<reference>`, `volume/<name>`, `file/<container id><path>`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::sync::{mpsc, oneshot};

use super::Refused;

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("engine");
/// How many commits there were: whether one that failed is there all the same.
const COMMITS: TableDefinition<'_, (), u64> = TableDefinition::new("commits");
/// The engine's own state is all in memory: the page cache serves commits only.
const CACHE: usize = 2 << 20;

/// A key and its value.
pub type Entry = (String, Vec<u8>);

/// One change of what is kept.
pub enum Change {
    /// Sets a key.
    Put(String, Vec<u8>),
    /// Removes a key.
    Remove(String),
    /// Removes every key with this prefix.
    RemoveAll(String),
}

impl Change {
    /// The key, or the start of the keys, that it is about.
    pub fn key(&self) -> &str {
        match self {
            Change::Put(key, _) | Change::Remove(key) | Change::RemoveAll(key) => key,
        }
    }
}

struct Batch {
    changes: Vec<Change>,
    /// Whether the changes hold already, and are to be kept whatever becomes of this batch.
    hold: bool,
    done: oneshot::Sender<Result<(), NotKept>>,
}

/// Why the state on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it open.
    #[error("the data directory is in use by another simulated engine")]
    InUse,
    /// The database is broken or cannot be written.
    #[error(transparent)]
    Database(#[from] NotKept),
}

/// Why changes are not on disk. The next ones are tried anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// There is no room left.
    #[error("the disk of the engine's data directory is full ({0}): make room")]
    Full(String),
    /// The disk or the database failed.
    #[error("unable to use the engine's database: {0}")]
    Failed(String),
}

impl From<redb::Error> for NotKept {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                NotKept::Full(error.to_string())
            }
            other => NotKept::Failed(other.to_string()),
        }
    }
}

impl From<NotKept> for Refused {
    fn from(error: NotKept) -> Self {
        let status = if let NotKept::Full(_) = error { 507 } else { 500 };
        Refused::new(status, error.to_string())
    }
}

/// Opens the database, now and after failures.
type Open = Box<dyn Fn() -> Result<Database, redb::Error> + Send>;

/// What is kept on disk; changes are written in batches, in the background.
pub struct Journal {
    sender: mpsc::UnboundedSender<Batch>,
}

impl Journal {
    /// Opens the database and reads everything that is in it.
    ///
    /// # Errors
    /// When it is in use or broken.
    pub fn open(path: &Path) -> Result<(Journal, Vec<Entry>), JournalError> {
        let path = path.to_owned();
        Self::open_with(Box::new(move || Ok(Database::builder().set_cache_size(CACHE).create(&path)?)))
    }

    fn open_with(open: Open) -> Result<(Journal, Vec<Entry>), JournalError> {
        let failed = |error: redb::Error| match error {
            redb::Error::DatabaseAlreadyOpen => JournalError::InUse,
            other => JournalError::Database(other.into()),
        };
        let database = open().map_err(failed)?;
        let (written, entries) = prepare(&database).map_err(failed)?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let writer = Writer { open, database: Some(database), written, owed: Owed::default() };
        tokio::spawn(write_batches(writer, receiver));
        Ok((Journal { sender }, entries))
    }

    /// Makes changes durable, all or none; returns when they are.
    ///
    /// # Errors
    /// When the database cannot be written; then none is there.
    pub async fn commit(&self, changes: Vec<Change>) -> Result<(), NotKept> {
        self.send(changes, false).await
    }

    /// As [`Journal::commit`], for what holds already: what cannot be written now is written before anything else is.
    ///
    /// # Errors
    /// When it is not written yet.
    pub async fn keep(&self, changes: Vec<Change>) -> Result<(), NotKept> {
        self.send(changes, true).await
    }

    async fn send(&self, changes: Vec<Change>, hold: bool) -> Result<(), NotKept> {
        if changes.is_empty() {
            return Ok(());
        }
        let (done, outcome) = oneshot::channel();
        let closed = || NotKept::Failed("it is closed".to_owned());
        self.sender.send(Batch { changes, hold, done }).map_err(|_| closed())?;
        outcome.await.map_err(|_| closed())?
    }
}

/// Makes the tables; answers the number of commits, and all entries.
fn prepare(database: &Database) -> Result<(u64, Vec<Entry>), redb::Error> {
    let write = database.begin_write()?;
    write.open_table(TABLE)?;
    write.open_table(COMMITS)?;
    write.commit()?;
    let read = database.begin_read()?;
    let mut entries = Vec::new();
    for entry in read.open_table(TABLE)?.iter()? {
        let (key, value) = entry?;
        entries.push((key.value().to_owned(), value.value().to_vec()));
    }
    Ok((commits(database)?, entries))
}

fn commits(database: &Database) -> Result<u64, redb::Error> {
    let commits = database.begin_read()?.open_table(COMMITS)?;
    Ok(commits.get(())?.map_or(0, |commits| commits.value()))
}

async fn write_batches(mut writer: Writer, mut receiver: mpsc::UnboundedReceiver<Batch>) {
    let mut waiting = Vec::new();
    while receiver.recv_many(&mut waiting, 1024).await > 0 {
        let batches = std::mem::take(&mut waiting);
        let written = tokio::task::spawn_blocking(move || {
            let outcome = writer.write(&batches);
            for batch in batches {
                if outcome.is_err() && batch.hold {
                    writer.owed.add(batch.changes);
                }
                // Whoever waited may be gone.
                let _ = batch.done.send(outcome.clone());
            }
            writer
        });
        let Ok(back) = written.await else { return };
        writer = back;
    }
}

struct Writer {
    open: Open,
    /// None after a failure, until it is opened again: redb refuses everything else.
    database: Option<Database>,
    /// Commits in it.
    written: u64,
    owed: Owed,
}

impl Writer {
    fn write(&mut self, batches: &[Batch]) -> Result<(), NotKept> {
        let changes = || batches.iter().flat_map(|batch| &batch.changes);
        let opened = match self.database.take() {
            Some(database) => Ok(database),
            None => self.reopen(),
        };
        let next = self.written + 1;
        let written = opened
            .and_then(|database| write(&database, next, self.owed.0.values().chain(changes())).map(|()| database));
        let kept = match written {
            Ok(database) => {
                (self.database, self.written) = (Some(database), next);
                Ok(())
            }
            Err(error) => {
                self.database = self.reopen().ok();
                // It may be there all the same.
                if self.written == next { Ok(()) } else { Err(NotKept::from(error)) }
            }
        };
        if kept.is_ok() {
            self.owed = Owed::default();
        }
        kept
    }

    /// Opens the database anew, and looks how many commits are in it.
    fn reopen(&mut self) -> Result<Database, redb::Error> {
        let database = (self.open)()?;
        self.written = commits(&database)?;
        Ok(database)
    }
}

fn write<'a>(database: &Database, number: u64, changes: impl Iterator<Item = &'a Change>) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        transaction.open_table(COMMITS)?.insert((), number)?;
        let mut table = transaction.open_table(TABLE)?;
        for change in changes {
            match change {
                Change::Put(key, value) => drop(table.insert(key.as_str(), value.as_slice())?),
                Change::Remove(key) => drop(table.remove(key.as_str())?),
                Change::RemoveAll(prefix) => {
                    let mut keys = Vec::new();
                    for entry in table.range(prefix.as_str()..)? {
                        let key = entry?.0.value().to_owned();
                        if !key.starts_with(prefix) {
                            break;
                        }
                        keys.push(key);
                    }
                    for key in keys {
                        table.remove(key.as_str())?;
                    }
                }
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Changes that hold and are not on disk, by key: no more than there is in memory anyway.
#[derive(Default)]
struct Owed(BTreeMap<String, Change>);

impl Owed {
    fn add(&mut self, changes: Vec<Change>) {
        for change in changes {
            if let Change::RemoveAll(prefix) = &change {
                self.0.retain(|key, _| !key.starts_with(prefix));
            }
            self.0.insert(change.key().to_owned(), change);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::fs::File;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use redb::StorageBackend;
    use redb::backends::FileBackend;

    use super::*;

    /// A file whose disk is full while the flag is set.
    #[derive(Debug)]
    struct FullDisk(FileBackend, Arc<AtomicBool>);

    impl FullDisk {
        fn room(&self) -> io::Result<()> {
            if self.1.load(Ordering::Relaxed) { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }

    impl StorageBackend for FullDisk {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.0.read(offset, out)
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.room()?;
            self.0.set_len(len)
        }
        fn sync_data(&self) -> io::Result<()> {
            self.0.sync_data()
        }
        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.room()?;
            self.0.write(offset, data)
        }
    }

    #[tokio::test]
    async fn a_full_disk_refuses_changes_until_there_is_room_and_keeps_what_holds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("engine.redb");
        let full = Arc::new(AtomicBool::new(false));
        let open = {
            let (path, full) = (path.clone(), full.clone());
            move || {
                let file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
                Ok(Database::builder().create_with_backend(FullDisk(FileBackend::new(file)?, full.clone()))?)
            }
        };
        let (journal, _) = Journal::open_with(Box::new(open)).unwrap();
        let put = |key: &str| vec![Change::Put(key.to_owned(), b"x".to_vec())];
        journal.commit(put("container/before")).await.unwrap();
        full.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            let refused = journal.commit(put("container/during")).await.unwrap_err();
            assert!(matches!(&refused, NotKept::Full(_)) && refused.to_string().contains("make room"), "{refused}");
            assert_eq!(Refused::from(refused).status, 507);
        }
        journal.keep(put("exec/one")).await.unwrap_err();
        journal.keep(put("exec/two")).await.unwrap_err();
        journal.keep(vec![Change::RemoveAll("exec/t".to_owned())]).await.unwrap_err();
        full.store(false, Ordering::Relaxed);
        journal.commit(put("container/after")).await.unwrap();
        journal.commit(vec![Change::Remove("exec/none".to_owned())]).await.unwrap();
        drop(journal);
        let entries = loop {
            match Journal::open(&path) {
                Ok((_, entries)) => break entries,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["container/after", "container/before", "exec/one"]);
    }

    #[tokio::test]
    async fn what_is_committed_is_read_back_and_a_second_engine_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("engine.redb");
        let (journal, entries) = Journal::open(&path).unwrap();
        assert!(entries.is_empty());
        let put = |key: &str| Change::Put(key.to_owned(), b"x".to_vec());
        journal.commit(vec![put("file/a/1"), put("file/a/2"), put("file/b/1"), put("meta/x")]).await.unwrap();
        journal
            .commit(vec![Change::RemoveAll("file/a/".to_owned()), Change::Remove("meta/x".to_owned())])
            .await
            .unwrap();
        assert!(matches!(Journal::open(&path), Err(JournalError::InUse)));
        drop(journal);
        let entries = loop {
            match Journal::open(&path) {
                Ok((_, entries)) => break entries,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert_eq!(entries, [("file/b/1".to_owned(), b"x".to_vec())]);
    }
}

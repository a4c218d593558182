//! What an engine keeps on disk: one table of keys and values, written by one task that commits whatever waits as one
//! transaction.
//!
//! Keys: `meta/<name>`, `container/<id>`, `exec/<id>`, `network/<name>`, `image/<reference>`, `volume/<name>`, `file/<container id><path>`.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::sync::{mpsc, oneshot};

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("engine");
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
    done: oneshot::Sender<Result<(), String>>,
}

/// Why the state on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it open.
    #[error("the data directory is in use by another simulated engine")]
    InUse,
    /// The database is broken or cannot be written.
    #[error("unable to use the engine's database: {0}")]
    Database(String),
}

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
        let broken = |error: redb::Error| JournalError::Database(error.to_string());
        let database = match Database::builder().set_cache_size(CACHE).create(path) {
            Err(redb::DatabaseError::DatabaseAlreadyOpen) => return Err(JournalError::InUse),
            other => other.map_err(|error| broken(error.into()))?,
        };
        let write = database.begin_write().map_err(|error| broken(error.into()))?;
        write.open_table(TABLE).map(drop).map_err(|error| broken(error.into()))?;
        write.commit().map_err(|error| broken(error.into()))?;
        let mut entries = Vec::new();
        {
            let read = database.begin_read().map_err(|error| broken(error.into()))?;
            let table = read.open_table(TABLE).map_err(|error| broken(error.into()))?;
            for entry in table.iter().map_err(|error| broken(error.into()))? {
                let (key, value) = entry.map_err(|error| broken(error.into()))?;
                entries.push((key.value().to_owned(), value.value().to_vec()));
            }
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(write_batches(Arc::new(database), receiver));
        Ok((Journal { sender }, entries))
    }

    /// Makes changes durable, all or none; returns when they are.
    ///
    /// # Errors
    /// The database's words when it cannot be written.
    pub async fn commit(&self, changes: Vec<Change>) -> Result<(), String> {
        if changes.is_empty() {
            return Ok(());
        }
        let (done, outcome) = oneshot::channel();
        let closed = || "the engine's database is closed".to_owned();
        self.sender.send(Batch { changes, done }).map_err(|_| closed())?;
        outcome.await.map_err(|_| closed())?
    }
}

async fn write_batches(database: Arc<Database>, mut receiver: mpsc::UnboundedReceiver<Batch>) {
    let mut waiting = Vec::new();
    while receiver.recv_many(&mut waiting, 1024).await > 0 {
        let batches = std::mem::take(&mut waiting);
        let database = Arc::clone(&database);
        let written = tokio::task::spawn_blocking(move || {
            let outcome = write(&database, &batches).map_err(|error| error.to_string());
            for batch in batches {
                // Whoever waited may be gone.
                let _ = batch.done.send(outcome.clone());
            }
        });
        if written.await.is_err() {
            return;
        }
    }
}

fn write(database: &Database, batches: &[Batch]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for change in batches.iter().flat_map(|batch| &batch.changes) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

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

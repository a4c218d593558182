//! A redb database on a disk that fails for a while: full, or gone.
//!
//! redb refuses everything after the first failure, until the file is opened anew. So it is, at once and by whoever asks next. What was
//! acknowledged is there afterwards. A commit that failed may be there or not: [`Disk::commit`] looks, and answers accordingly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use redb::Database;

use super::StoreError;
use super::damage::guarded;

/// Opens the file.
pub(super) type Open = Box<dyn Fn() -> Result<Database, redb::Error> + Send + Sync>;

/// How often a commit waits for the file to be opened, before it says that it does not know whether it is written.
const PATIENCE: u32 = 10;

pub(super) struct Disk {
    open: Open,
    /// Revision of the database.
    revision: fn(&Database) -> Result<u64, StoreError>,
    /// Between two attempts to open it, and to write after it was full.
    retry: Duration,
    opened: RwLock<Opened>,
    /// Revision of the last commit that succeeded.
    acknowledged: AtomicU64,
    trouble: Mutex<Option<Trouble>>,
}

struct Opened {
    /// Counts the attempts to open it: who saw a failure knows whether another has tried since.
    attempt: u64,
    database: Result<Database, (StoreError, Instant)>,
}

impl Opened {
    /// The database writes when it is closed, so that a damaged page may stop it there too.
    fn close(&mut self, why: StoreError) {
        let database = std::mem::replace(&mut self.database, Err((why, Instant::now())));
        let close = || {
            drop(database);
            Ok(())
        };
        let damaged = |message| StoreError::Backend { act: "close", message };
        if let Err(error) = guarded(close, damaged) {
            tracing::error!(%error, "the database was not closed");
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

struct Trouble {
    why: StoreError,
    since: Instant,
}

impl Disk {
    /// Takes over an opened database.
    ///
    /// # Errors
    /// When its revision cannot be read.
    pub fn new(
        open: Open,
        database: Database,
        revision: fn(&Database) -> Result<u64, StoreError>,
        retry: Duration,
    ) -> Result<Self, StoreError> {
        let acknowledged = AtomicU64::new(revision(&database)?);
        let opened = RwLock::new(Opened { attempt: 0, database: Ok(database) });
        Ok(Self { open, revision, retry, opened, acknowledged, trouble: Mutex::default() })
    }

    /// Closes the database for good.
    pub fn close(&self) {
        self.opened.write().close(StoreError::Closed);
    }

    /// Why nothing can be written at present.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().as_ref().map(|trouble| trouble.why.to_string())
    }

    /// Reads. What fails with the disk is tried once more on a file that is opened anew.
    pub fn read(&self, mut act: impl FnMut(&Database) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let (attempt, result) = self.attempt(&mut act);
        if !matches!(result, Err(StoreError::Disk { .. })) {
            return result;
        }
        self.reopen(attempt)?;
        self.attempt(&mut act).1
    }

    /// Commits what makes the revision `revision`, or nothing. A full disk is not tried again at once.
    pub fn commit(
        &self,
        revision: u64,
        mut act: impl FnMut(&Database) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if let Some(trouble) = &*self.trouble.lock()
            && (trouble.since.elapsed() < self.retry || matches!(trouble.why, StoreError::Doubtful))
        {
            return Err(trouble.why.clone());
        }
        let (attempt, mut result) = self.attempt(&mut act);
        self.tell(&result);
        if let Err(why @ StoreError::Disk { .. }) = result {
            result = self.settle(revision, attempt, why);
            self.tell(&result);
        }
        if result.is_ok() {
            self.acknowledged.store(revision, Ordering::Release);
        }
        result
    }

    fn tell(&self, result: &Result<(), StoreError>) {
        let trouble = |why: &StoreError| Trouble { why: why.clone(), since: Instant::now() };
        *self.trouble.lock() = result.as_ref().err().map(trouble);
    }

    /// After a commit that failed with `why`: whether it is there all the same.
    fn settle(&self, revision: u64, attempt: u64, why: StoreError) -> Result<(), StoreError> {
        let mut patience = PATIENCE;
        let mut opened = self.reopen(attempt);
        while opened.is_err() && patience > 0 {
            patience -= 1;
            std::thread::sleep(self.retry);
            let attempt = self.opened.read_recursive().attempt;
            opened = self.reopen(attempt);
        }
        opened.map_err(|_| StoreError::Doubtful)?;
        let mut stored = 0;
        self.read(|database| {
            stored = (self.revision)(database)?;
            Ok(())
        })
        .map_err(|_| StoreError::Doubtful)?;
        if stored == revision && stored > self.acknowledged.load(Ordering::Acquire) { Ok(()) } else { Err(why) }
    }

    fn attempt(&self, act: &mut impl FnMut(&Database) -> Result<(), StoreError>) -> (u64, Result<(), StoreError>) {
        // Recursive, as a read may be within another: a waiting writer must not come between them.
        let opened = self.opened.read_recursive();
        let result = match &opened.database {
            // As a failure of the disk: the database is opened anew, for nobody knows in which state the panic left it.
            Ok(database) => guarded(|| act(database), |message| StoreError::Disk { act: "use", full: false, message }),
            Err((why, _)) => Err(why.clone()),
        };
        (opened.attempt, result)
    }

    /// Opens the file anew, unless somebody did since `attempt`, or tried a moment ago.
    fn reopen(&self, attempt: u64) -> Result<(), StoreError> {
        let mut opened = self.opened.write();
        if opened.attempt != attempt {
            return opened.database.as_ref().map(|_| ()).map_err(|(why, _)| why.clone());
        }
        if let Err((why, since)) = &opened.database
            && since.elapsed() < self.retry
        {
            return Err(why.clone());
        }
        opened.attempt += 1;
        // Closed first: it holds the lock on the file.
        opened.close(StoreError::Disk { act: "open", full: false, message: "it is being opened again".to_owned() });
        let open = || (self.open)().map_err(super::redb::failed("open"));
        opened.database = guarded(open, |message| StoreError::Backend { act: "open", message })
            .map_err(|error| (error, Instant::now()));
        match &opened.database {
            Ok(_) => tracing::warn!("the database was opened again after a failure of the disk"),
            Err((error, _)) => tracing::error!(%error, "the database cannot be opened again"),
        }
        opened.database.as_ref().map(|_| ()).map_err(|(why, _)| why.clone())
    }
}

#[cfg(test)]
mod tests;

//! Entries that are not what was written: bytes on the disk are others than those that went there. Each is an error of its object,
//! and of lists that the object would be in: one that leaves it out would say that it is gone, and what belongs to it would be deleted.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::StoreError;
use super::backend::{Head, Snapshot, Version};

/// What redb does on pages that are damaged, it does not promise: it may panic.
pub(super) fn guarded<T>(
    act: impl FnOnce() -> Result<T, StoreError>,
    failed: impl FnOnce(String) -> StoreError,
) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        Err(failed("a page of it is damaged: stop the server, then `capwasm apiserver check`".to_owned()))
    })
}

/// What is known to be damaged, by keyspace and key.
#[derive(Default)]
pub(super) struct Damage {
    entries: Mutex<BTreeMap<(u32, Box<str>), &'static str>>,
    count: AtomicUsize,
}

impl Damage {
    /// Notes an entry, and says so in the log the first time.
    pub fn note(&self, keyspace: u32, key: &str, why: &'static str) -> StoreError {
        let mut entries = self.entries.lock();
        let error = damaged(key, why);
        if entries.insert((keyspace, key.into()), why).is_none() {
            tracing::error!(%error, "the database is damaged");
        }
        self.count.store(entries.len(), Ordering::Release);
        error
    }

    /// A keyspace is emptied.
    pub fn forget(&self, keyspace: u32) {
        let mut entries = self.entries.lock();
        entries.retain(|(id, _), _| *id != keyspace);
        self.count.store(entries.len(), Ordering::Release);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Of one that is not found: it is, but damaged.
    ///
    /// # Errors
    /// When it is.
    pub fn check(&self, keyspace: u32, key: &str) -> Result<(), StoreError> {
        self.first(keyspace, key)
            .map_or(Ok(()), |(found, why)| if *found == *key { Err(damaged(key, why)) } else { Ok(()) })
    }

    /// Of those whose keys begin like this.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn check_below(&self, keyspace: u32, prefix: &str) -> Result<(), StoreError> {
        match self.first(keyspace, prefix) {
            Some((key, why)) if key.starts_with(prefix) => Err(damaged(&key, why)),
            _ => Ok(()),
        }
    }

    fn first(&self, keyspace: u32, from: &str) -> Option<(Box<str>, &'static str)> {
        if self.count() == 0 {
            return None;
        }
        let entries = self.entries.lock();
        let ((id, key), why) = entries.range((keyspace, from.into())..).next()?;
        (*id == keyspace).then(|| (key.clone(), *why))
    }
}

fn damaged(key: &str, why: &'static str) -> StoreError {
    StoreError::Damaged { entry: shown(key), why }
}

/// A key for people: `things/default/a`.
pub(super) fn shown(key: &str) -> String {
    key.replace("\0\0", "/").replace('\0', "/")
}

/// The version of a key at a revision that its index names.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not that.
pub(super) fn verified(
    snapshot: &dyn Snapshot,
    keyspace: u32,
    key: &str,
    revision: u64,
) -> Result<Version, StoreError> {
    match snapshot.version(keyspace, revision)? {
        None => Err(StoreError::Corrupt("there is nothing at its revision")),
        Some(version) if *version.key != *key => Err(StoreError::Corrupt("another object is at its revision")),
        Some(version) if version.deleted => Err(StoreError::Corrupt("it is deleted at its revision")),
        Some(version) => Ok(version),
    }
}

/// What an audit has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub objects: usize,
    /// Versions that cannot be read; of which object they are is not known.
    pub unreadable: usize,
}

/// Reads everything, and tells `found` of keyspaces and keys of objects that are damaged.
///
/// # Errors
/// When the database fails, which is more than an entry.
pub(super) fn audit(
    snapshot: &dyn Snapshot,
    found: &mut dyn FnMut(u32, &str, &'static str),
) -> Result<Seen, StoreError> {
    let mut seen = Seen::default();
    for keyspace in snapshot.keyspaces()? {
        let id = keyspace.id;
        // By the hashes of their keys: revisions of the newest versions of what is not deleted.
        let hasher = RandomState::new();
        let mut living: HashMap<u64, u64> = HashMap::new();
        let mut unreadable = 0;
        snapshot.log(id, 0, &mut |(revision, version)| {
            match version {
                Ok(version) if version.deleted => drop(living.remove(&hasher.hash_one(&*version.key))),
                Ok(version) => drop(living.insert(hasher.hash_one(&*version.key), revision)),
                Err(_) => {
                    unreadable = revision;
                    seen.unreadable += 1;
                }
            }
            Ok(true)
        })?;
        let damaged = |_| StoreError::Corrupt("a page is damaged");
        let mut each = |key: &str, head: Head| {
            seen.objects += 1;
            let newest = living.remove(&hasher.hash_one(key));
            let wrong = match guarded(|| verified(snapshot, id, key, head.modified), damaged) {
                Ok(version) if version.created != head.created => Some("its creation is another in the index"),
                Ok(_) if newest != Some(head.modified) => Some("the index does not say its newest version"),
                Ok(_) if !matches!(guarded(|| snapshot.head(id, key), damaged), Ok(found) if found == Some(head)) => {
                    Some("the index does not lead to it")
                }
                Ok(_) => None,
                Err(StoreError::Corrupt(why)) => Some(why),
                Err(error @ StoreError::Disk { .. }) => return Err(error),
                Err(_) => Some("the database does not read it"),
            };
            if let Some(why) = wrong {
                found(id, key, why);
            }
            Ok(true)
        };
        let indexed = match guarded(|| snapshot.heads(id, "", None, &mut each), damaged) {
            Err(error @ StoreError::Disk { .. }) => return Err(error),
            indexed => indexed.is_ok(),
        };
        // Where the index cannot be read, the rest is not in it. Where it can, what it does not have was deleted, if that may be
        // what a later version said that cannot be read.
        for revision in living.into_values().filter(|revision| !indexed || *revision > unreadable) {
            if let Ok(Some(version)) = guarded(|| snapshot.version(id, revision), damaged) {
                found(id, &version.key, "it is not in the index");
            }
        }
    }
    Ok(seen)
}

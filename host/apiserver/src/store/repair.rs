//! What is wrong with a store that nobody has open, and a new one of all that can be read.
//!
//! The file itself is never written to: what the database would write while it is opened stays in memory ([`Overlay`]).

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::StoreError;
use super::backend::{Backend, Batch, Head, Snapshot, StoredKeyspace, Version};
use super::damage::{self, audit, shown, verified};
use super::overlay::Overlay;
use super::redb::{RedbBackend, failed};

/// What is wrong with a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// Objects in it.
    pub objects: usize,
    /// Those that cannot be read.
    pub damaged: Vec<Finding>,
    /// Versions that cannot be read, most of them superseded; whose they are is not known.
    pub unreadable_versions: usize,
    /// What the database itself finds wrong with its pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<String>,
}

impl Findings {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn sound(&self) -> bool {
        self.damaged.is_empty() && self.unreadable_versions == 0 && self.pages.is_none()
    }
}

/// An object that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Resource, namespace and name.
    pub object: String,
    /// What is wrong with it.
    pub why: String,
}

/// What became of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repaired {
    /// Objects that are as they were.
    pub kept: usize,
    /// Objects that are there again, some of them in an earlier state.
    pub restored: Vec<Finding>,
    /// Objects of which nothing could be read.
    pub lost: Vec<Finding>,
    /// The store as it was before.
    pub before: PathBuf,
}

/// Looks at everything in a store, and changes nothing.
///
/// # Errors
/// [`StoreError::InUse`] when somebody has it open; when it cannot be read at all.
pub fn check(path: &Path) -> Result<Findings, StoreError> {
    let (source, _lock) = open(path)?;
    let mut findings = Findings::default();
    guarded(|| {
        source.read(&mut |snapshot| {
            let mut found = |_, key: &str, why: &str| {
                findings.damaged.push(Finding { object: shown(key), why: why.to_owned() });
            };
            let seen = audit(snapshot, &mut found)?;
            (findings.objects, findings.unreadable_versions) = (seen.objects, seen.unreadable);
            Ok(())
        })
    })
    .unwrap_or_else(|error| findings.pages = Some(error.to_string()));
    drop(source);
    if findings.pages.is_none() {
        findings.pages = pages(path)?;
    }
    Ok(findings)
}

/// Puts a new store of all that can be read in the place of one, which is kept beside it.
///
/// # Errors
/// As [`check`]; when the new store cannot be written. The old one stands until the new one is whole.
pub fn repair(path: &Path) -> Result<Repaired, StoreError> {
    let (source, _lock) = open(path)?;
    let fresh = beside(path, "repaired");
    let replaced = written(&source, &fresh).and_then(|repaired| {
        let before = (1..).map(|n| beside(path, &format!("damaged-{n}"))).find(|path| !path.exists());
        let before = before.unwrap_or_default();
        // There is a store at any time: without one a server that starts meanwhile would begin a new one.
        std::fs::hard_link(path, &before).and_then(|()| std::fs::rename(&fresh, path)).map_err(unwritable)?;
        Ok(Repaired { before, ..repaired })
    });
    if replaced.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let repaired = replaced?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(unwritable)?;
    Ok(repaired)
}

/// Writes all that can be read into a new store.
fn written(source: &RedbBackend, fresh: &Path) -> Result<Repaired, StoreError> {
    let _ = std::fs::remove_file(fresh);
    let mut repaired = Repaired::default();
    let keyspaces = source.salvaged()?;
    let mut built = Ok(());
    source.read(&mut |snapshot| {
        // What fails here is the new store, and no reason to read the old one again.
        built =
            RedbBackend::open(fresh, CACHE).and_then(|target| rebuild(&keyspaces, snapshot, &target, &mut repaired));
        Ok(())
    })?;
    built.map(|()| repaired)
}

/// Page cache in bytes.
const CACHE: usize = 16 << 20;
/// Bytes of one commit of a new store, about.
const CHUNK: usize = 8 << 20;

/// The store, and the handle with which nobody else writes to it.
fn open(path: &Path) -> Result<(RedbBackend, File), StoreError> {
    let file = File::open(path).map_err(unwritable)?;
    // The lock that the database takes as well.
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => StoreError::InUse,
        TryLockError::Error(error) => unwritable(error),
    })?;
    let length = file.metadata().map_err(unwritable)?.len();
    if length == 0 {
        return Err(StoreError::Backend { act: "open", message: "the file is empty".to_owned() });
    }
    let over = |overlay| guarded(|| RedbBackend::over(overlay));
    let another = || file.try_clone().map_err(unwritable);
    let source = over(Overlay::new(another()?, length))
        .or_else(|_| over(Overlay::unclean(another()?, length).map_err(unwritable)?))
        .map_err(|error| match error {
            StoreError::Backend { act, message } => {
                StoreError::Backend { act, message: format!("{message}. It has to come from a backup") }
            }
            other => other,
        })?;
    Ok((source, file))
}

/// What the database finds wrong with its own pages, whatever they hold.
fn pages(path: &Path) -> Result<Option<String>, StoreError> {
    let file = File::open(path).map_err(unwritable)?;
    let length = file.metadata().map_err(unwritable)?.len();
    let checked = guarded(|| {
        let mut database = redb::Database::builder()
            .set_cache_size(CACHE)
            .create_with_backend(Overlay::new(file, length))
            .map_err(|error| failed("open")(error.into()))?;
        database.check_integrity().map_err(|error| failed("check")(error.into()))
    });
    Ok(match checked {
        Ok(true) => None,
        Ok(false) => Some("pages are not what was written".to_owned()),
        Err(error) => Some(error.to_string()),
    })
}

fn guarded<T>(act: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    damage::guarded(act, |message| StoreError::Backend { act: "read", message })
}

fn unwritable(error: std::io::Error) -> StoreError {
    failed("open")(redb::Error::Io(error))
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{what}"));
    path.with_file_name(name)
}

/// Writes the present state of everything into an empty store. Its history is left out: clients list anew.
fn rebuild(
    keyspaces: &[StoredKeyspace],
    source: &dyn Snapshot,
    target: &RedbBackend,
    repaired: &mut Repaired,
) -> Result<(), StoreError> {
    let mut revision = source.revision().unwrap_or_default();
    let mut present = Vec::new();
    for keyspace in keyspaces {
        let known = newest(source, keyspace.id);
        revision = revision.max(known.highest);
        present.push((keyspace, known));
    }
    revision += 1;
    let mut batch = Batch { revision, ..Batch::default() };
    let mut bytes = 0;
    for (keyspace, KnownObjects { objects, unreadable, indexed, .. }) in present {
        batch.keyspaces.push(StoredKeyspace { compacted: revision, ..keyspace.clone() });
        for (key, object) in objects {
            let finding = |why: &str| Finding { object: shown(&key), why: why.to_owned() };
            let Some((at, version)) = object.read(source, keyspace.id, &key) else {
                // Where the newest version says that it is deleted, it is.
                if !matches!(object.newest, Some((_, true))) {
                    repaired.lost.push(finding("no version of it can be read"));
                }
                continue;
            };
            if object.head.is_none() && indexed && unreadable > at {
                repaired
                    .lost
                    .push(finding("it is not in the index, and a later version cannot be read: deleted, it seems"));
                continue;
            }
            match object.head {
                Some(head) if head.modified == at && head.created == version.created => repaired.kept += 1,
                Some(head) if head.modified > at => {
                    repaired.restored.push(finding("its present version cannot be read; it is in the state before"));
                }
                _ => repaired.restored.push(finding("it was not in the index")),
            }
            bytes += version.data.len() + key.len();
            batch.versions.push((keyspace.id, at, Version { key, previous: 0, deleted: false, ..version }));
            if bytes > CHUNK {
                target.commit(&std::mem::replace(&mut batch, Batch { revision, ..Batch::default() }))?;
                bytes = 0;
            }
        }
    }
    target.commit(&batch)
}

/// What is known of one object.
#[derive(Default)]
struct Known {
    head: Option<Head>,
    /// Revision of the newest version that can be read, and whether that says that it is deleted.
    newest: Option<(u64, bool)>,
}

impl Known {
    fn read(&self, source: &dyn Snapshot, keyspace: u32, key: &str) -> Option<(u64, Version)> {
        // The log is not read wherever a page of it is damaged.
        if let Some(head) = self.head
            && self.newest.is_none_or(|(revision, _)| revision < head.modified)
            && let Ok(version) = guarded(|| verified(source, keyspace, key, head.modified))
        {
            return Some((head.modified, version));
        }
        let (revision, deleted) = self.newest?;
        if deleted {
            return None;
        }
        let by_index = || source.version(keyspace, revision);
        if let Ok(Some(version)) = guarded(by_index) {
            return Some((revision, version));
        }
        // A damaged page may not lead to it and still have it.
        let mut read = None;
        let _ = guarded(|| {
            source.log(keyspace, revision - 1, &mut |(at, version)| {
                read = version.ok().filter(|_| at == revision).map(|version| (at, version));
                Ok(false)
            })
        });
        read
    }
}

/// What is known of a keyspace.
struct KnownObjects {
    objects: BTreeMap<Box<str>, Known>,
    /// The highest revision in it, and that of the newest version that cannot be read.
    highest: u64,
    unreadable: u64,
    /// Whether the whole index could be read.
    indexed: bool,
}

fn newest(source: &dyn Snapshot, keyspace: u32) -> KnownObjects {
    let mut objects: BTreeMap<Box<str>, Known> = BTreeMap::new();
    // Where the index cannot be read, the log says what there is.
    let index = guarded(|| {
        source.heads(keyspace, "", None, &mut |key, head| {
            objects.entry(key.into()).or_default().head = Some(head);
            Ok(true)
        })
    });
    let (mut after, mut step, mut highest, mut unreadable) = (0_u64, 1_u64, 0, 0);
    loop {
        let walked = guarded(|| {
            source.log(keyspace, after, &mut |(revision, version)| {
                (after, step, highest) = (revision, 1, revision);
                match version {
                    Ok(version) => {
                        objects.entry(version.key).or_default().newest = Some((revision, version.deleted));
                    }
                    Err(_) => unreadable = revision,
                }
                Ok(true)
            })
        });
        // Pages that cannot be read are passed over, in growing steps.
        match (walked, after.checked_add(step)) {
            (Err(_), Some(next)) => {
                unreadable = next;
                (after, step) = (next, step.saturating_mul(2));
            }
            _ => break,
        }
    }
    KnownObjects { objects, highest, unreadable, indexed: index.is_ok() }
}

#[cfg(test)]
mod tests;

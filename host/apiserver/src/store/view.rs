//! Reads: the present state of a keyspace, its state at an earlier revision, and the events since.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::StoreError;
use super::backend::{Head, Snapshot, Version};
use super::damage::{Damage, verified};
use super::keyspace::{Event, Key};

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub key: Key,
    pub revision: u64,
    pub data: Bytes,
}

pub(crate) struct View<'a> {
    snapshot: &'a dyn Snapshot,
    damage: &'a Damage,
    keyspace: u32,
    revision: u64,
}

impl<'a> View<'a> {
    pub(super) fn new(snapshot: &'a dyn Snapshot, damage: &'a Damage, keyspace: u32) -> Result<Self, StoreError> {
        Ok(Self { snapshot, damage, keyspace, revision: snapshot.revision()? })
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        // One that is known to be damaged may look sound here: its index may lead to an earlier version.
        self.damage.check(self.keyspace, key.as_str())?;
        let Some(head) = self.snapshot.head(self.keyspace, key.as_str())? else { return Ok(None) };
        self.record(key.as_str(), head.modified).map(Some)
    }

    fn record(&self, key: &str, revision: u64) -> Result<Record, StoreError> {
        let version = verified(self.snapshot, self.keyspace, key, revision).map_err(|error| match error {
            StoreError::Corrupt(why) => self.damage.note(self.keyspace, key, why),
            other => other,
        })?;
        Ok(Record { key: Key::parse(key), revision, data: version.data })
    }

    /// The object as it was at an earlier revision. Where that cannot be read, the history ends: the object of now may be sound.
    fn superseded(&self, key: &str, revision: u64, asked: u64) -> Result<Record, StoreError> {
        let version = verified(self.snapshot, self.keyspace, key, revision).map_err(|error| match error {
            StoreError::Corrupt(_) => StoreError::Compacted { asked, oldest: self.revision },
            other => other,
        })?;
        Ok(Record { key: Key::parse(key), revision, data: version.data })
    }

    /// Visits the objects whose keys start with `prefix` and come after `after`, in key order, as of `at` (now, if absent).
    /// `visit` ends the walk with `false`.
    pub fn walk(
        &self,
        prefix: &str,
        after: Option<&str>,
        at: Option<u64>,
        visit: &mut dyn FnMut(Record) -> bool,
    ) -> Result<(), StoreError> {
        self.damage.check_below(self.keyspace, prefix)?;
        let mut undo = match at {
            Some(at) if at < self.revision => self.undo(prefix, after, at)?,
            _ => BTreeMap::new(),
        }
        .into_iter()
        .peekable();
        let asked = at.unwrap_or(self.revision);
        let mut going = true;
        self.snapshot.heads(self.keyspace, prefix, after, &mut |key: &str, head: Head| {
            // Keys that existed then and are deleted now sort between the living ones.
            while going && let Some((gone, then)) = undo.next_if(|(gone, _)| gone.as_ref() < key) {
                going = then == 0 || visit(self.superseded(&gone, then, asked)?);
            }
            if !going {
                return Ok(false);
            }
            going = match undo.next_if(|(changed, _)| changed.as_ref() == key) {
                None => visit(self.record(key, head.modified)?),
                Some((_, 0)) => true,
                Some((_, then)) => visit(self.superseded(key, then, asked)?),
            };
            Ok(going)
        })?;
        while going && let Some((gone, then)) = undo.next() {
            going = then == 0 || visit(self.superseded(&gone, then, asked)?);
        }
        Ok(())
    }

    /// For each key that changed since `at`: its revision then, 0 if it did not exist.
    fn undo(&self, prefix: &str, after: Option<&str>, at: u64) -> Result<BTreeMap<Box<str>, u64>, StoreError> {
        self.check_history(at)?;
        let mut undo = BTreeMap::new();
        self.snapshot.log(self.keyspace, at, &mut |(revision, version)| {
            let version = readable(at, revision, version)?;
            if version.key.starts_with(prefix) && after.is_none_or(|after| *version.key > *after) {
                undo.entry(version.key).or_insert(version.previous);
            }
            Ok(true)
        })?;
        Ok(undo)
    }

    fn check_history(&self, at: u64) -> Result<(), StoreError> {
        let oldest = self.snapshot.compacted(self.keyspace)?;
        if at < oldest { Err(StoreError::Compacted { asked: at, oldest }) } else { Ok(()) }
    }

    /// Visits events of keys with this prefix after revision `after`, oldest first. `visit` ends the walk with `false`.
    pub fn events(
        &self,
        prefix: &str,
        after: u64,
        visit: &mut dyn FnMut(Arc<Event>) -> bool,
    ) -> Result<(), StoreError> {
        self.check_history(after)?;
        self.snapshot.log(self.keyspace, after, &mut |(revision, version)| {
            let version = readable(after, revision, version)?;
            if version.key.starts_with(prefix) {
                let previous = match version.previous {
                    0 => None,
                    before => match self.snapshot.version(self.keyspace, before) {
                        Err(StoreError::Corrupt(_)) => {
                            return Err(StoreError::Compacted { asked: after, oldest: revision });
                        }
                        found => found?.map(|v| v.data),
                    },
                };
                let key = Key::parse(&version.key);
                return Ok(visit(Arc::new(Event::new(revision, key, version.data, previous, version.deleted))));
            }
            Ok(true)
        })
    }
}

/// A version of the history after `asked`. A damaged one ends it: the client lists anew.
fn readable(asked: u64, revision: u64, version: Result<Version, &'static str>) -> Result<Version, StoreError> {
    version.map_err(|_| StoreError::Compacted { asked, oldest: revision })
}

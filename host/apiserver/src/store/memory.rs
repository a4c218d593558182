//! Back end in memory: ordered maps behind one lock.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use super::StoreError;
use super::backend::{Act, Backend, Batch, Head, Snapshot, StoredKeyspace, Version, Visit, VisitHeads};

#[derive(Default)]
struct Space {
    name: String,
    compacted: u64,
    heads: BTreeMap<Box<str>, Head>,
    versions: BTreeMap<u64, Version>,
}

#[derive(Default)]
struct State {
    revision: u64,
    spaces: BTreeMap<u32, Space>,
}

#[derive(Default)]
pub(super) struct MemoryBackend {
    state: RwLock<State>,
}

impl Backend for MemoryBackend {
    fn read(&self, act: Act<'_>) -> Result<(), StoreError> {
        act(&*self.state.read())
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut state = self.state.write();
        state.revision = state.revision.max(batch.revision);
        for stored in &batch.keyspaces {
            let space = state.spaces.entry(stored.id).or_default();
            space.name.clone_from(&stored.name);
            space.compacted = stored.compacted;
        }
        for id in &batch.removed {
            if let Some(space) = state.spaces.get_mut(id) {
                *space = Space { name: std::mem::take(&mut space.name), compacted: batch.revision, ..Space::default() };
            }
        }
        for (keyspace, revision, version) in &batch.versions {
            let space = state.spaces.entry(*keyspace).or_default();
            if version.deleted {
                space.heads.remove(&version.key);
            } else {
                space.heads.insert(version.key.clone(), Head { created: version.created, modified: *revision });
            }
            space.versions.insert(*revision, version.clone());
        }
        for (keyspace, revision) in &batch.purged {
            if let Some(space) = state.spaces.get_mut(keyspace) {
                space.versions.remove(revision);
            }
        }
        Ok(())
    }
}

impl Snapshot for State {
    fn revision(&self) -> Result<u64, StoreError> {
        Ok(self.revision)
    }

    fn keyspaces(&self) -> Result<Vec<StoredKeyspace>, StoreError> {
        let stored = |(id, space): (&u32, &Space)| StoredKeyspace {
            name: space.name.clone(),
            id: *id,
            compacted: space.compacted,
        };
        Ok(self.spaces.iter().map(stored).collect())
    }

    fn compacted(&self, keyspace: u32) -> Result<u64, StoreError> {
        Ok(self.spaces.get(&keyspace).map_or(0, |space| space.compacted))
    }

    fn head(&self, keyspace: u32, key: &str) -> Result<Option<Head>, StoreError> {
        Ok(self.spaces.get(&keyspace).and_then(|space| space.heads.get(key).copied()))
    }

    fn version(&self, keyspace: u32, revision: u64) -> Result<Option<Version>, StoreError> {
        Ok(self.spaces.get(&keyspace).and_then(|space| space.versions.get(&revision)).cloned())
    }

    fn heads(&self, keyspace: u32, prefix: &str, after: Option<&str>, visit: VisitHeads<'_>) -> Result<(), StoreError> {
        let Some(space) = self.spaces.get(&keyspace) else { return Ok(()) };
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        for (key, head) in space.heads.range::<str, _>((start, Bound::Unbounded)) {
            if !key.starts_with(prefix) || !visit(key, *head)? {
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
        let Some(space) = self.spaces.get(&keyspace) else { return Ok(()) };
        for (revision, version) in space.versions.range((Bound::Excluded(after), Bound::Unbounded)) {
            if !visit((*revision, Ok(version.clone())))? {
                break;
            }
        }
        Ok(())
    }
}

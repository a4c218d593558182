//! Garbage collection by owner references.
//!
//! The index maps an owner's uid to its dependents; whether the owner still exists is read from the store each time. Per
//! object:
//!
//! - it is deleted with `orphan`: its dependents lose the reference to it, then the finalizer goes;
//! - it is deleted with `foregroundDeletion`: its dependents are deleted, and the finalizer goes when none is left that
//!   blocks it;
//! - all its owners are gone: it is deleted; some are gone: the references to them go.
//!
//! An owner in another namespace counts as gone; an owner of a kind that is not served, or a namespaced owner of a
//! cluster-scoped object, counts as there, so that such objects are never collected.

use std::collections::{HashMap, HashSet};

use capwasm_object::{
    meta,
    owners::{self, Owner},
};
use serde::Deserialize;
use serde_json::Value;

use super::work::Work;
use crate::registry::{DeleteOptions, Edit, FOREGROUND, Locator, ORPHAN, Part, Propagation, Registry, WriteOptions};
use crate::status::ApiResult;
use crate::store::{Event, Key};

/// The part of an object that the index needs.
#[derive(Default, Deserialize)]
struct Probe {
    #[serde(default)]
    metadata: ProbeMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProbeMeta {
    uid: String,
    owner_references: Option<Vec<ProbeOwner>>,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
}

#[derive(Default, Deserialize, PartialEq, Eq, Clone)]
#[serde(rename_all = "camelCase", default)]
struct ProbeOwner {
    uid: String,
    block_owner_deletion: Option<bool>,
}

fn probe(data: &[u8]) -> ProbeMeta {
    serde_json::from_slice::<Probe>(data).unwrap_or_default().metadata
}

/// Whether stored bytes are of an object that is being deleted.
pub(super) fn deleting(data: &[u8]) -> bool {
    probe(data).deletion_timestamp.is_some()
}

struct Owned {
    uid: String,
    owners: Vec<ProbeOwner>,
}

/// Objects by their owners' uids. Holds only objects that have owners, and those that wait for dependents.
#[derive(Default)]
pub(super) struct Garbage {
    owners: HashMap<Key, Owned>,
    dependents: HashMap<String, HashSet<Key>>,
    /// Objects deleted with a propagation finalizer, by uid.
    waiting: HashMap<String, Key>,
    waiting_uids: HashMap<Key, String>,
}

pub(super) struct Dependent {
    key: Key,
    /// Whether others depend on it in turn.
    parent: bool,
}

impl Garbage {
    /// Updates the index. Returns the objects to look at.
    pub fn observe(&mut self, event: &Event) -> Vec<Key> {
        let now = probe(&event.data);
        let mut affected = Vec::new();
        let before = self.owners.get(&event.key).map(|owned| owned.owners.clone()).unwrap_or_default();
        let after = if event.deleted { Vec::new() } else { now.owner_references.unwrap_or_default() };
        if before != after {
            self.replace(&event.key, &now.uid, &before, &after);
            // An owner that waits for this one may now be free to go.
            affected.extend(before.iter().filter_map(|owner| self.waiting.get(&owner.uid)).cloned());
            if !after.is_empty() {
                affected.push(event.key.clone());
            }
        }
        let waits = now.deletion_timestamp.is_some()
            && now.finalizers.unwrap_or_default().iter().any(|f| f == ORPHAN || f == FOREGROUND);
        if waits && !event.deleted {
            self.waiting.insert(now.uid.clone(), event.key.clone());
            self.waiting_uids.insert(event.key.clone(), now.uid);
            affected.push(event.key.clone());
        } else {
            if let Some(uid) = self.waiting_uids.remove(&event.key) {
                self.waiting.remove(&uid);
            }
            if event.deleted {
                affected.extend(self.dependents.get(&now.uid).into_iter().flatten().cloned());
            }
        }
        affected
    }

    fn replace(&mut self, key: &Key, uid: &str, before: &[ProbeOwner], after: &[ProbeOwner]) {
        for owner in before {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        for owner in after {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if after.is_empty() {
            self.owners.remove(key);
        } else {
            self.owners.insert(key.clone(), Owned { uid: uid.to_owned(), owners: after.to_vec() });
        }
    }

    /// The dependents to handle when `work` is a deletion with propagation.
    pub fn view(&self, work: &Work) -> Vec<Dependent> {
        let Work::Collect(key) = work else { return Vec::new() };
        let dependents = self.waiting_uids.get(key).and_then(|uid| self.dependents.get(uid));
        let parent = |key: &Key| self.owners.get(key).is_some_and(|owned| self.dependents.contains_key(&owned.uid));
        dependents.into_iter().flatten().map(|key| Dependent { key: key.clone(), parent: parent(key) }).collect()
    }
}

/// `None` when the kind is not served.
fn locate(registry: &Registry, key: &Key) -> Option<Locator> {
    let (plural, group) = key.resource().split_once('.').unwrap_or((key.resource(), ""));
    registry.locate(group, plural, key.namespace(), key.name()).ok()
}

pub(super) async fn collect(registry: &Registry, key: &Key, dependents: Vec<Dependent>) -> ApiResult<()> {
    let Some(at) = locate(registry, key) else { return Ok(()) };
    let Some(object) = registry.find(&at)? else { return Ok(()) };
    if meta::is_deleting(&object) && meta::has_finalizer(&object, ORPHAN) {
        for dependent in dependents {
            drop_owners(registry, &dependent.key, &[meta::uid(&object).to_owned()]).await?;
        }
        return ignore_missing(registry.remove_finalizer(&at, ORPHAN).await.map(drop));
    }
    if meta::is_deleting(&object) && meta::has_finalizer(&object, FOREGROUND) {
        return foreground(registry, &at, &object, dependents).await;
    }
    if meta::is_deleting(&object) {
        return Ok(());
    }
    by_owners(registry, &at, &object).await
}

/// Deletes the dependents, and removes the owner's finalizer when none blocks it any more.
async fn foreground(registry: &Registry, at: &Locator, owner: &Value, dependents: Vec<Dependent>) -> ApiResult<()> {
    let uid = meta::uid(owner);
    let mut blocked = false;
    for Dependent { key, parent } in dependents {
        let Some(dependent) = locate(registry, &key) else { continue };
        let Some(object) = registry.find(&dependent)? else { continue };
        let owners = owners::all(&object).collect::<Vec<_>>();
        if owners.iter().any(|owner| owner.uid != uid) && some_solid(registry, &dependent, &owners)? {
            drop_owners(registry, &key, &[uid.to_owned()]).await?;
            continue;
        }
        blocked |= owners.iter().any(|owner| owner.uid == uid && owner.blocks);
        if !meta::is_deleting(&object) {
            delete(registry, &dependent, &object, parent.then_some(Propagation::Foreground)).await?;
        }
    }
    if blocked { Ok(()) } else { ignore_missing(registry.remove_finalizer(at, FOREGROUND).await.map(drop)) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Solid,
    /// Being deleted in the foreground.
    Waiting,
    Absent,
}

fn standing(registry: &Registry, at: &Locator, owner: &Owner<'_>) -> ApiResult<Standing> {
    let catalog = registry.catalog();
    let Some(named) = catalog.kind(owner.api_version, owner.kind) else { return Ok(Standing::Solid) };
    let resource = catalog.in_store(&named.group, &named.plural).unwrap_or(named);
    if resource.namespaced && !at.resource.namespaced {
        return Ok(Standing::Solid);
    }
    let namespace = if resource.namespaced { at.namespace.as_str() } else { "" };
    Ok(match registry.find(&Locator::new(resource, namespace, owner.name))? {
        Some(object) if meta::uid(&object) == owner.uid => {
            if meta::is_deleting(&object) && meta::has_finalizer(&object, FOREGROUND) {
                Standing::Waiting
            } else {
                Standing::Solid
            }
        }
        _ => Standing::Absent,
    })
}

fn some_solid(registry: &Registry, at: &Locator, owners: &[Owner<'_>]) -> ApiResult<bool> {
    for owner in owners {
        if standing(registry, at, owner)? == Standing::Solid {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn by_owners(registry: &Registry, at: &Locator, object: &Value) -> ApiResult<()> {
    let owners = owners::all(object).collect::<Vec<_>>();
    if owners.is_empty() {
        return Ok(());
    }
    let mut standings = Vec::new();
    for owner in owners {
        standings.push((standing(registry, at, &owner)?, owner.uid));
    }
    let of = |wanted: Standing| {
        standings.iter().filter(move |(standing, _)| *standing == wanted).map(|(_, uid)| (*uid).to_owned())
    };
    let gone: Vec<String> = of(Standing::Absent).chain(of(Standing::Waiting)).collect();
    if of(Standing::Solid).next().is_some() {
        return if gone.is_empty() { Ok(()) } else { drop_owners(registry, &at.key(), &gone).await };
    }
    let policy = of(Standing::Waiting).next().map(|_| Propagation::Foreground);
    delete(registry, at, object, policy).await
}

/// Deletes exactly the version that was read.
async fn delete(registry: &Registry, at: &Locator, object: &Value, propagation: Option<Propagation>) -> ApiResult<()> {
    let revision = Some(meta::resource_version(object).to_owned());
    let options = DeleteOptions { propagation, uid: Some(meta::uid(object).to_owned()), revision, dry_run: false };
    tracing::debug!(kind = at.resource.kind, namespace = at.namespace, name = at.name, "collecting garbage");
    ignore_missing(registry.delete(at, &options).await.map(drop))
}

/// Removes owner references by uid.
async fn drop_owners(registry: &Registry, key: &Key, uids: &[String]) -> ApiResult<()> {
    let Some(at) = locate(registry, key) else { return Ok(()) };
    let options = WriteOptions::internal("garbage-collector");
    let drop_them = |object: &mut Value| owners::remove(object, |uid| uids.iter().any(|gone| gone == uid));
    ignore_missing(registry.update(&at, Part::Main, &options, &Edit::Own(&drop_them)).await.map(drop))
}

fn ignore_missing(result: ApiResult<()>) -> ApiResult<()> {
    match result {
        Err(error) if error.code == 404 => Ok(()),
        other => other,
    }
}

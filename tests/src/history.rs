//! Every version that objects of a namespace went through, in the order in which the store wrote them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::objects::{KINDS, Objects, is_control_plane, name_of, text};
use crate::wait;

/// One version of one object.
#[derive(Clone, Debug)]
pub struct Version {
    /// The store's revision. One counter for all kinds, so it orders all versions.
    pub revision: u64,
    /// When the watch delivered it.
    pub at: Instant,
    /// Kind of the object, which need not be in it.
    pub kind: &'static str,
    /// Its last version was this one.
    pub deleted: bool,
    /// The object in this version.
    pub object: Value,
}

/// Records until it is dropped.
pub struct History {
    versions: Arc<Mutex<Vec<Version>>>,
    watches: Vec<JoinHandle<()>>,
}

impl History {
    /// Watches all kinds of a namespace from now on.
    pub async fn record(objects: &Objects) -> History {
        let versions = Arc::new(Mutex::new(Vec::new()));
        let mut watches = Vec::new();
        for (kind, _) in KINDS.iter().filter(|(kind, _)| *kind != "WasmProvider") {
            let api = objects.api(kind);
            let list = api.list(&ListParams::default()).await.expect("objects can be listed");
            let from = list.metadata.resource_version.expect("a list has a version");
            let versions = Arc::clone(&versions);
            let parameters = WatchParams::default().timeout(290);
            watches.push(tokio::spawn(async move {
                let mut events = api.watch(&parameters, &from).await.expect("objects can be watched").boxed();
                while let Some(event) = events.next().await {
                    let (deleted, object) = match event {
                        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (false, object),
                        Ok(WatchEvent::Deleted(object)) => (true, object),
                        Ok(WatchEvent::Bookmark(_)) => continue,
                        // The server was killed: what came so far is kept.
                        Ok(WatchEvent::Error(_)) | Err(_) => return,
                    };
                    let object = serde_json::to_value(object).expect("an object is JSON");
                    let revision = revision_of(&object);
                    versions.lock().expect("nobody panics").push(Version {
                        revision,
                        at: Instant::now(),
                        kind,
                        deleted,
                        object,
                    });
                }
            }));
        }
        History { versions, watches }
    }

    /// Waits until everything that is there now was delivered, and returns all versions in their order.
    pub async fn complete(&self, objects: &Objects) -> Vec<Version> {
        for (kind, version) in objects.versions().await {
            let version: u64 = version.parse().expect("a resourceVersion is a number");
            wait::until(&format!("the watch delivers {kind}"), async || {
                let versions = self.versions.lock().expect("nobody panics");
                let delivered = versions.iter().any(|seen| seen.revision >= version && kind.starts_with(seen.kind));
                if delivered { Ok(()) } else { Err(format!("{version} is not there")) }
            })
            .await;
        }
        self.so_far()
    }

    /// All versions that were delivered, in their order.
    pub fn so_far(&self) -> Vec<Version> {
        let mut versions = self.versions.lock().expect("nobody panics").clone();
        versions.sort_by_key(|version| version.revision);
        versions
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

fn revision_of(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().expect("a resourceVersion is a number")
}

/// The versions of one object.
pub fn of<'a>(versions: &'a [Version], kind: &str, name: &str) -> Vec<&'a Version> {
    versions.iter().filter(|version| version.kind == kind && name_of(&version.object) == name).collect()
}

/// The first version of an object that is like this.
pub fn first<'a>(versions: &'a [Version], kind: &str, name: &str, is: impl Fn(&Value) -> bool) -> &'a Version {
    let found = of(versions, kind, name).into_iter().find(|version| is(&version.object));
    found.unwrap_or_else(|| panic!("{kind} {name} never was like that"))
}

/// How many control-plane Machines that were not being deleted there were at each moment, beginning with these.
pub fn control_planes(before: BTreeSet<String>, versions: &[Version]) -> Vec<usize> {
    let mut alive = before;
    let mut counts = Vec::new();
    for version in versions.iter().filter(|version| version.kind == "Machine" && is_control_plane(&version.object)) {
        let name = name_of(&version.object).to_owned();
        if version.deleted || version.object["metadata"].get("deletionTimestamp").is_some() {
            alive.remove(&name);
        } else {
            alive.insert(name);
        }
        counts.push(alive.len());
    }
    counts
}

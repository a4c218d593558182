//! The objects of one kind, indexed; and how far it has followed the server.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::oneshot;

use super::request::complete;
use crate::{
    interests::{Fields, Interests, Marks},
    kind::{Kind, Source},
    selector::{Label, Selector},
};

/// Namespace and name.
type Id = (Arc<str>, Arc<str>);
/// The objects that share a label or an owner, in listing order.
type Postings = BTreeMap<Id, Arc<Entry>>;

/// One object.
pub(super) struct Entry {
    id: Id,
    pub(super) uid: Arc<str>,
    /// resourceVersion as a number, 0 where it is none.
    pub(super) version: u64,
    pub(super) deleting: bool,
    labels: Box<[Label]>,
    owners: Box<[Arc<str>]>,
    encoded: Box<str>,
    /// The parsed form while somebody holds it.
    parsed: Mutex<Weak<Value>>,
}

impl Entry {
    /// The object, parsed unless somebody else holds it parsed already.
    pub(super) fn object(&self) -> Result<Arc<Value>, serde_json::Error> {
        let mut parsed = self.parsed.lock();
        if let Some(object) = parsed.upgrade() {
            return Ok(object);
        }
        let object = Arc::new(serde_json::from_str(&self.encoded)?);
        *parsed = Arc::downgrade(&object);
        Ok(object)
    }

    pub(super) fn label(&self, key: &str) -> Option<Arc<str>> {
        self.labels.iter().find(|label| &*label.0 == key).map(|label| label.1.clone())
    }

    /// The object as JSON text.
    pub(super) fn text(&self) -> &str {
        &self.encoded
    }

    /// Whether any of these fields is another in `old`. What cannot be parsed differs.
    fn differs(&self, old: &Self, fields: Fields) -> bool {
        let replaced = old.uid != self.uid;
        match (old.object(), self.object()) {
            (Ok(old), Ok(new)) => replaced || fields.iter().any(|pointer| old.pointer(pointer) != new.pointer(pointer)),
            _ => true,
        }
    }

    fn marks(&self) -> Marks<'_> {
        Marks { labels: &self.labels, owners: &self.owners }
    }
}

/// The objects of one kind.
pub(super) struct Store {
    source: Source,
    kind: Kind,
    interests: Arc<Interests>,
    data: RwLock<Data>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Data {
    objects: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<Entry>>>,
    by_label: HashMap<Label, Postings>,
    by_owner: HashMap<Arc<str>, Postings>,
    bytes: usize,
}

/// How far the store has followed, and who waits for it to come further.
#[derive(Default)]
struct Progress {
    reached: u64,
    next: u64,
    for_version: BTreeMap<(u64, u64), oneshot::Sender<()>>,
    for_removal: HashMap<Arc<str>, Vec<oneshot::Sender<()>>>,
}

/// A list that replaces what the store holds, while it is coming in.
#[derive(Default)]
pub(super) struct Listing {
    seen: HashSet<Id>,
    highest: u64,
}

impl Store {
    pub(super) fn new(source: Source, kind: Kind, interests: Arc<Interests>) -> Self {
        Self { source, kind, interests, data: RwLock::default(), progress: Mutex::default() }
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Entry>> {
        self.data.read().objects.get(namespace)?.get(name).cloned()
    }

    /// The selected objects by namespace and name, from the smallest index that covers the selector.
    pub(super) fn list(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Entry>> {
        let data = self.data.read();
        let wanted = |entry: &Arc<Entry>| {
            namespace.is_none_or(|namespace| *entry.id.0 == *namespace)
                && selector.matches(
                    |key| entry.labels.iter().find(|label| *label.0 == *key).map(|label| &*label.1),
                    &entry.owners,
                )
        };
        let by_owner = selector.owner().map(|owner| data.by_owner.get(owner));
        let by_label = selector.exact().map(|(key, value)| data.by_label.get(&(key.clone(), value.clone())));
        let smallest = by_owner.into_iter().chain(by_label).min_by_key(|postings| postings.map_or(0, BTreeMap::len));
        match smallest {
            Some(None) => Vec::new(),
            Some(Some(postings)) => postings.values().filter(|entry| wanted(entry)).cloned().collect(),
            None => match namespace {
                Some(namespace) => data.objects.get(namespace).into_iter().flat_map(BTreeMap::values).collect(),
                None => data.objects.values().flat_map(BTreeMap::values).collect::<Vec<_>>(),
            }
            .into_iter()
            .filter(|entry| wanted(entry))
            .cloned()
            .collect(),
        }
    }

    pub(super) fn names(&self) -> Vec<Id> {
        self.data.read().objects.values().flat_map(BTreeMap::values).map(|entry| entry.id.clone()).collect()
    }

    /// Number of objects and of their encoded bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let data = self.data.read();
        (data.objects.values().map(BTreeMap::len).sum(), data.bytes)
    }

    /// The last version that the store has seen.
    pub(super) fn version(&self) -> u64 {
        self.progress.lock().reached
    }

    /// `None` when the store has seen `version`; otherwise what tells when it has.
    pub(super) fn reached(&self, version: u64) -> Option<oneshot::Receiver<()>> {
        let mut progress = self.progress.lock();
        if progress.reached >= version {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        progress.next += 1;
        let waiter = (version, progress.next);
        progress.for_version.insert(waiter, sender);
        Some(receiver)
    }

    /// `None` when the store does not hold that object; otherwise what tells when it does not.
    pub(super) fn gone(&self, namespace: &str, name: &str, uid: &Arc<str>) -> Option<oneshot::Receiver<()>> {
        // Locked first, so that no removal slips in between looking and waiting.
        let mut progress = self.progress.lock();
        self.get(namespace, name).filter(|entry| entry.uid == *uid)?;
        let (sender, receiver) = oneshot::channel();
        progress.for_removal.entry(uid.clone()).or_default().push(sender);
        Some(receiver)
    }

    /// An object was added or changed.
    pub(super) fn apply(&self, object: Value) {
        let version = self.put(object).1;
        self.advance(version);
    }

    /// An object was deleted; `object` is its last state, with the version of the deletion.
    pub(super) fn delete(&self, object: &Value) {
        let entry = self.encode(object.clone());
        // A late event about an earlier object of the same name must not take the new one away.
        let removed = self
            .get(&entry.id.0, &entry.id.1)
            .filter(|held| held.uid == entry.uid || entry.version == 0 || held.version <= entry.version);
        if removed.is_some() {
            self.remove(&entry.id);
        }
        self.advance(entry.version);
    }

    /// An object of a list.
    pub(super) fn apply_listed(&self, listing: &mut Listing, object: Value) {
        let (id, version) = self.put(object);
        listing.highest = listing.highest.max(version);
        listing.seen.insert(id);
    }

    /// The list is complete: what it did not hold is gone. `at_least` is a version that the list is known to be at.
    pub(super) fn finish(&self, listing: Listing, at_least: u64) {
        for id in self.names() {
            if !listing.seen.contains(&id) {
                self.remove(&id);
            }
        }
        self.advance(listing.highest.max(at_least));
    }

    fn put(&self, object: Value) -> (Id, u64) {
        let entry = Arc::new(self.encode(object));
        let (id, version) = (entry.id.clone(), entry.version);
        let old = {
            let mut data = self.data.write();
            let held = data.objects.get(&id.0).and_then(|names| names.get(&id.1)).cloned();
            if let Some(held) = &held
                && (held.version > version || (held.version == version && held.encoded == entry.encoded))
            {
                return (id, version);
            }
            data.remove(&id);
            data.insert(entry.clone());
            held
        };
        self.interests.changed(
            &self.source,
            &self.kind,
            (&id.0, &id.1),
            old.as_deref().map(Entry::marks),
            Some(entry.marks()),
            |fields| old.as_deref().is_none_or(|old| entry.differs(old, fields)),
        );
        if let Some(old) = old
            && old.uid != entry.uid
        {
            self.removed(&old.uid);
        }
        (id, version)
    }

    fn remove(&self, id: &Id) {
        let removed = self.data.write().remove(id);
        if let Some(entry) = removed {
            self.interests.changed(&self.source, &self.kind, (&id.0, &id.1), Some(entry.marks()), None, |_| true);
            self.removed(&entry.uid);
        }
    }

    fn removed(&self, uid: &Arc<str>) {
        let waiting = self.progress.lock().for_removal.remove(uid);
        for sender in waiting.into_iter().flatten() {
            // Nobody may be waiting any more.
            let _ = sender.send(());
        }
    }

    fn advance(&self, version: u64) {
        let mut progress = self.progress.lock();
        if version <= progress.reached {
            return;
        }
        progress.reached = version;
        let later = progress.for_version.split_off(&(version + 1, 0));
        for (_, sender) in std::mem::replace(&mut progress.for_version, later) {
            let _ = sender.send(());
        }
    }

    fn encode(&self, mut object: Value) -> Entry {
        complete(&self.kind, &mut object);
        let metadata = &object["metadata"];
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
        let data = self.data.read();
        let namespace: Arc<str> = match data.objects.get_key_value(text("namespace")) {
            Some((namespace, _)) => namespace.clone(),
            None => text("namespace").into(),
        };
        let labels = metadata
            .get("labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((Arc::from(key.as_str()), Arc::from(value.as_str()?))))
            // The index's own copy, so that thousands of objects share one.
            .map(|label| data.by_label.get_key_value(&label).map_or(label.clone(), |(shared, _)| shared.clone()))
            .collect();
        let owners = metadata
            .get("ownerReferences")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|owner| owner.get("uid").and_then(Value::as_str))
            .map(|uid| data.by_owner.get_key_value(uid).map_or_else(|| uid.into(), |(shared, _)| shared.clone()))
            .collect();
        Entry {
            id: (namespace, text("name").into()),
            uid: text("uid").into(),
            version: text("resourceVersion").parse().unwrap_or(0),
            deleting: metadata.get("deletionTimestamp").is_some(),
            labels,
            owners,
            encoded: object.to_string().into_boxed_str(),
            parsed: Mutex::default(),
        }
    }
}

impl Data {
    fn insert(&mut self, entry: Arc<Entry>) {
        self.bytes += entry.encoded.len();
        for label in &entry.labels {
            self.by_label.entry(label.clone()).or_default().insert(entry.id.clone(), entry.clone());
        }
        for owner in &entry.owners {
            self.by_owner.entry(owner.clone()).or_default().insert(entry.id.clone(), entry.clone());
        }
        self.objects.entry(entry.id.0.clone()).or_default().insert(entry.id.1.clone(), entry);
    }

    fn remove(&mut self, id: &Id) -> Option<Arc<Entry>> {
        let names = self.objects.get_mut(&id.0)?;
        let entry = names.remove(&id.1)?;
        if names.is_empty() {
            self.objects.remove(&id.0);
        }
        self.bytes -= entry.encoded.len();
        for label in &entry.labels {
            remove_from(&mut self.by_label, label, id);
        }
        for owner in &entry.owners {
            remove_from(&mut self.by_owner, owner, id);
        }
        Some(entry)
    }
}

fn remove_from<K: std::hash::Hash + Eq>(index: &mut HashMap<K, Postings>, key: &K, id: &Id) {
    if let Some(postings) = index.get_mut(key) {
        postings.remove(id);
        if postings.is_empty() {
            index.remove(key);
        }
    }
}

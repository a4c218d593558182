//! Indexed objects of one kind, and the version that was reached.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::oneshot;

use super::{
    request::complete,
    room::{Part, Room, cost},
    text::{Samples, Text},
};
use crate::{
    interests::{Change, Interests, Marks, News},
    kind::{Kind, Source},
    selector::{Label, Selector},
};

/// Namespace and name.
type Id = (Arc<str>, Arc<str>);

pub(super) struct Entry {
    id: Id,
    pub(super) uid: Arc<str>,
    /// resourceVersion as a number; 0 if it is not numeric.
    pub(super) version: u64,
    pub(super) deleting: bool,
    labels: Box<[Label]>,
    owners: Box<[Arc<str>]>,
    text: Text,
    /// The parsed object, as long as it is in use.
    parsed: Mutex<Weak<Value>>,
    /// Of what is news to somebody.
    digests: Mutex<Vec<(News, u64)>>,
}

impl Entry {
    /// The parsed object, shared while in use.
    pub(super) fn object(&self) -> Result<Arc<Value>, serde_json::Error> {
        let mut parsed = self.parsed.lock();
        if let Some(object) = parsed.upgrade() {
            return Ok(object);
        }
        let object = Arc::new(serde_json::from_str(&self.text.unpack()?)?);
        *parsed = Arc::downgrade(&object);
        Ok(object)
    }

    pub(super) fn label(&self, key: &str) -> Option<Arc<str>> {
        self.labels.iter().find(|label| &*label.0 == key).map(|label| label.1.clone())
    }

    /// Length of [`Entry::text`] in bytes.
    pub(super) fn text_length(&self) -> usize {
        self.text.length()
    }

    /// Bytes of its texts as they are held.
    pub(super) fn held_bytes(&self) -> usize {
        self.id.0.len() + self.id.1.len() + self.uid.len() + self.text.size()
    }

    pub(super) fn labels(&self) -> &[Label] {
        &self.labels
    }

    pub(super) fn owners(&self) -> &[Arc<str>] {
        &self.owners
    }

    pub(super) fn text(&self) -> Result<String, serde_json::Error> {
        self.text.unpack()
    }

    /// Whether they differ in what is news. What cannot be parsed differs.
    fn differs(&self, old: &Self, news: News, hasher: &RandomState) -> bool {
        old.uid != self.uid
            || old.digest(news, hasher).zip(self.digest(news, hasher)).is_none_or(|(old, new)| old != new)
    }

    fn digest(&self, news: News, hasher: &RandomState) -> Option<u64> {
        if let Some((_, known)) = self.digests.lock().iter().find(|(of, _)| *of == news) {
            return Some(*known);
        }
        let object = self.object().ok()?;
        let mut state = hasher.build_hasher();
        match news {
            News::Any => capwasm_object::news::digest(&object, &mut state),
            News::In(fields) => {
                fields.iter().for_each(|field| capwasm_object::news::field(&object, field).hash(&mut state))
            }
        }
        let digest = state.finish();
        self.digests.lock().push((news, digest));
        Some(digest)
    }

    fn marks(&self) -> Marks<'_> {
        Marks { labels: &self.labels, owners: &self.owners }
    }
}

pub(super) struct Store {
    source: Source,
    kind: Kind,
    interests: Arc<Interests>,
    data: RwLock<Data>,
    room: Part,
    progress: Mutex<Progress>,
    samples: Arc<Samples>,
    hasher: RandomState,
}

#[derive(Default)]
struct Data {
    objects: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<Entry>>>,
    by_label: HashMap<Label, Postings>,
    by_owner: HashMap<Arc<str>, Postings>,
    bytes: usize,
    /// What all entries take of the room.
    cost: usize,
}

/// The objects that share a label or an owner, in listing order. Most have one member, so that a tree would be mostly room.
#[derive(Default)]
struct Postings(Vec<Arc<Entry>>);

impl Postings {
    fn find(&self, id: &Id) -> Result<usize, usize> {
        self.0.binary_search_by(|entry| entry.id.cmp(id))
    }

    fn insert(&mut self, entry: Arc<Entry>) {
        match self.find(&entry.id) {
            Ok(at) => self.0[at] = entry,
            Err(at) => {
                if self.0.is_empty() {
                    self.0.reserve_exact(1);
                }
                self.0.insert(at, entry);
            }
        }
    }

    fn remove(&mut self, id: &Id) {
        if let Ok(at) = self.find(id) {
            self.0.remove(at);
        }
    }
}

/// Reached version, and waiters for later ones.
#[derive(Default)]
struct Progress {
    reached: u64,
    next: u64,
    for_version: BTreeMap<(u64, u64), oneshot::Sender<()>>,
    for_removal: HashMap<Arc<str>, Vec<oneshot::Sender<()>>>,
}

/// A list in progress, which will replace the store's content.
#[derive(Default)]
pub(super) struct Listing {
    seen: HashSet<Id>,
    highest: u64,
}

impl Store {
    pub(super) fn new(source: Source, kind: Kind, interests: Arc<Interests>, room: &Arc<Room>) -> Self {
        Self {
            samples: Samples::of(&kind),
            source,
            kind,
            interests,
            data: RwLock::default(),
            room: room.part(),
            progress: Mutex::default(),
            hasher: RandomState::new(),
        }
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
        let smallest =
            by_owner.into_iter().chain(by_label).min_by_key(|postings| postings.map_or(0, |postings| postings.0.len()));
        match smallest {
            Some(None) => Vec::new(),
            Some(Some(postings)) => postings.0.iter().filter(|entry| wanted(entry)).cloned().collect(),
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

    /// Number of objects, and the bytes of their texts as they are held.
    pub(super) fn size(&self) -> (usize, usize) {
        let data = self.data.read();
        (data.objects.values().map(BTreeMap::len).sum(), data.bytes)
    }

    /// Last version seen.
    pub(super) fn version(&self) -> u64 {
        self.progress.lock().reached
    }

    /// `None` when the store has seen `version`; otherwise resolves when it has.
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

    /// `None` when the store does not have that object; otherwise resolves when it is gone.
    pub(super) fn gone(&self, namespace: &str, name: &str, uid: &Arc<str>) -> Option<oneshot::Receiver<()>> {
        // Locked first, so that no removal slips in between looking and waiting.
        let mut progress = self.progress.lock();
        self.get(namespace, name).filter(|entry| entry.uid == *uid)?;
        let (sender, receiver) = oneshot::channel();
        progress.for_removal.entry(uid.clone()).or_default().push(sender);
        Some(receiver)
    }

    /// Adds or replaces an object.
    pub(super) fn apply(&self, object: Value) {
        let version = self.put(object).1;
        self.advance(version);
    }

    /// Removes an object; `object` is its last state, with the version of the deletion.
    pub(super) fn delete(&self, object: &Value) {
        let entry = self.encode(&mut object.clone());
        // A late event about an earlier object of the same name must not take the new one away.
        let removed = self
            .get(&entry.id.0, &entry.id.1)
            .filter(|held| held.uid == entry.uid || entry.version == 0 || held.version <= entry.version);
        if removed.is_some() {
            self.remove(&entry.id, entry.version);
        }
        self.advance(entry.version);
    }

    /// Adds an object of a list.
    pub(super) fn apply_listed(&self, listing: &mut Listing, object: Value) {
        let (id, version) = self.put(object);
        listing.highest = listing.highest.max(version);
        listing.seen.insert(id);
    }

    /// Completes a list: other objects are removed. `at_least` is a version that the list is known to include.
    pub(super) fn finish(&self, listing: Listing, at_least: u64) {
        for id in self.names() {
            if !listing.seen.contains(&id) {
                self.remove(&id, 0);
            }
        }
        self.advance(listing.highest.max(at_least));
    }

    fn put(&self, mut object: Value) -> (Id, u64) {
        let entry = Arc::new(self.encode(&mut object));
        // Parsed already, for as long as it is looked at here.
        let object = Arc::new(object);
        *entry.parsed.lock() = Arc::downgrade(&object);
        let (id, version) = (entry.id.clone(), entry.version);
        let old = {
            let mut data = self.data.write();
            let held = data.objects.get(&id.0).and_then(|names| names.get(&id.1)).cloned();
            if let Some(held) = &held
                && (held.version > version || (held.version == version && held.text.is(&entry.text)))
            {
                return (id, version);
            }
            let before = data.cost;
            data.insert(entry.clone(), held.as_deref());
            self.room.change(data.cost, before);
            held
        };
        let (before, now) = (old.as_deref().map(Entry::marks), Some(entry.marks()));
        self.tell(&id, version, before, now, |news| {
            old.as_deref().is_none_or(|old| entry.differs(old, news, &self.hasher))
        });
        if let Some(old) = old
            && old.uid != entry.uid
        {
            self.removed(&old.uid);
        }
        (id, version)
    }

    /// Waits until it has to let go: all stores of this API server hold more than they may, and this one most. Returns the limit in bytes.
    pub(super) async fn overfull(&self) -> usize {
        self.room.too_much().await
    }

    /// Lets go of everything, without a word to readers: nobody may read an empty store as one whose objects are gone. Who waits for a
    /// removal waits no more: it would not be seen.
    pub(super) fn clear(&self) {
        let data = std::mem::take(&mut *self.data.write());
        self.room.change(0, data.cost);
        let waiting = std::mem::take(&mut self.progress.lock().for_removal);
        for sender in waiting.into_values().flatten() {
            // Nobody may be waiting any more.
            let _ = sender.send(());
        }
    }

    fn remove(&self, id: &Id, version: u64) {
        let removed = {
            let mut data = self.data.write();
            let before = data.cost;
            let removed = data.remove(id);
            self.room.change(data.cost, before);
            removed
        };
        if let Some(entry) = removed {
            self.tell(id, version, Some(entry.marks()), None, |_| true);
            self.removed(&entry.uid);
        }
    }

    fn tell(
        &self,
        id: &Id,
        version: u64,
        old: Option<Marks<'_>>,
        new: Option<Marks<'_>>,
        differs: impl Fn(News) -> bool,
    ) {
        let change = Change { namespace: &id.0, name: &id.1, version, old, new };
        self.interests.changed(&self.source, &self.kind, &change, differs);
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

    fn encode(&self, object: &mut Value) -> Entry {
        complete(&self.kind, object);
        let metadata = &object["metadata"];
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
        let data = self.data.read();
        let (namespace, name) = match data.objects.get_key_value(text("namespace")) {
            Some((namespace, names)) => {
                (namespace.clone(), names.get_key_value(text("name")).map(|(name, _)| name.clone()))
            }
            None => (text("namespace").into(), None),
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
            id: (namespace, name.unwrap_or_else(|| text("name").into())),
            uid: text("uid").into(),
            version: text("resourceVersion").parse().unwrap_or(0),
            deleting: metadata.get("deletionTimestamp").is_some(),
            labels,
            owners,
            text: self.samples.pack(&object.to_string()),
            parsed: Mutex::default(),
            digests: Mutex::default(),
        }
    }
}

impl Data {
    /// Adds an object, in the place of `old`, which is what is held under its name.
    fn insert(&mut self, entry: Arc<Entry>, old: Option<&Entry>) {
        if let Some(old) = old {
            self.bytes -= old.text.size();
            self.cost -= cost(old);
            for label in old.labels.iter().filter(|label| !entry.labels.contains(label)) {
                remove_from(&mut self.by_label, label, &old.id);
            }
            for owner in old.owners.iter().filter(|owner| !entry.owners.contains(owner)) {
                remove_from(&mut self.by_owner, owner, &old.id);
            }
        }
        self.bytes += entry.text.size();
        self.cost += cost(&entry);
        for label in &entry.labels {
            self.by_label.entry(label.clone()).or_default().insert(entry.clone());
        }
        for owner in &entry.owners {
            self.by_owner.entry(owner.clone()).or_default().insert(entry.clone());
        }
        self.objects.entry(entry.id.0.clone()).or_default().insert(entry.id.1.clone(), entry);
    }

    fn remove(&mut self, id: &Id) -> Option<Arc<Entry>> {
        let names = self.objects.get_mut(&id.0)?;
        let entry = names.remove(&id.1)?;
        if names.is_empty() {
            self.objects.remove(&id.0);
        }
        self.bytes -= entry.text.size();
        self.cost -= cost(&entry);
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
        if postings.0.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_object_is_found_by_what_it_has_now_and_by_nothing_else() {
        let kind = Kind::new("", "v1", "ConfigMap", "configmaps", true);
        let room = Room::new(usize::MAX);
        let store = Store::new(Source::Management, kind, Interests::new(), &room);
        let put = |name: &str, version: u64, labels: Value, owner: &str| {
            store.apply(json!({"metadata": {
                "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
                "labels": labels, "ownerReferences": [{"uid": owner}, {"uid": owner}],
            }}));
        };
        let named = |selector: &Selector| -> Vec<String> {
            store.list(None, selector).iter().map(|entry| entry.id.1.to_string()).collect()
        };
        let by = |key: &str, value: &str| named(&Selector::labels([(key, value)]));
        put("b", 1, json!({"in": "x", "stays": "s"}), "one");
        put("a", 2, json!({"in": "x", "stays": "s"}), "one");
        assert_eq!(
            (by("in", "x"), named(&Selector::owned_by("one"))),
            (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()])
        );
        put("b", 3, json!({"in": "y", "stays": "s"}), "two");
        assert_eq!(
            (by("in", "x"), by("in", "y"), by("stays", "s")),
            (vec!["a".into()], vec!["b".into()], vec!["a".into(), "b".into()])
        );
        assert_eq!(
            (named(&Selector::owned_by("one")), named(&Selector::owned_by("two"))),
            (vec!["a".into()], vec!["b".into()])
        );
        store.delete(&json!({"metadata": {"name": "b", "namespace": "ns", "uid": "uid-b", "resourceVersion": "4"}}));
        store.delete(&json!({"metadata": {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": "5"}}));
        let data = store.data.read();
        assert!(
            data.by_label.is_empty() && data.by_owner.is_empty() && data.objects.is_empty(),
            "nothing is left of them"
        );
        assert_eq!((data.bytes, data.cost, room.held()), (0, 0, 0));
    }
}

//! Who read what: a change wakes exactly those keys whose last pass saw the old state.
//!
//! A reader (a key of a controller) registers each read *before* it looks, so a change between registering and
//! looking wakes it once too often and never once too seldom. When its next pass ends, the reads that were not repeated
//! are dropped. Finding the readers of a change costs the object's labels and owners, not the number of readers or clusters:
//! a listing hangs on one anchor, its owner or one of its exact labels.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    kind::{Key, Kind, Source},
    selector::{Label, Selector},
};

/// Something that can change without being an object, as in `connection:<namespace>/<cluster>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token(Arc<str>);

impl Token {
    /// The token of that name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }
}

/// Receives the keys that have to run again.
pub trait Wake: Send + Sync {
    /// `key` has to run again. Must not block.
    fn wake(&self, key: &Key);
}

/// A registered receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControllerId(u32);

/// What of an object decides who is woken.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    /// Its labels.
    pub labels: &'a [Label],
    /// The uids of its owners.
    pub owners: &'a [Arc<str>],
}

impl Marks<'_> {
    fn match_by(&self, selector: &Selector) -> bool {
        selector.matches(|key| self.labels.iter().find(|label| &*label.0 == key).map(|label| &*label.1), self.owners)
    }
}

/// JSON pointers to what of an object was read.
pub type Fields = &'static [&'static str];

/// One read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// An object, there or not.
    Object {
        /// The API server.
        source: Source,
        /// The kind.
        kind: Kind,
        /// The namespace; empty for cluster-scoped kinds.
        namespace: Arc<str>,
        /// The name.
        name: Arc<str>,
    },
    /// Fields of an object, there or not.
    Fields {
        /// The API server.
        source: Source,
        /// The kind.
        kind: Kind,
        /// The namespace; empty for cluster-scoped kinds.
        namespace: Arc<str>,
        /// The name.
        name: Arc<str>,
        /// What of it.
        fields: Fields,
    },
    /// A list.
    Listing {
        /// The API server.
        source: Source,
        /// The kind.
        kind: Kind,
        /// The namespace, or all.
        namespace: Option<Arc<str>>,
        /// The objects meant.
        selector: Selector,
    },
    /// A token.
    Token(Token),
}

/// One pass of one reader; see [`Interests::begin`].
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    reader: u32,
    generation: u64,
}

/// All reads of all controllers, over all caches of the process.
#[derive(Default)]
pub struct Interests {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_controller: u32,
    next_generation: u64,
    sinks: HashMap<ControllerId, Arc<dyn Wake>>,
    ids: HashMap<(ControllerId, Key), u32>,
    readers: Vec<Option<Reader>>,
    free: Vec<u32>,
    kinds: HashMap<(Source, Kind), Readers>,
    tokens: HashMap<Token, HashSet<u32>>,
}

struct Reader {
    controller: ControllerId,
    key: Key,
    generation: u64,
    /// Each read, the pass that last made it, and where a listing hangs.
    reads: HashMap<Interest, (u64, Anchor)>,
}

/// The readers of one kind in one source.
#[derive(Default)]
struct Readers {
    /// Controllers of the kind itself.
    subscribers: Vec<ControllerId>,
    objects: HashMap<Arc<str>, HashMap<Arc<str>, HashSet<u32>>>,
    /// By namespace and name.
    fields: HashMap<Id, HashMap<Fields, HashSet<u32>>>,
    listings: HashMap<Anchor, HashMap<Listing, HashSet<u32>>>,
}

type Id = (Arc<str>, Arc<str>);

type Listing = (Option<Arc<str>>, Selector);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Anchor {
    Owner(Arc<str>),
    Label(Label),
    Namespace(Arc<str>),
    All,
}

impl Interests {
    /// Nobody reads anything yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Adds a receiver of wake-ups.
    pub fn register(&self, sink: Arc<dyn Wake>) -> ControllerId {
        let mut state = self.state.lock();
        let id = ControllerId(state.next_controller);
        state.next_controller += 1;
        state.sinks.insert(id, sink);
        id
    }

    /// Removes a receiver, and all that its keys read.
    pub fn unregister(&self, controller: ControllerId) {
        let mut state = self.state.lock();
        state.sinks.remove(&controller);
        state.kinds.values_mut().for_each(|readers| readers.subscribers.retain(|id| *id != controller));
        let keys: Vec<_> = state.ids.keys().filter(|(id, _)| *id == controller).cloned().collect();
        for (_, key) in keys {
            state.forget(controller, &key);
        }
    }

    /// Wakes the controller with the key of every object of this kind that changes.
    pub fn subscribe(&self, controller: ControllerId, source: &Source, kind: &Kind) {
        let mut state = self.state.lock();
        let readers = state.kinds.entry((source.clone(), kind.clone())).or_default();
        if !readers.subscribers.contains(&controller) {
            readers.subscribers.push(controller);
        }
    }

    /// Starts a pass of `key`. What earlier passes read stays until [`Interests::finish`].
    pub fn begin(&self, controller: ControllerId, key: &Key) -> Reading {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.next_generation += 1;
        let generation = state.next_generation;
        let id = *state.ids.entry((controller, key.clone())).or_insert_with(|| match state.free.pop() {
            Some(id) => id,
            None => {
                state.readers.push(None);
                u32::try_from(state.readers.len() - 1).unwrap_or(u32::MAX)
            }
        });
        if let Some(slot) = state.readers.get_mut(id as usize) {
            let reader =
                slot.get_or_insert_with(|| Reader { controller, key: key.clone(), generation, reads: HashMap::new() });
            reader.generation = generation;
        }
        Reading { reader: id, generation }
    }

    /// Remembers a read of this pass. To be called before looking.
    pub fn note(&self, reading: Reading, interest: Interest) {
        let mut state = self.state.lock();
        state.note(reading, interest);
    }

    /// Ends a pass: what it did not read again is forgotten.
    pub fn finish(&self, reading: Reading) {
        let mut state = self.state.lock();
        let Some(reader) = state.reader(reading) else { return };
        let stale: Vec<_> = reader
            .reads
            .extract_if(|_, (generation, _)| *generation != reading.generation)
            .map(|(interest, (_, anchor))| (interest, anchor))
            .collect();
        for (interest, anchor) in stale {
            state.drop_read(reading.reader, &interest, &anchor);
        }
    }

    /// Forgets a key and all that it read.
    pub fn forget(&self, controller: ControllerId, key: &Key) {
        self.state.lock().forget(controller, key);
    }

    /// An object appeared (no old marks), changed, or went (no new marks). `differs` says whether any of these fields did; it is
    /// asked only when somebody reads fields of this object.
    pub fn changed(
        &self,
        source: &Source,
        kind: &Kind,
        (namespace, name): (&str, &str),
        old: Option<Marks<'_>>,
        new: Option<Marks<'_>>,
        differs: impl Fn(Fields) -> bool,
    ) {
        let id = (Arc::from(namespace), Arc::from(name));
        let read: Vec<Fields> = {
            let state = self.state.lock();
            let Some(readers) = state.kinds.get(&(source.clone(), kind.clone())) else { return };
            readers.fields.get(&id).into_iter().flat_map(HashMap::keys).copied().collect()
        };
        // Outside of the lock, as it parses. Whoever comes meanwhile sees the new state.
        let changed: Vec<Fields> = read.into_iter().filter(|fields| differs(fields)).collect();
        let (subscribers, woken) = {
            let state = self.state.lock();
            let Some(readers) = state.kinds.get(&(source.clone(), kind.clone())) else { return };
            let subscribers: Vec<_> =
                readers.subscribers.iter().filter_map(|id| state.sinks.get(id).cloned()).collect();
            let mut affected = readers.affected(namespace, name, old, new);
            let by_fields = readers.fields.get(&id);
            affected.extend(changed.iter().filter_map(|fields| by_fields?.get(fields)).flatten());
            (subscribers, state.resolve(&affected))
        };
        if !subscribers.is_empty() {
            let key = Key::new(kind, namespace, name);
            tracing::trace!(%key, "changed");
            subscribers.iter().for_each(|sink| sink.wake(&key));
        }
        for (sink, key) in &woken {
            tracing::trace!(%kind, namespace, name, %key, "a change wakes");
            sink.wake(key);
        }
    }

    /// The token's thing changed.
    pub fn fire(&self, token: &Token) {
        let woken = {
            let state = self.state.lock();
            state.tokens.get(token).map(|readers| state.resolve(readers)).unwrap_or_default()
        };
        for (sink, key) in &woken {
            tracing::trace!(?token, %key, "a token wakes");
            sink.wake(key);
        }
    }

    /// Whether any key's last pass noted the token.
    pub fn has_readers(&self, token: &Token) -> bool {
        self.state.lock().tokens.contains_key(token)
    }

    /// How many reads are remembered, over all readers.
    pub fn len(&self) -> usize {
        self.state.lock().readers.iter().flatten().map(|reader| reader.reads.len()).sum()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl State {
    /// The reader, unless it was forgotten or a later pass has begun.
    fn reader(&mut self, reading: Reading) -> Option<&mut Reader> {
        self.readers.get_mut(reading.reader as usize)?.as_mut().filter(|r| r.generation == reading.generation)
    }

    fn note(&mut self, reading: Reading, interest: Interest) {
        let Some(reader) = self.reader(reading) else { return };
        if let Some((generation, _)) = reader.reads.get_mut(&interest) {
            *generation = reading.generation;
            return;
        }
        let anchor = match &interest {
            Interest::Object { source, kind, namespace, name } => {
                let readers = self.kinds.entry((source.clone(), kind.clone())).or_default();
                let names = readers.objects.entry(namespace.clone()).or_default();
                names.entry(name.clone()).or_default().insert(reading.reader);
                Anchor::All
            }
            Interest::Fields { source, kind, namespace, name, fields } => {
                let readers = self.kinds.entry((source.clone(), kind.clone())).or_default();
                let by_fields = readers.fields.entry((namespace.clone(), name.clone())).or_default();
                by_fields.entry(*fields).or_default().insert(reading.reader);
                Anchor::All
            }
            Interest::Listing { source, kind, namespace, selector } => {
                let readers = self.kinds.entry((source.clone(), kind.clone())).or_default();
                let anchor = readers.anchor(namespace.as_ref(), selector);
                let listings = readers.listings.entry(anchor.clone()).or_default();
                listings.entry((namespace.clone(), selector.clone())).or_default().insert(reading.reader);
                anchor
            }
            Interest::Token(token) => {
                self.tokens.entry(token.clone()).or_default().insert(reading.reader);
                Anchor::All
            }
        };
        if let Some(reader) = self.reader(reading) {
            reader.reads.insert(interest, (reading.generation, anchor));
        }
    }

    fn forget(&mut self, controller: ControllerId, key: &Key) {
        let Some(id) = self.ids.remove(&(controller, key.clone())) else { return };
        let Some(reader) = self.readers.get_mut(id as usize).and_then(Option::take) else { return };
        for (interest, (_, anchor)) in reader.reads {
            self.drop_read(id, &interest, &anchor);
        }
        self.free.push(id);
    }

    /// Removes one read from the index, with every map that becomes empty by it.
    fn drop_read(&mut self, id: u32, interest: &Interest, anchor: &Anchor) {
        match interest {
            Interest::Object { source, kind, namespace, name } => {
                let Some(readers) = self.kinds.get_mut(&(source.clone(), kind.clone())) else { return };
                let Some(names) = readers.objects.get_mut(namespace) else { return };
                remove_from(names, name, id);
                if names.is_empty() {
                    readers.objects.remove(namespace);
                }
                self.drop_kind_if_unread(source, kind);
            }
            Interest::Fields { source, kind, namespace, name, fields } => {
                let Some(readers) = self.kinds.get_mut(&(source.clone(), kind.clone())) else { return };
                let object = (namespace.clone(), name.clone());
                let Some(by_fields) = readers.fields.get_mut(&object) else { return };
                remove_from(by_fields, fields, id);
                if by_fields.is_empty() {
                    readers.fields.remove(&object);
                }
                self.drop_kind_if_unread(source, kind);
            }
            Interest::Listing { source, kind, namespace, selector } => {
                let Some(readers) = self.kinds.get_mut(&(source.clone(), kind.clone())) else { return };
                let Some(listings) = readers.listings.get_mut(anchor) else { return };
                remove_from(listings, &(namespace.clone(), selector.clone()), id);
                if listings.is_empty() {
                    readers.listings.remove(anchor);
                }
                self.drop_kind_if_unread(source, kind);
            }
            Interest::Token(token) => remove_from(&mut self.tokens, token, id),
        }
    }

    fn drop_kind_if_unread(&mut self, source: &Source, kind: &Kind) {
        let scope = (source.clone(), kind.clone());
        if self.kinds.get(&scope).is_some_and(Readers::is_empty) {
            self.kinds.remove(&scope);
        }
    }

    fn resolve(&self, readers: &HashSet<u32>) -> Vec<(Arc<dyn Wake>, Key)> {
        readers
            .iter()
            .filter_map(|id| self.readers.get(*id as usize)?.as_ref())
            .filter_map(|reader| Some((self.sinks.get(&reader.controller)?.clone(), reader.key.clone())))
            .collect()
    }
}

impl Readers {
    fn is_empty(&self) -> bool {
        self.subscribers.is_empty() && self.objects.is_empty() && self.fields.is_empty() && self.listings.is_empty()
    }

    /// The owner, or that exact label which the fewest other listings share.
    fn anchor(&self, namespace: Option<&Arc<str>>, selector: &Selector) -> Anchor {
        if let Some(owner) = selector.owner() {
            return Anchor::Owner(owner.clone());
        }
        selector
            .exact()
            .map(|(key, value)| Anchor::Label((key.clone(), value.clone())))
            .min_by_key(|anchor| self.listings.get(anchor).map_or(0, HashMap::len))
            .unwrap_or_else(|| namespace.map_or(Anchor::All, |namespace| Anchor::Namespace(namespace.clone())))
    }

    fn affected(&self, namespace: &str, name: &str, old: Option<Marks<'_>>, new: Option<Marks<'_>>) -> HashSet<u32> {
        let mut affected = HashSet::new();
        if let Some(readers) = self.objects.get(namespace).and_then(|names| names.get(name)) {
            affected.extend(readers);
        }
        let mut visited = HashSet::new();
        for marks in [old, new].into_iter().flatten() {
            let anchors = [Anchor::All, Anchor::Namespace(namespace.into())]
                .into_iter()
                .chain(marks.owners.iter().cloned().map(Anchor::Owner))
                .chain(marks.labels.iter().cloned().map(Anchor::Label));
            for anchor in anchors {
                let Some((anchor, listings)) = self.listings.get_key_value(&anchor) else { continue };
                for (listing, readers) in listings {
                    let (scope, selector) = listing;
                    if scope.as_ref().is_none_or(|scope| **scope == *namespace)
                        && !visited.contains(&(anchor, listing))
                        && marks.match_by(selector)
                    {
                        visited.insert((anchor, listing));
                        affected.extend(readers);
                    }
                }
            }
        }
        affected
    }
}

fn remove_from<K: std::hash::Hash + Eq>(map: &mut HashMap<K, HashSet<u32>>, key: &K, id: u32) {
    if let Some(readers) = map.get_mut(key) {
        readers.remove(&id);
        if readers.is_empty() {
            map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
